package thrift

import (
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/slipstream-go/slipstream"
)

// JSON holds options for writing structs as JSON. The zero value is ready to use.
//
// This is not the JSON protocol of Apache Thrift, which uses IDs and types of fields instead of
// names. The mapping is:
//
//	bool            true, false
//	i8, i16, i32    a number without fraction and exponent
//	i64             the same, or a string with it (I64Strings). Both are read.
//	double          a number; "NaN", "Infinity" and "-Infinity" are strings
//	string          a string. Bytes that are not UTF-8 are written as U+FFFD, each of them.
//	binary          a string in base64, with padding (RFC 4648, section 4)
//	uuid            a string such as "01234567-89ab-cdef-0123-456789abcdef"
//	enum            a string with the name, or a number if the value has no name. Both are read.
//	struct, union   an object with the names of fields. Fields that are absent have no member.
//	list, set       an array
//	map             an object, if keys are strings, binaries, integers, enums, bools or uuids. The names
//	                of members are keys as above; numbers and bools are in quotes. Maps with
//	                other keys are arrays of arrays with a key and a value.
//
// Containers and binaries that are nil are written as empty, unless they are optional, and so are
// structs that are required. Unknown fields are not written.
//
// When JSON is read, unknown members are skipped, and members with the value null are treated as
// absent. If a member occurs twice, the last value counts. A required field that is missing, a
// union without exactly one field, a number that does not fit into its type, a string that is not
// valid Unicode and everything that RFC 8259 does not allow are errors.
//
// Code generated for Kitex has the mapping of Kitex's generic calls, which docs/THRIFT.md
// describes. Both fields apply to it as well.
type JSON struct {
	// I64Strings writes values of type i64 as strings. In JavaScript, numbers are exact only up
	// to 2^53.
	I64Strings bool
	// SortedKeys writes maps in the order of the text of their keys, so that equal maps have the
	// same text. Otherwise the order is that in which Go ranges over them.
	SortedKeys bool
}

// JSONStruct is a Struct that can be written as JSON and read from it. Generated types also
// implement json.Marshaler and json.Unmarshaler.
type JSONStruct interface {
	// AppendJSON appends the struct to b. The error says where values are nested deeper than
	// MaxDepth.
	AppendJSON(b []byte, o JSON) ([]byte, error)
	// ReadJSON reads the struct from b, which must contain nothing else. Fields that are missing in
	// b keep their values. Errors are of type *JSONError; the struct is then incomplete.
	ReadJSON(r *Reader, b []byte) error
}

// JSONError reports why a value cannot be written as JSON, or why a text is not the JSON of a
// struct.
type JSONError struct {
	// Offset is the offset of the mistake in the text.
	Offset int
	// Path leads from the struct to the value: lines[0].quantity, attrs["key"]. In a map that is
	// an array, the entry at index 0 has [0].key and [0].value. It is empty if the struct itself is
	// invalid.
	Path string
	// Problem describes what was expected, or why the value is invalid.
	Problem string
}

// Error returns the path, the problem and the offset.
func (e *JSONError) Error() string {
	var s strings.Builder
	s.WriteString("thrift: JSON: ")
	if e.Path != "" {
		s.WriteString("field " + e.Path + ": ")
	}
	s.WriteString(e.Problem)
	s.WriteString(", at byte " + strconv.Itoa(e.Offset))
	return s.String()
}

// DeliveryOutcome returns [slipstream.Executed], as [Error.DeliveryOutcome] does.
func (e *JSONError) DeliveryOutcome() slipstream.Outcome { return slipstream.Executed }

// in adds a step to the beginning of the path.
func (e *JSONError) in(step string) { e.Path = step + e.Path }

const tooDeep = "values are nested too deeply"

var jsonWriters = sync.Pool{New: func() any { return new(jsonWriter) }}

// AppendJSON appends the JSON of the struct at p, whose index in the table is index, to b. If p is
// nil, it appends null.
func (t *Table) AppendJSON(b []byte, p unsafe.Pointer, index int, o JSON) ([]byte, error) {
	if p == nil {
		return append(b, "null"...), nil
	}
	w := jsonWriters.Get().(*jsonWriter)
	w.JSON, w.b, w.kitex = o, b, t.Kitex
	t.writeJSON(w, p, index, MaxDepth)
	out, err := w.b, w.err
	*w = jsonWriter{}
	jsonWriters.Put(w)
	if err != nil {
		err.Path = strings.TrimPrefix(err.Path, ".")
		return b, err
	}
	return out, nil
}

var jsonReaders = sync.Pool{New: func() any { return new(jsonReader) }}

// keptByJSON is the maximum amount of memory that is kept for the next jsonReader.
const keptByJSON = 64 << 10

// ReadJSON reads the struct at p, whose index in the table is index, from b. r determines where
// strings are stored and how much memory values may take.
func (t *Table) ReadJSON(r *Reader, b []byte, p unsafe.Pointer, index int) error {
	r.Begin(len(b))
	d := jsonReaders.Get().(*jsonReader)
	d.r, d.b = r, b
	if d.count() {
		t.readDocument(d, p, index)
	}
	err := d.err
	counts, text := d.counts[:0], d.scratch[:0]
	if 4*cap(counts)+cap(text) > keptByJSON {
		counts, text = nil, nil
	}
	*d = jsonReader{counts: counts, scratch: text}
	jsonReaders.Put(d)
	r.release()
	if err != nil {
		err.Path = strings.TrimPrefix(err.Path, ".")
		return err
	}
	return nil
}

// FromJSON is ReadJSON with the semantics of json.Unmarshaler: null changes nothing.
func (t *Table) FromJSON(b []byte, p unsafe.Pointer, index int) error {
	if string(b) == "null" {
		return nil
	}
	r := readers.Get().(*Reader)
	err := t.ReadJSON(r, b, p, index)
	*r = Reader{}
	readers.Put(r)
	return err
}

// isName reports whether keys of this type are names of members.
func (ti *TypeInfo) isName() bool {
	return fixed[ti.Wire] != 0 && (ti.Wire != TypeDouble || ti.Member) || ti.Wire == TypeString && !ti.Binary
}
