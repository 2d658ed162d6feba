package attempt

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

func failed(o slipstream.Outcome, err error) *slipstream.Error {
	return &slipstream.Error{Outcome: o, Err: err}
}

// mutant: attempt-doubt-forgotten
func TestDoubtOfAnEarlierAttemptWins(t *testing.T) {
	for _, latest := range []slipstream.Outcome{slipstream.NotSent, slipstream.Refused, slipstream.Overloaded, slipstream.Closed, slipstream.Executed} {
		var d Doubt
		if got := d.Over(latest); got != latest {
			t.Errorf("without a doubt %v becomes %v", latest, got)
		}
		if got := d.Over(slipstream.MaybeExecuted); got != slipstream.MaybeExecuted {
			t.Errorf("a doubt becomes %v", got)
		}
		want := slipstream.MaybeExecuted
		if latest == slipstream.Executed {
			want = latest
		}
		if got := d.Over(latest); got != want {
			t.Errorf("after a doubt %v becomes %v, want %v", latest, got, want)
		}
	}
}

// mutant: attempt-retries-maybe-executed
func TestOnlyWhatCannotBeExecutedTwiceIsRepeated(t *testing.T) {
	lost := errors.New("connection lost")
	for _, c := range []struct {
		failure              *slipstream.Error
		failFast, idempotent bool
		want                 Verdict
	}{
		{failed(slipstream.NotSent, lost), false, false, AfterPause},
		{failed(slipstream.NotSent, lost), true, false, Final},
		{failed(slipstream.NotSent, context.Canceled), false, true, Final},
		{failed(slipstream.MaybeExecuted, lost), false, true, AfterPause},
		{failed(slipstream.MaybeExecuted, lost), true, true, AfterPause},
		{failed(slipstream.MaybeExecuted, lost), false, false, Final},
		{failed(slipstream.MaybeExecuted, context.DeadlineExceeded), false, true, Final},
		{failed(slipstream.Overloaded, lost), false, true, Final},
		{failed(slipstream.Closed, lost), false, true, Final},
		{failed(slipstream.Executed, lost), false, true, Final},
	} {
		r := Retrier{FailFast: c.failFast}
		if got := r.Verdict(c.failure, c.idempotent); got != c.want {
			t.Errorf("%v, fail fast %v, idempotent %v: verdict %d, want %d", c.failure, c.failFast, c.idempotent, got, c.want)
		}
	}
}

func TestBudgetBoundsTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Retrier{Retries: Retries(2), Backoff: pipe.Backoff{First: time.Millisecond, Most: time.Second}}
		l := Loop{}
		for l.Made = 1; r.Again(t.Context(), &l, failed(slipstream.NotSent, errors.New("lost")), AfterPause); l.Made++ {
		}
		if l.Made != 3 || r.Repeated() != 2 {
			t.Errorf("%d attempts and %d repetitions, want 3 and 2", l.Made, r.Repeated())
		}
		if Retries(0) != defaultRetries || Retries(-1) != 0 {
			t.Errorf("Retries(0) is %d, and Retries(-1) is %d", Retries(0), Retries(-1))
		}
	})
}

func TestNoPauseWithoutTimeForTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Retrier{Retries: 3, Timeout: time.Second, Backoff: pipe.Backoff{First: 2 * time.Second, Most: 2 * time.Second}}
		start := time.Now()
		if r.Pause(t.Context(), 1, start) || time.Since(start) != 0 {
			t.Errorf("paused for %v, beyond the timeout", time.Since(start))
		}
		r.Timeout = 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r.Pause(ctx, 1, start) || time.Since(start) != 0 {
			t.Errorf("paused for %v, beyond the deadline of the context", time.Since(start))
		}
		closing := make(chan struct{})
		close(closing)
		r.Closing = closing
		if r.Pause(t.Context(), 1, start) || time.Since(start) != 0 {
			t.Errorf("paused for %v although the client closes", time.Since(start))
		}
		ctx, cancel = (&Retrier{Timeout: time.Second}).Within(t.Context(), start)
		defer cancel()
		if at, ok := ctx.Deadline(); !ok || at != start.Add(time.Second) {
			t.Errorf("deadline %v, want %v", at, start.Add(time.Second))
		}
	})
}

// A repetition of a call that a server may have received must be affordable. A repetition of a call
// that was not sent is free.
func TestRepetitionsAreAffordable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		r := Retrier{Retries: 2, Afford: func() bool { asked++; return false }}
		lost := errors.New("connection lost")
		l := Loop{Made: 1}
		if !r.Again(t.Context(), &l, failed(slipstream.NotSent, lost), AfterPause) || asked != 0 {
			t.Errorf("a call that was not sent: not repeated, or Afford called %d times", asked)
		}
		if r.Again(t.Context(), &l, failed(slipstream.MaybeExecuted, lost), AfterPause) || asked != 1 {
			t.Errorf("a call was repeated that is not affordable; Afford was called %d times", asked)
		}
		l.Made = 3
		if r.Again(t.Context(), &l, failed(slipstream.MaybeExecuted, lost), AfterPause) || asked != 1 {
			t.Errorf("Afford was called %d times, also for a call that has no attempts left", asked)
		}
	})
}
