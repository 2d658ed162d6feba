package generic_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// file loads a file from its text.
func file(t testing.TB, text string) *idl.File {
	t.Helper()
	p, err := idl.Load(idl.Config{ReadFile: func(string) ([]byte, error) { return []byte(text), nil }}, "a.thrift")
	if err != nil {
		t.Fatal(err)
	}
	return p.Roots[0]
}

func structOf(t testing.TB, text string) *idl.Struct {
	t.Helper()
	return file(t, text).Type("A").(*idl.Struct)
}

var codecs = map[string]generic.Codec{"binary": {}, "compact": {Compact: true}}

type entries = []thrift.Entry[any, any]

// Every type has the expected Go type, and its values are unchanged after they are written and
// read.
func TestValuesOfAllTypes(t *testing.T) {
	s := structOf(t, `enum E { X = 1 }
typedef list<E> Es
struct B { 1: i32 n, 2: optional A a }
struct A {
  1: bool a_bool, 2: i8 an_i8, 3: i16 an_i16, 4: i32 an_i32, 5: i64 an_i64, 6: double a_double, 7: string a_string, 8: binary a_binary,
  9: uuid a_uuid, 10: E an_enum, 11: Es a_list, 12: set<string> a_set, 13: map<binary, i8> by_binary, 14: map<E, B> by_enum,
  15: map<list<bool>, bool> by_list, 16: B a_struct, 17: optional i32 absent, 18: map<double, set<uuid>> by_double, 19: map<bool, bool> by_bool
}`)
	v := map[string]any{
		"a_bool": true, "an_i8": int8(-1), "an_i16": int16(300), "an_i32": int32(math.MinInt32), "an_i64": int64(math.MaxInt64), "a_double": -0.5,
		"a_string": "é\xff", "a_binary": []byte{0, 255}, "a_uuid": thrift.UUID{1, 15: 2}, "an_enum": int32(7), "a_list": []any{int32(1), int32(2)},
		"a_set": []any{"x", ""}, "by_binary": map[any]any{"\xff": int8(1), "a": int8(2)},
		"by_enum": map[any]any{int32(1): map[string]any{"n": int32(5), "a": map[string]any{}}},
		"by_list": entries{{Key: []any{true, false}, Value: true}, {Key: []any{}, Value: false}}, "a_struct": map[string]any{"n": int32(0)},
		"by_double": map[any]any{1.5: []any{thrift.UUID{}}, -2.0: []any{}}, "by_bool": map[any]any{true: false, false: true},
	}
	inner := map[string]any{
		"a_bool": false, "an_i8": int8(0), "an_i16": int16(0), "an_i32": int32(0), "an_i64": int64(0), "a_double": 0.0, "a_string": "", "a_binary": []byte{},
		"a_uuid": thrift.UUID{}, "an_enum": int32(0), "a_list": []any{}, "a_set": []any{}, "by_binary": map[any]any{}, "by_enum": map[any]any{}, "by_list": entries{},
		"by_double": map[any]any{}, "by_bool": map[any]any{},
	}
	for name, c := range codecs {
		b, err := c.Append([]byte("head"), s, v)
		if err != nil {
			t.Fatal(name, err)
		}
		got, n, err := c.Read(b, 4, s)
		if err != nil || n != len(b) {
			t.Fatalf("%s: %d of %d, %v", name, n, len(b), err)
		}
		a := got["by_enum"].(map[any]any)[int32(1)].(map[string]any)["a"]
		if !reflect.DeepEqual(a, inner) {
			t.Errorf("%s: an empty struct is\n%v, not\n%v", name, a, inner)
		}
		got["by_enum"].(map[any]any)[int32(1)].(map[string]any)["a"] = map[string]any{}
		if !reflect.DeepEqual(got, v) {
			t.Errorf("%s:\n%v, not\n%v", name, got, v)
		}
		again, err := c.Append([]byte("head"), s, v)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s: %v: written twice, it differs", name, err)
		}
	}
	text, err := generic.Codec{JSON: thrift.JSON{I64Strings: true}}.AppendJSON(nil, s, v)
	want := `{"a_bool":true,"an_i8":-1,"an_i16":300,"an_i32":-2147483648,"an_i64":"9223372036854775807","a_double":-0.5,"a_string":"é` + "\uFFFD" + `","a_binary":"AP8=",` +
		`"a_uuid":"01000000-0000-0000-0000-000000000002","an_enum":7,"a_list":["X",2],"a_set":["x",""],"by_binary":{"/w==":1,"YQ==":2},`
	if err != nil || !strings.HasPrefix(string(text), want) {
		t.Errorf("%v: JSON is\n%s, not\n%s", err, text, want)
	}
}

