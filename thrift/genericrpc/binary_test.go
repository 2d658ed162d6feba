package genericrpc_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// encode returns the encoding of a struct in a protocol.
func encode(v thrift.CompactStruct, compact bool) []byte {
	if compact {
		return v.AppendCompact(nil)
	}
	return v.AppendThrift(nil)
}

// Encoded arguments and results are forwarded unchanged.
func TestCallsWithBytes(t *testing.T) {
	h := new(calculator)
	addr := serve(t, calc.NewCalculatorService(h))
	each(t, func(t *testing.T, config rpc.ClientConfig) {
		config.Addr = addr
		c := connect(t, config, calcIDL(t, "Calculator"))
		for _, test := range []struct {
			function   string
			args, want thrift.CompactStruct
		}{
			{"add", &calc.CalculatorAddArgs{A: 1, B: 2}, &calc.CalculatorAddResult{Success: thrift.Some[int32](3)}},
			{"add", &calc.CalculatorAddArgs{A: 3}, &calc.CalculatorAddResult{Division: &calc.Division{By: 3}}}, // CallBinary does not return it as an error
			{"echo", &calc.CalculatorEchoArgs{Text: "x"}, &calc.CalculatorEchoResult{Success: thrift.Some("x")}},
			{"ping", &calc.BasePingArgs{}, &calc.BasePingResult{}},
		} {
			got, err := c.CallBinary(t.Context(), test.function, encode(test.args, config.Compact))
			if want := encode(test.want, config.Compact); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %x, %v; want %x", test.function, got, err, want)
			}
		}
		if got, err := c.CallBinary(t.Context(), "ping", nil); err != nil || len(got) != 1 {
			t.Errorf("no arguments: %x, %v", got, err)
		}
		if got, err := c.CallBinary(t.Context(), "forget", encode(&calc.CalculatorForgetArgs{ID: 1}, config.Compact)); got != nil || err != nil {
			t.Errorf("oneway: %x, %v", got, err)
		}
	})
}

