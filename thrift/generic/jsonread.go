package generic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/internal/jsontext"
)

// JSON is read from the tokens of encoding/json. Before that, text that is not valid Unicode is
// rejected, because encoding/json would accept it. Package jsontext writes the scalars for this
// package and package thrift.

// FromJSON reads a struct from JSON, with the mapping that [thrift.JSON] documents. b must contain
// nothing else. Fields that are missing in b get their defaults, as when they are missing in a
// message. If the codec is Strict, a member that is not the name of a field is an error. Errors are
// of type *thrift.JSONError.
func (c Codec) FromJSON(b []byte, s *idl.Struct) (map[string]any, error) {
	d := &jsonReader{strict: c.Strict, budget: c.budget(len(b)), tokens: json.NewDecoder(bytes.NewReader(b))}
	if d.err = valid(b); d.err != nil {
		return nil, d.err
	}
	d.tokens.UseNumber()
	v, ok := d.structure(s, d.next(), thrift.MaxDepth)
	if !ok {
		d.err.Path = strings.TrimPrefix(d.err.Path, ".")
		return nil, d.err
	}
	return v, nil
}

// valid returns an error if the text is not valid JSON in valid Unicode.
func valid(b []byte) *thrift.JSONError {
	if !utf8.Valid(b) {
		return &thrift.JSONError{Problem: "the input is not valid UTF-8"}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(b, &whole); err != nil {
		bad := &thrift.JSONError{Problem: err.Error()}
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			bad.Offset = int(syntax.Offset)
		}
		return bad
	}
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		i++
		if b[i] != 'u' {
			continue
		}
		first := hex4(b[i+1:])
		if utf16.IsSurrogate(first) {
			second := rune(0)
			if rest := b[i+5:]; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
				second = hex4(rest[2:])
			}
			if utf16.DecodeRune(first, second) == utf8.RuneError {
				return &thrift.JSONError{Offset: i - 1, Problem: "invalid Unicode escape in a string"}
			}
			i += 6
		}
		i += 4
	}
	return nil
}

// hex4 returns the value of four hexadecimal digits.
func hex4(b []byte) (r rune) {
	for _, c := range b[:4] {
		r = r<<4 | rune(jsontext.Unhex(c))
	}
	return r
}

// jsonReader reads one valid document. Functions return false after they have set err.
type jsonReader struct {
	strict bool // immutable
	budget budget
	tokens *json.Decoder
	err    *thrift.JSONError
}

// fail records a problem with the last token and returns false.
func (d *jsonReader) fail(problem string) bool {
	if d.err == nil {
		d.err = &thrift.JSONError{Offset: int(d.tokens.InputOffset()), Problem: problem}
	}
	return false
}

// expected records that tok is not what was expected, and returns false.
func (d *jsonReader) expected(what string, tok json.Token) bool {
	found := "null"
	switch x := tok.(type) {
	case json.Delim:
		found = map[json.Delim]string{'{': "an object", '[': "an array", '}': "the end of an object", ']': "the end of an array"}[x]
	case string:
		found = "a string"
	case json.Number:
		found = "a number"
	case bool:
		found = "a bool"
	}
	return d.fail("expected " + what + ", found " + found)
}

// in adds a step to the beginning of the path.
func (d *jsonReader) in(step string) { d.err.Path = step + d.err.Path }

// next returns the next token. There is one, because the text is valid.
func (d *jsonReader) next() json.Token {
	tok, err := d.tokens.Token()
	if err != nil {
		d.fail(err.Error())
	}
	return tok
}

// charge subtracts the memory of n values of size bytes from the budget.
func (d *jsonReader) charge(n, size int) bool { return d.budget.charge(n, size) || d.fail(tooLarge) }

