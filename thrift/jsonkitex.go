package thrift

import (
	"strconv"
	"unsafe"

	"github.com/slipstream-go/slipstream/thrift/internal/jsontext"
)

// Kitex's JSON is read and written by the same functions if the table selects it (Table.Kitex),
// with other rules for absent fields, and numbers for enums. TestKitexJSON, a part of make
// reference, compares both directions with Kitex's generic calls.

// writeKitex is writeJSON for tables with Kitex. A nil struct is sent without fields, so if p is
// nil, writeKitex writes the JSON that Kitex produces for a struct without fields.
func (t *Table) writeKitex(w *jsonWriter, p unsafe.Pointer, index, depth int) bool {
	s := &t.Structs[index]
	var fresh unsafe.Pointer // a struct with defaults, if one was needed
	w.b = append(w.b, '{')
	first, conv := len(w.b), w.conv
	for i := range s.Fields {
		f := &s.Fields[i]
		var at unsafe.Pointer
		if p != nil {
			at = unsafe.Add(p, f.Offset)
		}
		if p == nil || !f.Always && !f.present(at) {
			if !f.Default {
				continue
			}
			if fresh == nil {
				fresh = s.New(1)
				s.Reset(fresh)
			}
			at = unsafe.Add(fresh, f.Offset)
		}
		if len(w.b) > first {
			w.b = append(w.b, ',')
		}
		w.b = append(jsontext.AppendString(w.b, f.Name), ':')
		w.conv = conv || f.Strings
		if !t.writeJSONValue(w, f.value(at), f.Type, depth-1) {
			w.err.in("." + f.Name)
			return false
		}
	}
	w.conv = conv
	w.b = append(w.b, '}')
	return true
}

// clearAbsent sets fields that are not optional and were absent to zero, as Kitex sends them.
// Structs are sent without fields.
func (t *Table) clearAbsent(d *jsonReader, p unsafe.Pointer, s *StructInfo, seen []bool) bool {
	for i := range s.Fields {
		f := &s.Fields[i]
		if seen[i] || !f.Always {
			continue
		}
		at := unsafe.Add(p, f.Offset)
		switch ti := f.Type; {
		case ti.Wire == TypeStruct:
			q, ok := ti.table(t).newStructs(d, ti.Struct, 1)
			if !ok {
				return false
			}
			*(*unsafe.Pointer)(at) = q
		case ti.Wire == TypeString && !ti.Binary:
			*(*string)(at) = ""
		case ti.Wire == TypeMap && ti.Size == SizeOfMap:
			*(*unsafe.Pointer)(at) = nil
		case ti.Wire == TypeString || ti.Elem != nil:
			*(*header)(at) = header{}
		default:
			clear(unsafe.Slice((*byte)(at), ti.Size))
		}
	}
	return true
}

// newPointers allocates n structs with their defaults, and a list of pointers to them.
func (t *Table) newPointers(d *jsonReader, ti *TypeInfo, n int) (unsafe.Pointer, bool) {
	data, ok := ti.table(t).newStructs(d, ti.Struct, n)
	if !ok || !d.charge(n, unsafe.Sizeof(data)) {
		return nil, false
	}
	list, size := make([]unsafe.Pointer, n), ti.table(t).Structs[ti.Struct].Size
	for i := range list {
		list[i] = unsafe.Add(data, uintptr(i)*size)
	}
	return unsafe.Pointer(unsafe.SliceData(list)), true
}

// doubleInQuotes reads a string with a number.
func (d *jsonReader) doubleInQuotes(to *float64) bool {
	d.peek()
	start := d.off
	raw, _, ok := d.string("a number in quotes")
	if !ok {
		return false
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	*to = v
	return err == nil || d.fail(start, "the string is not a number")
}
