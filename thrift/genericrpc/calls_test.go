package genericrpc_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// patience is the time limit for events that should happen soon.
const patience = time.Minute

// calcIDL returns a service of calc.thrift.
func calcIDL(t testing.TB, name string) *idl.Service {
	t.Helper()
	p, err := idl.Load(idl.Config{}, "../rpc/testdata/calc.thrift")
	if err != nil {
		t.Fatal(err)
	}
	return p.Roots[0].Service(name)
}

// service returns the service S of an IDL.
func service(t testing.TB, text string) *idl.Service {
	t.Helper()
	p, err := idl.Load(idl.Config{ReadFile: func(string) ([]byte, error) { return []byte(text), nil }}, "s.thrift")
	if err != nil {
		t.Fatal(err)
	}
	return p.Roots[0].Service("S")
}

// calculator is a handler of Calculator.
type calculator struct{ calls, forgotten atomic.Int64 }

func (c *calculator) Ping(context.Context) error { return nil }

func (c *calculator) Add(_ context.Context, a, b int32) (int32, error) {
	c.calls.Add(1)
	switch sum := int64(a) + int64(b); {
	case b == 0:
		return 0, &calc.Division{By: a}
	case sum != int64(int32(sum)):
		return 0, &calc.Overflow{What: fmt.Sprint(sum)}
	}
	return a + b, nil
}

func (c *calculator) Move(_ context.Context, p *calc.Point, by []calc.Point) (*calc.Point, error) {
	if p == nil {
		return nil, nil
	}
	for _, one := range by {
		p.X, p.Y = p.X+one.X, p.Y+one.Y
	}
	return p, nil
}

func (c *calculator) Echo(ctx context.Context, text string) (string, error) {
	if text == "meta" {
		return fmt.Sprint(rpc.Received(ctx)), nil
	}
	return text, nil
}

func (c *calculator) Numbers(_ context.Context, count int32) ([]int64, error) {
	return []int64{int64(count), math.MinInt64}, nil
}

func (c *calculator) Counts(_ context.Context, words []string) (map[string]int32, error) {
	all := make(map[string]int32)
	for _, w := range words {
		all[w]++
	}
	return all, nil
}

func (c *calculator) Forget(_ context.Context, id int64) error {
	c.forgotten.Add(id)
	return nil
}

func (c *calculator) Fail(_ context.Context, how string) error {
	if text, ok := strings.CutPrefix(how, "status "); ok {
		return &rpc.StatusError{Code: 7, Message: text}
	}
	return errors.New(how)
}

// serve starts a server and returns its address.
func serve(t testing.TB, services ...*rpc.Service) string {
	t.Helper()
	s, err := rpc.NewServer(rpc.ServerConfig{}, services...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	return s.Addr().String()
}

// dial returns a client of package rpc.
func dial(t testing.TB, config rpc.ClientConfig) *rpc.Client {
	t.Helper()
	if config.Timeout == 0 {
		config.Timeout = patience
	}
	c, err := rpc.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// connect returns a generic client of a service.
func connect(t testing.TB, config rpc.ClientConfig, s *idl.Service) *genericrpc.Client {
	t.Helper()
	c, err := genericrpc.NewClient(dial(t, config), s, genericrpc.Config{Compact: config.Compact})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// each runs a test for each combination of transport and protocol.
func each(t *testing.T, test func(t *testing.T, config rpc.ClientConfig)) {
	for _, transport := range []rpc.Transport{rpc.TTHeader, rpc.TTHeaderFramed, rpc.Framed, rpc.Buffered} {
		for _, compact := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, compact %v", transport, compact), func(t *testing.T) {
				test(t, rpc.ClientConfig{Transport: transport, Compact: compact})
			})
		}
	}
}

