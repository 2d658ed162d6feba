package thriftdoc

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/slipstream-go/slipstream/thrift"
)

// MismatchError says that a value of a document does not fit the type of its field.
type MismatchError struct {
	Path string // of the member
	Type string // of the field
}

// Error implements error.
func (e *MismatchError) Error() string {
	return "the value of " + e.Path + " does not fit the type " + e.Type + " of its field"
}

// errJSON is about a document that is not the JSON of an object, which no origin makes.
var errJSON = errors.New("the document is not a JSON object of the expected form")

// Append appends the struct of a document in the Binary protocol. Members that the layout does not know are
// skipped. After an error b is returned as it was.
func (l *Layout) Append(b, document []byte) ([]byte, error) {
	t := transcoder{in: document, out: b}
	t.space()
	err := t.object(l, "")
	if t.space(); err == nil && t.at != len(t.in) {
		err = errJSON
	}
	if err != nil {
		return b, err
	}
	return t.out, nil
}

// transcoder reads JSON and writes a struct. The nesting of its calls is that of layouts, which is bounded by
// resource.MaxDepth.
type transcoder struct {
	in  []byte
	at  int
	out []byte
}

// peek returns the next byte, or 0 at the end.
func (t *transcoder) peek() byte {
	if t.at < len(t.in) {
		return t.in[t.at]
	}
	return 0
}

func (t *transcoder) space() {
	for t.at < len(t.in) {
		switch t.in[t.at] {
		case ' ', '\t', '\r', '\n':
			t.at++
		default:
			return
		}
	}
}

// token passes a byte and the space around it, and reports whether it was there.
func (t *transcoder) token(c byte) bool {
	t.space()
	if t.peek() != c {
		return false
	}
	t.at++
	t.space()
	return true
}

// object writes the struct of an object.
func (t *transcoder) object(l *Layout, path string) error {
	if !t.token('{') {
		return errJSON
	}
	next := 0 // members usually have the order of the shape
	for first := true; !t.token('}'); first = false {
		if !first && !t.token(',') {
			return errJSON
		}
		name, err := t.name()
		if err != nil {
			return err
		}
		if !t.token(':') {
			return errJSON
		}
		at := l.find(name, next)
		if at < 0 {
			if err := t.skip(); err != nil {
				return err
			}
			continue
		}
		next = at + 1
		if err := t.member(&l.fields[at], path); err != nil {
			return err
		}
	}
	t.out = append(t.out, thrift.TypeStop)
	return nil
}

// find returns the index of a member, which is probably next, or -1.
func (l *Layout) find(name []byte, next int) int {
	if next < len(l.fields) && l.fields[next].name == string(name) {
		return next
	}
	if i, ok := l.byName[string(name)]; ok {
		return i
	}
	return -1
}

// name reads the name of a member. It is valid until the next call if it has escapes, and refers to the document
// otherwise.
func (t *transcoder) name() ([]byte, error) {
	if t.peek() != '"' {
		return nil, errJSON
	}
	from := t.at
	raw, escaped, err := t.quoted()
	if err != nil || !escaped {
		return raw, err
	}
	t.at = from
	start := len(t.out)
	if err := t.unquote(); err != nil {
		return nil, err
	}
	name := append([]byte(nil), t.out[start:]...)
	t.out = t.out[:start]
	return name, nil
}

// member writes a field, or nothing for null.
func (t *transcoder) member(f *field, path string) error {
	if f.kind == skipped || t.null() {
		return t.skipUnlessNull()
	}
	start := len(t.out)
	t.out = append(t.out, f.kind.wire(), byte(f.id>>8), byte(f.id))
	var ok bool
	var err error
	switch c := t.peek(); f.kind {
	case boolean:
		ok = t.boolean()
	case integer32, integer64:
		ok = t.integer(f.kind)
	case double:
		ok = t.double()
	case text:
		switch {
		case c == '"':
			ok, err = true, t.length(t.unquote)
		case c != '{' && c != '[':
			ok, err = true, t.length(t.copyValue)
		}
	case verbatim:
		ok, err = true, t.length(t.copyValue)
	case rows:
		ok, err = c == '[', t.rows(f.rows, path+f.name+".")
	}
	if !ok {
		t.out = t.out[:start]
		return &MismatchError{Path: path + f.name, Type: f.kind.String()}
	}
	return err
}

// wire returns the type of a field in messages.
func (k kind) wire() byte {
	switch k {
	case boolean:
		return thrift.TypeBool
	case integer32:
		return thrift.TypeI32
	case integer64:
		return thrift.TypeI64
	case double:
		return thrift.TypeDouble
	case rows:
		return thrift.TypeList
	}
	return thrift.TypeString
}

// null reports whether the value is null.
func (t *transcoder) null() bool {
	return len(t.in)-t.at >= 4 && string(t.in[t.at:t.at+4]) == "null"
}

// skipUnlessNull passes a value without writing it.
func (t *transcoder) skipUnlessNull() error {
	if t.null() {
		t.at += 4
		return nil
	}
	return t.skip()
}

func (t *transcoder) boolean() bool {
	switch v := t.plain(); v {
	case "true", "false":
		t.out = append(t.out, thrift.Bit(v == "true"))
		return true
	}
	return false
}

