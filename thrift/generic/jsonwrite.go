package generic

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/internal/jsontext"
)

// AppendJSON appends a struct to b as JSON, with the mapping that [thrift.JSON] documents. Errors are
// of type *ValueError.
func (c Codec) AppendJSON(b []byte, s *idl.Struct, v map[string]any) ([]byte, error) {
	w := &jsonWriter{values: values{limit: c.budget(0)}, JSON: c.JSON, b: b}
	if err := w.structure(s, v, thrift.MaxDepth); err != nil {
		return b, err.asError()
	}
	return w.b, nil
}

// AppendJSONValue appends a value of any type to b as JSON, such as the result of a function. Errors are of
// type *ValueError.
func (c Codec) AppendJSONValue(b []byte, t *idl.Type, v any) ([]byte, error) {
	w := &jsonWriter{values: values{limit: c.budget(0)}, JSON: c.JSON, b: b}
	if err := w.value(t, v, thrift.MaxDepth); err != nil {
		return b, err.asError()
	}
	return w.b, nil
}

// jsonWriter writes one document.
type jsonWriter struct {
	values
	thrift.JSON
	b []byte
}

func (w *jsonWriter) structure(s *idl.Struct, v any, depth int) *ValueError {
	fields, err := w.fields(s, s.Fields, v, depth)
	if err != nil {
		return err
	}
	w.b = append(w.b, '{')
	for i, one := range fields {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = append(append(append(w.b, '"'), one.f.Name...), '"', ':') // a name needs no escape
		if err := w.value(one.f.Type, one.v, depth-1); err != nil {
			return err.in("." + one.f.Name)
		}
	}
	w.b = append(w.b, '}')
	return nil
}

func (w *jsonWriter) value(t *idl.Type, v any, depth int) *ValueError {
	t = t.True()
	switch wire := wireOf(t); wire {
	case thrift.TypeBool:
		x, ok := v.(bool)
		if !ok {
			return mismatch("bool", v)
		}
		w.b = strconv.AppendBool(w.b, x)
	case thrift.TypeI8, thrift.TypeI16, thrift.TypeI32, thrift.TypeI64:
		n, err := integer(v, bitsOf(wire))
		switch {
		case err != nil:
			return err
		case nameOf(t, n) != "":
			w.quoted(nameOf(t, n))
		case wire == thrift.TypeI64 && w.I64Strings:
			w.quoted(strconv.FormatInt(n, 10))
		default:
			w.b = strconv.AppendInt(w.b, n, 10)
		}
	case thrift.TypeDouble:
		x, ok := v.(float64)
		if !ok {
			return mismatch("float64", v)
		}
		w.b = jsontext.AppendDouble(w.b, x)
	case thrift.TypeUUID:
		x, ok := v.(thrift.UUID)
		if !ok {
			return mismatch("thrift.UUID", v)
		}
		w.b = append(jsontext.AppendUUID(append(w.b, '"'), x), '"')
	case thrift.TypeString:
		text, err := textOf(t, v)
		if err != nil {
			return err
		}
		w.text(t, text)
	case thrift.TypeStruct:
		return w.structure(t.Struct(), v, depth)
	case thrift.TypeMap:
		return w.entries(t, v, depth)
	default:
		return w.elements(t, v, depth)
	}
	return nil
}

// nameOf returns the name of a value of an enum, or "".
func nameOf(t *idl.Type, n int64) string {
	if e := t.Enum(); e != nil {
		if v := e.ByNumber(int32(n)); v != nil {
			return v.Name
		}
	}
	return ""
}

// quoted appends a text that needs no escape.
func (w *jsonWriter) quoted(text string) { w.b = append(append(append(w.b, '"'), text...), '"') }

func (w *jsonWriter) text(t *idl.Type, text string) {
	if t.Kind == idl.Binary {
		w.b = append(base64.StdEncoding.AppendEncode(append(w.b, '"'), []byte(text)), '"')
	} else {
		w.b = jsontext.AppendString(w.b, text)
	}
}

func (w *jsonWriter) elements(t *idl.Type, v any, depth int) *ValueError {
	list, err := listOf(v)
	if err != nil {
		return err
	}
	w.b = append(w.b, '[')
	for i, x := range list {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		if err := w.value(t.Elem, x, depth-1); err != nil {
			return err.in(index(i))
		}
	}
	w.b = append(w.b, ']')
	return nil
}

// isName reports whether the keys of a map become names of members.
func isName(t *idl.Type) bool {
	switch wireOf(t) {
	case thrift.TypeDouble, thrift.TypeStruct, thrift.TypeList, thrift.TypeSet, thrift.TypeMap:
		return false
	}
	return true
}

// entries writes a map: an object, or an array of arrays with a key and a value.
func (w *jsonWriter) entries(t *idl.Type, v any, depth int) *ValueError {
	list, err := entriesOf(v)
	if err != nil {
		return err
	}
	named := isName(t.Key.True())
	b := w.b
	type entry struct{ key, text []byte }
	texts := make([]entry, len(list))
	for i := range list {
		w.b = nil
		keyEnd, err := w.entry(t, list[i], i, named, depth)
		if err != nil {
			return err
		}
		texts[i] = entry{w.b[:keyEnd], w.b}
	}
	slices.SortStableFunc(texts, func(x, y entry) int {
		return cmp.Or(bytes.Compare(x.key, y.key), bytes.Compare(x.text, y.text))
	})
	open, end := byte('['), byte(']')
	if named {
		open, end = '{', '}'
	}
	w.b = append(b, open)
	for i := range texts {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = append(w.b, texts[i].text...)
	}
	w.b = append(w.b, end)
	return nil
}

// entry writes an entry, without the comma, and returns the offset at which its key ends.
func (w *jsonWriter) entry(t *idl.Type, e thrift.Entry[any, any], i int, named bool, depth int) (keyEnd int, err *ValueError) {
	separator := byte(',')
	if named {
		separator = ':'
		err = w.name(t.Key.True(), e.Key)
	} else {
		w.b = append(w.b, '[')
		err = w.value(t.Key, e.Key, depth-1)
	}
	if err != nil {
		return 0, err.in(index(i) + ".key")
	}
	keyEnd = len(w.b)
	w.b = append(w.b, separator)
	if err = w.value(t.Elem, e.Value, depth-1); err != nil {
		return 0, err.in(keyed(i, e.Key, ".value"))
	}
	if !named {
		w.b = append(w.b, ']')
	}
	return keyEnd, nil
}

// name writes a key as a member name.
func (w *jsonWriter) name(t *idl.Type, key any) *ValueError {
	switch wire := wireOf(t); wire {
	case thrift.TypeBool:
		x, ok := key.(bool)
		if !ok {
			return mismatch("bool", key)
		}
		w.quoted(strconv.FormatBool(x))
	case thrift.TypeI8, thrift.TypeI16, thrift.TypeI32, thrift.TypeI64:
		n, err := integer(key, bitsOf(wire))
		if err != nil {
			return err
		}
		if name := nameOf(t, n); name != "" {
			w.quoted(name)
		} else {
			w.quoted(strconv.FormatInt(n, 10))
		}
	default: // The key is a string in JSON.
		return w.value(t, key, 0)
	}
	return nil
}
