package openapi

import (
	"bytes"
	"encoding/json"
)

// object is a JSON object whose members keep their order, and list an array.
type (
	object []member
	list   []any
)

type member struct {
	name  string
	value any
}

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := encode(&b, m.name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := encode(&b, m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encode appends the JSON of a value, in which < and & may appear unescaped: it is
// never read as HTML.
func encode(b *bytes.Buffer, value any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // a line feed
	return nil
}

// write returns the indented JSON of an object of strings, numbers, Booleans,
// objects and lists, which cannot fail.
func write(o object) []byte {
	plain, err := o.MarshalJSON()
	if err != nil {
		return nil
	}
	var b bytes.Buffer
	if err := json.Indent(&b, plain, "", "  "); err != nil {
		return nil
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// compact returns the JSON of a value in one line, for comparing values.
func compact(value any) string {
	var b bytes.Buffer
	if err := encode(&b, value); err != nil {
		return ""
	}
	return b.String()
}
