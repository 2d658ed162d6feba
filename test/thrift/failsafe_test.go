package thrift

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift/rpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/governance"
)

// caller is a service of the tests.
type caller func(ctx context.Context) error

func (c caller) Call(ctx context.Context, _ rpc.Invocation) error { return c(ctx) }

var find = rpc.Function{Service: "Catalog", Name: "find", Idempotent: true}

// callFind calls the function of the service, and returns its error.
func callFind(ctx context.Context, c rpc.Caller) slipstream.Outcome {
	return slipstream.OutcomeOf(c.Call(ctx, rpc.Invocation{Service: "Catalog", Function: &find}))
}

// A circuit breaker of failsafe-go opens when calls get no answer, denies calls, and closes after a
// call that was answered with an error of the service.
func TestCircuitBreakerOfFailsafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		breaker := circuitbreaker.NewBuilder[any]().WithFailureThreshold(3).WithDelay(time.Second).Build()
		outcome, calls := slipstream.Executed, 0
		b, err := governance.NewBreaker(caller(func(context.Context) error {
			calls++
			return &slipstream.Error{Outcome: outcome, Err: errors.New("of the test")}
		}), breaker)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			callFind(t.Context(), b)
		}
		if !breaker.IsClosed() || calls != 10 {
			t.Errorf("after %d error answers the state is %v", calls, breaker.State())
		}
		outcome = slipstream.MaybeExecuted
		for range 10 {
			callFind(t.Context(), b)
		}
		if !breaker.IsOpen() || calls != 13 || callFind(t.Context(), b) != slipstream.Overloaded {
			t.Errorf("after %d calls the state is %v", calls, breaker.State())
		}
		time.Sleep(time.Second + time.Millisecond)
		outcome = slipstream.Executed
		if got := callFind(t.Context(), b); got != slipstream.Executed || !breaker.IsClosed() {
			t.Errorf("a call after the delay: %v, the state is %v", got, breaker.State())
		}
	})
}

// A call that is canceled while a circuit breaker is half-open ends the trial, so the next one is possible.
func TestCanceledTrialOfFailsafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		breaker := circuitbreaker.NewBuilder[any]().WithFailureThreshold(1).WithDelay(time.Second).Build()
		var result error
		b, err := governance.NewBreaker(caller(func(context.Context) error { return result }), breaker)
		if err != nil {
			t.Fatal(err)
		}
		breaker.Open()
		for range 3 {
			time.Sleep(time.Second + time.Millisecond)
			result = &slipstream.Error{Outcome: slipstream.MaybeExecuted, Err: context.Canceled}
			if got := callFind(t.Context(), b); got != slipstream.MaybeExecuted {
				t.Fatalf("the trial call was not made: %v", got)
			}
		}
		time.Sleep(time.Second + time.Millisecond)
		result = nil
		if got := callFind(t.Context(), b); got != slipstream.Executed || !breaker.IsClosed() {
			t.Errorf("%v, the state is %v", got, breaker.State())
		}
	})
}

// A bulkhead of failsafe-go limits concurrent calls, and a rate limiter limits calls in a period.
func TestLimitsOfFailsafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		b, err := governance.NewBulkhead(caller(func(context.Context) error { <-gate; return nil }), bulkhead.New[any](1), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		first := make(chan slipstream.Outcome, 1)
		go func() { first <- callFind(t.Context(), b) }() // ends with the gate
		synctest.Wait()
		began := time.Now()
		if got := callFind(t.Context(), b); got != slipstream.Overloaded || time.Since(began) != time.Second {
			t.Errorf("a second call: %v after %v", got, time.Since(began))
		}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if got := callFind(short, b); got != slipstream.NotSent {
			t.Errorf("a call beyond the rate: %v", got)
		}
		close(gate)
		if got := <-first; got != slipstream.Executed || callFind(t.Context(), b) != slipstream.Executed {
			t.Errorf("the first call: %v", got)
		}
		l, err := governance.NewRateLimit(caller(func(context.Context) error { return nil }), ratelimiter.NewBursty[any](2, time.Minute), 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []slipstream.Outcome{slipstream.Executed, slipstream.Executed, slipstream.Overloaded} {
			if got := callFind(t.Context(), l); got != want {
				t.Errorf("call %d: %v, want %v", i, got, want)
			}
		}
	})
}
