package rt

import (
	"reflect"
	"slices"
	"strconv"
	"unsafe"
)

// AppendJSON appends the struct at p as an object of JSON.
func (f *File) AppendJSON(b []byte, p unsafe.Pointer, index int) []byte {
	fields := f.Structs[index].Fields
	sep := byte('{')
	for i := range fields {
		field := &fields[i]
		at := unsafe.Add(p, field.Offset)
		if !field.present(at) {
			continue
		}
		b = append(append(append(b, sep, '"'), field.Name...), '"', ':')
		sep = ','
		if field.Type.Wire == Struct {
			at = *(*unsafe.Pointer)(at)
		}
		b = f.appendJSONValue(b, at, field.Type)
	}
	if sep == '{' {
		b = append(b, '{')
	}
	return append(b, '}')
}

func (f *File) appendJSONValue(b []byte, p unsafe.Pointer, t *Type) []byte {
	switch t.Wire {
	case Bool:
		return strconv.AppendBool(b, *(*bool)(p))
	case I32:
		return strconv.AppendInt(b, int64(*(*int32)(p)), 10)
	case I64:
		return strconv.AppendInt(b, *(*int64)(p), 10)
	case Double:
		return AppendJSONDouble(b, *(*float64)(p))
	case String:
		if t.Binary {
			return AppendJSONBinary(b, *(*[]byte)(p))
		}
		return AppendJSONString(b, *(*string)(p))
	case Struct:
		return f.AppendJSON(b, p, t.Index)
	case List:
		switch t.Elem {
		case &TI64:
			return AppendJSONI64s(b, *(*[]int64)(p))
		case &TString:
			return AppendJSONStrings(b, *(*[]string)(p))
		}
		h, size := (*header)(p), f.size(t.Elem)
		b = append(b, '[')
		for i := range h.len {
			if i > 0 {
				b = append(b, ',')
			}
			b = f.appendJSONValue(b, unsafe.Add(h.data, uintptr(i)*size), t.Elem)
		}
		return append(b, ']')
	case Map:
		if t.Map == &strMap {
			return AppendJSONStringMap(b, *(*map[string]string)(p))
		}
	}
	return append(b, "null"...)
}

// ReadJSON reads an object of JSON into the struct at p.
func (f *File) ReadJSON(d *JSON, p unsafe.Pointer, index int) {
	s := &f.Structs[index]
	var seen uint64
	guess := 0
	d.Open('{')
	for first := true; d.More(&first, '}'); {
		key := d.Key()
		i := guess
		if i >= len(s.Fields) || s.Fields[i].Name != key {
			i = slices.IndexFunc(s.Fields, func(field Field) bool { return field.Name == key })
		}
		if i < 0 {
			d.Skip()
			continue
		}
		guess = i + 1
		seen |= 1 << i
		field := &s.Fields[i]
		at := unsafe.Add(p, field.Offset)
		if (field.Opt || field.Sparse) && d.Null() {
			continue
		}
		if field.Type.Wire == Struct {
			inner := f.Structs[field.Type.Index].New(1)
			*(*unsafe.Pointer)(at) = inner
			f.ReadJSON(d, inner, field.Type.Index)
		} else {
			f.readJSONValue(d, at, field.Type)
		}
		if field.Opt {
			*(*bool)(unsafe.Add(at, field.Type.Size)) = true
		}
	}
	d.Require(seen, s.Needed)
}

func (f *File) readJSONValue(d *JSON, p unsafe.Pointer, t *Type) {
	switch t.Wire {
	case Bool:
		*(*bool)(p) = d.Bool()
	case I32:
		*(*int32)(p) = int32(d.Int(32))
	case I64:
		*(*int64)(p) = d.Int(64)
	case Double:
		*(*float64)(p) = d.Double()
	case String:
		if t.Binary {
			*(*[]byte)(p) = d.Binary()
		} else {
			*(*string)(p) = d.Text()
		}
	case Struct:
		f.ReadJSON(d, p, t.Index)
	case List:
		switch t.Elem {
		case &TI64:
			*(*[]int64)(p) = d.I64s()
		case &TString:
			*(*[]string)(p) = d.Strings()
		default:
			f.readJSONStructs(d, p, t)
		}
	case Map:
		if t.Map == &strMap {
			*(*map[string]string)(p) = d.StringMap()
		}
	default:
		d.Skip()
	}
}

func (f *File) readJSONStructs(d *JSON, p unsafe.Pointer, t *Type) {
	s := &f.Structs[t.Elem.Index]
	list := header{data: s.New(0)}
	d.Open('[')
	for first := true; d.More(&first, ']'); {
		if list.len == list.cap {
			list.cap = 2*list.cap + 1
			data := s.New(list.cap)
			typ := reflect.TypeOf(s.Zero).Elem()
			reflect.Copy(reflect.SliceAt(typ, data, list.len), reflect.SliceAt(typ, list.data, list.len))
			list.data = data
		}
		f.ReadJSON(d, unsafe.Add(list.data, uintptr(list.len)*s.Size), t.Elem.Index)
		list.len++
	}
	*(*header)(p) = list
}

// String returns the struct at p in a form for people.
func (f *File) String(p unsafe.Pointer, index int) string {
	if p == nil {
		return "nil"
	}
	return string(f.AppendJSON(append([]byte(nil), f.Structs[index].Name...), p, index))
}
