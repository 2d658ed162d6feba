package redis

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

type person struct {
	Name   string `redis:"name"`
	Age    uint8  `redis:"age"`
	City   string
	Boss   *string `redis:"boss"`
	Hidden string  `redis:"-"`
	secret string
	Home
}

type Home struct {
	Street string `redis:"street"`
}

func text(s string) *string { return &s }

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		frame string
		want  any // the destination points to a zero value of this type
	}{
		{"+OK\r\n", "OK"}, {"$3\r\na\r\n\r\n", "a\r\n"}, {"$0\r\n\r\n", ""}, {":-5\r\n", "-5"}, {",1.5\r\n", "1.5"}, {"#t\r\n", "1"}, {"#f\r\n", "0"},
		{"(123456789012345678901234567890\r\n", "123456789012345678901234567890"}, {"=7\r\ntxt:abc\r\n", "abc"}, {"$?\r\n;2\r\nab\r\n;1\r\nc\r\n;0\r\n", "abc"},
		{"|1\r\n+ttl\r\n:5\r\n$1\r\nx\r\n", "x"},
		{"$2\r\nhi\r\n", []byte("hi")}, {"$-1\r\n", []byte(nil)}, {"_\r\n", []byte(nil)}, {"$2\r\nhi\r\n", namedBytes("hi")},
		{":7\r\n", 7}, {"$2\r\n-8\r\n", int64(-8)}, {":127\r\n", int8(127)}, {",3\r\n", int16(3)}, {",-9223372036854775808\r\n", int64(math.MinInt64)}, {"#t\r\n", 1},
		{"$20\r\n18446744073709551615\r\n", uint64(math.MaxUint64)}, {":255\r\n", uint8(255)}, {"(12\r\n", uint(12)},
		{",0.5\r\n", 0.5}, {"$3\r\n1e3\r\n", 1000.0}, {":3\r\n", 3.0}, {",inf\r\n", math.Inf(1)}, {"$3\r\n0.5\r\n", float32(0.5)},
		{"#t\r\n", true}, {":1\r\n", true}, {":0\r\n", false}, {"$4\r\ntrue\r\n", true}, {"+0\r\n", false}, {":1\r\n", namedBool(true)},
		{"$2\r\nhi\r\n", named("hi")}, {":5\r\n", namedInt(5)},
		{"$8\r\n10.0.0.1\r\n", netip.MustParseAddr("10.0.0.1")}, {"$1\r\nx\r\n", binary{'x'}},
		{"_\r\n", (*string)(nil)}, {"$-1\r\n", (*int)(nil)}, {"$1\r\nx\r\n", text("x")},
		{"*2\r\n$1\r\na\r\n:1\r\n", []string{"a", "1"}}, {"*0\r\n", []string{}}, {"*-1\r\n", []string(nil)}, {"~2\r\n:1\r\n:2\r\n", []int{1, 2}},
		{"*2\r\n$1\r\na\r\n_\r\n", []*string{text("a"), nil}}, {"%1\r\n+a\r\n+b\r\n", []string{"a", "b"}}, {"*?\r\n:1\r\n:2\r\n.\r\n", []int{1, 2}},
		{"*2\r\n*1\r\n:1\r\n*0\r\n", [][]int{{1}, {}}}, {"*2\r\n:1\r\n:2\r\n", [2]int{1, 2}}, {"*2\r\n$1\r\na\r\n$-1\r\n", [][]byte{[]byte("a"), nil}},
		{"%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n", map[string]int{"a": 1, "b": 2}}, {"*4\r\n+a\r\n:1\r\n+b\r\n:2\r\n", map[string]int{"a": 1, "b": 2}},
		{"*2\r\n*2\r\n+a\r\n,1\r\n*2\r\n+b\r\n,2\r\n", map[string]float64{"a": 1, "b": 2}}, {"%?\r\n:1\r\n#t\r\n.\r\n", map[int]bool{1: true}},
		{"%1\r\n+a\r\n*2\r\n:1\r\n:2\r\n", map[string][]int{"a": {1, 2}}}, {"*0\r\n", map[string]int{}}, {"_\r\n", map[string]int(nil)},
		{"%5\r\n+name\r\n+Ann\r\n+age\r\n$2\r\n44\r\n+City\r\n+Oslo\r\n+other\r\n*1\r\n%1\r\n:1\r\n:2\r\n+street\r\n+Main\r\n", person{Name: "Ann", Age: 44, City: "Oslo", Home: Home{Street: "Main"}}},
		{"*6\r\n+boss\r\n+Bob\r\n+Hidden\r\n+x\r\n+secret\r\n+y\r\n", person{Boss: text("Bob")}}, {"*0\r\n", person{secret: ""}},
		{"*1\r\n%1\r\n+name\r\n+Ann\r\n", []person{{Name: "Ann"}}},
		{"*2\r\n:1\r\n*?\r\n+x\r\n.\r\n", Value{Kind: Array, Elems: []Value{{Kind: Integer, Int: 1, Text: "1"}, {Kind: Array, Elems: []Value{{Kind: SimpleString, Text: "x"}}}}}},
		{"%1\r\n+a\r\n_\r\n", Value{Kind: Map, Elems: []Value{{Kind: SimpleString, Text: "a"}, {Kind: Null}}}}, {"$-1\r\n", Value{Kind: Null}}, {"*-1\r\n", Value{Kind: Null}},
		{"~1\r\n#t\r\n", Value{Kind: Set, Elems: []Value{{Kind: Boolean, Bool: true}}}}, {"-ERR x\r\n", Value{Kind: ErrorReply, Text: "ERR x"}}, {",2.5\r\n", Value{Kind: Double, Float: 2.5, Text: "2.5"}},
		{"*1\r\n-ERR x\r\n", []Value{{Kind: ErrorReply, Text: "ERR x"}}}, {"=5\r\ntxt:a\r\n", Value{Kind: VerbatimString, Text: "a"}},
	} {
		dst := reflect.New(reflect.TypeOf(c.want))
		if err := decode([]byte(c.frame), dst.Interface()); err != nil {
			t.Errorf("%q into %T: %v", c.frame, c.want, err)
			continue
		}
		if got := dst.Elem().Interface(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %#v, want %#v", c.frame, got, c.want)
		}
		if err := decode([]byte(c.frame), nil); err != nil {
			t.Errorf("%q into nothing: %v", c.frame, err)
		}
	}
}

