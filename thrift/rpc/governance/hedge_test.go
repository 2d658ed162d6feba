package governance

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// The first answer is the result and ends the other attempt.
func TestHedgeReturnsTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &script{run: func(ctx context.Context, in rpc.Invocation, n int) error {
			if n == 2 {
				time.Sleep(5 * time.Millisecond)
				return answers(in, "second")
			}
			<-ctx.Done()
			return &slipstream.Error{Outcome: slipstream.MaybeExecuted, Err: ctx.Err()}
		}}
		observer := new(observed)
		h := newHedge(t, next, HedgeConfig{Delay: 10 * time.Millisecond, Observer: observer})
		began := time.Now()
		if text, err := echo(t.Context(), h, &idempotentEcho); text != "second" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		if took := time.Since(began); took != 15*time.Millisecond {
			t.Errorf("the call took %v, want 15ms", took)
		}
		if s := h.Stats(); s.Hedges != 1 || s.HedgesWon != 1 {
			t.Errorf("%d hedges, %d won", s.Hedges, s.HedgesWon)
		}
		if len(observer.all) != 1 || observer.all[0].Attempts != 2 || observer.all[0].Err != nil {
			t.Errorf("observations %+v", observer.all)
		}
	})
}

// An answer before the delay ends the call with one attempt, and so does an error.
func TestNoHedgeOfFastCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &script{run: func(_ context.Context, in rpc.Invocation, n int) error {
			time.Sleep(9 * time.Millisecond)
			if n == 2 {
				return failure(slipstream.NotSent)
			}
			return answers(in, "first")
		}}
		h := newHedge(t, next, HedgeConfig{Delay: 10 * time.Millisecond})
		if text, err := echo(t.Context(), h, &idempotentEcho); text != "first" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		if _, err := echo(t.Context(), h, &idempotentEcho); !errors.Is(err, errTest) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if next.made() != 2 || h.Stats().Hedges != 0 {
			t.Errorf("%d attempts of 2 calls", next.made())
		}
	})
}

// The losing attempt may be answered late and write its result. The winner's result remains, and the call ends only
// when its arguments are no longer in use.
func TestHedgeWhoseLoserAnswersLate(t *testing.T) {
	for loser := 1; loser <= 2; loser++ {
		synctest.Test(t, func(t *testing.T) {
			var running atomic.Int64
			next := &script{run: func(_ context.Context, in rpc.Invocation, n int) error {
				running.Add(1)
				defer running.Add(-1)
				if n == loser {
					time.Sleep(time.Minute) // ignores its context
					return answers(in, "late")
				}
				time.Sleep(time.Second)
				return answers(in, "winner")
			}}
			h := newHedge(t, next, HedgeConfig{Delay: 100 * time.Millisecond})
			if text, err := echo(t.Context(), h, &idempotentEcho); text != "winner" || err != nil {
				t.Errorf("loser %d: %q, %v", loser, text, err)
			}
			if n := running.Load(); n != 0 {
				t.Errorf("loser %d: %d attempts use the arguments after the end of the call", loser, n)
			}
		})
	}
}

// A function that is not declared to be idempotent is not hedged, and its calls are refused if the configuration names
// it.
func TestHedgeOfAFunctionThatIsNotIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &script{run: func(_ context.Context, in rpc.Invocation, _ int) error {
			time.Sleep(time.Minute)
			return answers(in, "b")
		}}
		if text, err := echo(t.Context(), newHedge(t, slow, HedgeConfig{Delay: 1}), &plainEcho); text != "b" || err != nil || slow.made() != 1 {
			t.Errorf("%q, %v after %d attempts", text, err, slow.made())
		}
		_, err := echo(t.Context(), newHedge(t, slow, HedgeConfig{Delay: 1, Functions: []string{"Calculator.echo"}}), &plainEcho)
		if !errors.Is(err, ErrNotIdempotent) || slipstream.OutcomeOf(err) != slipstream.NotSent || slow.made() != 1 {
			t.Errorf("%v after %d attempts, want a refusal", err, slow.made())
		}
		declared := HedgeConfig{Delay: 1, Functions: []string{"echo"}, Idempotent: []string{"Calculator.echo"}}
		if _, err := echo(t.Context(), newHedge(t, slow, declared), &plainEcho); err != nil || slow.made() != 3 {
			t.Errorf("%v after %d attempts, want a hedge", err, slow.made())
		}
		others := HedgeConfig{Delay: 1, Functions: []string{"move"}}
		if _, err := echo(t.Context(), newHedge(t, slow, others), &idempotentEcho); err != nil || slow.made() != 4 {
			t.Errorf("%v after %d attempts, want no hedge of a function that is not named", err, slow.made())
		}
	})
}

