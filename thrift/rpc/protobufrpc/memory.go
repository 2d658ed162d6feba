package protobufrpc

import (
	"math"
	"reflect"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// A message can need much more memory than its encoding: two bytes can encode an element of a list of structs. So
// before a message is decoded, a walk through it adds up the memory that it needs, unless its size implies that the
// memory is within the limit. Strings and bytes fields do not count, because they need about as much memory as in the
// message.

const (
	memoryOfByte = 64
	memoryFloor  = 4 << 20
)

// shape describes the memory needed by messages of a type. It is immutable after shapeOf has returned it, except for
// known.
type shape struct {
	name   protoreflect.FullName
	size   int // size of the Go struct
	fields map[protowire.Number]field
	most   int // maximum bytes of memory per byte of a message, including nested messages

	extensible bool
	known      sync.Map // map from protowire.Number to field: extensions found so far
}

// field describes the memory needed by an occurrence of a field.
type field struct {
	each   int            // bytes of memory, without the fields of a nested message; for a list, per element
	packed protowire.Type // type of the elements if one occurrence can have many; otherwise BytesType
	inner  *shape         // shape of a nested message or a map entry; otherwise nil
}

// Memory outside of structs.
const (
	pointerSize  = 8
	growth       = 2  // a growing list may have twice the capacity that it needs
	presenceSize = 24 // memory of a scalar with presence
	extraSize    = 64 // additional memory of an extension
)

var shapes sync.Map // map from reflect.Type to *shape

// shapeOf returns the shape of a message.
func shapeOf(m protoreflect.Message) *shape {
	key := reflect.TypeOf(m.Interface())
	if s, ok := shapes.Load(key); ok {
		return s.(*shape)
	}
	all := make(map[reflect.Type]*shape)
	root := newShape(m, all)
	for _, s := range all {
		root.most = max(root.most, s.ownMost())
	}
	s, _ := shapes.LoadOrStore(key, root)
	return s.(*shape)
}

// newShape returns the shape of a message. It adds that shape and the shapes of nested messages to all.
func newShape(m protoreflect.Message, all map[reflect.Type]*shape) *shape {
	t := reflect.TypeOf(m.Interface())
	if s := all[t]; s != nil {
		return s
	}
	d := m.Descriptor()
	s := &shape{name: d.FullName(), size: sizeOf(t), extensible: d.ExtensionRanges().Len() > 0, fields: make(map[protowire.Number]field)}
	all[t] = s
	fields := d.Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		s.fields[fd.Number()] = newField(fd, func() protoreflect.Value { return m.NewField(fd) }, all)
	}
	return s
}

// newField returns a field. empty returns an empty value of its type.
func newField(fd protoreflect.FieldDescriptor, empty func() protoreflect.Value, all map[reflect.Type]*shape) field {
	isMessage := fd.Message() != nil
	switch {
	case fd.IsMap():
		key, value := fd.MapKey(), fd.MapValue()
		entry := &shape{fields: make(map[protowire.Number]field)}
		f := field{each: growth * (scalarSize(key) + scalarSize(value)), packed: protowire.BytesType, inner: entry}
		if value.Message() != nil {
			inner := newShape(empty().Map().NewValue().Message(), all)
			f.each += inner.size
			entry.fields[value.Number()] = field{packed: protowire.BytesType, inner: inner}
		}
		return f
	case fd.IsList() && isMessage:
		inner := newShape(empty().List().NewElement().Message(), all)
		return field{growth*pointerSize + inner.size, protowire.BytesType, inner}
	case fd.IsList():
		return field{growth * scalarSize(fd), wireType(fd.Kind()), nil}
	case isMessage:
		inner := newShape(empty().Message(), all)
		return field{inner.size, protowire.BytesType, inner}
	case fd.HasPresence():
		return field{each: presenceSize, packed: protowire.BytesType}
	}
	return field{packed: protowire.BytesType}
}

// sizeOf returns the size of the struct to which a type points.
func sizeOf(t reflect.Type) int {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return int(t.Size())
}

