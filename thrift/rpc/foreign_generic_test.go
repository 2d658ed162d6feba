package rpc_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// A client without generated code receives the results, exceptions and statuses of servers of other implementations, as
// JSON and as bytes.
func TestGenericCallsOfForeignServers(t *testing.T) {
	program, err := idl.Load(idl.Config{}, "testdata/calc.thrift")
	if err != nil {
		t.Fatal(err)
	}
	service := program.Roots[0].Service("Calculator")
	eachForeign(t, func(t *testing.T, f foreign, transport, protocol string, config rpc.ClientConfig) {
		config.Addr = f.serve(t, transport, protocol, f.kinds[0])
		c, err := genericrpc.NewClient(connect(t, config), service, genericrpc.Config{Compact: config.Compact})
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct{ function, args, want string }{
			{"add", `{"a": 40}`, `42`},
			{"move", `{"point": {"x": 1, "note": "n", "blob": "YmxvYg=="}, "by": [{"x": 2, "y": 3}]}`, `{"x":3,"y":4,"note":"n","blob":"YmxvYg=="}`},
			{"echo", `{"text": "\u00e9"}`, `"é"`},
			{"numbers", `{"count": 3}`, `[0,1,2]`},
			{"counts", `{"words": ["b", "a", "b"]}`, `{"a":1,"b":2}`},
			{"ping", `{}`, `null`},
			{"forget", `{"id": 1}`, ``},
		} {
			got, err := c.Call(t.Context(), test.function, []byte(test.args))
			if err != nil || string(got) != test.want {
				t.Errorf("%s %s: %s, %v; want %s", test.function, test.args, got, err, test.want)
			}
		}
		_, err = c.Call(t.Context(), "add", []byte(`{"a": 1073741824, "b": 1073741824}`))
		if e, ok := errors.AsType[*genericrpc.Exception](err); !ok || string(e.JSON) != `{"what":"2147483648"}` {
			t.Errorf("overflow: %v", err)
		}
		_, err = c.Call(t.Context(), "fail", []byte(`{"how": "broken"}`))
		if _, ok := errors.AsType[*thrift.ApplicationException](err); !ok || slipstream.OutcomeOf(err) != slipstream.Executed {
			t.Errorf("a handler's error: %v", err)
		}
		if config.Transport <= rpc.TTHeaderFramed {
			_, err = c.Call(t.Context(), "fail", []byte(`{"how": "status sold out"}`))
			if e, ok := errors.AsType[*rpc.StatusError](err); !ok || e.Code != 7 || e.Message != "sold out" || e.Details["a"] != "b" {
				t.Errorf("a status: %v", err)
			}
		}
		args := &calc.CalculatorEchoArgs{Text: "bytes"}
		want := &calc.CalculatorEchoResult{Success: thrift.Some("bytes")}
		encoded, expected := args.AppendThrift(nil), want.AppendThrift(nil)
		if config.Compact {
			encoded, expected = args.AppendCompact(nil), want.AppendCompact(nil)
		}
		if got, err := c.CallBinary(t.Context(), "echo", encoded); err != nil || !bytes.Equal(got, expected) {
			t.Errorf("as bytes: %x, %v; want %x", got, err, expected)
		}
	})
}