// There are at most a tenth as many second attempts as calls, even if all calls are slow.
func TestBudgetOfHedges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &script{run: func(_ context.Context, in rpc.Invocation, _ int) error {
			time.Sleep(time.Second)
			return answers(in, "b")
		}}
		h := newHedge(t, next, HedgeConfig{Delay: time.Millisecond})
		const calls = 1000
		for range calls {
			if _, err := echo(t.Context(), h, &idempotentEcho); err != nil {
				t.Fatal(err)
			}
		}
		if n := next.made(); n > calls*11/10 || n < calls*108/100 {
			t.Errorf("%d attempts of %d calls, want a tenth more", n, calls)
		}
	})
}

// If both attempts fail, the outcome is that of both attempts together. If one attempt fails, the call waits for the
// other one.
func TestHedgeWhoseAttemptsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &script{run: func(_ context.Context, in rpc.Invocation, n int) error {
			switch n {
			case 1: // of the first call
				time.Sleep(20 * time.Millisecond)
				return failure(slipstream.NotSent)
			case 2:
				return failure(slipstream.MaybeExecuted)
			case 3: // of the second call
				time.Sleep(20 * time.Millisecond)
				return failure(slipstream.MaybeExecuted)
			case 4:
				time.Sleep(40 * time.Millisecond)
				return answers(in, "second")
			case 5: // of the third call
				time.Sleep(time.Second)
				return answers(in, "first")
			}
			panic("of the test")
		}}
		h := newHedge(t, next, HedgeConfig{Delay: 10 * time.Millisecond})
		if _, err := echo(t.Context(), h, &idempotentEcho); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || !errors.Is(err, errTest) {
			t.Errorf("two attempts that failed: %v", err)
		}
		if text, err := echo(t.Context(), h, &idempotentEcho); text != "second" || err != nil {
			t.Errorf("an attempt that failed: %q, %v", text, err)
		}
		if text, err := echo(t.Context(), h, &idempotentEcho); text != "first" || err != nil {
			t.Errorf("an attempt that panicked: %q, %v", text, err)
		}
	})
}

// After a caller has recovered from a panic of the first attempt, no attempt is running.
func TestHedgeWhoseFirstAttemptPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := 0
		next := &script{run: func(ctx context.Context, _ rpc.Invocation, n int) error {
			if n == 1 {
				time.Sleep(time.Second)
				panic("of the test")
			}
			running++
			<-ctx.Done()
			running--
			return ctx.Err()
		}}
		h := newHedge(t, next, HedgeConfig{Delay: time.Millisecond})
		defer func() {
			if recover() == nil || running != 0 || next.made() != 2 {
				t.Errorf("%d attempts, of which %d run", next.made(), running)
			}
		}()
		_, _ = echo(t.Context(), h, &idempotentEcho)
	})
}

// A fallback handles the calls that failed, and its panics become errors.
func TestFallback(t *testing.T) {
	next := fails(slipstream.MaybeExecuted)
	for _, c := range []struct {
		answer func(in rpc.Invocation, err error) error
		text   string
		want   string
	}{
		{func(in rpc.Invocation, _ error) error { return answers(in, "old") }, "old", ""},
		{func(_ rpc.Invocation, err error) error { return err }, "none", "the cause of the test"},
		{func(rpc.Invocation, error) error { panic("of the test") }, "none", "the fallback panicked: of the test"},
	} {
		f, err := NewFallback(next, func(_ context.Context, in rpc.Invocation, err error) error {
			if !errors.Is(err, errTest) {
				t.Errorf("the fallback got %v", err)
			}
			return c.answer(in, err)
		})
		if err != nil {
			t.Fatal(err)
		}
		text, err := echo(t.Context(), f, &plainEcho)
		if text != c.text || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %v, want %q, %q", text, err, c.text, c.want)
		}
		if err != nil && slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
			t.Errorf("the outcome of %v is %v", err, slipstream.OutcomeOf(err))
		}
	}
	f, err := NewFallback(&script{run: func(_ context.Context, in rpc.Invocation, _ int) error { return answers(in, "b") }}, func(context.Context, rpc.Invocation, error) error {
		t.Error("the fallback got a call that succeeded")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := echo(t.Context(), f, &plainEcho); text != "b" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
