package generic

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// The budget of Codec.MaxMemory is charged before a list, a struct or an entry of a map is
// allocated. The charge for a struct includes its declared fields, because each of them is
// examined. Defaults are charged, too: constants that refer to constants can be exponentially
// larger than the IDL, and the default of a struct can contain the struct.

// Read reads the struct at b[off:] and returns the offset after it. The values share no memory with
// b. Errors are of type *thrift.Error.
func (c Codec) Read(b []byte, off int, s *idl.Struct) (v map[string]any, next int, err error) {
	if off < 0 {
		return nil, 0, thrift.Err(off, 0)
	}
	d := &decoder{budget: c.budget(len(b) - off), b: b, compact: c.Compact}
	v, next = d.structure(s, off, thrift.MaxDepth)
	if next < 0 {
		d.err.Path, d.err.Names = strings.TrimPrefix(d.err.Path, "."), strings.TrimPrefix(d.err.Names, ".")
		return nil, off, d.err
	}
	return v, next, nil
}

// decoder reads one struct. Functions return the next offset, or a code after they have set err.
type decoder struct {
	budget  budget
	reader  thrift.Reader // checks counts
	b       []byte
	compact bool
	err     *thrift.Error
}

// fail records an error in the value at off. It returns code.
func (d *decoder) fail(code, off int) int {
	if d.err == nil {
		d.err = &thrift.Error{Code: code, Offset: off}
	}
	return code
}

// check records an error if next is a code. It returns next.
func (d *decoder) check(next, off int) int {
	if next < 0 {
		d.fail(next, off)
	}
	return next
}

// in adds a step to the beginning of the path.
func (d *decoder) in(step, name string) {
	d.err.Path, d.err.Names = step+d.err.Path, name+d.err.Names
}

// structure reads a struct. depth is the number of remaining levels.
func (d *decoder) structure(s *idl.Struct, off, depth int) (map[string]any, int) {
	if depth <= 0 {
		return nil, d.fail(thrift.CodeDeep, off)
	}
	m := make(map[string]any)
	if !d.budget.chargeStruct(s) {
		return nil, d.fail(thrift.CodeMemory, off)
	}
	var seen map[*idl.Field]bool // required fields
	fields, last := 0, uint16(0)
	for {
		t, id, next := d.head(off, last)
		if t == 0 || next < 0 {
			if next >= 0 {
				next = d.end(s, off, next, depth, m, seen, fields)
			}
			return m, next
		}
		fields, last = fields+1, id
		f := s.FieldByID(int16(id))
		if f == nil || !d.hasType(f.Type.True(), t) {
			if next = d.check(d.skip(next, t, depth-1), off); next < 0 {
				d.in("."+strconv.Itoa(int(int16(id))), "."+nameOr(f, int16(id)))
				return nil, next
			}
			off = next
			continue
		}
		if f.Requirement == idl.Required {
			if seen == nil {
				seen = make(map[*idl.Field]bool)
			}
			seen[f] = true
		}
		if off = d.field(f, t, next, depth-1, m); off < 0 {
			d.in("."+strconv.Itoa(int(f.ID)), "."+f.Name)
			return nil, off
		}
	}
}

func nameOr(f *idl.Field, id int16) string {
	if f == nil {
		return strconv.Itoa(int(id))
	}
	return f.Name
}

// end completes a struct that ends at off.
func (d *decoder) end(s *idl.Struct, off, next, depth int, m map[string]any, seen map[*idl.Field]bool, fields int) int {
	if s.Kind == idl.Union && fields != 1 {
		return d.fail(thrift.CodeUnion, off)
	}
	for _, f := range s.Fields {
		if f.Requirement == idl.Required && !seen[f] {
			return d.fail(thrift.CodeMissing, off)
		}
	}
	switch d.budget.fill(s, m, depth) {
	case "":
		return next
	case tooDeep:
		return d.fail(thrift.CodeDeep, off)
	}
	return d.fail(thrift.CodeMemory, off)
}

// head reads the head of a field. t is 0 at the end of the struct.
func (d *decoder) head(off int, last uint16) (t byte, id uint16, next int) {
	if d.compact {
		key, next := thrift.CompactField(d.b, off, last)
		return byte(key), uint16(key >> 8), d.check(next, off)
	}
	b := d.b[off:]
	switch {
	case len(b) > 0 && b[0] == thrift.TypeStop:
		return 0, 0, off + 1
	case len(b) < 3:
		return 0, 0, d.fail(thrift.CodeShort, off)
	}
	return b[0], binary.BigEndian.Uint16(b[1:]), off + 3
}

// hasType reports whether the type of a field in a message matches its declared type.
func (d *decoder) hasType(t *idl.Type, wire byte) bool {
	want := wireOf(t)
	if !d.compact {
		return wire == want
	}
	return wire == compact[want] || wire == thrift.CompactTypeFalse && want == thrift.TypeBool
}

