package generic

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// Append appends the encoding of a struct to b. Errors are of type *ValueError.
func (c Codec) Append(b []byte, s *idl.Struct, v map[string]any) ([]byte, error) {
	e := &encoder{values: values{limit: c.budget(0)}, b: b, compact: c.Compact}
	if err := e.structure(s, v, thrift.MaxDepth); err != nil {
		return b, err.asError()
	}
	return e.b, nil
}

// encoder writes one struct.
type encoder struct {
	values
	b       []byte
	compact bool
}

// values checks values before they are written.
type values struct {
	limit budget // the limit for each default
}

// mismatch returns the error for a value of an unexpected type.
func mismatch(want string, v any) *ValueError {
	return &ValueError{Problem: fmt.Sprintf("expected %s, found %T", want, v)}
}

// present is a field and its value.
type present struct {
	f *idl.Field
	v any
}

// fields selects from list the fields of a struct to be written.
func (w *values) fields(s *idl.Struct, list []*idl.Field, v any, depth int) ([]present, *ValueError) {
	m, ok := v.(map[string]any)
	switch {
	case depth <= 0:
		return nil, &ValueError{Problem: tooDeep}
	case !ok:
		return nil, mismatch("map[string]any", v)
	}
	all := make([]present, 0, len(m))
	known := 0
	for _, f := range list {
		x, there := m[f.Name]
		if there {
			known++
		}
		if x == nil && s.Kind != idl.Union && f.Requirement != idl.Optional {
			if f.Requirement == idl.Required {
				return nil, (&ValueError{Problem: "the required field is missing"}).in("." + f.Name)
			}
			m, problem := w.limit, ""
			if x, problem = m.initial(f, depth); problem != "" {
				return nil, (&ValueError{Problem: problem}).in("." + f.Name)
			}
		}
		if x != nil {
			all = append(all, present{f, x})
		}
	}
	if known < len(m) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if s.Field(name) == nil {
				return nil, &ValueError{Problem: "the " + s.Kind.String() + " " + s.Name + " has no field " + strconv.Quote(name)}
			}
		}
	}
	if s.Kind == idl.Union && len(all) != 1 {
		return nil, &ValueError{Problem: badUnion}
	}
	return all, nil
}

// structure writes a struct. depth is the number of remaining levels: each struct and each
// container is one.
func (e *encoder) structure(s *idl.Struct, v any, depth int) *ValueError {
	fields, err := e.fields(s, s.ByID(), v, depth)
	if err != nil {
		return err
	}
	last := uint16(0)
	for _, one := range fields {
		id, t := uint16(one.f.ID), one.f.Type.True()
		wire := wireOf(t)
		x, isBool := one.v.(bool)
		switch {
		case !e.compact:
			e.b = append(e.b, wire, byte(id>>8), byte(id))
			err = e.value(t, one.v, depth-1)
		case wire == thrift.TypeBool && isBool:
			e.b = thrift.AppendCompactBoolHead(e.b, x, id, last)
		default:
			e.b = thrift.AppendCompactHead(e.b, compact[wire], id, last)
			err = e.value(t, one.v, depth-1)
		}
		if err != nil {
			return err.in("." + one.f.Name)
		}
		last = id
	}
	e.b = append(e.b, thrift.TypeStop)
	return nil
}

func (e *encoder) value(t *idl.Type, v any, depth int) *ValueError {
	t = t.True()
	switch w := wireOf(t); w {
	case thrift.TypeBool:
		x, ok := v.(bool)
		if !ok {
			return mismatch("bool", v)
		}
		if e.compact {
			e.b = thrift.AppendCompactBool(e.b, x)
		} else {
			e.b = thrift.AppendBool(e.b, x)
		}
	case thrift.TypeI8, thrift.TypeI16, thrift.TypeI32, thrift.TypeI64:
		n, err := integer(v, bitsOf(w))
		if err != nil {
			return err
		}
		e.integer(n, w)
	case thrift.TypeDouble:
		x, ok := v.(float64)
		if !ok {
			return mismatch("float64", v)
		}
		if e.compact {
			e.b = thrift.AppendCompactDouble(e.b, x)
		} else {
			e.b = thrift.AppendDouble(e.b, x)
		}
	case thrift.TypeUUID:
		x, ok := v.(thrift.UUID)
		if !ok {
			return mismatch("thrift.UUID", v)
		}
		e.b = thrift.AppendUUID(e.b, x)
	case thrift.TypeString:
		return e.text(t, v)
	case thrift.TypeStruct:
		return e.structure(t.Struct(), v, depth)
	case thrift.TypeMap:
		return e.entries(t, v, depth)
	default:
		return e.elements(t, v, depth)
	}
	return nil
}

// integer returns the value of an integer, whose type is int or the one with that number of bits.
func integer(v any, bits int) (int64, *ValueError) {
	var n int64
	of := 64
	switch x := v.(type) {
	case int:
		if n = int64(x); n<<(64-bits)>>(64-bits) != n {
			return 0, &ValueError{Problem: fmt.Sprintf("%d does not fit into %d bits", x, bits)}
		}
		return n, nil
	case int8:
		n, of = int64(x), 8
	case int16:
		n, of = int64(x), 16
	case int32:
		n, of = int64(x), 32
	case int64:
		n = x
	default:
		of = 0
	}
	if of != bits {
		return 0, mismatch("int"+strconv.Itoa(bits), v)
	}
	return n, nil
}

