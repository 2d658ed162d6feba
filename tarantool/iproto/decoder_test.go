package iproto

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// reads are the typed methods of a decoder, and Any.
var reads = map[string]func(d *Decoder) any{
	"nil":      func(d *Decoder) any { d.Nil(); return nil },
	"bool":     func(d *Decoder) any { return d.Bool() },
	"int":      func(d *Decoder) any { return d.Int() },
	"uint":     func(d *Decoder) any { return d.Uint() },
	"uint32":   func(d *Decoder) any { return d.Uint32() },
	"float":    func(d *Decoder) any { return d.Float() },
	"string":   func(d *Decoder) any { return d.String() },
	"view":     func(d *Decoder) any { return d.StringView() },
	"bytes":    func(d *Decoder) any { return d.Bytes() },
	"array":    func(d *Decoder) any { return d.Array() },
	"map":      func(d *Decoder) any { return d.Map() },
	"ext":      func(d *Decoder) any { typ, data := d.Ext(); return fmt.Sprint(typ, data) },
	"decimal":  func(d *Decoder) any { return d.Decimal() },
	"uuid":     func(d *Decoder) any { return d.UUID() },
	"datetime": func(d *Decoder) any { return d.Datetime() },
	"interval": func(d *Decoder) any { return d.Interval() },
	"tuple":    func(d *Decoder) any { return d.Tuple() },
	"arrow":    func(d *Decoder) any { return d.Arrow() },
	"error":    func(d *Decoder) any { return d.Error() },
	"any":      (*Decoder).Any,
	"raw":      func(d *Decoder) any { return d.Raw() },
	"skip":     func(d *Decoder) any { d.Skip(); return nil },
}

func TestTypedReads(t *testing.T) {
	for _, c := range []struct {
		read, in string
		want     any
	}{
		{"bool", "c2", false},
		{"bool", "c3", true},
		{"int", "cf7fffffffffffffff", int64(math.MaxInt64)},
		{"int", "d38000000000000000", int64(math.MinInt64)},
		{"int", "d2ffffffff", int64(-1)},
		{"int", "d005", int64(5)},
		{"int", "d3000000000000000a", int64(10)},
		{"int", "ce00000001", int64(1)},
		{"uint", "cfffffffffffffffff", uint64(math.MaxUint64)},
		{"uint", "d10005", uint64(5)},
		{"uint", "cc05", uint64(5)},
		{"uint32", "ceffffffff", uint32(math.MaxUint32)},
		{"float", "ca3fc00000", 1.5},
		{"float", "cb3ff8000000000000", 1.5},
		{"float", "05", 5.0},
		{"float", "ff", -1.0},
		{"float", "cfffffffffffffffff", float64(math.MaxUint64)},
		{"float", "d38000000000000000", float64(math.MinInt64)},
		{"string", "a16b", "k"},
		{"string", "d9016b", "k"},
		{"string", "da00016b", "k"},
		{"string", "db000000016b", "k"},
		{"string", "a0", ""},
		{"view", "a16b", []byte("k")},
		{"bytes", "c4016b", []byte("k")},
		{"bytes", "a16b", []byte("k")},
		{"bytes", "c400", []byte{}},
		{"bytes", "a0", []byte{}},
		{"array", "92c0c0", 2},
		{"array", "dc0002c0c0", 2},
		{"array", "dd00000002c0c0", 2},
		{"map", "81c0c0", 1},
		{"map", "de0001c0c0", 1},
		{"map", "df00000001c0c0", 1},
		{"ext", "d4ff07", "-1 [7]"},
		{"ext", "c70005", "5 []"},
	} {
		d := NewDecoder(testkit.Unhex(t, c.in))
		if got := reads[c.read](&d); d.Err() != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s of %s: %v, %v, want %v", c.read, c.in, got, d.Err(), c.want)
		}
	}
}