func (d *decoder) skip(off int, t byte, depth int) int {
	if d.compact {
		return thrift.SkipCompact(d.b, off, t, depth)
	}
	return thrift.Skip(d.b, off, t, depth)
}

// field reads the value of a field into m.
func (d *decoder) field(f *idl.Field, wire byte, off, depth int, m map[string]any) (next int) {
	var v any
	t := f.Type.True()
	switch {
	case m[f.Name] == nil && !d.budget.charge(1, sizeOfValue):
		return d.fail(thrift.CodeMemory, off)
	case wireOf(t) == thrift.TypeBool && d.compact:
		v, next = wire == thrift.CompactTypeTrue, off
	default:
		v, next = d.value(t, off, depth)
	}
	if next >= 0 {
		m[f.Name] = v
	}
	return next
}

// scalar reads a value with a function of package thrift.
func scalar[T any](d *decoder, off int, read func(b []byte, off int, to *T) int) (any, int) {
	var v T
	next := d.check(read(d.b, off, &v), off)
	return v, next
}

func (d *decoder) value(t *idl.Type, off, depth int) (any, int) {
	t = t.True()
	switch w := wireOf(t); {
	case w == thrift.TypeBool && d.compact:
		return scalar(d, off, thrift.ReadCompactBool)
	case w == thrift.TypeBool:
		return scalar(d, off, thrift.ReadBool)
	case w == thrift.TypeI8:
		return scalar(d, off, thrift.ReadI8)
	case w == thrift.TypeI16 && d.compact:
		return scalar(d, off, thrift.ReadCompactInt[int16])
	case w == thrift.TypeI16:
		return scalar(d, off, thrift.ReadI16)
	case w == thrift.TypeI32 && d.compact:
		return scalar(d, off, thrift.ReadCompactInt[int32])
	case w == thrift.TypeI32:
		return scalar(d, off, thrift.ReadI32[int32])
	case w == thrift.TypeI64 && d.compact:
		return scalar(d, off, thrift.ReadCompactInt[int64])
	case w == thrift.TypeI64:
		return scalar(d, off, thrift.ReadI64)
	case w == thrift.TypeDouble && d.compact:
		return scalar(d, off, thrift.ReadCompactDouble)
	case w == thrift.TypeDouble:
		return scalar(d, off, thrift.ReadDouble)
	case w == thrift.TypeUUID:
		return scalar(d, off, thrift.ReadUUID)
	case w == thrift.TypeString:
		return d.text(t, off)
	case w == thrift.TypeStruct:
		return d.structure(t.Struct(), off, depth)
	case w == thrift.TypeMap:
		return d.entries(t, off, depth)
	}
	return d.elements(t, off, depth)
}

func (d *decoder) text(t *idl.Type, off int) (any, int) {
	head, next := 4, 0
	if d.compact {
		_, head = binary.Uvarint(d.b[off:])
		next = thrift.SkipCompact(d.b, off, thrift.CompactTypeString, 1)
	} else {
		next = thrift.SkipString(d.b, off)
	}
	if d.check(next, off) < 0 {
		return nil, next
	}
	text := d.b[off+head : next]
	if t.Kind == idl.Binary {
		return append([]byte{}, text...), next
	}
	return string(text), next
}

func (d *decoder) elements(t *idl.Type, off, depth int) (any, int) {
	wire := wireOf(t.Elem.True())
	var n, next int
	if d.compact {
		n, next = d.reader.CompactCount(d.b, off, compact[wire])
	} else {
		n, next = d.reader.Count(d.b, off, wire, least[wire])
	}
	if d.check(next, off) < 0 {
		return nil, next
	}
	if !d.budget.charge(n, sizeOfSlot) {
		return nil, d.fail(thrift.CodeMemory, off)
	}
	list := make([]any, n)
	for i := range list {
		if list[i], next = d.value(t.Elem, next, depth-1); next < 0 {
			d.in(index(i), index(i))
			return nil, next
		}
	}
	return list, next
}

func (d *decoder) entries(t *idl.Type, off, depth int) (any, int) {
	k, v := wireOf(t.Key.True()), wireOf(t.Elem.True())
	var n, next int
	if d.compact {
		n, next = d.reader.CompactCountMap(d.b, off, compact[k], compact[v])
	} else {
		n, next = d.reader.CountMap(d.b, off, k, v, least[k]+least[v])
	}
	if d.check(next, off) < 0 {
		return nil, next
	}
	if !d.budget.charge(n, sizeOfEntry) {
		return nil, d.fail(thrift.CodeMemory, off)
	}
	m := newMap(t)
	for i := range n {
		var key, value any
		if key, next = d.value(t.Key, next, depth-1); next < 0 {
			d.in(index(i)+".key", index(i)+".key")
			return nil, next
		}
		if value, next = d.value(t.Elem, next, depth-1); next < 0 {
			d.in(index(i)+".value", index(i)+".value")
			return nil, next
		}
		m.put(key, value)
	}
	return m.value(), next
}
