package generic_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/generic"
)

func TestJSONThatIsRead(t *testing.T) {
	s := structOf(t, `enum E { X = 1, Y = 2 }
struct A { 1: i64 n, 2: E e, 3: map<E, i64> by_enum, 4: map<bool, double> by_bool, 5: map<double, binary> by_double, 6: string s, 7: optional i8 o, 8: map<i16, uuid> by_i16 }`)
	v, err := generic.Codec{}.FromJSON([]byte(` { "n" : "-5" , "e":"Y", "o": null, "other": [{"a": ["\ud83d\ude00", 1e5, null]}, "}"],
		"by_enum": {"X": 1, "2": "2", "-3": 0}, "by_bool": {"true": "NaN", "false": "-Infinity"}, "by_double": [[1.5, "AP8="], ["Infinity", ""]],
		"s": "\ud83d\ude00\u00e9\n", "by_i16": {"-1": "01234567-89AB-cdef-0123-456789abcdef"}, "n": 7 } `), s)
	if err != nil {
		t.Fatal(err)
	}
	if nan := v["by_bool"].(map[any]any)[true].(float64); nan == nan {
		t.Errorf("%v is not NaN", nan)
	}
	delete(v["by_bool"].(map[any]any), true)
	want := map[string]any{
		"n": int64(7), "e": int32(2), "by_enum": map[any]any{int32(1): int64(1), int32(2): int64(2), int32(-3): int64(0)}, "by_bool": map[any]any{false: math.Inf(-1)},
		"by_double": map[any]any{1.5: []byte{0, 255}, math.Inf(1): []byte{}}, "s": "😀é\n",
		"by_i16": map[any]any{int16(-1): thrift.UUID{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}},
	}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("%v, not\n%v", v, want)
	}
}