// structure reads the struct that starts with tok.
func (d *jsonReader) structure(s *idl.Struct, tok json.Token, depth int) (map[string]any, bool) {
	if depth <= 0 {
		return nil, d.fail(tooDeep)
	}
	if tok != json.Delim('{') {
		return nil, d.expected("an object", tok)
	}
	if !d.budget.chargeStruct(s) {
		return nil, d.fail(tooLarge)
	}
	m := make(map[string]any)
	fields := 0
	for d.tokens.More() {
		name, _ := d.next().(string)
		f := s.Field(name)
		if f == nil && d.strict {
			return nil, d.unknown(s, name)
		}
		tok := d.next()
		if f == nil {
			if !d.skip(tok) {
				return nil, false
			}
			continue
		}
		if tok == nil && d.err == nil {
			continue
		}
		fields++
		if !d.charge(1, sizeOfValue) {
			return nil, false
		}
		v, ok := d.value(f.Type, tok, depth-1)
		if !ok {
			d.in("." + f.Name)
			return nil, false
		}
		m[f.Name] = v
	}
	d.next()
	switch {
	case d.err != nil:
		return nil, false
	case s.Kind == idl.Union && fields != 1:
		return nil, d.fail(badUnion)
	}
	for _, f := range s.Fields {
		if f.Requirement == idl.Required && m[f.Name] == nil {
			return nil, d.fail("the required field " + f.Name + " is missing")
		}
	}
	problem := d.budget.fill(s, m, depth)
	return m, problem == "" || d.fail(problem)
}

// unknown records that no field of the struct has this name, and returns false.
func (d *jsonReader) unknown(s *idl.Struct, name string) bool {
	problem := s.Name + " has no field with this name"
	for i, f := range s.Fields {
		switch {
		case i == 0:
			problem += "; expected " + f.Name
		case i == mostExpected:
			problem += ", ..."
		case i < mostExpected:
			problem += ", " + f.Name
		}
	}
	d.fail(problem)
	if isPlain(name) {
		d.in("." + name)
	} else {
		d.in(keyed(0, name, ""))
	}
	return false
}

// mostExpected is the maximum number of field names in an error.
const mostExpected = 10

// isPlain reports whether a name can be shown without quotes.
func isPlain(name string) bool {
	for _, c := range []byte(name) {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 80
}

// skip skips the value that starts with tok.
func (d *jsonReader) skip(tok json.Token) bool {
	for open := 0; ; tok = d.next() {
		switch tok {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
		switch {
		case d.err != nil:
			return false
		case open > 2*thrift.MaxDepth:
			return d.fail(tooDeep)
		case open == 0:
			return true
		}
	}
}

func (d *jsonReader) value(t *idl.Type, tok json.Token, depth int) (v any, ok bool) {
	t = t.True()
	switch w := wireOf(t); w {
	case thrift.TypeBool:
		v, ok = tok.(bool)
		return v, ok || d.expected("true or false", tok)
	case thrift.TypeI8, thrift.TypeI16, thrift.TypeI32, thrift.TypeI64:
		return d.number(t, tok, bitsOf(w))
	case thrift.TypeDouble:
		return d.double(tok)
	case thrift.TypeUUID, thrift.TypeString:
		return d.text(t, tok)
	case thrift.TypeStruct:
		return d.structure(t.Struct(), tok, depth)
	case thrift.TypeMap:
		return d.entries(t, tok, depth)
	}
	return d.elements(t, tok, depth)
}

// number reads an integer, or the name of a value of an enum.
func (d *jsonReader) number(t *idl.Type, tok json.Token, bits int) (any, bool) {
	text, isText := tok.(string)
	switch {
	case isText && t.Enum() != nil:
		return d.enum(t.Enum(), text)
	case isText && bits == 64:
		return d.integer(text, bits)
	}
	n, ok := tok.(json.Number)
	if !ok {
		return nil, d.expected("an integer", tok)
	}
	return d.integer(string(n), bits)
}

func (d *jsonReader) enum(e *idl.Enum, text string) (any, bool) {
	if v := e.Value(text); v != nil {
		return v.Number, true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil, d.fail("the enum has no value with this name")
	}
	return int32(n), true
}

// integer parses the JSON text of an integer.
func (d *jsonReader) integer(text string, bits int) (any, bool) {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" || digits[0] == '0' && digits != "0" {
		return nil, d.fail("expected an integer: digits without a leading zero, a fraction or an exponent")
	}
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return nil, d.fail(fmt.Sprintf("an integer does not fit into %d bits", bits))
	}
	return ofBits(n, bits), true
}