// Results of all kinds are returned as JSON, with each transport and protocol.
//
// mutant: genericrpc-result-before-exception
// mutant: genericrpc-void-is-missing
func TestCallsWithJSON(t *testing.T) {
	h := new(calculator)
	addr := serve(t, calc.NewCalculatorService(h), calc.NewClockService(nil))
	each(t, func(t *testing.T, config rpc.ClientConfig) {
		config.Addr, config.Multiplexed = addr, config.Transport > rpc.TTHeaderFramed
		c := connect(t, config, calcIDL(t, "Calculator"))
		for _, test := range []struct{ function, args, want string }{
			{"add", `{"a": 40, "b": 2}`, `42`},
			{"add", `{"a": 40}`, `42`}, // the default of b
			{"move", `{"point": {"x": 1, "note": "n", "blob": "AP8="}, "by": [{"x": 2, "y": 3}]}`, `{"x":3,"y":4,"note":"n","blob":"AP8="}`},
			{"move", `{"point": {"x": 1}}`, `{"x":1,"y":1,"blob":""}`},
			{"echo", `{"text": "\u00e9\"\n"}`, `"é\"\n"`},
			{"numbers", `{"count": 5}`, `[5,-9223372036854775808]`},
			{"counts", `{"words": ["b", "a", "b"]}`, `{"a":1,"b":2}`},
			{"ping", `{}`, `null`},
		} {
			got, err := c.Call(t.Context(), test.function, []byte(test.args))
			if err != nil || string(got) != test.want {
				t.Errorf("%s %s: %s, %v; want %s", test.function, test.args, got, err, test.want)
			}
		}
		before := h.forgotten.Load()
		if got, err := c.Call(t.Context(), "forget", []byte(`{"id": 5}`)); got != nil || err != nil {
			t.Errorf("oneway: %s, %v", got, err)
		}
		testkit.Eventually(t, patience, func() error {
			if n := h.forgotten.Load() - before; n != 5 {
				return fmt.Errorf("%d was forgotten, want 5", n)
			}
			return nil
		})
	})
}

// Declared exceptions, undeclared ones and statuses are distinguishable errors, and all have the
// outcome Executed.
func TestErrorsOfServers(t *testing.T) {
	addr := serve(t, calc.NewCalculatorService(new(calculator)))
	each(t, func(t *testing.T, config rpc.ClientConfig) {
		config.Addr = addr
		c := connect(t, config, calcIDL(t, "Calculator"))
		for args, want := range map[string][2]string{
			`{"a": 2147483647, "b": 1}`: {"Overflow", `{"what":"2147483648"}`},
			`{"a": 3, "b": 0}`:          {"Division", `{"by":3}`},
		} {
			got, err := c.Call(t.Context(), "add", []byte(args))
			e, ok := errors.AsType[*genericrpc.Exception](err)
			if !ok || got != nil || e.Field.Type.Struct().Name != want[0] || string(e.JSON) != want[1] || e.Error() != "Calculator.add has thrown "+want[0] || slipstream.OutcomeOf(err) != slipstream.Executed {
				t.Errorf("%s: %s, %v", args, got, err)
			}
		}
		_, err := c.Call(t.Context(), "fail", []byte(`{"how": "broken"}`))
		if e, ok := errors.AsType[*thrift.ApplicationException](err); !ok || e.Kind != thrift.InternalError || slipstream.OutcomeOf(err) != slipstream.Executed {
			t.Errorf("an error of the handler: %v", err)
		}
		_, err = c.Call(t.Context(), "fail", []byte(`{"how": "status sold out"}`))
		e, ok := errors.AsType[*rpc.StatusError](err)
		if header := config.Transport <= rpc.TTHeaderFramed; ok != header || header && (e.Code != 7 || e.Message != "sold out") || slipstream.OutcomeOf(err) != slipstream.Executed {
			t.Errorf("a status: %v", err)
		}
		other := connect(t, config, service(t, "service S { i64 now() }"))
		if _, err := other.Call(t.Context(), "now", []byte("{}")); slipstream.OutcomeOf(err) != slipstream.Refused {
			t.Errorf("a function that the server does not have: %v", err)
		}
	})
}

