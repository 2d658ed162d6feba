package governance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// Circuit breakers, bulkheads and rate limiters are those of a library: the interfaces below are parts of the types
// of github.com/failsafe-go/failsafe-go. So a program that uses none does not have the library in its module graph,
// and what a result says about a server is decided here, by its outcome.

// CircuitBreaker is a circuit breaker, such as one of package circuitbreaker of failsafe-go. It must be safe for
// concurrent use.
type CircuitBreaker interface {
	// TryAcquirePermit reports whether a call may be made. Its end is recorded.
	TryAcquirePermit() bool
	// IsHalfOpen reports whether a limited number of calls is made to find out how the server is.
	IsHalfOpen() bool
	RecordSuccess()
	RecordFailure()
}

// Permits bound calls. Bulkheads and rate limiters of failsafe-go have this method. It must be safe for concurrent use.
type Permits interface {
	// AcquirePermitWithMaxWait waits for a permit. It returns an error if there is none in that time.
	AcquirePermitWithMaxWait(ctx context.Context, wait time.Duration) error
}

// Bulkhead bounds concurrent calls, such as one of package bulkhead of failsafe-go.
type Bulkhead interface {
	Permits
	// ReleasePermit ends a call that has a permit.
	ReleasePermit()
}

// ErrBreakerOpen is the cause of the error of a call that a circuit breaker has denied.
var ErrBreakerOpen = errors.New("the circuit breaker is open")

// A Breaker makes only the calls that a circuit breaker permits; the others fail as Overloaded. Calls without an
// answer are failures, and so are refusals. Answers are successes, also if they are errors. Calls that the caller or
// a bound of this process has ended are not recorded or, while the circuit breaker is half-open, are failures. All
// methods are safe for concurrent use.
type Breaker struct {
	// Immutable.
	next    rpc.Caller
	breaker CircuitBreaker
}

// NewBreaker returns a Breaker around another Caller.
func NewBreaker(next rpc.Caller, breaker CircuitBreaker) (*Breaker, error) {
	if breaker == nil {
		return nil, errors.New(string(check) + ": no circuit breaker")
	}
	return &Breaker{next: next, breaker: breaker}, nil
}

// Call implements [rpc.Caller].
func (b *Breaker) Call(ctx context.Context, in rpc.Invocation) error {
	if !b.breaker.TryAcquirePermit() {
		return driver.Errors{}.With(in.Function.Name, slipstream.Overloaded, ErrBreakerOpen)
	}
	ended := false
	defer func() {
		if !ended { // a panic, which the caller may recover from
			b.breaker.RecordFailure()
		}
	}()
	err := b.next.Call(ctx, in)
	ended = true
	switch {
	case answered(err):
		b.breaker.RecordSuccess()
	case isFailure(err) || b.breaker.IsHalfOpen():
		b.breaker.RecordFailure()
	}
	return err
}

// isFailure reports whether the error of a call speaks against its server.
func isFailure(err error) bool {
	switch slipstream.OutcomeOf(err) {
	case slipstream.NotSent, slipstream.MaybeExecuted:
		return !isInvalid(err) && !errors.Is(err, context.Canceled)
	case slipstream.Refused:
		return !isUnknown(err)
	}
	return false
}

// A Limit makes only the calls that have a permit. The others fail as Overloaded or, if their context has ended, as
// NotSent. All methods are safe for concurrent use.
type Limit struct {
	// Immutable.
	next    rpc.Caller
	permits Permits
	release func() // may be nil
	wait    time.Duration
}

// NewRateLimit returns a Limit around another Caller. A call waits for its permit for wait at most, which may be zero.
func NewRateLimit(next rpc.Caller, limiter Permits, wait time.Duration) (*Limit, error) {
	return newLimit(&Limit{next: next, permits: limiter, wait: wait})
}

// NewBulkhead returns a Limit around another Caller, which returns the permit of a call when the call has ended. A
// call waits for its permit for wait at most, which may be zero.
func NewBulkhead(next rpc.Caller, bulkhead Bulkhead, wait time.Duration) (*Limit, error) {
	l := &Limit{next: next, wait: wait}
	if bulkhead != nil {
		l.permits, l.release = bulkhead, bulkhead.ReleasePermit
	}
	return newLimit(l)
}

func newLimit(l *Limit) (*Limit, error) {
	if l.permits == nil {
		return nil, errors.New(string(check) + ": no limiter and no bulkhead")
	}
	if err := check.Durations(driver.Duration{Name: "wait for a permit", Value: l.wait}); err != nil {
		return nil, err
	}
	return l, nil
}

// Call implements [rpc.Caller].
func (l *Limit) Call(ctx context.Context, in rpc.Invocation) error {
	if err := l.permits.AcquirePermitWithMaxWait(ctx, l.wait); err != nil {
		outcome := slipstream.Overloaded
		if attempt.TimeIsUp(err) {
			outcome = slipstream.NotSent
		}
		return driver.Errors{}.With(in.Function.Name, outcome, fmt.Errorf("no permit: %w", err))
	}
	if l.release != nil {
		defer l.release()
	}
	return l.next.Call(ctx, in)
}
