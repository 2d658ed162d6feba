package rt

import (
	"bytes"
	"maps"
	"slices"
	"unsafe"
)

// Equal reports whether the structs at p and q are equal. NaNs differ, and a
// nil container equals an empty one unless the field is optional.
func (f *File) Equal(p, q unsafe.Pointer, index int) bool {
	if p == q || p == nil || q == nil {
		return p == q
	}
	fields := f.Structs[index].Fields
	for i := range fields {
		field := &fields[i]
		x, y := unsafe.Add(p, field.Offset), unsafe.Add(q, field.Offset)
		px, py := field.present(x), field.present(y)
		if px != py {
			return false
		}
		if !px {
			continue
		}
		if field.Type.Wire == Struct {
			x, y = *(*unsafe.Pointer)(x), *(*unsafe.Pointer)(y)
		}
		if !f.equalValue(x, y, field.Type) {
			return false
		}
	}
	return true
}

func (f *File) equalValue(x, y unsafe.Pointer, t *Type) bool {
	switch t.Wire {
	case Bool, Byte:
		return *(*byte)(x) == *(*byte)(y)
	case I16:
		return *(*int16)(x) == *(*int16)(y)
	case I32:
		return *(*int32)(x) == *(*int32)(y)
	case I64:
		return *(*int64)(x) == *(*int64)(y)
	case Double:
		return *(*float64)(x) == *(*float64)(y)
	case String:
		if t.Binary {
			return bytes.Equal(*(*[]byte)(x), *(*[]byte)(y))
		}
		return *(*string)(x) == *(*string)(y)
	case Struct:
		return f.Equal(x, y, t.Index)
	case List:
		switch t.Elem {
		case &TI64:
			return slices.Equal(*(*[]int64)(x), *(*[]int64)(y))
		case &TString:
			return slices.Equal(*(*[]string)(x), *(*[]string)(y))
		}
		a, b := (*header)(x), (*header)(y)
		if a.len != b.len {
			return false
		}
		for i := range a.len {
			step := uintptr(i) * f.size(t.Elem)
			if !f.equalValue(unsafe.Add(a.data, step), unsafe.Add(b.data, step), t.Elem) {
				return false
			}
		}
		return true
	case Map:
		if t.Map.Len(x) != t.Map.Len(y) {
			return false
		}
		return f.equalMap(x, y, t)
	}
	return false
}

func (f *File) equalMap(x, y unsafe.Pointer, t *Type) bool {
	if t.Map == &strMap {
		return maps.Equal(*(*map[string]string)(x), *(*map[string]string)(y))
	}
	same := true
	t.Map.Each(x, func(k, v unsafe.Pointer) bool {
		w := t.Map.Get(y, k)
		same = w != nil && f.equalValue(v, w, t.Elem)
		return same
	})
	return same
}

func (f *File) size(t *Type) uintptr {
	if t.Wire == Struct {
		return f.Structs[t.Index].Size
	}
	return t.Size
}

// Copy copies the struct at from into the zero struct at to, with everything to which it points.
func (f *File) Copy(to, from unsafe.Pointer, index int) {
	fields := f.Structs[index].Fields
	for i := range fields {
		field := &fields[i]
		x, y := unsafe.Add(to, field.Offset), unsafe.Add(from, field.Offset)
		if !field.present(y) {
			continue
		}
		if field.Opt {
			*(*bool)(unsafe.Add(x, field.Type.Size)) = true
		}
		if field.Type.Wire == Struct {
			inner := f.Structs[field.Type.Index].New(1)
			*(*unsafe.Pointer)(x) = inner
			x, y = inner, *(*unsafe.Pointer)(y)
		}
		f.copyValue(x, y, field.Type)
	}
}

func (f *File) copyValue(x, y unsafe.Pointer, t *Type) {
	switch t.Wire {
	case Bool, Byte:
		*(*byte)(x) = *(*byte)(y)
	case I16:
		*(*int16)(x) = *(*int16)(y)
	case I32:
		*(*int32)(x) = *(*int32)(y)
	case I64, Double:
		*(*int64)(x) = *(*int64)(y)
	case String:
		if t.Binary {
			*(*[]byte)(x) = slices.Clone(*(*[]byte)(y))
		} else {
			*(*string)(x) = *(*string)(y)
		}
	case Struct:
		f.Copy(x, y, t.Index)
	case List:
		f.copyList(x, y, t)
	case Map:
		if t.Map == &strMap {
			*(*map[string]string)(x) = maps.Clone(*(*map[string]string)(y))
		}
	}
}

func (f *File) copyList(x, y unsafe.Pointer, t *Type) {
	switch t.Elem.Wire {
	case I64:
		*(*[]int64)(x) = slices.Clone(*(*[]int64)(y))
	case String:
		*(*[]string)(x) = slices.Clone(*(*[]string)(y))
	case Struct:
		s, from := &f.Structs[t.Elem.Index], (*header)(y)
		if from.data == nil {
			return
		}
		data := s.New(from.len)
		for i := range from.len {
			step := uintptr(i) * s.Size
			f.Copy(unsafe.Add(data, step), unsafe.Add(from.data, step), t.Elem.Index)
		}
		*(*header)(x) = header{data, from.len, from.len}
	}
}
