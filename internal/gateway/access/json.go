package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// jsonError is a mistake in a JSON object and its position.
type jsonError struct {
	offset  int64
	message string
}

func (e *jsonError) Error() string { return e.message }

// offsetOf returns the offset in the text of a mistake, or 0 if unknown.
func offsetOf(err error) int64 {
	if e, ok := errors.AsType[*jsonError](err); ok {
		return e.offset
	}
	return 0
}

// eachMember calls visit with the members of a JSON object in their order, and
// with the offset at which each value ends. It is stricter than encoding/json: a
// name may appear only once (RFC 8725, section 2.4, describes the consequences of
// choosing one), names are case-sensitive, the text is UTF-8, and nothing follows
// the object. Nested values are passed as text: their depth costs nothing.
func eachMember(data []byte, visit func(name string, value json.RawMessage, end int64) error) error {
	if !utf8.Valid(data) {
		return &jsonError{0, "the text is not UTF-8"}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	fail := func(err error) error {
		// A decoder counts its offsets from the value, Unmarshal from the start.
		var all json.RawMessage
		if e, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(data, &all)); ok {
			return &jsonError{e.Offset, e.Error()}
		}
		return &jsonError{d.InputOffset(), err.Error()}
	}
	switch t, err := d.Token(); {
	case err != nil:
		return fail(err)
	case t != json.Delim('{'):
		return &jsonError{0, "expected an object"}
	}
	seen := make(map[string]bool)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return fail(err)
		}
		name, ok := t.(string)
		if !ok {
			return &jsonError{d.InputOffset(), "expected the name of a member"}
		}
		if seen[name] {
			return &jsonError{d.InputOffset(), fmt.Sprintf("the member %q appears twice", name)}
		}
		seen[name] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return fail(err)
		}
		if err := visit(name, value, d.InputOffset()); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return fail(err)
	}
	if rest := bytes.TrimLeft(data[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return &jsonError{d.InputOffset(), "text after the object"}
	}
	return nil
}