// Arguments that do not match the function cause an error that contains their position, and nothing
// is sent.
//
// mutant: genericrpc-unknown-arguments-are-skipped
func TestArgumentsThatAreRefused(t *testing.T) {
	h := new(calculator)
	addr := serve(t, calc.NewCalculatorService(h))
	c := connect(t, rpc.ClientConfig{Addr: addr}, calcIDL(t, "Calculator"))
	for _, test := range []struct{ function, args, want string }{
		{"add", ``, "unexpected end of JSON input"},
		{"add", `[1, 2]`, "expected an object, found an array"},
		{"add", `{"a": "x"}`, "field a: expected an integer, found a string, at byte 9"},
		{"add", `{"a": 1, "c": 2}`, "field c: add_args has no field with this name; expected a, b, at byte 12"},
		{"move", `{"point": {"x": 1}, "by": [{"x": 1}, {"x": 1, "y": 2147483648}]}`, "field by[1].y: an integer does not fit into 32 bits"},
		{"move", `{"by": [{}]}`, "field by[0]: the required field x is missing"},
		{"move", `{"point": {"x": 1, "blob": "?"}}`, "field point.blob: the string is not valid base64"},
	} {
		got, err := c.Call(t.Context(), test.function, []byte(test.args))
		_, ok := errors.AsType[*thrift.JSONError](err)
		if !ok || got != nil || !strings.Contains(err.Error(), test.want) || slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("%s %s: %s, %v; want %s", test.function, test.args, got, err, test.want)
		}
	}
	for function, want := range map[string]string{
		"ad": `the service Calculator has no function "ad"; did you mean add? (not sent)`,
		"":   `has no function ""`, "Calculator.add": `has no function "Calculator.add"`, strings.Repeat("x", 1000): "has no function",
	} {
		_, err := c.Call(t.Context(), function, []byte(`{}`))
		_, binary := c.CallBinary(t.Context(), function, nil)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 300 || slipstream.OutcomeOf(err) != slipstream.NotSent || binary == nil || binary.Error() != err.Error() {
			t.Errorf("%.20s: %v, %v; want %s", function, err, binary, want)
		}
	}
	if n := h.calls.Load(); n != 0 {
		t.Errorf("%d calls have arrived", n)
	}
	lenient, err := genericrpc.NewClient(dial(t, rpc.ClientConfig{Addr: addr}), calcIDL(t, "Calculator"), genericrpc.Config{AllowUnknown: true, JSON: thrift.JSON{I64Strings: true}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := lenient.Call(t.Context(), "numbers", []byte(`{"count": 1, "more": [{}]}`)); err != nil || string(got) != `["1","-9223372036854775808"]` {
		t.Errorf("%s, %v", got, err)
	}
}

// The context of a call limits its duration, and carries metadata.
func TestContextsOfCalls(t *testing.T) {
	c := connect(t, rpc.ClientConfig{Addr: serve(t, calc.NewCalculatorService(new(calculator)))}, calcIDL(t, "Calculator"))
	ctx := rpc.WithMeta(t.Context(), rpc.Meta{Key: "TENANT", Value: "a"})
	if got, err := c.Call(ctx, "echo", []byte(`{"text": "meta"}`)); err != nil || string(got) != `"[{TENANT a false}]"` {
		t.Errorf("%s, %v", got, err)
	}
	late, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	if _, err := c.Call(late, "ping", []byte(`{}`)); !errors.Is(err, context.DeadlineExceeded) || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Error(err)
	}
}

// Names that the file does not declare are errors in NewClient, NewService and Lookup.
func TestNamesThatAreNotDeclared(t *testing.T) {
	if _, err := genericrpc.NewClient(nil, nil, genericrpc.Config{}); err == nil || !strings.Contains(err.Error(), "the service is nil") {
		t.Error(err)
	}
	if _, err := genericrpc.NewService(nil, nil); err == nil || !strings.Contains(err.Error(), "the service is nil") {
		t.Error(err)
	}
	ambiguous := service(t, "exception E {} service S { i32 f() throws (1: E success) }")
	if _, err := genericrpc.NewClient(nil, ambiguous, genericrpc.Config{}); err == nil || !strings.Contains(err.Error(), "S.f: an exception cannot be called success") {
		t.Error(err)
	}
	file := calcIDL(t, "Calculator").File
	for name, want := range map[string]string{
		"add": "expected SERVICE.FUNCTION", ".add": "expected SERVICE.FUNCTION", "Calculator.": "expected SERVICE.FUNCTION",
		"Calculatr.add": "calc has no service Calculatr; did you mean Calculator?", "Point.x": "calc has no service Point",
		"Calculator.ad": "the service Calculator of calc has no function ad; did you mean add?",
		"Clock.ping":    "the service Clock of calc has no function ping",
	} {
		if _, _, err := genericrpc.Lookup(file, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	s, f, err := genericrpc.Lookup(file, "Calculator.ping")
	if err != nil || s.Name != "Calculator" || f.Service.Name != "Base" {
		t.Errorf("%v, %v, %v", s, f, err)
	}
	if got, want := genericrpc.FunctionOf(f), (rpc.Function{Service: "Base", Name: "ping"}); got != want {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]rpc.Function{
		"echo": {Service: "Calculator", Name: "echo", Idempotent: true}, "forget": {Service: "Calculator", Name: "forget", Oneway: true},
	} {
		if got := genericrpc.FunctionOf(s.Function(name)); got != want {
			t.Errorf("%+v", got)
		}
	}
	var names []string
	for _, f := range genericrpc.Functions(s) {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "add move echo numbers counts forget fail ping" {
		t.Error(got)
	}
}
