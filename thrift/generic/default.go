package generic

import (
	"encoding/hex"
	"strings"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// fill sets the absent fields of a struct to the values that they have in a new generated struct.
// It returns an error text if that needs too much memory, or would not end.
func (m *budget) fill(s *idl.Struct, v map[string]any, depth int) (problem string) {
	if s.Kind == idl.Union {
		return ""
	}
	for _, f := range s.Fields {
		if v[f.Name] != nil || isOpt(f) {
			continue
		}
		x, problem := m.initial(f, depth)
		if problem != "" {
			return problem
		}
		if x == nil {
			continue
		}
		if !m.charge(1, sizeOfValue) {
			return tooLarge
		}
		v[f.Name] = x
	}
	return ""
}

// isOpt reports whether the field is a thrift.Opt in generated code: such a field holds its
// default, but is not set.
func isOpt(f *idl.Field) bool {
	if f.Requirement != idl.Optional {
		return false
	}
	switch t := f.Type.True(); wireOf(t) {
	case thrift.TypeStruct, thrift.TypeList, thrift.TypeSet, thrift.TypeMap:
		return false
	default:
		return t.Kind != idl.Binary
	}
}

// initial returns the default of a field, or zero. It returns nil if the field is absent.
func (m *budget) initial(f *idl.Field, depth int) (v any, problem string) {
	switch {
	case f.Default != nil:
		return m.literal(f.Default, f.Type, depth)
	case f.Requirement == idl.Optional:
		return nil, ""
	}
	return zero(f.Type.True()), ""
}

// zero returns the value of a field that is not set, or nil for a struct.
func zero(t *idl.Type) any {
	switch w := wireOf(t); w {
	case thrift.TypeBool:
		return false
	case thrift.TypeI8, thrift.TypeI16, thrift.TypeI32, thrift.TypeI64:
		return ofBits(0, bitsOf(w))
	case thrift.TypeDouble:
		return 0.0
	case thrift.TypeString:
		if t.Kind == idl.Binary {
			return []byte{}
		}
		return ""
	case thrift.TypeUUID:
		return thrift.UUID{}
	case thrift.TypeStruct:
		return nil
	case thrift.TypeMap:
		if isEntries(t) {
			return []thrift.Entry[any, any]{}
		}
		return map[any]any{}
	}
	return []any{}
}

// literal returns the value of a default or constant. A constant can be used many times, and the
// default of a struct can contain the struct itself, so both the memory and the depth are limited.
func (m *budget) literal(v *idl.Value, t *idl.Type, depth int) (out any, problem string) {
	lit := v.Literal()
	t = t.True()
	if depth <= 0 {
		return nil, tooDeep
	}
	if !m.charge(1, sizeOfSlot+len(lit.Text)) {
		return nil, tooLarge
	}
	switch w := wireOf(t); w {
	case thrift.TypeBool:
		return number(lit) != 0, ""
	case thrift.TypeI8, thrift.TypeI16, thrift.TypeI32, thrift.TypeI64:
		return ofBits(number(lit), bitsOf(w)), ""
	case thrift.TypeDouble:
		if lit.Kind == idl.DoubleValue {
			return lit.Double, ""
		}
		return float64(number(lit)), ""
	case thrift.TypeString:
		if t.Kind == idl.Binary {
			return []byte(lit.Text), ""
		}
		return lit.Text, ""
	case thrift.TypeUUID:
		var u thrift.UUID
		_, _ = hex.Decode(u[:], []byte(strings.ReplaceAll(strings.Trim(lit.Text, "{}"), "-", ""))) // the checker has validated it
		return u, ""
	case thrift.TypeStruct:
		return m.literalStruct(lit, t.Struct(), depth)
	case thrift.TypeMap:
		return m.literalMap(lit, t, depth)
	}
	list := make([]any, len(lit.List))
	for i := range lit.List {
		if list[i], problem = m.literal(&lit.List[i], t.Elem, depth-1); problem != "" {
			return nil, problem
		}
	}
	return list, ""
}

// number returns the number of a literal.
func number(lit *idl.Value) int64 {
	if lit.EnumValue != nil {
		return int64(lit.EnumValue.Number)
	}
	return lit.Int
}

func (m *budget) literalStruct(lit *idl.Value, s *idl.Struct, depth int) (out any, problem string) {
	if !m.chargeStruct(s) || !m.charge(len(lit.Map), sizeOfValue) {
		return nil, tooLarge
	}
	v := make(map[string]any, len(lit.Map))
	for i := range lit.Map {
		f := s.Field(lit.Map[i].Key.Text)
		if v[f.Name], problem = m.literal(&lit.Map[i].Value, f.Type, depth-1); problem != "" {
			return nil, problem
		}
	}
	return v, m.fill(s, v, depth-1)
}

func (m *budget) literalMap(lit *idl.Value, t *idl.Type, depth int) (out any, problem string) {
	if !m.charge(len(lit.Map), sizeOfEntry) {
		return nil, tooLarge
	}
	entries := newMap(t)
	for i := range lit.Map {
		k, problem := m.literal(&lit.Map[i].Key, t.Key, depth-1)
		if problem != "" {
			return nil, problem
		}
		v, problem := m.literal(&lit.Map[i].Value, t.Elem, depth-1)
		if problem != "" {
			return nil, problem
		}
		entries.put(k, v)
	}
	return entries.value(), ""
}

// mapping is a map under construction, in one of two representations.
type mapping struct {
	m       map[any]any
	entries []thrift.Entry[any, any]
	hasNaN  bool
}

func newMap(t *idl.Type) *mapping {
	if isEntries(t) {
		return &mapping{entries: []thrift.Entry[any, any]{}}
	}
	return &mapping{m: make(map[any]any)}
}

// put adds an entry, or replaces the one with an equal key. If there are several entries with the
// key NaN, it keeps the first one, although NaN does not equal itself.
func (m *mapping) put(k, v any) {
	if m.m == nil {
		m.entries = append(m.entries, thrift.Entry[any, any]{Key: k, Value: v})
		return
	}
	if b, ok := k.([]byte); ok {
		k = string(b)
	}
	if x, ok := k.(float64); ok && x != x {
		if m.hasNaN {
			return
		}
		m.hasNaN = true
	}
	m.m[k] = v
}

func (m *mapping) value() any {
	if m.m == nil {
		return m.entries
	}
	return m.m
}
