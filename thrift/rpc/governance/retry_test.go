package governance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// A call is retried only if its outcome guarantees that this cannot execute it twice.
func TestRetryByOutcome(t *testing.T) {
	for _, c := range []struct {
		outcome  slipstream.Outcome
		function *rpc.Function
		attempts int
	}{
		{slipstream.NotSent, &plainEcho, 4},
		{slipstream.Refused, &plainEcho, 4},
		{slipstream.MaybeExecuted, &plainEcho, 1},
		{slipstream.MaybeExecuted, &idempotentEcho, 4},
		{slipstream.Executed, &idempotentEcho, 1},
		{slipstream.Overloaded, &idempotentEcho, 1},
		{slipstream.Closed, &idempotentEcho, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			next := fails(c.outcome)
			r := newRetry(t, next, RetryConfig{})
			_, err := echo(t.Context(), r, c.function)
			if slipstream.OutcomeOf(err) != c.outcome || !errors.Is(err, errTest) {
				t.Errorf("%v: %v", c.outcome, err)
			}
			if next.made() != c.attempts || r.Stats().Repeated != uint64(c.attempts-1) {
				t.Errorf("%v, idempotent %v: %d attempts, %d counted as retries, want %d attempts", c.outcome, c.function.Idempotent, next.made(), r.Stats().Repeated, c.attempts)
			}
		})
	}
}

// An answer that another attempt would get again ends the call, even if it was not executed.
func TestRetryOfCallsThatAreWrong(t *testing.T) {
	for _, cause := range []error{
		&rpc.InvalidCallError{Err: errTest},
		&thrift.ApplicationException{Kind: thrift.UnknownMethod, Message: "unknown"},
	} {
		outcome := slipstream.NotSent
		if _, answered := cause.(*thrift.ApplicationException); answered {
			outcome = slipstream.Refused
		}
		next := &script{run: func(context.Context, rpc.Invocation, int) error {
			return &slipstream.Error{Outcome: outcome, Err: cause}
		}}
		if _, err := echo(t.Context(), newRetry(t, next, RetryConfig{}), &idempotentEcho); !errors.Is(err, cause) || next.made() != 1 {
			t.Errorf("%d attempts: %v", next.made(), err)
		}
	}
	refused := &script{run: func(_ context.Context, in rpc.Invocation, n int) error {
		if n == 1 {
			return &slipstream.Error{Outcome: slipstream.Refused, Err: &thrift.ApplicationException{Kind: rpc.KindRefused}}
		}
		return answers(in, "b")
	}}
	if text, err := echo(t.Context(), newRetry(t, refused, RetryConfig{}), &plainEcho); text != "b" || err != nil {
		t.Errorf("a call that the server reports as not executed: %q, %v", text, err)
	}
}

// A failing service gets at most a tenth more attempts than there are calls.
func TestRetryStorm(t *testing.T) {
	for _, outcome := range []slipstream.Outcome{slipstream.MaybeExecuted, slipstream.Refused} {
		synctest.Test(t, func(t *testing.T) {
			next := fails(outcome)
			r := newRetry(t, next, RetryConfig{Retries: 10})
			const calls = 10_000
			for range calls {
				_, _ = echo(t.Context(), r, &idempotentEcho)
			}
			if n := next.made(); n > calls*11/10 || n < calls*109/100 {
				t.Errorf("%v: %d attempts of %d calls, want a tenth more", outcome, n, calls)
			}
		})
	}
}

// Calls that were not sent put no load on servers, so the budget does not limit their retries.
func TestRetriesOfCallsThatWereNotSentAreFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := fails(slipstream.NotSent)
		r := newRetry(t, next, RetryConfig{})
		for range 100 {
			_, _ = echo(t.Context(), r, &idempotentEcho)
		}
		if next.made() != 400 {
			t.Errorf("%d attempts of 100 calls, want 400", next.made())
		}
	})
}