// Bytes are not sent if they are not exactly one struct, or are in the wrong protocol.
//
// mutant: genericrpc-bytes-are-not-checked
func TestBytesThatAreNoStruct(t *testing.T) {
	h := new(calculator)
	addr := serve(t, calc.NewCalculatorService(h))
	for _, compact := range []bool{false, true} {
		c := connect(t, rpc.ClientConfig{Addr: addr, Compact: compact}, calcIDL(t, "Calculator"))
		whole := encode(&calc.CalculatorAddArgs{A: 1, B: 2}, compact)
		for n := 1; n < len(whole); n++ {
			_, err := c.CallBinary(t.Context(), "add", whole[:n])
			if _, ok := errors.AsType[*thrift.Error](err); !ok || slipstream.OutcomeOf(err) != slipstream.NotSent {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
		_, err := c.CallBinary(t.Context(), "add", append(bytes.Clone(whole), 1, 2))
		if err == nil || !strings.Contains(err.Error(), "2 bytes follow the struct, which ends at byte") || slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Error(err)
		}
		wrong, err := genericrpc.NewClient(dial(t, rpc.ClientConfig{Addr: addr, Compact: !compact}), calcIDL(t, "Calculator"), genericrpc.Config{Compact: compact})
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range []func() ([]byte, error){
			func() ([]byte, error) { return wrong.CallBinary(t.Context(), "add", whole) },
			func() ([]byte, error) { return wrong.Call(t.Context(), "add", []byte(`{"a": 1}`)) },
		} {
			if _, err := call(); err == nil || !strings.Contains(err.Error(), "different protocols") || slipstream.OutcomeOf(err) != slipstream.NotSent {
				t.Errorf("compact %v: %v", compact, err)
			}
		}
	}
	if n := h.calls.Load(); n != 0 {
		t.Errorf("%d calls have arrived", n)
	}
}

// forward returns a service that forwards calls to the server at an address, in the protocol of the
// call.
func forward(t *testing.T, addr string, s *idl.Service) *rpc.Service {
	clients := map[bool]*genericrpc.Client{}
	for _, compact := range []bool{false, true} {
		clients[compact] = connect(t, rpc.ClientConfig{Addr: addr, Compact: compact}, s)
	}
	out, err := genericrpc.NewService(s, func(ctx context.Context, f *idl.Function, args genericrpc.Raw) (genericrpc.Raw, error) {
		result, err := clients[args.Compact].CallBinary(ctx, f.Name, args.Bytes)
		return genericrpc.Raw{Bytes: result, Compact: args.Compact}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A proxy without generated code behaves like the server, with each transport and protocol.
func TestProxies(t *testing.T) {
	h := new(calculator)
	addr := serve(t, calc.NewCalculatorService(h))
	addr = serve(t, forward(t, addr, calcIDL(t, "Calculator")))
	each(t, func(t *testing.T, config rpc.ClientConfig) {
		config.Addr = addr
		c := calc.NewCalculatorClient(dial(t, config))
		if sum, err := c.Add(t.Context(), 40, 2); sum != 42 || err != nil {
			t.Errorf("%d, %v", sum, err)
		}
		var overflow *calc.Overflow
		if _, err := c.Add(t.Context(), 1<<30, 1<<30); !errors.As(err, &overflow) || overflow.What != "2147483648" {
			t.Error(err)
		}
		if p, err := c.Move(t.Context(), &calc.Point{X: 1, Note: thrift.Some("n")}, []calc.Point{{X: 2, Y: 3}}); err != nil || p.X != 3 || p.Y != 3 || p.Note.V != "n" {
			t.Errorf("%v, %v", p, err)
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		if err := c.Forget(t.Context(), 1); err != nil {
			t.Error(err)
		}
		err := c.Fail(t.Context(), "status sold out")
		if e, ok := errors.AsType[*rpc.StatusError](err); ok != (config.Transport <= rpc.TTHeaderFramed) || ok && e.Code != 7 {
			t.Error(err)
		}
		err = c.Fail(t.Context(), "broken")
		if e, ok := errors.AsType[*thrift.ApplicationException](err); !ok || e.Kind != thrift.InternalError || !strings.Contains(e.Message, "broken") {
			t.Error(err)
		}
	})
}

// A result that is not exactly one struct in the protocol of the call is an internal error: such
// bytes are never sent to clients.
//
// mutant: genericrpc-results-are-not-checked
func TestHandlersWithoutAStruct(t *testing.T) {
	s := service(t, "service S { string f(1: string kind) }")
	of, err := genericrpc.NewService(s, func(_ context.Context, f *idl.Function, args genericrpc.Raw) (genericrpc.Raw, error) {
		c := generic.Codec{Compact: args.Compact}
		values, _, err := c.Read(args.Bytes, 0, f.ArgsStruct())
		if err != nil {
			return genericrpc.Raw{}, err
		}
		result := genericrpc.Raw{Compact: args.Compact}
		result.Bytes, err = c.Append(nil, f.ResultStruct(), map[string]any{"success": "text"})
		switch values["kind"] {
		case "cut":
			result.Bytes = result.Bytes[:len(result.Bytes)-1]
		case "long":
			result.Bytes = append(result.Bytes, 0)
		case "other":
			result.Compact = !result.Compact
		case "none":
			result.Bytes = nil
		}
		return result, err
	})
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, of)
	each(t, func(t *testing.T, config rpc.ClientConfig) {
		config.Addr, config.Timeout = addr, 10*time.Second // with Buffered, only the timeout ends a truncated message
		c := connect(t, config, s)
		for kind, want := range map[string]string{
			"cut": "the result of f: thrift: ", "long": "the result of f: genericrpc: 1 bytes follow", "other": "different protocols", "none": "the reply of f has no result",
		} {
			_, err := c.Call(t.Context(), "f", []byte(`{"kind": "`+kind+`"}`))
			if _, ok := errors.AsType[*thrift.ApplicationException](err); !ok || !strings.Contains(err.Error(), want) || slipstream.OutcomeOf(err) != slipstream.Executed {
				t.Errorf("%s: %v", kind, err)
			}
		}
		if got, err := c.Call(t.Context(), "f", []byte(`{"kind": "right"}`)); err != nil || string(got) != `"text"` {
			t.Errorf("%s, %v", got, err)
		}
	})
}
