package rt

import (
	"encoding/binary"
	"unsafe"
)

// Append appends the struct at p, which is at index in the file.
func (f *File) Append(b []byte, p unsafe.Pointer, index int) []byte {
	fields := f.Structs[index].Fields
	for i := range fields {
		field := &fields[i]
		at := unsafe.Add(p, field.Offset)
		if !field.present(at) {
			continue
		}
		b = append(b, field.Type.Wire, byte(field.ID>>8), byte(field.ID))
		if field.Type.Wire == Struct {
			b = f.Append(b, *(*unsafe.Pointer)(at), field.Type.Index)
		} else {
			b = f.appendValue(b, at, field.Type)
		}
	}
	return append(b, Stop)
}

// appendValue appends the value at p. Structs are stored directly at p, as in lists.
func (f *File) appendValue(b []byte, p unsafe.Pointer, t *Type) []byte {
	switch t.Wire {
	case Bool, Byte:
		return append(b, *(*byte)(p))
	case I16:
		return binary.BigEndian.AppendUint16(b, *(*uint16)(p))
	case I32:
		return binary.BigEndian.AppendUint32(b, *(*uint32)(p))
	case I64, Double:
		return binary.BigEndian.AppendUint64(b, *(*uint64)(p))
	case String:
		s := unsafe.Slice(*(**byte)(p), textLen(p))
		return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	case Struct:
		return f.Append(b, p, t.Index)
	case List, Set:
		return f.appendList(b, (*header)(p), t)
	case Map:
		b = append(b, t.Key.Wire, t.Elem.Wire)
		b = binary.BigEndian.AppendUint32(b, uint32(t.Map.Len(p)))
		return f.appendMap(b, p, t)
	}
	return b
}

func (f *File) appendMap(b []byte, p unsafe.Pointer, t *Type) []byte {
	if t.Map == &strMap {
		for k, v := range *(*map[string]string)(p) {
			b = AppendString(AppendString(b, k), v)
		}
		return b
	}
	t.Map.Each(p, func(k, v unsafe.Pointer) bool {
		b = f.appendValue(f.appendValue(b, k, t.Key), v, t.Elem)
		return true
	})
	return b
}

func (f *File) appendList(b []byte, h *header, t *Type) []byte {
	b = binary.BigEndian.AppendUint32(append(b, t.Elem.Wire), uint32(h.len))
	switch t.Elem.Wire {
	case I64:
		return AppendI64s(b, unsafe.Slice((*int64)(h.data), h.len))
	case Struct:
		size := f.Structs[t.Elem.Index].Size
		for i := range h.len {
			b = f.Append(b, unsafe.Add(h.data, uintptr(i)*size), t.Elem.Index)
		}
		return b
	}
	for i := range h.len {
		b = f.appendValue(b, unsafe.Add(h.data, uintptr(i)*t.Elem.Size), t.Elem)
	}
	return b
}

// Decode reads the struct that b begins with into the struct at p.
func (f *File) Decode(b []byte, p unsafe.Pointer, index int) (int, error) {
	off := f.read(b, 0, p, index, MaxDepth)
	if off < 0 {
		return 0, Err(off)
	}
	return off, nil
}

// find returns the index of the field with an ID. It tries the next one in order first.
func (s *StructDesc) find(id uint16, guess int) int {
	if guess < len(s.Fields) && s.Fields[guess].ID == id {
		return guess
	}
	for i := range s.Fields {
		if s.Fields[i].ID == id {
			return i
		}
	}
	return -1
}

func (f *File) read(b []byte, off int, p unsafe.Pointer, index, depth int) int {
	if depth <= 0 {
		return Deep
	}
	s := &f.Structs[index]
	var seen uint64
	guess := 0
	for {
		if len(b)-off < 3 || b[off] == Stop {
			if off >= len(b) || b[off] != Stop {
				return Short
			}
			if seen&s.Needed != s.Needed {
				return Missing
			}
			return off + 1
		}
		t, id := b[off], binary.BigEndian.Uint16(b[off+1:])
		off += 3
		i := s.find(id, guess)
		if i < 0 || s.Fields[i].Type.Wire != t {
			if off = Skip(b, off, t, depth); off < 0 {
				return off
			}
			continue
		}
		guess = i + 1
		seen |= 1 << i
		field := &s.Fields[i]
		at := unsafe.Add(p, field.Offset)
		if t == Struct {
			inner := f.Structs[field.Type.Index].New(1)
			*(*unsafe.Pointer)(at) = inner
			off = f.read(b, off, inner, field.Type.Index, depth-1)
		} else {
			off = f.readValue(b, off, at, field.Type, depth)
		}
		if off < 0 {
			return off
		}
		if field.Opt {
			*(*bool)(unsafe.Add(at, field.Type.Size)) = true
		}
	}
}