// Every method refuses values of other types with an error that says so, and reads nothing.
func TestTypedRefusals(t *testing.T) {
	inputs := map[string]string{
		"nil": "c0", "bool": "c3", "integer": "2a", "negative": "ff", "big": "cfffffffffffffffff", "float": "cb3ff8000000000000",
		"string": "a16b", "binary": "c4016b", "array": "9101", "map": "810102", "uuid": "d80200000000000000000000000000000000",
		"unknown ext": "d46305", "invalid": "c1", "nothing": "", "datetime": "d7040000000000000000", "decimal": "d501001c",
		"interval": "d40600", "tuple": "d5070190", "arrow": "d40801", "error": "c7040381009180",
	}
	accepts := map[string]string{
		"nil": "nil", "bool": "bool", "int": "integer negative", "uint": "integer big", "uint32": "integer", "float": "integer negative big float",
		"string": "string", "view": "string", "bytes": "string binary", "array": "array", "map": "map", "decimal": "integer negative big decimal",
		"uuid": "uuid", "datetime": "datetime", "interval": "interval", "tuple": "tuple", "arrow": "arrow", "error": "error",
		"ext": "uuid unknown ext datetime decimal interval tuple arrow error",
	}
	for read, f := range reads {
		for name, in := range inputs {
			b := testkit.Unhex(t, in)
			d := NewDecoder(append(b[:len(b):len(b)], 0xc0))
			if name == "nothing" {
				d.Reset(b)
			}
			got := f(&d)
			ok := d.Err() == nil
			want := strings.Contains(" "+accepts[read]+" ", " "+name+" ")
			if read == "any" || read == "raw" || read == "skip" {
				want = name != "invalid" && name != "nothing"
			}
			if ok != want {
				t.Errorf("%s of %s: %v, %v, want success: %v", read, name, got, d.Err(), want)
			}
			if ok {
				continue
			}
			e := new(DecodeError)
			if !errors.As(d.Err(), &e) || e.Offset != 0 || e.Want == "" || e.Got == "" || d.Offset() != 0 || d.Len() != 0 || d.Rest() != nil || d.Kind() != KindEnd {
				t.Errorf("%s of %s: %#v, at %d, %d left", read, name, d.Err(), d.Offset(), d.Len())
			}
			if got != nil && !reflect.ValueOf(got).IsZero() && got != "0 []" {
				t.Errorf("%s of %s: %v after an error", read, name, got)
			}
			first := d.Err()
			for again, g := range reads {
				if v := g(&d); d.Err() != first || v != nil && !reflect.ValueOf(v).IsZero() && v != "0 []" {
					t.Errorf("%s of %s, then %s: %v, %v", read, name, again, v, d.Err())
				}
			}
			d.Fail(errors.New("later"))
			if d.IsNil() || d.Err() != first {
				t.Errorf("%s of %s: the error is not kept", read, name)
			}
		}
	}
}

func TestErrorTexts(t *testing.T) {
	for _, c := range []struct{ read, in, want string }{
		{"int", "c0 a3", "iproto: string that is cut off after 1 bytes at offset 1, expected an integer of 64 bits"},
		{"int", "c0", "iproto: end of the input at offset 1, expected an integer of 64 bits"},
		{"int", "c0 c1", `iproto: byte "\xc1" at offset 1, expected an integer of 64 bits`},
		{"int", "c0 cfffffffffffffffff", "iproto: integer 18446744073709551615 at offset 1, expected an integer of 64 bits"},
		{"uint", "c0 d38000000000000000", "iproto: integer -9223372036854775808 at offset 1, expected an integer that is not negative"},
		{"uint", "c0 ff", "iproto: integer -1 at offset 1, expected an integer that is not negative"},
		{"uint32", "c0 cf0000000100000000", "iproto: integer 4294967296 at offset 1, expected an integer of 32 bits that is not negative"},
		{"uint32", "c0 ff", "iproto: integer -1 at offset 1, expected an integer that is not negative"},
		{"string", "c0 93010203", "iproto: array of 3 at offset 1, expected a string"},
		{"array", "c0 81c0c0", "iproto: map of 1 at offset 1, expected an array"},
		{"map", "c0 a26162", "iproto: string of 2 at offset 1, expected a map"},
		{"bool", "c0 c403010203", "iproto: binary data of 3 at offset 1, expected a boolean"},
		{"uuid", "c0 d4ff01", "iproto: extension -1 of 1 at offset 1, expected a UUID"},
		{"decimal", "c0 cb3ff8000000000000", "iproto: number at offset 1, expected a decimal"},
		{"array", "c0 ddffffffff", "iproto: array that is cut off after 5 bytes at offset 1, expected an array"},
		{"skip", "c0 92 92c0 c0", "iproto: 3 further values in 2 bytes at offset 1, expected a value"},
		{"any", "c0 92 92c0 c0", "iproto: 3 further values in 2 bytes at offset 2, expected a value"},
		{"any", "c0 81 90 c0", "iproto: array of 0 at offset 2, expected a key that can be compared"},
	} {
		d := NewDecoder(testkit.Unhex(t, c.in))
		d.Nil()
		reads[c.read](&d)
		if d.Err() == nil || d.Err().Error() != c.want {
			t.Errorf("%s of %s: %v, want %s", c.read, c.in, d.Err(), c.want)
		}
	}
	own := errors.New("not today")
	d := NewDecoder([]byte{1, 2})
	d.Int()
	d.Fail(nil)
	d.Fail(own)
	if !errors.Is(d.Err(), own) || d.Err().Error() != "iproto: at offset 1: not today" || d.Int() != 0 {
		t.Errorf("a user's error: %v", d.Err())
	}
}

