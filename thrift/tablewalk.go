package thrift

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"unsafe"

	"github.com/slipstream-go/slipstream/thrift/internal/jsontext"
)

// Table describes structs for String, Equal, Copy and JSON, and provides the names of fields in
// errors. It is an option of the generator. Copies of a struct share only strings with it. Equal
// compares sets without regard to order, by the text of their elements if their order differs, and
// unknown fields byte by byte.

// Equal reports whether the structs at p and q, of the type at index in the table, are equal. Sets
// are compared without regard to order. A nil container equals an empty one, unless its field is
// sparse. A NaN is not equal to itself, except in a set. Unknown fields are compared byte by byte.
func (t *Table) Equal(p, q unsafe.Pointer, index int) bool {
	if p == nil || q == nil {
		return p == q
	}
	s := &t.Structs[index]
	for i := range s.Fields {
		f := &s.Fields[i]
		x, y := unsafe.Add(p, f.Offset), unsafe.Add(q, f.Offset)
		there := f.present(x)
		if there != f.present(y) || there && !t.equal(f.value(x), f.value(y), f.Type) {
			return false
		}
	}
	return !s.HasUnknown || bytes.Equal(*(*Unknown)(unsafe.Add(p, s.Unknown)), *(*Unknown)(unsafe.Add(q, s.Unknown)))
}

func (t *Table) equal(x, y unsafe.Pointer, ti *TypeInfo) bool {
	switch ti.Wire {
	case TypeBool, TypeI8:
		return *(*int8)(x) == *(*int8)(y)
	case TypeI16:
		return *(*int16)(x) == *(*int16)(y)
	case TypeI32:
		return *(*int32)(x) == *(*int32)(y)
	case TypeI64:
		return *(*int64)(x) == *(*int64)(y)
	case TypeDouble:
		return *(*float64)(x) == *(*float64)(y)
	case TypeUUID:
		return *(*UUID)(x) == *(*UUID)(y)
	case TypeString:
		if ti.Binary {
			return bytes.Equal(*(*[]byte)(x), *(*[]byte)(y))
		}
		return *(*string)(x) == *(*string)(y)
	case TypeStruct:
		return ti.table(t).Equal(x, y, ti.Struct)
	case TypeMap:
		return t.equalMap(ti.Map(x), ti.Map(y), ti)
	}
	return t.equalList((*header)(x), (*header)(y), ti)
}

func (t *Table) equalList(x, y *header, ti *TypeInfo) bool {
	if x.len != y.len {
		return false
	}
	size := t.sizeOf(ti.Elem)
	for i := range x.len {
		if !t.equal(x.elem(i, size), y.elem(i, size), ti.Elem) {
			return ti.Wire == TypeSet && slices.Equal(t.sortedTexts(x, ti), t.sortedTexts(y, ti))
		}
	}
	return true
}

// sortedTexts returns the sorted texts of the elements of a set. Equal elements have the same text.
func (t *Table) sortedTexts(h *header, ti *TypeInfo) []string {
	texts, size := make([]string, h.len), t.sizeOf(ti.Elem)
	for i := range texts {
		texts[i] = string(t.appendText(nil, h.elem(i, size), ti.Elem, true))
	}
	slices.Sort(texts)
	return texts
}

func (t *Table) equalMap(x, y MapAccess, ti *TypeInfo) bool {
	if _, entries := x.(appender); entries {
		return t.equalEntries(x, y, ti)
	}
	same := x.length() == y.length()
	if same {
		x.each(func(k, v unsafe.Pointer) bool {
			w := y.get(k)
			same = w != nil && t.equal(v, w, ti.Elem)
			return same
		})
	}
	return same
}

// Copy copies the struct at from into the zero struct at to. They share no memory except that of
// strings.
func (t *Table) Copy(to, from unsafe.Pointer, index int) {
	s := &t.Structs[index]
	for i := range s.Fields {
		f := &s.Fields[i]
		x, y := unsafe.Add(to, f.Offset), unsafe.Add(from, f.Offset)
		if !f.present(y) {
			continue
		}
		if f.Kind == FieldOpt && f.Type.Wire != TypeStruct {
			*(*bool)(unsafe.Add(x, f.Type.Size)) = true
		}
		if f.Kind == FieldPointer && f.Type.Wire != TypeStruct {
			*(*unsafe.Pointer)(x) = newScalar(f.Type)
		}
		if f.Type.Wire == TypeStruct {
			*(*unsafe.Pointer)(x) = f.Type.table(t).Structs[f.Type.Struct].New(1)
		}
		t.copy(f.value(x), f.value(y), f.Type)
	}
	if s.HasUnknown {
		*(*Unknown)(unsafe.Add(to, s.Unknown)) = slices.Clone(*(*Unknown)(unsafe.Add(from, s.Unknown)))
	}
}

func (t *Table) copy(to, from unsafe.Pointer, ti *TypeInfo) {
	switch ti.Wire {
	case TypeBool, TypeI8:
		*(*int8)(to) = *(*int8)(from)
	case TypeI16:
		*(*int16)(to) = *(*int16)(from)
	case TypeI32:
		*(*int32)(to) = *(*int32)(from)
	case TypeI64, TypeDouble:
		*(*int64)(to) = *(*int64)(from)
	case TypeUUID:
		*(*UUID)(to) = *(*UUID)(from)
	case TypeString:
		if ti.Binary {
			*(*[]byte)(to) = slices.Clone(*(*[]byte)(from))
		} else {
			*(*string)(to) = *(*string)(from)
		}
	case TypeStruct:
		ti.table(t).Copy(to, from, ti.Struct)
	case TypeMap:
		t.copyMap(ti.Map(to), ti.Map(from), ti)
	default:
		t.copyList((*header)(to), (*header)(from), ti)
	}
}