func (e *encoder) integer(n int64, wire byte) {
	switch {
	case wire == thrift.TypeI8:
		e.b = thrift.AppendI8(e.b, int8(n))
	case e.compact:
		e.b = thrift.AppendCompactInt(e.b, n)
	case wire == thrift.TypeI16:
		e.b = thrift.AppendI16(e.b, int16(n))
	case wire == thrift.TypeI32:
		e.b = thrift.AppendI32(e.b, int32(n))
	default:
		e.b = thrift.AppendI64(e.b, n)
	}
}

func (e *encoder) text(t *idl.Type, v any) *ValueError {
	text, err := textOf(t, v)
	if err != nil {
		return err
	}
	if e.compact {
		e.b = thrift.AppendCompactString(e.b, text)
	} else {
		e.b = thrift.AppendString(e.b, text)
	}
	return nil
}

// textOf returns the value of a string or a binary. A binary may also be a Go string, as in keys.
func textOf(t *idl.Type, v any) (string, *ValueError) {
	text, ok := v.(string)
	if b, isBytes := v.([]byte); isBytes && t.Kind == idl.Binary {
		text, ok = string(b), true
	}
	switch {
	case !ok && t.Kind == idl.Binary:
		return "", mismatch("[]byte", v)
	case !ok:
		return "", mismatch("string", v)
	case len(text) > math.MaxInt32:
		return "", &ValueError{Problem: noText}
	}
	return text, nil
}

func (e *encoder) elements(t *idl.Type, v any, depth int) *ValueError {
	list, err := listOf(v)
	if err != nil {
		return err
	}
	wire := wireOf(t.Elem.True())
	if e.compact {
		e.b = thrift.AppendCompactList(e.b, compact[wire], len(list))
	} else {
		e.b = thrift.AppendList(e.b, wire, len(list))
	}
	for i, x := range list {
		if err := e.value(t.Elem, x, depth-1); err != nil {
			return err.in(index(i))
		}
	}
	return nil
}

func listOf(v any) ([]any, *ValueError) {
	list, ok := v.([]any)
	switch {
	case !ok:
		return nil, mismatch("[]any", v)
	case len(list) > math.MaxInt32:
		return nil, &ValueError{Problem: noText}
	}
	return list, nil
}

func (e *encoder) entries(t *idl.Type, v any, depth int) *ValueError {
	list, err := entriesOf(v)
	if err != nil {
		return err
	}
	k, x := wireOf(t.Key.True()), wireOf(t.Elem.True())
	if e.compact {
		e.b = thrift.AppendCompactMap(e.b, compact[k], compact[x], len(list))
	} else {
		e.b = thrift.AppendMap(e.b, k, x, len(list))
	}
	for i := range list {
		if err := e.value(t.Key, list[i].Key, depth-1); err != nil {
			return err.in(index(i) + ".key")
		}
		if err := e.value(t.Elem, list[i].Value, depth-1); err != nil {
			return err.in(keyed(i, list[i].Key, ".value"))
		}
	}
	return nil
}

// keyed returns the path step to the value of an entry.
func keyed(i int, key any, rest string) string {
	if text, ok := key.(string); ok {
		const most = 80
		return "[" + strconv.Quote(text[:min(len(text), most)]) + "]"
	}
	return index(i) + rest
}

// entriesOf returns the entries of a map. Those of a Go map are sorted.
func entriesOf(v any) ([]thrift.Entry[any, any], *ValueError) {
	var list []thrift.Entry[any, any]
	switch m := v.(type) {
	case []thrift.Entry[any, any]:
		list = m
	case map[any]any:
		list = make([]thrift.Entry[any, any], 0, len(m))
		for k, x := range m {
			list = append(list, thrift.Entry[any, any]{Key: k, Value: x})
		}
		slices.SortFunc(list, func(a, b thrift.Entry[any, any]) int { return compareKeys(a.Key, b.Key) })
	default:
		return nil, mismatch("map[any]any or []thrift.Entry[any, any]", v)
	}
	if len(list) > math.MaxInt32 {
		return nil, &ValueError{Problem: noText}
	}
	return list, nil
}

// compareKeys orders keys as generated code does. The order of keys that cannot be in a map is
// unspecified.
func compareKeys(a, b any) int {
	switch x := a.(type) {
	case bool:
		y, _ := b.(bool)
		return cmp.Compare(thrift.Bit(x), thrift.Bit(y))
	case float64:
		y, _ := b.(float64)
		return cmp.Compare(x, y)
	case string:
		y, _ := b.(string)
		return cmp.Compare(x, y)
	case thrift.UUID:
		y, _ := b.(thrift.UUID)
		return bytes.Compare(x[:], y[:])
	}
	return cmp.Compare(anyInteger(a), anyInteger(b))
}

// anyInteger returns the value of an integer of any type.
func anyInteger(v any) int64 {
	for bits := 8; bits <= 64; bits *= 2 {
		if n, err := integer(v, bits); err == nil {
			return n
		}
	}
	return 0
}
