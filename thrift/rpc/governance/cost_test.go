package governance

import (
	"context"
	"testing"

	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// free is a circuit breaker and a bulkhead that allows everything.
type free struct{ tape }

func (*free) RecordSuccess() {}

// chain returns a pool wrapped in a limit, a circuit breaker and a retry.
func chain(t testing.TB) rpc.Caller {
	t.Helper()
	config := cold(Static(addrs("a:1", "b:1", "c:1")))
	config.Client.OnEvent = nil
	pool, err := newPool(config, func(c rpc.ClientConfig) (backend, error) {
		f := &fake{config: c}
		f.connect()
		return f, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	if err := pool.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	limit, err := NewBulkhead(pool, new(pass), 0)
	if err != nil {
		t.Fatal(err)
	}
	breaker, err := NewBreaker(limit, new(free))
	if err != nil {
		t.Fatal(err)
	}
	retry, err := NewRetry(breaker, RetryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return retry
}

// A call that succeeds through a retry, a circuit breaker, a limit and a pool allocates nothing.
func TestCallsThatSucceedAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	c := chain(t)
	in := rpc.Invocation{Service: "Calculator", Function: &idempotentEcho, Args: new(calc.CalculatorEchoArgs), Result: new(calc.CalculatorEchoResult)}
	ctx := context.Background()
	if n := testing.AllocsPerRun(1000, func() {
		if err := c.Call(ctx, in); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
}

func BenchmarkCall(b *testing.B) {
	in := rpc.Invocation{Service: "Calculator", Function: &idempotentEcho, Args: new(calc.CalculatorEchoArgs), Result: new(calc.CalculatorEchoResult)}
	for name, c := range map[string]rpc.Caller{"member": &fake{}, "retry, breaker, limit, pool": chain(b)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			ctx := context.Background()
			for b.Loop() {
				if err := c.Call(ctx, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