func (f *File) readValue(b []byte, off int, p unsafe.Pointer, t *Type, depth int) int {
	if size := int(fixed[t.Wire]); len(b)-off < size {
		return Short
	}
	switch t.Wire {
	case Bool:
		*(*bool)(p) = b[off] != 0
		return off + 1
	case Byte:
		*(*byte)(p) = b[off]
		return off + 1
	case I16:
		*(*uint16)(p) = binary.BigEndian.Uint16(b[off:])
		return off + 2
	case I32:
		*(*uint32)(p) = binary.BigEndian.Uint32(b[off:])
		return off + 4
	case I64, Double:
		*(*uint64)(p) = binary.BigEndian.Uint64(b[off:])
		return off + 8
	case String:
		if t.Binary {
			return ReadBinary(b, off, (*[]byte)(p))
		}
		return ReadString(b, off, (*string)(p))
	case Struct:
		return f.read(b, off, p, t.Index, depth-1)
	case List, Set:
		return f.readList(b, off, p, t, depth)
	case Map:
		return f.readMap(b, off, p, t, depth)
	}
	return Unknown
}

func (f *File) readList(b []byte, off int, p unsafe.Pointer, t *Type, depth int) int {
	switch t.Elem.Wire {
	case I64:
		return ReadI64s(b, off, (*[]int64)(p))
	case String:
		if !t.Elem.Binary {
			return ReadStrings(b, off, (*[]string)(p))
		}
	case Struct:
		s := &f.Structs[t.Elem.Index]
		n, off := Count(b, off, Struct, s.Least)
		if off < 0 {
			return off
		}
		data := s.New(n)
		*(*header)(p) = header{data, n, n}
		for i := 0; i < n && off >= 0; i++ {
			off = f.read(b, off, unsafe.Add(data, uintptr(i)*s.Size), t.Elem.Index, depth-1)
		}
		return off
	}
	return Unknown
}

func (f *File) readMap(b []byte, off int, p unsafe.Pointer, t *Type, _ int) int {
	if t.Map == &strMap {
		return ReadStringMap(b, off, (*map[string]string)(p))
	}
	return Unknown
}

// Sizeof returns the size of the encoding of the struct at p.
func (f *File) Sizeof(p unsafe.Pointer, index int) int {
	n := 1
	fields := f.Structs[index].Fields
	for i := range fields {
		field := &fields[i]
		at := unsafe.Add(p, field.Offset)
		if !field.present(at) {
			continue
		}
		if field.Type.Wire == Struct {
			at = *(*unsafe.Pointer)(at)
		}
		n += 3 + f.sizeofValue(at, field.Type)
	}
	return n
}

func (f *File) sizeofValue(p unsafe.Pointer, t *Type) int {
	switch t.Wire {
	case String:
		return 4 + textLen(p)
	case Struct:
		return f.Sizeof(p, t.Index)
	case List, Set:
		return f.sizeofList((*header)(p), t)
	case Map:
		return f.sizeofMap(p, t)
	}
	return int(fixed[t.Wire])
}

func (f *File) sizeofList(h *header, t *Type) int {
	if size := int(fixed[t.Elem.Wire]); size != 0 {
		return 5 + h.len*size
	}
	n, size := 5, f.size(t.Elem)
	for i := range h.len {
		n += f.sizeofValue(unsafe.Add(h.data, uintptr(i)*size), t.Elem)
	}
	return n
}

func (f *File) sizeofMap(p unsafe.Pointer, t *Type) int {
	if t.Map == &strMap {
		return 6 + SizeStringMap(*(*map[string]string)(p))
	}
	n := 6
	t.Map.Each(p, func(k, v unsafe.Pointer) bool {
		n += f.sizeofValue(k, t.Key) + f.sizeofValue(v, t.Elem)
		return true
	})
	return n
}

// textLen returns the length of the string or the bytes at p: in both, it is
// the second word.
func textLen(p unsafe.Pointer) int { return *(*int)(unsafe.Add(p, unsafe.Sizeof(p))) }
