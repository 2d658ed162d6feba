package thrift

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"sync"
	"unsafe"

	"github.com/slipstream-go/slipstream/thrift/internal/jsontext"
)

// readDocument reads the struct at p, and nothing after it.
func (t *Table) readDocument(d *jsonReader, p unsafe.Pointer, index int) {
	if t.Structs[index].Union && t.Structs[index].Reset != nil {
		t.Structs[index].Reset(p)
	}
	if t.readJSON(d, p, index, MaxDepth) && d.peek() != 0 || d.err == nil && d.off < len(d.b) {
		d.expected("the end of the input")
	}
}

// readJSON reads the struct at p. depth is the number of remaining levels of structs and
// containers.
func (t *Table) readJSON(d *jsonReader, p unsafe.Pointer, index, depth int) bool {
	d.peek()
	start := d.off
	if depth <= 0 {
		return d.fail(start, tooDeep)
	}
	s := &t.Structs[index]
	n, ok := d.enter('{', "an object")
	if !ok {
		return false
	}
	there, next := 0, 0
	var few [64]bool
	seen := few[:]
	if len(s.Fields) > len(few) {
		seen = make([]bool, len(s.Fields))
	}
	for i := range n {
		if !d.separate(i) {
			return false
		}
		name, ok := d.name()
		if !ok {
			return false
		}
		place := s.fieldNamed(name, next)
		if place < 0 {
			if !d.skip() {
				return false
			}
			continue
		}
		next = place + 1
		f := &s.Fields[place]
		if d.literal("null") {
			continue
		}
		there++
		seen[place] = true
		if !t.readField(d, unsafe.Add(p, f.Offset), f, depth-1) {
			d.err.in("." + f.Name)
			return false
		}
	}
	if !d.leave('}') {
		return false
	}
	if t.Kitex {
		return t.clearAbsent(d, p, s, seen)
	}
	if s.Union && there != 1 {
		return d.fail(start, codeTexts[-1-CodeUnion])
	}
	for i := range s.Fields {
		if s.Fields[i].Required && !seen[i] {
			return d.fail(start, "the required field "+s.Fields[i].Name+" is missing")
		}
	}
	return true
}

// fewFields is the maximum number of fields that a name is compared with one by one.
const fewFields = 16

// fieldNamed returns the index of the field with the given name, or -1. It tries the index next
// first.
func (s *StructInfo) fieldNamed(name []byte, next int) int {
	if next < len(s.Fields) && s.Fields[next].Name == string(name) {
		return next
	}
	if len(s.Fields) <= fewFields {
		for i := range s.Fields {
			if s.Fields[i].Name == string(name) {
				return i
			}
		}
		return -1
	}
	order, ok := fieldOrders.Load(s)
	if !ok {
		order, _ = fieldOrders.LoadOrStore(s, s.orderOfNames())
	}
	places := order.([]int)
	i, ok := slices.BinarySearchFunc(places, name, func(place int, name []byte) int {
		return compareName(s.Fields[place].Name, name)
	})
	if !ok {
		return -1
	}
	return places[i]
}

// fieldOrders caches the results of orderOfNames for structs with many fields.
var fieldOrders sync.Map // *StructInfo to []int

// orderOfNames returns the indexes of the fields in the order of their names.
func (s *StructInfo) orderOfNames() []int {
	places := make([]int, len(s.Fields))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(x, y int) int { return compareName(s.Fields[x].Name, []byte(s.Fields[y].Name)) })
	return places
}

// compareName orders names by length and then by their bytes.
func compareName(x string, y []byte) int {
	switch {
	case len(x) != len(y):
		return len(x) - len(y)
	case x == string(y):
		return 0
	case x < string(y):
		return -1
	}
	return 1
}