func (t *Table) copyList(to, from *header, ti *TypeInfo) {
	if from.data == nil {
		return
	}
	data := t.newElems(ti, from.len)
	size := t.sizeOf(ti.Elem)
	*to = header{data, from.len, from.len}
	for i := range from.len {
		t.copy(to.elem(i, size), from.elem(i, size), ti.Elem)
	}
}

// newElems allocates the elements of a list.
func (t *Table) newElems(ti *TypeInfo, n int) unsafe.Pointer {
	if ti.New == nil {
		return ti.Elem.table(t).Structs[ti.Elem.Struct].New(n)
	}
	return ti.New(n)
}

func (t *Table) copyMap(to, from MapAccess, ti *TypeInfo) {
	if from.isNil() {
		return
	}
	to.alloc(from.length())
	if entries, ok := to.(appender); ok {
		t.copyEntries(entries, from, ti)
		return
	}
	if ti.Elem.Wire == TypeString && !ti.Elem.Binary || fixed[ti.Elem.Wire] != 0 {
		from.each(func(k, v unsafe.Pointer) bool {
			to.put(k, v)
			return true
		})
		return
	}
	from.each(func(k, v unsafe.Pointer) bool {
		to.putCopy(k, func(w unsafe.Pointer) { t.copy(w, v, ti.Elem) })
		return true
	})
}

// String returns a readable text of the struct at p: its name and the fields that are present.
// Entries of maps are sorted by their text.
func (t *Table) String(p unsafe.Pointer, index int) string {
	if p == nil {
		return t.Structs[index].Name + "(nil)"
	}
	return string(t.appendStruct(nil, p, index, false))
}

// appendStruct appends the text of a struct. If same is true, equal values have the same text: sets
// are sorted, and negative zero is written as 0.
func (t *Table) appendStruct(b []byte, p unsafe.Pointer, index int, same bool) []byte {
	s := &t.Structs[index]
	b = append(append(b, s.Name...), '{')
	sep := ""
	for i := range s.Fields {
		f := &s.Fields[i]
		at := unsafe.Add(p, f.Offset)
		if !f.present(at) {
			continue
		}
		b = append(append(append(b, sep...), f.Name...), ": "...)
		b = t.appendText(b, f.value(at), f.Type, same)
		sep = ", "
	}
	if s.HasUnknown {
		if u := *(*Unknown)(unsafe.Add(p, s.Unknown)); len(u) > 0 {
			b = append(append(b, sep...), "unknown: 0x"...)
			b = hex.AppendEncode(b, u)
		}
	}
	return append(b, '}')
}

func (t *Table) appendText(b []byte, p unsafe.Pointer, ti *TypeInfo, same bool) []byte {
	switch ti.Wire {
	case TypeBool:
		return strconv.AppendBool(b, *(*bool)(p))
	case TypeI8:
		return strconv.AppendInt(b, int64(*(*int8)(p)), 10)
	case TypeI16:
		return strconv.AppendInt(b, int64(*(*int16)(p)), 10)
	case TypeI32:
		if ti.Enum != nil {
			return append(b, ti.Enum(*(*int32)(p))...)
		}
		return strconv.AppendInt(b, int64(*(*int32)(p)), 10)
	case TypeI64:
		return strconv.AppendInt(b, *(*int64)(p), 10)
	case TypeDouble:
		v := *(*float64)(p)
		if same && v == 0 {
			v = 0 // not -0
		}
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	case TypeUUID:
		return jsontext.AppendUUID(b, *(*UUID)(p))
	case TypeString:
		if ti.Binary {
			return hex.AppendEncode(append(b, "0x"...), *(*[]byte)(p))
		}
		return strconv.AppendQuote(b, *(*string)(p))
	case TypeStruct:
		return ti.table(t).appendStruct(b, p, ti.Struct, same)
	case TypeMap:
		return t.appendMapText(b, ti.Map(p), ti, same)
	}
	h, size := (*header)(p), t.sizeOf(ti.Elem)
	b = append(b, '[')
	if same && ti.Wire == TypeSet {
		return append(appendJoined(b, t.sortedTexts(h, ti)), ']')
	}
	for i := range h.len {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = t.appendText(b, h.elem(i, size), ti.Elem, same)
	}
	return append(b, ']')
}

func (t *Table) appendMapText(b []byte, m MapAccess, ti *TypeInfo, same bool) []byte {
	return append(appendJoined(append(b, '{'), t.entryTexts(m, ti, same)), '}')
}

// entryTexts returns the sorted texts of the entries of a map.
func (t *Table) entryTexts(m MapAccess, ti *TypeInfo, same bool) []string {
	entries := make([]string, 0, m.length())
	m.each(func(k, v unsafe.Pointer) bool {
		e := append(t.appendText(nil, k, ti.Key, same), ": "...)
		entries = append(entries, string(t.appendText(e, v, ti.Elem, same)))
		return true
	})
	slices.Sort(entries)
	return entries
}

func appendJoined(b []byte, texts []string) []byte {
	for i, text := range texts {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, text...)
	}
	return b
}
