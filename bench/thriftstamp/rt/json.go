package rt

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// AppendJSONString appends s as a string of JSON.
func AppendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			b = append(append(b, s[from:i]...), "\ufffd"...)
		} else {
			b = append(append(b, s[from:i]...), '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

// AppendJSONDouble appends a number. JSON has no NaN and no infinities: they
// become null.
func AppendJSONDouble(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// AppendJSONBinary appends bytes in base64.
func AppendJSONBinary(b, v []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(b, '"'), v), '"')
}

// AppendJSONI64s appends a list.
func AppendJSONI64s(b []byte, v []int64) []byte {
	b = append(b, '[')
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, x, 10)
	}
	return append(b, ']')
}

// AppendJSONStrings appends a list.
func AppendJSONStrings(b []byte, v []string) []byte {
	b = append(b, '[')
	for i, s := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendJSONString(b, s)
	}
	return append(b, ']')
}

// AppendJSONStringMap appends a map in the order of its keys.
func AppendJSONStringMap(b []byte, v map[string]string) []byte {
	keys := make([]string, 0, len(v))
	for k := range v {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendJSONString(append(AppendJSONString(b, k), ':'), v[k])
	}
	return append(b, '}')
}

// JSON is a cursor over a JSON text with a sticky error, as Decoder is over a struct.
type JSON struct {
	b     []byte
	off   int
	depth int
	bad   bool
}

// NewJSON returns a cursor at the beginning of b.
func NewJSON(b []byte) *JSON { return &JSON{b: b, depth: MaxDepth} }

// Err returns an error if the text was not of the requested form.
func (d *JSON) Err() error {
	if d.bad {
		return &Error{Unknown}
	}
	return nil
}

func (d *JSON) fail() {
	d.bad = true
	d.off = len(d.b)
}

// Require fails if not all of the required fields were seen.
func (d *JSON) Require(seen, required uint64) {
	if seen&required != required {
		d.fail()
	}
}

// peek returns the next character that is not a space, or 0 at the end.
func (d *JSON) peek() byte {
	for d.off < len(d.b) {
		switch c := d.b[d.off]; c {
		case ' ', '\t', '\r', '\n':
			d.off++
		default:
			return c
		}
	}
	return 0
}

func (d *JSON) expect(c byte) {
	if d.peek() != c {
		d.fail()
		return
	}
	d.off++
}

// Open begins an object or a list.
func (d *JSON) Open(c byte) {
	if d.depth--; d.depth < 0 {
		d.fail()
	}
	d.expect(c)
}

// More reports whether another member follows, and skips the comma or the end.
func (d *JSON) More(first *bool, end byte) bool {
	c := d.peek()
	switch {
	case c == end:
		d.off++
		d.depth++
		return false
	case *first:
		*first = false
		return !d.bad
	}
	d.expect(',')
	return !d.bad
}

// Key reads a name and its colon.
func (d *JSON) Key() string {
	k := d.Text()
	d.expect(':')
	return k
}

// Null skips null, and reports whether it was there.
func (d *JSON) Null() bool {
	if d.peek() != 'n' {
		return false
	}
	d.word("null")
	return true
}

func (d *JSON) word(w string) {
	if len(d.b)-d.off < len(w) || string(d.b[d.off:d.off+len(w)]) != w {
		d.fail()
		return
	}
	d.off += len(w)
}

func (d *JSON) Bool() bool {
	if d.peek() == 't' {
		d.word("true")
		return !d.bad
	}
	d.word("false")
	return false
}

// Text reads a string.
func (d *JSON) Text() string {
	if d.peek() != '"' {
		d.fail()
		return ""
	}
	plain := true
	for i := d.off + 1; i < len(d.b); i++ {
		switch d.b[i] {
		case '\\':
			plain = false
			i++
		case '"':
			text := d.b[d.off : i+1]
			d.off = i + 1
			if plain {
				return string(text[1 : len(text)-1])
			}
			var s string
			if json.Unmarshal(text, &s) != nil {
				d.fail()
			}
			return s
		}
	}
	d.fail()
	return ""
}

func (d *JSON) number() string {
	d.peek()
	i := d.off
	for i < len(d.b) && (d.b[i] >= '0' && d.b[i] <= '9' || d.b[i] == '-' || d.b[i] == '+' || d.b[i] == '.' || d.b[i]|32 == 'e') {
		i++
	}
	text := d.b[d.off:i]
	d.off = i
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// Int reads an integer of the given number of bits.
func (d *JSON) Int(bits int) int64 {
	v, err := strconv.ParseInt(d.number(), 10, bits)
	if err != nil {
		d.fail()
	}
	return v
}

func (d *JSON) Double() float64 {
	if d.Null() {
		return math.NaN()
	}
	v, err := strconv.ParseFloat(d.number(), 64)
	if err != nil {
		d.fail()
	}
	return v
}

// Binary reads base64.
func (d *JSON) Binary() []byte {
	v, err := base64.StdEncoding.DecodeString(d.Text())
	if err != nil {
		d.fail()
	}
	return v
}

func (d *JSON) I64s() []int64 {
	list := []int64{}
	d.Open('[')
	for first := true; d.More(&first, ']'); {
		list = append(list, d.Int(64))
	}
	return list
}

func (d *JSON) Strings() []string {
	list := []string{}
	d.Open('[')
	for first := true; d.More(&first, ']'); {
		list = append(list, d.Text())
	}
	return list
}

func (d *JSON) StringMap() map[string]string {
	m := map[string]string{}
	d.Open('{')
	for first := true; d.More(&first, '}'); {
		k := d.Key()
		m[k] = d.Text()
	}
	return m
}

// Skip skips a value.
func (d *JSON) Skip() {
	switch c := d.peek(); c {
	case '{', '[':
		d.Open(c)
		for first := true; d.More(&first, c+2); {
			if c == '{' {
				d.Key()
			}
			d.Skip()
		}
	case '"':
		d.Text()
	case 't', 'f':
		d.Bool()
	case 'n':
		d.Null()
	default:
		d.Double()
	}
}