// Errors contain the path to the value.
func TestValuesThatCannotBeWritten(t *testing.T) {
	s := structOf(t, `enum E { X } union U { 1: i32 n, 2: string s }
struct B { 1: required i8 n, 2: map<string, U> us, 3: map<list<E>, i64> m, 4: double d, 5: uuid u, 6: bool b, 7: string s, 8: binary c } struct A { 1: list<B> bs, 2: i16 k = 3 }`)
	in := func(b map[string]any) map[string]any {
		if b["n"] == nil {
			b["n"] = 1
		}
		return map[string]any{"bs": []any{map[string]any{"n": int8(1)}, b}}
	}
	for want, v := range map[string]map[string]any{
		"field bs: expected []any, found map[interface {}]interface {}":                             {"bs": map[any]any{}},
		"field bs[0]: expected map[string]any, found int":                                           {"bs": []any{1}},
		"field bs[0]: expected map[string]any, found <nil>":                                         {"bs": []any{nil}},
		"field bs[0].n: the required field is missing":                                              {"bs": []any{map[string]any{}}},
		`the struct A has no field "kk"`:                                                            {"kk": 1},
		"field bs[1].n: 128 does not fit into 8 bits":                                               in(map[string]any{"n": 128}),
		"field bs[1].n: expected int8, found int64":                                                 in(map[string]any{"n": int64(1)}),
		`field bs[1].us["x"]: a union does not have exactly one field`:                              in(map[string]any{"us": map[any]any{"x": map[string]any{}}}),
		`field bs[1].us["y"]: a union does not have exactly one field`:                              in(map[string]any{"us": map[any]any{"y": map[string]any{"n": 1, "s": "x"}}}),
		"field bs[1].us: expected map[any]any or []thrift.Entry[any, any], found map[string]string": in(map[string]any{"us": map[string]string{}}),
		"field bs[1].us[0].key: expected string, found int":                                         in(map[string]any{"us": map[any]any{1: map[string]any{"n": 1}}}),
		"field bs[1].m[0].key[0]: expected int32, found string":                                     in(map[string]any{"m": entries{{Key: []any{"X"}, Value: 1}}}),
		"field bs[1].m[0].value: expected int64, found bool":                                        in(map[string]any{"m": entries{{Key: []any{0}, Value: true}}}),
		"field bs[1].d: expected float64, found int":                                                in(map[string]any{"d": 1}),
		"field bs[1].u: expected thrift.UUID, found string":                                         in(map[string]any{"u": "x"}),
		"field bs[1].b: expected bool, found int":                                                   in(map[string]any{"b": 1}),
		"field bs[1].s: expected string, found []uint8":                                             in(map[string]any{"s": []byte{}}),
		"field bs[1].c: expected []byte, found int":                                                 in(map[string]any{"c": 1}),
	} {
		for name, c := range codecs {
			b, err := c.Append([]byte("x"), s, v)
			if bad, ok := errors.AsType[*generic.ValueError](err); !ok || bad.Error() != "thrift: value: "+want || string(b) != "x" {
				t.Errorf("%s: %v, not %s", name, err, want)
			}
		}
		if _, err := (generic.Codec{}).AppendJSON(nil, s, v); err == nil || err.Error() != "thrift: value: "+want {
			t.Errorf("JSON: %v, not %s", err, want)
		}
	}
	deep := structOf(t, "struct A { 1: optional A a }")
	v := map[string]any{}
	for range thrift.MaxDepth {
		v = map[string]any{"a": v}
	}
	if _, err := (generic.Codec{}).Append(nil, deep, v); err == nil || !strings.Contains(err.Error(), "nested too deeply") {
		t.Error(err)
	}
	if _, err := (generic.Codec{}).Append(nil, deep, v["a"].(map[string]any)); err != nil {
		t.Error(err)
	}
}