func TestDecodeAny(t *testing.T) {
	for _, c := range []struct {
		frame string
		want  any
	}{
		{"_\r\n", nil}, {"*-1\r\n", nil}, {"$1\r\nx\r\n", "x"}, {":1\r\n", int64(1)}, {",1.5\r\n", 1.5}, {"#f\r\n", false}, {"(12\r\n", "12"}, {"=5\r\ntxt:a\r\n", "a"},
		{"*3\r\n:1\r\n_\r\n*0\r\n", []any{int64(1), nil, []any{}}}, {"~1\r\n+a\r\n", []any{"a"}}, {"%2\r\n+a\r\n:1\r\n:2\r\n~0\r\n", map[string]any{"a": int64(1), "2": []any{}}},
		{"*1\r\n-WRONGTYPE no\r\n", []any{&ServerError{Code: "WRONGTYPE", Message: "no"}}}, {"*1\r\n!5\r\nERR a\r\n", []any{&ServerError{Code: "ERR", Message: "a"}}},
	} {
		got := any("what was there")
		if err := decode([]byte(c.frame), &got); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %#v, %v, want %#v", c.frame, got, err, c.want)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	var nothing *string
	for _, c := range []struct {
		frame string
		dst   any
		want  string
		is    error
	}{
		{"$-1\r\n", new(string), "reply: null into string: the reply is null", ErrNull},
		{"_\r\n", new(int), "null into int", ErrNull},
		{"*2\r\n:1\r\n_\r\n", new([]int), "reply[1]: null into int", ErrNull},
		{"*1\r\n:1\r\n", new(string), "array of 1 into string: no such conversion", errMismatch},
		{"%1\r\n:1\r\n:1\r\n", new(int), "map into int", errMismatch},
		{"$3\r\nabc\r\n", new(int), "bulk string of 3 bytes into int: not a decimal number", errNotANumber},
		{"$0\r\n\r\n", new(int64), "not a decimal number", errNotANumber},
		{"$3\r\nabc\r\n", new(uint64), "not a decimal number", errNotANumber},
		{"$3\r\nabc\r\n", new(float64), "not a decimal number", errNotANumber},
		{"$20\r\n18446744073709551616\r\n", new(uint64), "does not fit", errOverflow},
		{"$19\r\n9223372036854775808\r\n", new(int64), "does not fit", errOverflow},
		{",9223372036854775808\r\n", new(int64), "does not fit", errOverflow},
		{",nan\r\n", new(int64), "fraction", errFraction},
		{",inf\r\n", new(int64), "does not fit", errOverflow},
		{",1.5\r\n", new(int), "fraction", errFraction},
		{":128\r\n", new(int8), "does not fit", errOverflow},
		{":256\r\n", new(uint8), "does not fit", errOverflow},
		{":-1\r\n", new(uint64), "does not fit", errOverflow},
		{",1e300\r\n", new(float32), "does not fit", errOverflow},
		{":2\r\n", new(bool), "expected 0, 1, true or false", nil},
		{"+OK\r\n", new(bool), "expected 0, 1, true or false", nil},
		{":5\r\n", new(time.Duration), "no unit of time", errDuration},
		{":5\r\n", new([]int), "integer into []int", errMismatch},
		{":5\r\n", new(map[string]int), "integer into map", errMismatch},
		{"~2\r\n:1\r\n:2\r\n", new(map[string]int), "set of 2 into map", errMismatch},
		{":5\r\n", new(person), "integer into redis.person", errMismatch},
		{"*3\r\n+a\r\n:1\r\n+b\r\n", new(map[string]int), "the last key has no value", nil},
		{"*1\r\n+a\r\n", new(person), "the last key has no value", nil},
		{"%1\r\n*0\r\n:1\r\n", new(map[string]int), "a key is an aggregate", nil},
		{"%1\r\n*0\r\n:1\r\n", new(any), "a key is an aggregate", nil},
		{"%1\r\n+a\r\n+x\r\n", new(map[string]int), `reply["a"]: simple string of 1 bytes into int`, errNotANumber},
		{"%1\r\n+age\r\n:999\r\n", new(person), "reply.age: integer into uint8", errOverflow},
		{"*1\r\n%1\r\n+age\r\n+x\r\n", new([]person), "reply[0].age:", errNotANumber},
		{"*3\r\n:1\r\n:2\r\n:3\r\n", new([2]int), "expected 2 elements", nil},
		{"*1\r\n:1\r\n", new([2]int), "expected 2 elements", nil},
		{"*2\r\n:1\r\n-WRONGTYPE no\r\n", new([]int), "reply[1]: WRONGTYPE no", nil},
		{"$1\r\nx\r\n", new(netip.Addr), "into netip.Addr", nil},
		{":1\r\n", new(map[any]int), "keys of a map", nil},
		{":1\r\n", new(chan int), "no such conversion", errMismatch},
		{":1\r\n", new(error), "no such conversion", errMismatch},
		{":1\r\n", "text", "not a pointer", errTarget},
		{":1\r\n", nothing, "nil pointer", errNilTarget},
		{":1\r\n", (*[]byte)(nil), "nil pointer", errNilTarget},
		{":1\r\n", (*Value)(nil), "nil pointer", errNilTarget},
		{":1\r\n", (*person)(nil), "nil pointer", errNilTarget},
	} {
		err := decode([]byte(c.frame), c.dst)
		var e *DecodeError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%q into %T: %v, want %q", c.frame, c.dst, err, c.want)
		}
	}
	var server *ServerError
	if err := decode([]byte("*1\r\n-LOADING wait\r\n"), new([]string)); !errors.As(err, &server) || server.Code != "LOADING" {
		t.Errorf("an error within a reply: %v", err)
	}
}

