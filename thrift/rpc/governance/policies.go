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

// Circuit breakers, bulkheads and rate limiters come from a library: the interfaces below have methods of the types of
// github.com/failsafe-go/failsafe-go. So programs that do not use it do not have the library in their module graph, and
// this package decides by the outcome whether a result counts as a failure of the server.

// CircuitBreaker is a circuit breaker, such as one of package circuitbreaker of failsafe-go. It must be safe for
// concurrent use.
type CircuitBreaker interface {
	// TryAcquirePermit reports whether a call may be made. Its result is then recorded.
	TryAcquirePermit() bool
	// IsHalfOpen reports whether only a limited number of calls is allowed, to test the server.
	IsHalfOpen() bool
	RecordSuccess()
	RecordFailure()
}

// Permits limits calls. Bulkheads and rate limiters of failsafe-go implement it. It must be safe for concurrent use.
type Permits interface {
	// AcquirePermitWithMaxWait waits for a permit. It returns an error if none is available within wait.
	AcquirePermitWithMaxWait(ctx context.Context, wait time.Duration) error
}

// Bulkhead bounds concurrent calls, such as one of package bulkhead of failsafe-go.
type Bulkhead interface {
	Permits
	// ReleasePermit returns the permit of a call that has ended.
	ReleasePermit()
}

// ErrBreakerOpen is the cause when a circuit breaker rejects a call.
var ErrBreakerOpen = errors.New("the circuit breaker is open")

// A Breaker makes only the calls that a circuit breaker allows; other calls fail with Overloaded. Unanswered and
// refused calls are recorded as failures, and answers as successes, even if they are errors. Calls ended by the caller
// or by a limit of this process are not recorded or, while the circuit breaker is half-open, are recorded as failures.
// All methods are safe for concurrent use.
type Breaker struct {
	// Immutable.
	next    rpc.Caller
	breaker CircuitBreaker
}

// NewBreaker returns a Breaker around another Caller.
func NewBreaker(next rpc.Caller, breaker CircuitBreaker) (*Breaker, error) {
	if breaker == nil {
		return nil, errors.New(string(check) + ": the circuit breaker is nil")
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
		if !ended { // the call panicked; the caller may recover
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

// isFailure reports whether the error of a call indicates a failure of its server.
func isFailure(err error) bool {
	switch slipstream.OutcomeOf(err) {
	case slipstream.NotSent, slipstream.MaybeExecuted:
		return !isInvalid(err) && !errors.Is(err, context.Canceled)
	case slipstream.Refused:
		return !isUnknown(err)
	}
	return false
}

// A Limit makes only calls that get a permit. Others fail with Overloaded or, if their context has ended, with NotSent.
// All methods are safe for concurrent use.
type Limit struct {
	// Immutable.
	next    rpc.Caller
	permits Permits
	release func() // may be nil
	wait    time.Duration
}

// NewRateLimit returns a Limit around another Caller. A call waits for a permit for at most wait, which may be zero.
func NewRateLimit(next rpc.Caller, limiter Permits, wait time.Duration) (*Limit, error) {
	return newLimit(&Limit{next: next, permits: limiter, wait: wait})
}

// NewBulkhead returns a Limit around another Caller. When a call has ended, its permit is returned. A call waits for a
// permit for at most wait, which may be zero.
func NewBulkhead(next rpc.Caller, bulkhead Bulkhead, wait time.Duration) (*Limit, error) {
	l := &Limit{next: next, wait: wait}
	if bulkhead != nil {
		l.permits, l.release = bulkhead, bulkhead.ReleasePermit
	}
	return newLimit(l)
}

func newLimit(l *Limit) (*Limit, error) {
	if l.permits == nil {
		return nil, errors.New(string(check) + ": the limiter or bulkhead is nil")
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