// readField reads the field at p, whose value is not null.
func (t *Table) readField(d *jsonReader, p unsafe.Pointer, f *FieldInfo, depth int) bool {
	if f.Type.Wire == TypeStruct {
		q, ok := f.Type.table(t).newStructs(d, f.Type.Struct, 1)
		if !ok {
			return false
		}
		*(*unsafe.Pointer)(p) = q
		return f.Type.table(t).readJSON(d, q, f.Type.Struct, depth)
	}
	if f.Kind == FieldPointer {
		if *(*unsafe.Pointer)(p) == nil || t.Kitex { // Kitex reads into new memory.
			if !d.charge(1, f.Type.Size) {
				return false
			}
			*(*unsafe.Pointer)(p) = newScalar(f.Type)
		}
		p = *(*unsafe.Pointer)(p)
	}
	if !t.readJSONValue(d, p, f.Type, depth) {
		return false
	}
	switch {
	case f.Kind == FieldOpt:
		*(*bool)(unsafe.Add(p, f.Type.Size)) = true
	case f.Kind == FieldSparse && f.Type.Wire == TypeMap:
		if m := f.Type.Map(p); m.isNil() { // A nil map would be absent.
			m.alloc(0)
		}
	}
	return true
}

// newStructs allocates n structs with their defaults.
func (t *Table) newStructs(d *jsonReader, index, n int) (unsafe.Pointer, bool) {
	s := &t.Structs[index]
	if !d.charge(n, s.Size) {
		return nil, false
	}
	p := s.New(n)
	if s.Reset != nil {
		for i := range n {
			s.Reset(unsafe.Add(p, uintptr(i)*s.Size))
		}
	}
	return p, true
}

// readNew reads into a value that is zero.
func (t *Table) readNew(d *jsonReader, p unsafe.Pointer, ti *TypeInfo, depth int) bool {
	if ti.Pointer {
		q, ok := ti.table(t).newStructs(d, ti.Struct, 1)
		*(*unsafe.Pointer)(p) = q
		return ok && t.readJSONValue(d, p, ti, depth)
	}
	if ti.Wire == TypeStruct {
		if s := &ti.table(t).Structs[ti.Struct]; s.Reset != nil {
			s.Reset(p)
		}
	}
	return t.readJSONValue(d, p, ti, depth)
}

// charge subtracts n values of size bytes from the budget.
func (d *jsonReader) charge(n int, size uintptr) bool {
	return d.r.charge(n, int(size)) || d.fail(d.off, codeTexts[-1-CodeMemory])
}

func (t *Table) readJSONValue(d *jsonReader, p unsafe.Pointer, ti *TypeInfo, depth int) (ok bool) {
	var v int64
	switch ti.Wire {
	case TypeBool:
		if *(*bool)(p) = d.literal("true"); *(*bool)(p) {
			return true
		}
		return d.literal("false") || d.expected("true or false")
	case TypeI8:
		v, ok = d.integer(8)
		*(*int8)(p) = int8(v)
	case TypeI16:
		v, ok = d.integer(16)
		*(*int16)(p) = int16(v)
	case TypeI32:
		if ti.Enum != nil && d.peek() == '"' {
			return d.enum((*int32)(p), ti)
		}
		v, ok = d.integer(32)
		if ti.Size == 8 {
			*(*int64)(p) = v
		} else {
			*(*int32)(p) = int32(v)
		}
	case TypeI64:
		if d.peek() == '"' {
			return d.integerInQuotes((*int64)(p), 64)
		}
		*(*int64)(p), ok = d.integer(64)
	case TypeDouble:
		*(*float64)(p), ok = d.double()
	case TypeUUID:
		return d.uuid((*UUID)(p))
	case TypeString:
		if ti.Binary {
			return d.binary((*[]byte)(p))
		}
		return d.text((*string)(p))
	case TypeStruct:
		if ti.Pointer {
			p = *(*unsafe.Pointer)(p)
		}
		return ti.table(t).readJSON(d, p, ti.Struct, depth)
	case TypeMap:
		return t.readJSONMap(d, ti.Map(p), ti, depth)
	default:
		return t.readJSONList(d, (*header)(p), ti, depth)
	}
	return ok
}

func (t *Table) readJSONList(d *jsonReader, to *header, ti *TypeInfo, depth int) bool {
	n, ok := d.enter('[', "an array")
	if !ok {
		return false
	}
	size := t.sizeOf(ti.Elem)
	data, ok := t.newJSONList(d, ti, n, size)
	if !ok {
		return false
	}
	*to = header{data, n, n}
	outer := d.r.Left
	for i := range n {
		d.r.Left = n - i
		if !d.separate(i) || !t.readJSONValue(d, to.elem(i, size), ti.Elem, depth-1) {
			d.err.in("[" + strconv.Itoa(i) + "]")
			return false
		}
	}
	d.r.Left = outer
	return d.leave(']')
}

