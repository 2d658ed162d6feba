// Package attempt implements the retries of failed calls: how many, after which pauses, until when,
// and the overall outcome of all attempts. The drivers share it. Each driver decides what the
// answers of its server mean.
package attempt

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

// defaultRetries is how often a call is repeated unless the options say otherwise.
const defaultRetries = 3

// Retries returns the number of retries that an option requests: the default if it is zero, none
// if it is negative.
func Retries(option int) int {
	if option == 0 {
		return defaultRetries
	}
	return max(option, 0)
}

// A Retrier repeats the calls of one client. All methods are safe for concurrent use.
type Retrier struct {
	// Immutable after the first call.
	Retries  int             // retries of a call, after its first attempt
	Backoff  pipe.Backoff    // pauses between attempts
	Timeout  time.Duration   // of a call with all its attempts and pauses; if zero, only its context bounds it
	FailFast bool            // calls that were not sent are not repeated
	Closing  <-chan struct{} // closed when the client closes; ends pauses
	// Afford, if set, reports whether a retry after a pause is affordable. It is not called for a
	// call that was not sent.
	Afford func() bool

	// Atomics, written by callers.
	repeated atomic.Uint64
}

// Repeated returns the number of repetitions so far.
func (r *Retrier) Repeated() uint64 { return r.repeated.Load() }

// A Verdict says whether a failed attempt may be followed by another one.
type Verdict uint8

const (
	// Final ends the call.
	Final Verdict = iota
	// AfterPause repeats the call after a pause.
	AfterPause
	// Immediately repeats the call without a pause.
	Immediately
)

// A Loop is the attempts of one call. It belongs to the goroutine that waits for the call.
type Loop struct {
	// Start is when the first attempt began. It must be set if Retrier.Timeout is.
	Start time.Time
	// Made is the number of attempts.
	Made  int
	doubt Doubt
}

// Verdict decides what follows an attempt that got no answer: another attempt, if it cannot execute
// the call twice and could succeed. A call that was rejected because a bound was reached is not
// retried: the caller decides whether it can wait.
func (r *Retrier) Verdict(failure *slipstream.Error, idempotent bool) Verdict {
	may := false
	switch failure.Outcome {
	case slipstream.NotSent:
		may = !r.FailFast
	case slipstream.MaybeExecuted:
		may = idempotent
	}
	if may && !TimeIsUp(failure.Err) {
		return AfterPause
	}
	return Final
}

// Again reports whether the call is to be repeated after a failed attempt, and pauses before that.
// In any case it sets the outcome in failure to that of all attempts so far.
func (r *Retrier) Again(ctx context.Context, l *Loop, failure *slipstream.Error, v Verdict) bool {
	sent := failure.Outcome != slipstream.NotSent
	failure.Outcome = l.Over(failure.Outcome)
	switch v {
	case AfterPause:
		if sent && r.Afford != nil && (!r.Left(l) || !r.Afford()) {
			return false
		}
		return r.Next(ctx, l.Made, l.Start)
	case Immediately:
		if r.Left(l) {
			r.Count()
			return true
		}
	}
	return false
}

// Over returns the outcome of all attempts so far, given the outcome of the latest one.
func (l *Loop) Over(latest slipstream.Outcome) slipstream.Outcome { return l.doubt.Over(latest) }

// Next reports whether another attempt may follow the given number of attempts, and pauses before
// it. If start is zero, no timeout bounds the call.
func (r *Retrier) Next(ctx context.Context, made int, start time.Time) bool {
	if made > r.Retries || !r.Pause(ctx, made, start) {
		return false
	}
	r.repeated.Add(1)
	return true
}

// Left reports whether the call may be attempted once more.
func (r *Retrier) Left(l *Loop) bool { return l.Made <= r.Retries }

// Count counts a repetition. It is for callers of Left.
func (r *Retrier) Count() { r.repeated.Add(1) }

// Pause waits before the next attempt, after the given number of attempts. It returns false without
// waiting if no time would be left after the pause. It also returns false if the context or the
// client ends.
func (r *Retrier) Pause(ctx context.Context, made int, start time.Time) bool {
	d := r.Backoff.After(made)
	if r.Timeout > 0 && !start.IsZero() && time.Since(start)+d >= r.Timeout {
		return false
	}
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-r.Closing:
	}
	return false
}

// Within returns a context that also ends when Timeout has passed since start.
func (r *Retrier) Within(ctx context.Context, start time.Time) (context.Context, context.CancelFunc) {
	if r.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, start.Add(r.Timeout))
}

// A Doubt records whether an attempt of a call may have been executed without an answer. The zero
// value means that none was.
type Doubt bool

// Over returns the outcome of all attempts so far, given the outcome of the latest one. The latest
// outcome says nothing about earlier attempts: a doubt that an earlier one left outweighs
// everything except an answer that the call was executed.
func (d *Doubt) Over(latest slipstream.Outcome) slipstream.Outcome {
	switch {
	case latest == slipstream.MaybeExecuted:
		*d = true
	case bool(*d) && latest != slipstream.Executed:
		return slipstream.MaybeExecuted
	}
	return latest
}

// TimeIsUp reports whether err comes from a context that ended, so that there is no time for
// another attempt.
func TimeIsUp(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Sleep waits for d. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