func TestJSONThatIsRefused(t *testing.T) {
	s := structOf(t, `enum E { X = 1 } union U { 1: i8 n, 2: i8 m } struct R { 1: required i8 n }
struct A { 1: i8 n, 2: E e, 3: map<i16, i8> m, 4: map<list<i8>, i8> pairs, 5: double d, 6: string s, 7: binary b, 8: uuid u, 9: bool t, 10: optional U un, 11: list<R> rs, 12: i64 l,
  13: map<bool, i8> by_bool, 14: optional A a }`)
	for in, want := range map[string]string{
		``:                             "unexpected end of JSON input",
		`[]`:                           "expected an object, found an array",
		`{} {}`:                        "invalid character '{' after top-level value",
		`{"n": 1,}`:                    "invalid character '}'",
		`{"n": 128}`:                   "field n: an integer does not fit into 8 bits",
		`{"n": 1.0}`:                   "field n: expected an integer",
		`{"n": 1e1}`:                   "field n: expected an integer",
		`{"n": "1"}`:                   "field n: expected an integer, found a string",
		`{"n": true}`:                  "field n: expected an integer, found a bool",
		`{"e": "Z"}`:                   "field e: the enum has no value with this name",
		`{"m": {"01": 1}}`:             "field m[0].key: expected an integer",
		`{"m": {"+1": 1}}`:             "field m[0].key: expected an integer",
		`{"m": {"1": null}}`:           `field m["1"]: expected an integer, found null`,
		`{"m": []}`:                    "field m: expected an object, found an array",
		`{"pairs": {}}`:                "field pairs: expected an array of arrays with a key and a value, found an object",
		`{"pairs": [1]}`:               "field pairs: expected an array with a key and a value",
		`{"pairs": [[]]}`:              "field pairs: expected an array with a key and a value",
		`{"pairs": [[[1]]]}`:           "field pairs: expected an array with a key and a value",
		`{"pairs": [[[1],1,1]]}`:       "field pairs: expected an array with a key and a value",
		`{"pairs": [[["a"],1]]}`:       "field pairs[0].key[0]: expected an integer, found a string",
		`{"pairs": [[[],"a"]]}`:        "field pairs[0].value: expected an integer, found a string",
		`{"d": "x"}`:                   "field d: expected a number",
		`{"d": 1e999}`:                 "field d: a number does not fit into a double",
		`{"s": 1}`:                     "field s: expected a string, found a number",
		`{"s": "\ud800"}`:              "invalid Unicode escape in a string",
		`{"s": "\udc00\ud800"}`:        "invalid Unicode escape in a string",
		`{"s": "\ud800\n"}`:            "invalid Unicode escape in a string",
		"{\"s\": \"\xff\"}":            "not valid UTF-8",
		`{"b": "a"}`:                   "field b: the string is not valid base64",
		`{"b": "YQ\n=="}`:              "field b: the string is not valid base64",
		`{"u": "a"}`:                   "field u: the string is not a UUID",
		`{"t": 1}`:                     "field t: expected true or false, found a number",
		`{"un": {}}`:                   "field un: a union does not have exactly one field",
		`{"un": {"n":1,"m":2}}`:        "field un: a union does not have exactly one field",
		`{"rs": [{"n":1},{}]}`:         "field rs[1]: the required field n is missing",
		`{"l": "1.5"}`:                 "field l: expected an integer",
		`{"l": "9223372036854775808"}`: "field l: an integer does not fit into 64 bits",
		`{"by_bool": {"1": 1}}`:        `field by_bool[0].key: expected "true" or "false"`,
		strings.Repeat(`{"a":`, 100) + "{}" + strings.Repeat("}", 100):        "values are nested too deeply",
		`{"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "}": "values are nested too deeply",
	} {
		_, err := generic.Codec{}.FromJSON([]byte(in), s)
		if bad, ok := errors.AsType[*thrift.JSONError](err); !ok || !strings.Contains(bad.Error(), want) || bad.Offset > len(in) {
			t.Errorf("%.60s: %v, not %s", in, err, want)
		}
	}
	many := `{"rs":[` + strings.Repeat(`{"n":1},`, 1000) + `{"n":1}]}`
	if _, err := (generic.Codec{MaxMemory: 10_000}).FromJSON([]byte(many), s); err == nil || !strings.Contains(err.Error(), "more memory") {
		t.Error(err)
	}
	if _, err := (generic.Codec{}).FromJSON([]byte(many), s); err != nil {
		t.Error(err)
	}
}

// A strict codec rejects unknown names at any depth, and lists the known names.
//
// mutant: thrift-generic-strict-skips
func TestUnknownNamesInStrictJSON(t *testing.T) {
	s := structOf(t, `struct E {} struct Item { 1: i64 id, 2: double price }
struct Many { 1: i8 a, 2: i8 b, 3: i8 c, 4: i8 d, 5: i8 e, 6: i8 f, 7: i8 g, 8: i8 h, 9: i8 i, 10: i8 j, 11: i8 k, 12: i8 l }
struct A { 1: list<Item> items, 2: map<string, Item> by_name, 3: E none, 4: Many many }`)
	for in, want := range map[string]string{
		`{"item": 1}`:                             "field item: A has no field with this name; expected items, by_name, none, many",
		`{"items": [{"id": 1}, {"prize": 1}]}`:    "field items[1].prize: Item has no field with this name; expected id, price, at byte 30",
		`{"by_name": {"x": {"Id": null}}}`:        `field by_name["x"].Id: Item has no field with this name; expected id, price`,
		`{"none": {"a": {}}}`:                     "field none.a: E has no field with this name, at byte",
		`{"many": {"z": 1}}`:                      "field many.z: Many has no field with this name; expected a, b, c, d, e, f, g, h, i, j, ..., at byte",
		`{"a b\u001b": 1}`:                        `field ["a b\x1b"]: A has no field with this name`,
		`{"": 1}`:                                 `field [""]: A has no field with this name`,
		`{"` + strings.Repeat("x", 100) + `": 1}`: `field ["` + strings.Repeat("x", 80) + `"]: A has no field`,
	} {
		_, err := generic.Codec{Strict: true}.FromJSON([]byte(in), s)
		if bad, ok := errors.AsType[*thrift.JSONError](err); !ok || !strings.Contains(bad.Error(), want) || bad.Offset > len(in) {
			t.Errorf("%.60s: %v, not %s", in, err, want)
		}
		if _, err := (generic.Codec{}).FromJSON([]byte(in), s); err != nil {
			t.Errorf("not strict: %.60s: %v", in, err)
		}
	}
	if _, err := (generic.Codec{Strict: true}).FromJSON([]byte(`{"items": [{"id": 1}], "by_name": {"any": {}}}`), s); err != nil {
		t.Error(err)
	}
}

// A value of any type has the same JSON as inside a struct.
func TestJSONOfValues(t *testing.T) {
	f := file(t, `enum E { X = 1 } struct A { 1: i8 n }
service S { i64 n(), E e(), list<A> as(), map<i16, string> m(), binary b(), A a() }`).Service("S")
	c := generic.Codec{JSON: thrift.JSON{I64Strings: true}}
	for name, test := range map[string]struct {
		v    any
		want string
	}{
		"n": {int64(5), `"5"`}, "e": {int32(1), `"X"`}, "as": {[]any{map[string]any{"n": int8(1)}}, `[{"n":1}]`},
		"m": {map[any]any{int16(1): "x"}, `{"1":"x"}`}, "b": {[]byte{1}, `"AQ=="`}, "a": {map[string]any{}, `{"n":0}`},
	} {
		if got, err := c.AppendJSONValue([]byte("x"), f.Function(name).Result, test.v); err != nil || string(got) != "x"+test.want {
			t.Errorf("%s: %s, %v, not %s", name, got, err, test.want)
		}
	}
	got, err := c.AppendJSONValue([]byte("x"), f.Function("as").Result, []any{map[string]any{"n": "1"}})
	if bad, ok := errors.AsType[*generic.ValueError](err); !ok || bad.Path != "[0].n" || string(got) != "x" {
		t.Errorf("%s, %v", got, err)
	}
}

// Values that were read from JSON are unchanged after they are written and read again.
func FuzzJSON(f *testing.F) {
	s := structOf(f, `enum E { X = 1 } union U { 1: i8 n, 2: list<U> us }
struct A { 1: i8 n = 5, 2: E e, 3: map<i16, double> m, 4: map<list<i8>, binary> pairs, 5: optional uuid u, 6: optional U un, 7: set<string> s, 8: optional A a, 9: map<bool, i64> b }`)
	f.Add([]byte(`{"n":1,"e":"X","m":{"5":1.5},"pairs":[[[1],"AA=="]],"u":"01234567-89ab-cdef-0123-456789abcdef","un":{"us":[{"n":1}]},"s":["\ud83d\ude00"],"a":{},"b":{"true":1}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var c generic.Codec
		v, err := c.FromJSON(in, s)
		if err != nil {
			return
		}
		text, err := c.AppendJSON(nil, s, v)
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		back, err := c.FromJSON(text, s)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again, err := c.AppendJSON(nil, s, back); err != nil || string(again) != string(text) {
			t.Fatalf("%v: %s, not %s", err, again, text)
		}
	})
}