func (d *jsonReader) double(tok json.Token) (any, bool) {
	switch x := tok.(type) {
	case json.Number:
		v, err := strconv.ParseFloat(string(x), 64)
		if err != nil {
			return nil, d.fail("a number does not fit into a double")
		}
		return v, true
	case string:
		switch x {
		case "NaN":
			return math.NaN(), true
		case "Infinity":
			return math.Inf(1), true
		case "-Infinity":
			return math.Inf(-1), true
		}
	}
	return nil, d.expected(`a number, "NaN", "Infinity" or "-Infinity"`, tok)
}

// text reads a string, a binary or a uuid.
func (d *jsonReader) text(t *idl.Type, tok json.Token) (any, bool) {
	text, ok := tok.(string)
	switch {
	case !ok:
		return nil, d.expected("a string", tok)
	case t.Kind == idl.UUID:
		var u thrift.UUID
		if !jsontext.ParseUUID(&u, []byte(text)) {
			return nil, d.fail("the string is not a UUID: expected a form such as 01234567-89ab-cdef-0123-456789abcdef")
		}
		return u, true
	case t.Kind == idl.Binary:
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil || strings.ContainsAny(text, "\r\n") { // DecodeString would ignore line breaks
			return nil, d.fail("the string is not valid base64")
		}
		return append([]byte{}, b...), true
	}
	return text, true
}

func (d *jsonReader) elements(t *idl.Type, tok json.Token, depth int) (any, bool) {
	if tok != json.Delim('[') {
		return nil, d.expected("an array", tok)
	}
	list := []any{}
	for d.tokens.More() {
		if !d.charge(1, 2*sizeOfSlot) { // append allocates spare capacity
			return nil, false
		}
		v, ok := d.value(t.Elem, d.next(), depth-1)
		if !ok {
			d.in(index(len(list)))
			return nil, false
		}
		list = append(list, v)
	}
	d.next()
	return list, d.err == nil
}

// entries reads a map: an object, or an array of arrays with a key and a value.
func (d *jsonReader) entries(t *idl.Type, tok json.Token, depth int) (any, bool) {
	open, what := json.Delim('['), "an array of arrays with a key and a value"
	named := isName(t.Key.True())
	if named {
		open, what = '{', "an object"
	}
	if tok != open {
		return nil, d.expected(what, tok)
	}
	m := newMap(t)
	for i := 0; d.tokens.More(); i++ {
		if !d.charge(1, sizeOfEntry) || !d.entry(t, m, i, named, depth) {
			return nil, false
		}
	}
	d.next()
	return m.value(), d.err == nil
}

// entry reads an entry of a map.
func (d *jsonReader) entry(t *idl.Type, m *mapping, i int, named bool, depth int) bool {
	var key any
	var ok bool
	step := index(i) + ".value"
	tok := d.next()
	if named {
		text, _ := tok.(string)
		step = keyed(i, text, "")
		key, ok = d.key(t.Key.True(), text)
	} else {
		if tok != json.Delim('[') {
			return d.expected("an array with a key and a value", tok)
		}
		if !d.tokens.More() {
			return d.fail("expected an array with a key and a value")
		}
		key, ok = d.value(t.Key, d.next(), depth-1)
	}
	if !ok {
		d.in(index(i) + ".key")
		return false
	}
	if !named && !d.tokens.More() {
		return d.fail("expected an array with a key and a value")
	}
	value, ok := d.value(t.Elem, d.next(), depth-1)
	if !ok {
		d.in(step)
		return false
	}
	m.put(key, value)
	if named {
		return true
	}
	if d.tokens.More() {
		return d.fail("expected an array with a key and a value")
	}
	d.next()
	return d.err == nil
}

// key reads a map key from the name of a member.
func (d *jsonReader) key(t *idl.Type, text string) (any, bool) {
	switch w := wireOf(t); w {
	case thrift.TypeBool:
		return text == "true", text == "true" || text == "false" || d.fail(`expected "true" or "false"`)
	case thrift.TypeI8, thrift.TypeI16, thrift.TypeI32, thrift.TypeI64:
		if e := t.Enum(); e != nil {
			return d.enum(e, text)
		}
		return d.integer(text, bitsOf(w))
	}
	return d.text(t, text)
}