// Errors contain the path and the offset, like those of generated code.
func TestMessagesThatCannotBeRead(t *testing.T) {
	s := structOf(t, `union U { 1: i32 n }
struct B { 1: required i8 n, 2: map<string, U> us } struct A { 1: list<B> bs, 2: i16 k }`)
	c := generic.Codec{}
	whole, err := c.Append(nil, s, map[string]any{"bs": []any{map[string]any{"n": 1, "us": map[any]any{"x": map[string]any{"n": 1}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if v, off, err := c.Read(whole[:n:n], 0, s); err == nil || v != nil || off != 0 {
			t.Fatalf("%d bytes are %v", n, v)
		}
	}
	change := func(at int, to byte) []byte {
		b := bytes.Clone(whole)
		b[at] = to
		return b
	}
	for _, test := range []struct {
		in   []byte
		want string
	}{
		{whole[:len(whole)-9], "thrift: field bs[0].us[0].value.n: the input ends inside a value, at byte 29"},
		{change(8, thrift.TypeBool), "thrift: field bs[0]: a required field is missing, at byte 34"},
		{change(10, 3), "thrift: field bs[0]: a required field is missing, at byte 34"},
		{change(3, thrift.TypeI8), "thrift: field bs: the elements of a container have an unexpected type, at byte 3"},
		{change(26, thrift.TypeStop), "thrift: field bs[0].us[0].value: a union does not have exactly one field, at byte 26"},
		{change(0, 77), "thrift: field bs: unknown type, at byte 0"},
	} {
		_, _, err := c.Read(test.in, 0, s)
		if bad, ok := errors.AsType[*thrift.Error](err); !ok || bad.Error() != test.want || strings.Count(bad.Path, ".") != strings.Count(bad.Names, ".") {
			t.Errorf("%x: %v, not %s", test.in, err, test.want)
		}
	}
	if _, _, err := c.Read(nil, thrift.CodeShort, s); err == nil {
		t.Error("Read accepts a code in place of an offset")
	}
}

// A few bytes that announce a large or deeply nested value require little memory.
func TestHostileMessages(t *testing.T) {
	s := structOf(t, `struct E {} struct A { 1: list<i64> is, 2: list<E> es, 3: map<bool, bool> m, 4: string s, 5: optional A a, 6: list<list<bool>> bs, 7: set<A> as }`)
	ones := bytes.Repeat([]byte{0}, 1<<20)
	for _, test := range []struct {
		name    string
		compact bool
		in      []byte
		code    int
	}{
		{"list", false, []byte{thrift.TypeList, 0, 1, thrift.TypeI64, 0x7f, 0xff, 0xff, 0xff}, thrift.CodeLength},
		{"negative list", false, []byte{thrift.TypeList, 0, 1, thrift.TypeI64, 0xff, 0xff, 0xff, 0xff}, thrift.CodeLength},
		{"list of empty structs", false, []byte{thrift.TypeList, 0, 2, thrift.TypeStruct, 0x7f, 0xff, 0xff, 0xff, 0, 0}, thrift.CodeLength},
		{"map", false, []byte{thrift.TypeMap, 0, 3, thrift.TypeBool, thrift.TypeBool, 0x7f, 0xff, 0xff, 0xff, 0, 0}, thrift.CodeLength},
		{"string", false, []byte{thrift.TypeString, 0, 4, 0x7f, 0xff, 0xff, 0xff, 0, 0}, thrift.CodeLength},
		{"depth", false, bytes.Repeat([]byte{thrift.TypeStruct, 0, 5}, 100_000), thrift.CodeDeep},
		{"depth of a skipped value", false, bytes.Repeat([]byte{thrift.TypeStruct, 0, 77}, 100_000), thrift.CodeDeep},
		{"list", true, []byte{0x19, 0xf6, 0xff, 0xff, 0xff, 0xff, 0x07}, thrift.CodeLength},
		{"map", true, []byte{0x3b, 0xff, 0xff, 0xff, 0xff, 0x07, 0x11, 0}, thrift.CodeLength},
		{"string", true, []byte{0x48, 0xff, 0xff, 0xff, 0xff, 0x07, 0}, thrift.CodeLength},
		{"depth", true, bytes.Repeat([]byte{0x5c}, 100_000), thrift.CodeDeep},
	} {
		used, err := allocated(func() error { _, _, err := generic.Codec{Compact: test.compact}.Read(test.in, 0, s); return err })
		if bad, ok := errors.AsType[*thrift.Error](err); !ok || bad.Code != test.code {
			t.Errorf("%s: %v", test.name, err)
		}
		if used > 256<<10 {
			t.Errorf("%s: %d bytes were allocated", test.name, used)
		}
	}
	// A struct without fields takes one byte of the input.
	million := append([]byte{thrift.TypeList, 0, 2, thrift.TypeStruct, 0, 0x10, 0, 0}, ones...)
	used, err := allocated(func() error { _, _, err := generic.Codec{}.Read(append(million, 0), 0, s); return err })
	if bad, ok := errors.AsType[*thrift.Error](err); !ok || bad.Code != thrift.CodeMemory || used > 100<<20 {
		t.Errorf("%v, %d bytes were allocated", err, used)
	}
	if _, _, err := (generic.Codec{MaxMemory: 1 << 30}).Read(append(million, 0), 0, s); err != nil {
		t.Error(err)
	}
}

// allocated returns how many bytes a function allocates.
func allocated(f func() error) (uint64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

// Defaults in hostile IDL do not need much memory, and do not recurse forever.
func TestHostileDefaults(t *testing.T) {
	list, last := "list<i32>", "C0"
	wide := "const list<i32> C0 = [1, 2, 3, 4, 5, 6, 7, 8]\n"
	for range 12 { // 8 to the power of 13 numbers
		list = "list<" + list + ">"
		wide += "const " + list + " C" + last + " = [" + strings.Repeat(last+", ", 8) + "]\n"
		last = "C" + last
	}
	for name, s := range map[string]*idl.Struct{
		"wide": structOf(t, wide+"struct A { 1: "+list+" x = "+last+" }"),
		"deep": structOf(t, "struct A { 1: A a = {}, 2: A b = {} }"),
	} {
		for _, run := range []func() error{
			func() error { _, _, err := generic.Codec{}.Read([]byte{0}, 0, s); return err },
			func() error { _, err := generic.Codec{}.Append(nil, s, map[string]any{}); return err },
			func() error { _, err := generic.Codec{}.AppendJSON(nil, s, map[string]any{}); return err },
			func() error { _, err := generic.Codec{}.FromJSON([]byte("{}"), s); return err },
		} {
			if used, err := allocated(run); err == nil || used > 64<<20 {
				t.Errorf("%s: %v, %d bytes were allocated", name, err, used)
			}
		}
	}
}

// If a field occurs more than once, the last occurrence replaces the earlier ones completely.
func TestRepeatedFields(t *testing.T) {
	s := structOf(t, "struct B { 1: optional i8 x, 2: optional i8 y } struct A { 1: B b, 2: i8 n }")
	in := []byte{
		thrift.TypeStruct, 0, 1, thrift.TypeI8, 0, 1, 5, 0, thrift.TypeI8, 0, 2, 1, // b, n
		thrift.TypeStruct, 0, 1, thrift.TypeI8, 0, 2, 6, 0, thrift.TypeI8, 0, 2, 2, 0,
	}
	v, _, err := generic.Codec{}.Read(in, 0, s)
	want := map[string]any{"b": map[string]any{"y": int8(6)}, "n": int8(2)}
	if err != nil || !reflect.DeepEqual(v, want) {
		t.Errorf("%v: %v, not %v", err, v, want)
	}
}

// The values of a message occupy at most about as much memory as is allowed, whatever their types.
func TestMemoryFollowsTheInput(t *testing.T) {
	s := structOf(t, `struct B { 1: bool b } struct D { 1: i8 n = 5, 2: string s = "default" } struct A { 1: list<B> bs, 2: map<i16, B> by_number, 3: list<list<bool>> lists, 4: list<i64> is,
  5: list<D> ds, 6: map<string, string> texts, 7: list<map<bool, bool>> maps, 8: list<binary> binaries, 9: map<list<i8>, i8> entries }`)
	const n = 1 << 17
	list := func(id, elem byte, elements []byte) []byte {
		return slices.Concat([]byte{id<<4 | 9, 0xf0 | elem, n & 0x7f, n >> 7 & 0x7f, n >> 14}, elements, []byte{0})
	}
	fix := func(b []byte) []byte { // the count is a varint with three bytes
		b[2], b[3] = b[2]|0x80, b[3]|0x80
		return b
	}
	var numbers, texts []byte
	for i := range n {
		numbers = append(binary.AppendUvarint(numbers, uint64(i)&0xffff), 0x11, 0)
		texts = append(binary.BigEndian.AppendUint32(append(texts, 4), uint32(i)), 0)
	}
	entries := func(id, types byte, all []byte) []byte {
		return slices.Concat([]byte{id<<4 | 11, n&0x7f | 0x80, n>>7&0x7f | 0x80, n >> 14, types}, all, []byte{0})
	}
	for name, in := range map[string][]byte{
		"structs":             fix(list(1, 12, bytes.Repeat([]byte{0x11, 0}, n))),
		"map of structs":      entries(2, 0x4c, numbers),
		"lists":               fix(list(3, 9, bytes.Repeat([]byte{0}, n))),
		"numbers":             fix(list(4, 6, bytes.Repeat([]byte{1}, n))),
		"structs of defaults": fix(list(5, 12, bytes.Repeat([]byte{0}, n))),
		"map of strings":      entries(6, 0x88, texts),
		"maps":                fix(list(7, 11, bytes.Repeat([]byte{1, 0x11, 1, 1}, n))),
		"binaries":            fix(list(8, 8, bytes.Repeat([]byte{0}, n))),
		"entries":             entries(9, 0x93, bytes.Repeat([]byte{3, 0}, n)),
	} {
		used, err := allocated(func() error { _, _, err := generic.Codec{Compact: true}.Read(in, 0, s); return err })
		if bad, ok := errors.AsType[*thrift.Error](err); err != nil && !(ok && bad.Code == thrift.CodeMemory) {
			t.Errorf("%s: %v", name, err)
		}
		if most := 2 * (4<<20 + 64*len(in)); used > uint64(most) {
			t.Errorf("%s: %d bytes were allocated for %d, expected at most %d", name, used, len(in), most)
		}
		t.Logf("%s: %d bytes for %d, %v", name, used, len(in), err)
	}
}
