package genericrpc_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// canned is a caller that answers each call with the struct that reply returns for its arguments.
type canned struct {
	compact bool
	reply   func(args []byte) []byte
}

func (c canned) Call(_ context.Context, in rpc.Invocation) error {
	var r thrift.Reader
	if c.compact {
		_, err := r.ReadCompact(c.reply(in.Args.(thrift.CompactStruct).AppendCompact(nil)), 0, in.Result.(thrift.CompactStruct))
		return err
	}
	_, err := r.Read(c.reply(in.Args.AppendThrift(nil)), 0, in.Result)
	return err
}

// answered returns a client whose calls are answered with the struct reply.
func answered(t testing.TB, s *idl.Service, config genericrpc.Config, reply []byte) *genericrpc.Client {
	t.Helper()
	c, err := genericrpc.NewClient(canned{config.Compact, func([]byte) []byte { return reply }}, s, config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const hostileIDL = `union U { 1: i32 n, 2: string s } struct E {} struct R { 1: required i32 n }
exception X { 1: required string why }
service S { list<E> es() throws (1: X x), U u() throws (1: X x), R r() throws (1: X x), void v() throws (1: X x), map<string, R> m() throws (1: X x) }`

// Replies that do not match the function are errors with the outcome Executed, and require little
// memory.
func TestHostileReplies(t *testing.T) {
	s := service(t, hostileIDL)
	for _, test := range []struct {
		function string
		reply    []byte // in the Binary protocol
		want     string
	}{
		{"es", []byte{thrift.TypeList, 0, 0, thrift.TypeStruct, 0x7f, 0xff, 0xff, 0xff, 0}, "a length exceeds the input"},
		{"es", bytes.Repeat([]byte{thrift.TypeStruct, 0, 7}, 1000), "nested too deeply"},
		{"es", []byte{thrift.TypeList, 0, 0, thrift.TypeI8, 0, 0, 0, 1, 5, 0}, "field success: the elements of a container have an unexpected type"},
		{"es", []byte{thrift.TypeI8, 0, 0, 0, 0}, "the reply of es has no result"},
		{"es", []byte{0}, "the reply of es has no result"},
		{"es", nil, "the input ends inside a value"},
		{"u", []byte{thrift.TypeStruct, 0, 0, 0, 0}, "field success: a union does not have exactly one field"},
		{"u", []byte{thrift.TypeStruct, 0, 0, thrift.TypeBool, 0, 9, 1, 0, 0}, "a union does not have exactly one field"}, // with an unknown field
		{"r", []byte{thrift.TypeStruct, 0, 0, 0, 0}, "field success: a required field is missing"},
		{"v", []byte{thrift.TypeStruct, 0, 1, 0, 0}, "field x: a required field is missing"},
		{"m", []byte{thrift.TypeMap, 0, 0, thrift.TypeString, thrift.TypeStruct, 0, 0, 0, 1, 0, 0, 0, 1, 'k', 0, 0}, "field success[0].value: a required field is missing"},
	} {
		c := answered(t, s, genericrpc.Config{}, test.reply)
		got, used, err := measured(func() ([]byte, error) { return c.Call(t.Context(), test.function, []byte("{}")) })
		if err == nil || got != nil || !strings.Contains(err.Error(), test.want) || slipstream.OutcomeOf(err) != slipstream.Executed {
			t.Errorf("%s %x: %s, %v; want %s", test.function, test.reply, got, err, test.want)
		}
		if used > 1<<20 {
			t.Errorf("%s %x: %d bytes were allocated", test.function, test.reply, used)
		}
	}
	for function, reply := range map[string][]byte{"v": {0}, "es": {thrift.TypeList, 0, 0, thrift.TypeStruct, 0, 0, 0, 2, 0, 0, 0}} {
		want := map[string]string{"v": "null", "es": "[{},{}]"}[function]
		if got, err := answered(t, s, genericrpc.Config{}, reply).Call(t.Context(), function, []byte("{}")); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", function, got, err)
		}
	}
}

// A million structs in a megabyte exceed the default limit; Config.MaxMemory raises it.
//
// mutant: genericrpc-memory-is-not-bounded
func TestMemoryOfReplies(t *testing.T) {
	s := service(t, hostileIDL)
	million := append([]byte{thrift.TypeList, 0, 0, thrift.TypeStruct, 0, 0x10, 0, 0}, make([]byte, 1<<20+1)...)
	_, used, err := measured(func() ([]byte, error) {
		return answered(t, s, genericrpc.Config{}, million).Call(t.Context(), "es", []byte("{}"))
	})
	if bad, ok := errors.AsType[*thrift.Error](err); !ok || bad.Code != thrift.CodeMemory || used > 150<<20 {
		t.Errorf("%v, %d bytes were allocated", err, used)
	}
	few := []byte{thrift.TypeList, 0, 0, thrift.TypeStruct, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0}
	if _, err := answered(t, s, genericrpc.Config{MaxMemory: 200}, few).Call(t.Context(), "es", []byte("{}")); err == nil || !strings.Contains(err.Error(), "more memory") {
		t.Error(err)
	}
	if got, err := answered(t, s, genericrpc.Config{MaxMemory: 1 << 10}, few).Call(t.Context(), "es", []byte("{}")); err != nil || string(got) != "[{},{},{},{},{}]" {
		t.Errorf("%s, %v", got, err)
	}
}

// measured returns the results of a function, and the number of bytes that it allocated.
func measured(f func() ([]byte, error)) ([]byte, uint64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b, err := f()
	runtime.ReadMemStats(&after)
	return b, after.TotalAlloc - before.TotalAlloc, err
}

// shape declares fields of all types; echoing them exercises the whole JSON mapping.
const shape = `enum E { X = 1 } union U { 1: i8 n, 2: list<U> us }
struct A { 1: i8 n = 5, 2: E e, 3: map<i16, double> m, 4: map<list<i8>, binary> pairs, 5: optional uuid u, 6: optional U un, 7: set<string> s, 8: optional A a, 9: map<bool, i64> b }
exception X { 1: A a } service S { A echo(1: A a) throws (2: X x) }`

// echo answers a call with its argument as the result: the ID of the field becomes 0.
func echo(compact bool) func([]byte) []byte {
	return func(args []byte) []byte {
		switch {
		case len(args) == 1:
			return args
		case compact: // the difference of IDs cannot be 0, so the ID follows
			return append([]byte{thrift.CompactTypeStruct, 0}, args[1:]...)
		}
		args[2] = 0
		return args
	}
}

// If a call accepts JSON, echoing it returns JSON for the same value, in both protocols. Echoing
// the returned JSON does not change it.
func FuzzCalls(f *testing.F) {
	s := service(f, shape)
	f.Add([]byte(`{"a":{"n":1,"e":"X","m":{"5":1.5},"pairs":[[[1],"AA=="]],"u":"01234567-89ab-cdef-0123-456789abcdef","un":{"us":[{"n":1}]},"s":["\ud83d\ude00"],"a":{},"b":{"true":1}}}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"a":{"zz":1}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var results [2]string
		for i, compact := range []bool{false, true} {
			c, err := genericrpc.NewClient(canned{compact, echo(compact)}, s, genericrpc.Config{Compact: compact})
			if err != nil {
				t.Fatal(err)
			}
			out, err := c.Call(t.Context(), "echo", in)
			if err != nil {
				if _, ofJSON := errors.AsType[*thrift.JSONError](err); !ofJSON && !strings.Contains(err.Error(), "no result") && !tooMuch(err) {
					t.Fatalf("%s: %v", in, err)
				}
				results[i] = "error"
				continue
			}
			results[i] = string(out)
			again, err := c.Call(t.Context(), "echo", []byte(`{"a":`+string(out)+`}`))
			if err != nil && !tooMuch(err) || err == nil && !bytes.Equal(again, out) {
				t.Fatalf("%s, %v; want %s", again, err, out)
			}
		}
		if results[0] != results[1] && results[0] != "error" && results[1] != "error" {
			t.Fatalf("%s in the Binary protocol, %s in the Compact protocol", results[0], results[1])
		}
	})
}

// tooMuch reports whether an error was caused by a bound: a value that is just below the bound in
// one form may exceed it in another.
func tooMuch(err error) bool {
	if _, ok := errors.AsType[*generic.ValueError](err); ok {
		return true
	}
	e, ok := errors.AsType[*thrift.Error](err)
	return ok && (e.Code == thrift.CodeMemory || e.Code == thrift.CodeDeep)
}

// A call does not panic, whatever bytes the server sends, and every accepted result is JSON that a
// call accepts.
func FuzzReplies(f *testing.F) {
	s := service(f, shape)
	f.Add([]byte{thrift.TypeStruct, 0, 0, 0, 0}, false)
	f.Add([]byte{thrift.TypeStruct, 0, 2, 0, 0}, false)
	f.Add([]byte{thrift.CompactTypeStruct, 0, 0, 0}, true)
	f.Add([]byte{0}, true)
	f.Fuzz(func(t *testing.T, reply []byte, compact bool) {
		c := answered(t, s, genericrpc.Config{Compact: compact}, reply)
		out, err := c.Call(t.Context(), "echo", []byte("{}"))
		if err != nil {
			return
		}
		if _, err := c.Call(t.Context(), "echo", []byte(`{"a":`+string(out)+`}`)); slipstream.OutcomeOf(err) == slipstream.NotSent && !strings.Contains(err.Error(), "more memory") && !strings.Contains(err.Error(), "too deeply") {
			t.Fatalf("%s: %v", out, err)
		}
	})
}
