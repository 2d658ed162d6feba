package slipstream_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/slipstream-go/slipstream"
)

func TestOutcomes(t *testing.T) {
	plain := errors.New("boom")
	for _, c := range []struct {
		err   error
		want  slipstream.Outcome
		retry bool
	}{
		{nil, slipstream.Executed, false},
		{plain, slipstream.MaybeExecuted, false},
		{&slipstream.Error{Op: "GET", Outcome: slipstream.NotSent, Err: plain}, slipstream.NotSent, true},
		{fmt.Errorf("reading user: %w", &slipstream.Error{Outcome: slipstream.Refused}), slipstream.Refused, true},
		{&slipstream.Error{Outcome: slipstream.Overloaded}, slipstream.Overloaded, true},
		{&slipstream.Error{Outcome: slipstream.Closed}, slipstream.Closed, false},
		{&slipstream.Error{Outcome: slipstream.Executed, Err: plain}, slipstream.Executed, false},
		{&slipstream.Error{Err: context.Canceled}, slipstream.MaybeExecuted, false},
	} {
		if got := slipstream.OutcomeOf(c.err); got != c.want {
			t.Errorf("OutcomeOf(%v) = %v, want %v", c.err, got, c.want)
		}
		if got := slipstream.SafeToRetry(c.err); got != c.retry {
			t.Errorf("SafeToRetry(%v) = %v, want %v", c.err, got, c.retry)
		}
	}
}

func TestErrorText(t *testing.T) {
	err := &slipstream.Error{Op: "GET", Addr: "127.0.0.1:6379", Outcome: slipstream.NotSent, Err: context.DeadlineExceeded}
	if got, want := err.Error(), "GET 127.0.0.1:6379: context deadline exceeded (not sent)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !err.Timeout() || !errors.Is(err, context.DeadlineExceeded) {
		t.Error("the deadline is not found in the error")
	}
	if (&slipstream.Error{Err: context.Canceled}).Timeout() {
		t.Error("a canceled call is not a timeout")
	}
	if got, want := (&slipstream.Error{}).Error(), "failed (maybe executed)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