// A call that may have been executed stays MaybeExecuted, whatever the outcome of later attempts.
func TestRetryReturnsTheOutcomeOfAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &script{run: func(_ context.Context, _ rpc.Invocation, n int) error {
			if n == 1 {
				return failure(slipstream.MaybeExecuted)
			}
			return failure(slipstream.NotSent)
		}}
		if _, err := echo(t.Context(), newRetry(t, next, RetryConfig{}), &idempotentEcho); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
			t.Error(err)
		}
	})
}

// If an attempt takes too long, the call is retried within its own timeout. Without an attempt timeout, the call ends.
func TestAttemptTimeout(t *testing.T) {
	hangs := func(ctx context.Context, in rpc.Invocation, n int) error {
		if n > 1 {
			return answers(in, "second")
		}
		<-ctx.Done()
		return &slipstream.Error{Outcome: slipstream.MaybeExecuted, Err: ctx.Err()}
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRetry(t, &script{run: hangs}, RetryConfig{AttemptTimeout: time.Second, Timeout: time.Minute})
		if text, err := echo(t.Context(), r, &idempotentEcho); text != "second" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		next := &script{run: hangs}
		if _, err := echo(t.Context(), newRetry(t, next, RetryConfig{Timeout: time.Second}), &idempotentEcho); !errors.Is(err, context.DeadlineExceeded) || next.made() != 1 {
			t.Errorf("%d attempts: %v", next.made(), err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a function that is not idempotent
		next := &script{run: hangs}
		if _, err := echo(t.Context(), newRetry(t, next, RetryConfig{AttemptTimeout: time.Second}), &plainEcho); !errors.Is(err, context.DeadlineExceeded) || next.made() != 1 {
			t.Errorf("%d attempts: %v", next.made(), err)
		}
	})
}

// A canceled call is not retried.
func TestRetryOfACanceledCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	next := &script{run: func(context.Context, rpc.Invocation, int) error {
		cancel()
		return failure(slipstream.NotSent)
	}}
	if _, err := echo(ctx, newRetry(t, next, RetryConfig{}), &idempotentEcho); err == nil || next.made() != 1 {
		t.Errorf("%d attempts: %v", next.made(), err)
	}
}

// An attempt knows which members earlier attempts were sent to.
func TestRetryTellsWhichMembersHadTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &script{run: func(ctx context.Context, in rpc.Invocation, n int) error {
			if got := routeOf(ctx).has("a:1"); got != (n > 1) {
				t.Errorf("attempt %d: member a:1 has received the call: %v", n, got)
			}
			if n == 3 {
				return answers(in, "b")
			}
			return failure(slipstream.NotSent)
		}}
		observer := new(observed)
		if text, err := echo(t.Context(), newRetry(t, next, RetryConfig{Observer: observer}), &plainEcho); text != "b" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		if len(observer.all) != 1 || observer.all[0].Attempts != 3 || observer.all[0].Op != "echo" || observer.all[0].System != "thrift" || observer.all[0].Duration() <= 0 {
			t.Errorf("observations %+v", observer.all)
		}
	})
}

func TestConfigurationsThatAreWrong(t *testing.T) {
	next := fails(slipstream.NotSent)
	for _, c := range []struct {
		err  error
		want string
	}{
		{second(NewRetry(next, RetryConfig{Backoff: -1})), "backoff -1ns is negative"},
		{second(NewRetry(next, RetryConfig{AttemptTimeout: -1})), "attempt timeout -1ns is negative"},
		{second(NewRetry(next, RetryConfig{Idempotent: []string{"a.b.c"}})), `the idempotent function "a.b.c", expected a name such as get or Catalog.get`},
		{second(NewHedge(next, HedgeConfig{})), "delay 0s, expected a positive duration"},
		{second(NewHedge(next, HedgeConfig{Delay: 1, Functions: []string{""}})), `the hedged function "", expected a name`},
		{second(NewFallback(next, nil)), "the fallback has no function"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }
