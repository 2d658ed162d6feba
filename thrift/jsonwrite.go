package thrift

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"unsafe"

	"github.com/slipstream-go/slipstream/thrift/internal/jsontext"
)

// jsonWriter writes one document. Functions return false after they have set err.
type jsonWriter struct {
	JSON
	b     []byte
	err   *JSONError
	kitex bool
	conv  bool // values of type i64 are strings in this field
}

// writeJSON writes the struct at p. depth is the number of remaining levels of structs and
// containers.
func (t *Table) writeJSON(w *jsonWriter, p unsafe.Pointer, index, depth int) bool {
	if depth <= 0 {
		w.err = &JSONError{Offset: len(w.b), Problem: tooDeep}
		return false
	}
	if w.kitex {
		return t.writeKitex(w, p, index, depth)
	}
	s := &t.Structs[index]
	w.b = append(w.b, '{')
	first := len(w.b)
	for i := range s.Fields {
		f := &s.Fields[i]
		at := unsafe.Add(p, f.Offset)
		present := f.present(at)
		if !present && !f.isRequiredStruct() {
			continue
		}
		if len(w.b) > first {
			w.b = append(w.b, ',')
		}
		w.b = append(append(append(w.b, '"'), f.Name...), '"', ':') // a name needs no escape
		if !present {
			w.b = append(w.b, '{', '}') // like an empty struct in the Binary protocol
			continue
		}
		if !t.writeJSONValue(w, f.value(at), f.Type, depth-1) {
			w.err.in("." + f.Name)
			return false
		}
	}
	w.b = append(w.b, '}')
	return true
}

// isRequiredStruct reports whether a field is written even if it is nil.
func (f *FieldInfo) isRequiredStruct() bool { return f.Required && f.Type.Wire == TypeStruct }

func (t *Table) writeJSONValue(w *jsonWriter, p unsafe.Pointer, ti *TypeInfo, depth int) bool {
	switch ti.Wire {
	case TypeStruct:
		if ti.Pointer {
			p = *(*unsafe.Pointer)(p)
		}
		return ti.table(t).writeJSON(w, p, ti.Struct, depth)
	case TypeMap:
		return t.writeJSONMap(w, ti.Map(p), ti, depth)
	case TypeList, TypeSet:
		return t.writeJSONList(w, (*header)(p), ti, depth)
	case TypeBool:
		w.b = strconv.AppendBool(w.b, *(*bool)(p))
	case TypeI8:
		w.b = strconv.AppendInt(w.b, int64(*(*int8)(p)), 10)
	case TypeI16:
		w.b = strconv.AppendInt(w.b, int64(*(*int16)(p)), 10)
	case TypeI32:
		if ti.Enum != nil {
			w.b = appendJSONEnum(w.b, ti.Enum(*(*int32)(p)))
		} else {
			w.b = strconv.AppendInt(w.b, loadInt(p, ti), 10)
		}
	case TypeI64:
		if w.I64Strings || w.conv {
			w.b = append(strconv.AppendInt(append(w.b, '"'), *(*int64)(p), 10), '"')
		} else {
			w.b = strconv.AppendInt(w.b, *(*int64)(p), 10)
		}
	case TypeDouble:
		v := *(*float64)(p)
		if w.kitex && (v != v || math.IsInf(v, 0)) {
			w.err = &JSONError{Offset: len(w.b), Problem: "a double is NaN or infinite: JSON has no number for it"}
			return false
		}
		w.b = jsontext.AppendDouble(w.b, v)
	case TypeUUID:
		w.b = append(jsontext.AppendUUID(append(w.b, '"'), *(*UUID)(p)), '"')
	case TypeString:
		if ti.Binary {
			w.b = append(base64.StdEncoding.AppendEncode(append(w.b, '"'), *(*[]byte)(p)), '"')
		} else {
			w.b = jsontext.AppendString(w.b, *(*string)(p))
		}
	}
	return true
}

func (t *Table) writeJSONList(w *jsonWriter, h *header, ti *TypeInfo, depth int) bool {
	size := t.sizeOf(ti.Elem)
	w.b = append(w.b, '[')
	conv := w.conv
	w.conv = conv && ti.Elem.Wire == TypeI64 // Kitex does not look deeper into lists.
	for i := range h.len {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		if !t.writeJSONValue(w, h.elem(i, size), ti.Elem, depth-1) {
			w.err.in("[" + strconv.Itoa(i) + "]")
			return false
		}
	}
	w.conv = conv
	w.b = append(w.b, ']')
	return true
}

// writeJSONMap writes a map: an object, or an array of arrays with a key and a value.
func (t *Table) writeJSONMap(w *jsonWriter, m MapAccess, ti *TypeInfo, depth int) bool {
	if w.SortedKeys && m.length() > 1 {
		return t.writeJSONSorted(w, m, ti, depth)
	}
	open, end := byte('['), byte(']')
	if ti.Key.isName() {
		open, end = '{', '}'
	}
	w.b = append(w.b, open)
	if texts, ok := m.(*mapOf[string, string]); ok && !ti.Key.Base64 {
		w.writeStringMap(*texts)
	} else if m.length() > 0 {
		t.writeJSONEntries(w, m, ti, depth)
	}
	w.b = append(w.b, end)
	return w.err == nil
}

// writeStringMap writes the entries of a map.
func (w *jsonWriter) writeStringMap(m map[string]string) {
	first := len(w.b)
	for k, v := range m {
		if len(w.b) > first {
			w.b = append(w.b, ',')
		}
		w.b = jsontext.AppendString(append(jsontext.AppendString(w.b, k), ':'), v)
	}
}

// writeJSONEntries writes the entries of a map. It allocates, because the function that is passed
// to each escapes.
func (t *Table) writeJSONEntries(w *jsonWriter, m MapAccess, ti *TypeInfo, depth int) {
	first := len(w.b)
	m.each(func(k, v unsafe.Pointer) bool {
		if len(w.b) > first {
			w.b = append(w.b, ',')
		}
		_, ok := t.writeJSONEntry(w, k, v, ti, depth)
		return ok
	})
}

// writeJSONEntry writes an entry of a map, without the comma, and returns where its key ends.
func (t *Table) writeJSONEntry(w *jsonWriter, k, v unsafe.Pointer, ti *TypeInfo, depth int) (keyEnd int, ok bool) {
	if ti.Key.isName() {
		start := len(w.b)
		w.writeName(k, ti.Key)
		keyEnd = len(w.b)
		w.b = append(w.b, ':')
		if ok = t.writeJSONValue(w, v, ti.Elem, depth-1); !ok {
			w.err.in("[" + string(w.b[start:keyEnd]) + "]")
		}
		return keyEnd, ok
	}
	w.b = append(w.b, '[')
	if !t.writeJSONValue(w, k, ti.Key, depth-1) {
		w.err.in(".key")
		return 0, false
	}
	keyEnd = len(w.b)
	w.b = append(w.b, ',')
	if !t.writeJSONValue(w, v, ti.Elem, depth-1) {
		w.err.in(".value")
		return 0, false
	}
	w.b = append(w.b, ']')
	return keyEnd, true
}

// writeName writes a key as the name of a member.
func (w *jsonWriter) writeName(k unsafe.Pointer, ti *TypeInfo) {
	switch {
	case ti.Base64:
		key := *(*string)(k)
		raw := unsafe.Slice(unsafe.StringData(key), len(key))
		w.b = base64.StdEncoding.AppendEncode(append(w.b, '"'), raw)
	case ti.Wire == TypeString:
		w.b = jsontext.AppendString(w.b, *(*string)(k))
		return
	case ti.Wire == TypeUUID:
		w.b = jsontext.AppendUUID(append(w.b, '"'), *(*UUID)(k))
	case ti.Wire == TypeBool:
		w.b = strconv.AppendBool(append(w.b, '"'), *(*bool)(k))
	case ti.Enum != nil:
		w.b = append(append(w.b, '"'), ti.Enum(*(*int32)(k))...)
	case ti.Wire == TypeDouble:
		w.b = strconv.AppendFloat(append(w.b, '"'), *(*float64)(k), 'f', -1, 64)
	default:
		w.b = strconv.AppendInt(append(w.b, '"'), loadInt(k, ti), 10)
	}
	w.b = append(w.b, '"')
}

// loadInt returns the integer at p.
func loadInt(p unsafe.Pointer, ti *TypeInfo) int64 {
	switch ti.Wire {
	case TypeI8:
		return int64(*(*int8)(p))
	case TypeI16:
		return int64(*(*int16)(p))
	case TypeI32:
		if ti.Size == 8 { // an enum of Kitex: only 32 bits are sent
			return int64(int32(*(*int64)(p)))
		}
		return int64(*(*int32)(p))
	}
	return *(*int64)(p)
}

// writeJSONSorted is writeJSONMap in the order of the keys: it writes the entries and then sorts
// them. Keys that are not valid UTF-8 may have the same text; their entries are sorted by value.
func (t *Table) writeJSONSorted(w *jsonWriter, m MapAccess, ti *TypeInfo, depth int) bool {
	type entry struct{ start, keyEnd, end int }
	entries := make([]entry, 0, m.length())
	first := len(w.b)
	m.each(func(k, v unsafe.Pointer) bool {
		start := len(w.b)
		keyEnd, ok := t.writeJSONEntry(w, k, v, ti, depth)
		entries = append(entries, entry{start, keyEnd, len(w.b)})
		return ok
	})
	if w.err != nil {
		return false
	}
	all := bytes.Clone(w.b[first:])
	slices.SortStableFunc(entries, func(x, y entry) int {
		return cmp.Or(bytes.Compare(all[x.start-first:x.keyEnd-first], all[y.start-first:y.keyEnd-first]),
			bytes.Compare(all[x.keyEnd-first:x.end-first], all[y.keyEnd-first:y.end-first]))
	})
	open, end := byte('['), byte(']')
	if ti.Key.isName() {
		open, end = '{', '}'
	}
	w.b = append(w.b[:first], open)
	for i, e := range entries {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = append(w.b, all[e.start-first:e.end-first]...)
	}
	w.b = append(w.b, end)
	return true
}

// appendJSONEnum appends the text of a value: in quotes if it is a name, and not a number.
func appendJSONEnum(b []byte, text string) []byte {
	if text == "" || text[0] == '-' || isDigit(text[0]) {
		return append(b, text...)
	}
	return append(append(append(b, '"'), text...), '"')
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