// plain passes a number, true or false, and returns its text, which refers to the document. It returns ""
// for other values.
func (t *transcoder) plain() string {
	from := t.at
	for t.at < len(t.in) {
		switch c := t.in[t.at]; c {
		case ',', '}', ']', ' ', '\t', '\r', '\n', ':', '"', '{', '[':
			return view(t.in[from:t.at])
		}
		t.at++
	}
	return view(t.in[from:t.at])
}

// view returns b as a string. b must not change while it is used.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (t *transcoder) integer(k kind) bool {
	bits := 64
	if k == integer32 {
		bits = 32
	}
	v := t.plain()
	n, err := strconv.ParseInt(v, 10, bits)
	switch {
	case err != nil:
		return false
	case k == integer32:
		t.out = binary.BigEndian.AppendUint32(t.out, uint32(n))
	default:
		t.out = binary.BigEndian.AppendUint64(t.out, uint64(n))
	}
	return true
}

// double writes a number, or one of the strings for which JSON has no number.
func (t *transcoder) double() bool {
	v := ""
	if t.peek() == '"' {
		raw, escaped, err := t.quoted()
		if v = view(raw); err != nil || escaped || v != "NaN" && v != "Infinity" && v != "-Infinity" {
			return false
		}
	} else {
		v = t.plain()
	}
	n, err := strconv.ParseFloat(v, 64)
	if v == "" || err != nil && !errors.Is(err, strconv.ErrRange) {
		return false
	}
	t.out = binary.BigEndian.AppendUint64(t.out, math.Float64bits(n))
	return true
}

// length writes what write appends, after its length.
func (t *transcoder) length(write func() error) error {
	at := len(t.out)
	t.out = append(t.out, 0, 0, 0, 0)
	if err := write(); err != nil {
		return err
	}
	n := len(t.out) - at - 4
	if n > math.MaxInt32 {
		return errJSON
	}
	binary.BigEndian.PutUint32(t.out[at:], uint32(n))
	return nil
}

// copyValue writes the JSON of a value.
func (t *transcoder) copyValue() error {
	from := t.at
	if err := t.skip(); err != nil {
		return err
	}
	t.out = append(t.out, t.in[from:t.at]...)
	return nil
}

// rows writes a list of structs.
func (t *transcoder) rows(l *Layout, path string) error {
	if !t.token('[') {
		return nil // reported as a mismatch
	}
	t.out = append(t.out, thrift.TypeStruct, 0, 0, 0, 0)
	at := len(t.out) - 4
	n := uint32(0)
	for ; !t.token(']'); n++ {
		if n > 0 && !t.token(',') {
			return errJSON
		}
		if err := t.object(l, path); err != nil {
			return err
		}
	}
	binary.BigEndian.PutUint32(t.out[at:], n)
	return nil
}

// quoted passes a string and returns what is between its quotes.
func (t *transcoder) quoted() (raw []byte, escaped bool, err error) {
	from := t.at + 1
	for i := from; i < len(t.in); i++ {
		switch t.in[i] {
		case '"':
			t.at = i + 1
			return t.in[from:i], escaped, nil
		case '\\':
			escaped = true
			i++
		}
	}
	return nil, false, errJSON
}

// unquote writes the text of a string.
func (t *transcoder) unquote() error {
	raw, escaped, err := t.quoted()
	if err != nil || !escaped {
		t.out = append(t.out, raw...)
		return err
	}
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' {
			t.out = append(t.out, c)
			continue
		}
		if i++; i == len(raw) {
			return errJSON
		}
		switch c := raw[i]; c {
		case '"', '\\', '/':
			t.out = append(t.out, c)
		case 'b':
			t.out = append(t.out, '\b')
		case 'f':
			t.out = append(t.out, '\f')
		case 'n':
			t.out = append(t.out, '\n')
		case 'r':
			t.out = append(t.out, '\r')
		case 't':
			t.out = append(t.out, '\t')
		case 'u':
			r, n, ok := unescape(raw[i+1:])
			if !ok {
				return errJSON
			}
			t.out = utf8.AppendRune(t.out, r)
			i += n
		default:
			return errJSON
		}
	}
	return nil
}

// unescape returns the character whose code in UTF-16 follows "\u", and the length of that code: two units if
// the character has two. Half of a pair is U+FFFD.
func unescape(b []byte) (r rune, n int, ok bool) {
	first, ok := unit(b)
	if !ok {
		return 0, 0, false
	}
	if first < 0xD800 || first > 0xDFFF {
		return first, 4, true
	}
	if first <= 0xDBFF && len(b) >= 10 && b[4] == '\\' && b[5] == 'u' {
		if second, ok := unit(b[6:]); ok && second >= 0xDC00 && second <= 0xDFFF {
			return (first-0xD800)<<10 + second - 0xDC00 + 0x10000, 10, true
		}
	}
	return utf8.RuneError, 4, true
}

func unit(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(view(b[:4]), 16, 16)
	return rune(n), err == nil
}

// skip passes a value of any kind and depth.
func (t *transcoder) skip() error {
	for depth := 0; t.at < len(t.in); {
		switch t.in[t.at] {
		case '"':
			if _, _, err := t.quoted(); err != nil {
				return err
			}
		case '{', '[':
			depth++
			t.at++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return errJSON
			}
			t.at++
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return errJSON
			}
			t.at++
			continue
		default:
			if t.plain() == "" {
				return errJSON
			}
		}
		if depth == 0 {
			return nil
		}
	}
	return errJSON
}