// The memory of the destination is reused, and nothing of an earlier reply remains visible.
func TestDecodeReuse(t *testing.T) {
	b := make([]byte, 3, 64)
	list := []person{{Name: "old", Age: 1}, {City: "old"}}
	m := map[string]int{"old": 1}
	p := text("old")
	for _, c := range []struct {
		frame string
		dst   any
	}{
		{"$3\r\nnew\r\n", &b}, {"*2\r\n%0\r\n%1\r\n+name\r\n+new\r\n", &list}, {"%1\r\n+new\r\n:2\r\n", &m}, {"$3\r\nnew\r\n", &p},
	} {
		if err := decode([]byte(c.frame), c.dst); err != nil {
			t.Error(err)
		}
	}
	if got, want := fmt.Sprint(string(b), cap(b), len(list), list[0], list[1].Name, list[1].City, m, *p), fmt.Sprint("new", 64, 2, person{}, "new", "", map[string]int{"new": 2}, "new"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Replies of any kind are decoded into destinations of any kind. That may fail but never panics,
// and the same bytes always give the same result.
func FuzzDecode(f *testing.F) {
	for _, frame := range []string{"*2\r\n:1\r\n_\r\n", "%1\r\n+a\r\n*2\r\n+b\r\n:1\r\n", "$?\r\n;1\r\na\r\n;0\r\n", "*?\r\n.\r\n", ">1\r\n+x\r\n", "|1\r\n+a\r\n+b\r\n:1\r\n", "~1\r\n*1\r\n-E\r\n"} {
		f.Add([]byte(frame))
	}
	types := []reflect.Type{
		reflect.TypeFor[string](), reflect.TypeFor[[]byte](), reflect.TypeFor[int8](), reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[bool](),
		reflect.TypeFor[any](), reflect.TypeFor[Value](), reflect.TypeFor[[]any](), reflect.TypeFor[[]string](), reflect.TypeFor[map[string]any](),
		reflect.TypeFor[map[int][]string](), reflect.TypeFor[person](), reflect.TypeFor[*[2]*int](), reflect.TypeFor[map[string]person](), reflect.TypeFor[netip.Addr](),
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, typ := range types {
			one, two := reflect.New(typ), reflect.New(typ)
			err1, err2 := decode(data, one.Interface()), decode(data, two.Interface())
			if fmt.Sprint(err1) != fmt.Sprint(err2) {
				t.Errorf("%v: %v and %v", typ, err1, err2)
			}
		}
		n, verdict, err := new(resp.Scanner).Scan(data)
		if err == nil && verdict == resp.Done {
			var v Value
			if err := decode(data[:n], &v); err != nil {
				t.Errorf("a whole message into Value: %v", err)
			}
		}
	})
}