// Views alias the input and cannot grow into it; copies do not alias it.
func TestViewsAndCopies(t *testing.T) {
	b := AppendAny(nil, []any{"string", []byte("bytes"), Ext{99, []byte("ext")}, []any{int64(1)}, Tuple{1, []byte{0x91, 7}}})
	views := make(map[string][]byte)
	d := NewDecoder(b)
	d.Array()
	views["StringView"] = d.StringView()
	views["BytesView"] = d.BytesView()
	_, views["Ext"] = d.Ext()
	views["Raw"] = d.Raw()
	views["Tuple"] = d.Tuple().Data
	if d.Err() != nil {
		t.Fatal(d.Err())
	}
	for name, v := range views {
		at := bytes.Index(b, v)
		if at < 0 || &b[at] != &v[0] || cap(v) != len(v) {
			t.Errorf("%s: %q has a capacity of %d, or is a copy", name, v, cap(v))
		}
	}
	d.Reset(b)
	d.Array()
	text, data := d.String(), d.Bytes()
	rest := []any{d.Any(), d.Any(), d.Any()}
	for i := range b {
		b[i] = 0xc1
	}
	if text != "string" || string(data) != "bytes" || !reflect.DeepEqual(rest, []any{Ext{99, []byte("ext")}, []any{int64(1)}, Tuple{1, []byte{0x91, 7}}}) {
		t.Errorf("copies change with the input: %q %q %v", text, data, rest)
	}
}

func TestAnyKeys(t *testing.T) {
	d := NewDecoder(AppendAny(nil, map[any]any{
		nil: int64(1), true: int64(2), int64(-1): int64(3), uint64(math.MaxUint64): int64(4), 1.5: int64(5), "s": int64(6),
		UUID{1}: int64(7), decimal("1.5"): int64(8), Datetime{Seconds: 1}: int64(9), Interval{Years: 1}: int64(10),
	}))
	if v, ok := d.Any().(map[any]any); !ok || len(v) != 10 || v[decimal("1.5")] != int64(8) {
		t.Errorf("%v, %v", v, d.Err())
	}
	for name, key := range map[string]any{
		"bytes": []byte("k"), "array": []any{}, "map": map[any]any{}, "ext": Ext{99, []byte{1}},
		"tuple": Tuple{1, []byte{0x90}}, "arrow": Arrow{1}, "error": &BoxError{},
	} {
		d.Reset(append(AppendAny([]byte{0x81}, key), 0xc0))
		if v := d.Any(); v != nil || d.Err() == nil || !strings.Contains(d.Err().Error(), "expected a key that can be compared") || d.Offset() != 1 {
			t.Errorf("%s as a key: %v, %v", name, v, d.Err())
		}
	}
	d.Reset(testkit.Unhex(t, "82 01 02 01 03"))
	if v := d.Any(); !reflect.DeepEqual(v, any(map[any]any{int64(1): int64(3)})) {
		t.Errorf("equal keys: %v", v)
	}
}

func TestAppendAnyOfOthers(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{5, "05"}, {float32(1.5), "ca3fc00000"}, {map[string]any{"a": 1}, "81a16101"}, {struct{}{}, "c0"}, {uint8(3), "c0"}, {(*BoxError)(nil), "c703038100 90"},
	} {
		if got := AppendAny(nil, c.v); !bytes.Equal(got, testkit.Unhex(t, c.want)) {
			t.Errorf("%#v: %x, want %s", c.v, got, c.want)
		}
	}
}