// newJSONList allocates the n elements of a list. Strings and elements without pointers are stored
// in the memory of the Reader.
func (t *Table) newJSONList(d *jsonReader, ti *TypeInfo, n int, size uintptr) (unsafe.Pointer, bool) {
	if ti.Elem.Pointer {
		return t.newPointers(d, ti.Elem, n)
	}
	if ti.Elem.Wire == TypeStruct {
		return ti.Elem.table(t).newStructs(d, ti.Elem.Struct, n)
	}
	if !d.charge(n, size) {
		return nil, false
	}
	left := len(d.b) - d.off
	switch {
	case n == 0:
	case fixed[ti.Elem.Wire] != 0:
		return d.r.flat(n, int(size), left), true
	case ti.Elem.Wire == TypeString && !ti.Elem.Binary:
		return unsafe.Pointer(unsafe.SliceData(d.r.strings(nil, n, left/3))), true // each takes two quotation marks and a comma
	}
	return ti.New(n), true
}

// text reads a string.
func (d *jsonReader) text(to *string) bool {
	raw, escaped, ok := d.string("a string")
	switch {
	case !ok:
		return false
	case escaped: // raw is in memory that will be reused.
		*to = string(raw)
	default:
		from := d.off - 1 - len(raw)
		*to = d.r.text(d.b, from, from+len(raw))
	}
	return true
}

// string consumes a string and returns it. The result is valid until the next call. It is a part of
// the input if it has no escapes.
func (d *jsonReader) string(what string) (s []byte, escaped, ok bool) {
	if d.peek() != '"' {
		return nil, false, d.expected(what)
	}
	from, to, escaped, ok := d.quoted()
	if !ok || !escaped {
		return d.b[from:to], false, ok
	}
	s, ok = d.unescape(from, to)
	return s, true, ok
}

// binary reads a string in base64. The result is not nil.
func (d *jsonReader) binary(to *[]byte) bool {
	d.peek()
	start := d.off
	raw, _, ok := d.string("a string in base64")
	if !ok {
		return false
	}
	p := make([]byte, base64.StdEncoding.DecodedLen(len(raw)))
	n, err := base64.StdEncoding.Decode(p, raw)
	if err != nil || bytes.ContainsAny(raw, "\r\n") { // Decode would ignore line breaks
		return d.fail(start, "the string is not valid base64")
	}
	*to = p[:n:n]
	return true
}

// uuid reads a UUID.
func (d *jsonReader) uuid(to *UUID) bool {
	d.peek()
	start := d.off
	raw, _, ok := d.string("a string with a UUID")
	if !ok {
		return false
	}
	return jsontext.ParseUUID(to, raw) || d.fail(start, "the string is not a UUID: expected a form such as 01234567-89ab-cdef-0123-456789abcdef")
}

// enum reads the name of a value of an enum.
func (d *jsonReader) enum(to *int32, ti *TypeInfo) bool {
	start := d.off
	raw, _, ok := d.string("a name")
	if !ok {
		return false
	}
	if ti.Parse != nil {
		v, err := ti.Parse(unsafe.String(unsafe.SliceData(raw), len(raw)))
		if *to = v; err == nil {
			return true
		}
	}
	return d.fail(start, "the enum has no value with this name")
}

// integerInQuotes reads a string with an integer.
func (d *jsonReader) integerInQuotes(to *int64, bits int) bool {
	d.peek()
	start := d.off
	raw, _, ok := d.string("an integer in quotes")
	if !ok {
		return false
	}
	v, end, fits := parseInteger(raw, 0)
	if end == 0 || end < len(raw) {
		return d.fail(start, "the string is not an integer")
	}
	if shift := 64 - bits; !fits || v<<shift>>shift != v {
		return d.fail(start, "an integer does not fit into "+strconv.Itoa(bits)+" bits")
	}
	*to = v
	return true
}
