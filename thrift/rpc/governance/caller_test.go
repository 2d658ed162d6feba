package governance

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// script is a Caller for tests. run is called with the number of the attempt, from 1.
type script struct {
	run func(ctx context.Context, in rpc.Invocation, n int) error

	mu sync.Mutex
	n  int // guarded by mu
}

func (s *script) Call(ctx context.Context, in rpc.Invocation) error {
	s.mu.Lock()
	s.n++
	n := s.n
	s.mu.Unlock()
	return s.run(ctx, in, n)
}

func (s *script) made() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// fails returns a Caller whose attempts fail with the outcome o.
func fails(o slipstream.Outcome) *script {
	return &script{run: func(context.Context, rpc.Invocation, int) error { return failure(o) }}
}

var errTest = errors.New("the cause of the test")

func failure(o slipstream.Outcome) error {
	return &slipstream.Error{Op: "echo", Addr: "a:1", Outcome: o, Err: errTest}
}

var (
	idempotentEcho = rpc.Function{Service: "Calculator", Name: "echo", Idempotent: true}
	plainEcho      = rpc.Function{Service: "Calculator", Name: "echo"}
)

// echo calls a function and returns its result.
func echo(ctx context.Context, c rpc.Caller, f *rpc.Function) (string, error) {
	var result calc.CalculatorEchoResult
	err := c.Call(ctx, rpc.Invocation{Service: "Calculator", Function: f, Args: &calc.CalculatorEchoArgs{Text: "a"}, Result: &result})
	return result.Success.Or("none"), err
}

// answers sets the result of a call.
func answers(in rpc.Invocation, text string) error {
	in.Result.(*calc.CalculatorEchoResult).Success = thrift.Some(text)
	return nil
}

func newRetry(t *testing.T, next rpc.Caller, c RetryConfig) *Retry {
	t.Helper()
	r, err := NewRetry(next, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newHedge(t *testing.T, next rpc.Caller, c HedgeConfig) *Hedge {
	t.Helper()
	h, err := NewHedge(next, c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// observed collects observations.
type observed struct {
	mu  sync.Mutex
	all []slipstream.Observation // guarded by mu
}

func (o *observed) Observe(one slipstream.Observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, one)
}