// scalarSize returns the size of a Go value; for a message, it is the size of a pointer.
func scalarSize(fd protoreflect.FieldDescriptor) int {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return 1
	case protoreflect.StringKind:
		return 2 * pointerSize
	case protoreflect.BytesKind:
		return 3 * pointerSize
	}
	return pointerSize
}

// wireType returns the wire type of a value.
func wireType(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.StringKind, protoreflect.BytesKind:
		return protowire.BytesType
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return protowire.Fixed32Type
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return protowire.Fixed64Type
	}
	return protowire.VarintType
}

// ownMost returns the maximum bytes of memory per byte of the message, without nested messages.
func (s *shape) ownMost() (most int) {
	if s.extensible {
		return math.MaxInt32
	}
	for number, f := range s.fields {
		least := protowire.SizeTag(number) + 1
		switch f.packed {
		case protowire.VarintType:
			least = 1
		case protowire.Fixed32Type:
			least = 4
		case protowire.Fixed64Type:
			least = 8
		}
		most = max(most, (f.each+least-1)/least)
	}
	return most
}

// check returns an error if the message b would need more memory than allowed.
func (s *shape) check(b []byte, maxMemory int) error {
	if maxMemory <= 0 {
		maxMemory = memoryFloor + memoryOfByte*min(len(b), (math.MaxInt-memoryFloor)/memoryOfByte)
	}
	left := maxMemory - s.size
	switch {
	case left < 0:
		return ErrMemory
	case len(b) <= left/max(s.most, 1):
		return nil
	}
	w := walk{left}
	_, err := w.message(s, b, 0, 2*mostDepth) // map entries also count as a level
	return err
}

// walk adds up the memory that a message needs.
type walk struct{ left int } // remaining bytes of memory

// message walks through a message, which ends at the end of b or, if group is not 0, at the end of that group. It
// returns the size of the message.
func (w *walk) message(s *shape, b []byte, group protowire.Number, depth int) (size int, err error) {
	if depth == 0 {
		return 0, errDeep
	}
	for size < len(b) {
		number, kind, n := protowire.ConsumeTag(b[size:])
		if n < 0 {
			return 0, protowire.ParseError(n)
		}
		size += n
		if kind == protowire.EndGroupType && number == group {
			return size, nil
		}
		f := s.field(number)
		switch {
		case f.inner != nil && kind == protowire.StartGroupType:
			n, err = w.message(f.inner, b[size:], number, depth-1)
			w.left -= f.each
		case f.inner != nil && kind == protowire.BytesType:
			var inner []byte
			if inner, n = protowire.ConsumeBytes(b[size:]); n >= 0 {
				_, err = w.message(f.inner, inner, 0, depth-1)
			}
			w.left -= f.each
		default:
			if n = protowire.ConsumeFieldValue(number, kind, b[size:]); n >= 0 {
				w.left -= f.each * f.elements(kind, b[size:size+n])
			}
		}
		switch {
		case err != nil:
			return 0, err
		case n < 0:
			return 0, protowire.ParseError(n)
		case w.left < 0:
			return 0, ErrMemory
		}
		size += n
	}
	if group != 0 {
		return 0, errGroup
	}
	return size, nil
}

// field returns a field or an extension. An unknown field needs no memory.
func (s *shape) field(number protowire.Number) field {
	f, ok := s.fields[number]
	if ok || !s.extensible {
		return f
	}
	if known, ok := s.known.Load(number); ok {
		return known.(field)
	}
	t, err := protoregistry.GlobalTypes.FindExtensionByNumber(s.name, number)
	if err != nil {
		return field{}
	}
	f = newField(t.TypeDescriptor(), t.New, make(map[reflect.Type]*shape))
	f.each += extraSize
	s.known.Store(number, f)
	return f
}

// elements returns the number of elements in an occurrence of a field.
func (f *field) elements(kind protowire.Type, b []byte) int {
	if kind != protowire.BytesType || f.packed == protowire.BytesType {
		return 1
	}
	b, _ = protowire.ConsumeBytes(b)
	switch f.packed {
	case protowire.Fixed32Type:
		return len(b) / 4
	case protowire.Fixed64Type:
		return len(b) / 8
	}
	n := 0
	for _, c := range b {
		if c < 0x80 {
			n++
		}
	}
	return n
}
