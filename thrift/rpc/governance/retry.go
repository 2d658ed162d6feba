package governance

import (
	"context"
	"errors"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// RetryConfig configures a [Retry]. The zero value works.
type RetryConfig struct {
	// Retries is how often a call that failed is sent again. If zero, it is 3; if negative, calls are not repeated.
	Retries int
	// Backoff is the first pause between attempts; it doubles and is jittered. If zero, it is 20 ms. MaxBackoff
	// bounds it. If zero, it is 2 s.
	Backoff, MaxBackoff time.Duration
	// Timeout bounds a call with all its attempts and pauses. If zero, only its context does.
	Timeout time.Duration
	// AttemptTimeout bounds an attempt. If an attempt takes longer, the call is repeated if its function is
	// idempotent. If zero, the bounds of calls are those of attempts, and a call that has reached one is not
	// repeated.
	AttemptTimeout time.Duration
	// Budget bounds repetitions of calls that a server may have got. If nil, the Retry has its own, with the defaults
	// of [rpc.BudgetConfig]. Everything that has a budget deposits into it: do not share one between a Retry and what
	// it wraps.
	Budget *rpc.Budget
	// Idempotent adds functions to those that are declared to be idempotent: see rpc.ClientConfig.Idempotent.
	Idempotent []string
	// Observer, if not nil, is notified of every call, with the number of its attempts and without an address.
	// Clients that have an observer notify it of every attempt.
	Observer slipstream.Observer
}

// A Retry repeats calls that failed, if that cannot execute them twice: those that were not sent, those that a server
// refused without executing them, and those of idempotent functions. It gives errors the outcome of all attempts.
// Clients below it need no retries of their own (rpc.ClientConfig.Retries: -1). All methods are safe for concurrent
// use.
type Retry struct {
	// Immutable.
	next       rpc.Caller
	config     RetryConfig
	idempotent functions
	loop       attempt.Retrier
	hooks      driver.Hooks
}

// NewRetry returns a Retry around another Caller.
func NewRetry(next rpc.Caller, config RetryConfig) (*Retry, error) {
	if err := check.Durations(
		driver.Duration{Name: "backoff", Value: config.Backoff},
		driver.Duration{Name: "max backoff", Value: config.MaxBackoff},
		driver.Duration{Name: "timeout", Value: config.Timeout},
		driver.Duration{Name: "attempt timeout", Value: config.AttemptTimeout},
	); err != nil {
		return nil, err
	}
	idempotent, err := functionsOf("idempotent function", config.Idempotent)
	if err != nil {
		return nil, err
	}
	if config.Budget == nil {
		if config.Budget, err = rpc.NewBudget(rpc.BudgetConfig{}); err != nil {
			return nil, err
		}
	}
	r := &Retry{next: next, config: config, idempotent: idempotent}
	r.loop.Retries, r.loop.Backoff = attempt.Retries(config.Retries), pipe.Backoff{First: config.Backoff, Most: config.MaxBackoff}
	r.loop.Timeout, r.loop.Afford = config.Timeout, config.Budget.Withdraw
	r.hooks.System, r.hooks.Observer = "thrift", config.Observer
	return r, nil
}

// Call implements [rpc.Caller].
func (r *Retry) Call(ctx context.Context, in rpc.Invocation) error {
	r.config.Budget.Deposit()
	var loop attempt.Loop
	if r.config.Timeout > 0 || r.hooks.Observing() {
		loop.Start = time.Now()
	}
	bounded, cancel := r.loop.Within(ctx, loop.Start)
	defer cancel()
	err := r.run(bounded, in, &loop)
	if r.hooks.Observing() {
		r.hooks.Observe(ctx, slipstream.Observation{Op: in.Function.Name, Start: loop.Start, Requests: 1, Attempts: loop.Made, Err: err})
	}
	return err
}

// run makes attempts until one is the last.
func (r *Retry) run(ctx context.Context, in rpc.Invocation, loop *attempt.Loop) error {
	for loop.Made = 1; ; loop.Made++ {
		err := r.attempt(ctx, in)
		if err == nil {
			return nil
		}
		verdict := r.verdict(ctx, &in, err)
		if loop.Made == 1 && verdict == attempt.Final {
			return err
		}
		failure := driver.Errors{}.Named(in.Function.Name, err) // a copy
		if !r.loop.Again(ctx, loop, failure, verdict) {
			return failure
		}
		var tried *route
		ctx, tried = withRoute(ctx)
		tried.add(failure.Addr)
	}
}

// attempt makes one attempt.
func (r *Retry) attempt(ctx context.Context, in rpc.Invocation) error {
	if r.config.AttemptTimeout > 0 {
		bounded, cancel := context.WithTimeout(ctx, r.config.AttemptTimeout)
		defer cancel()
		ctx = bounded
	}
	return r.next.Call(ctx, in)
}

// verdict judges an attempt that failed. ctx is the context of the call.
func (r *Retry) verdict(ctx context.Context, in *rpc.Invocation, err error) attempt.Verdict {
	may := false
	switch slipstream.OutcomeOf(err) {
	case slipstream.NotSent:
		may = !isInvalid(err)
	case slipstream.Refused:
		may = !isUnknown(err)
	case slipstream.MaybeExecuted:
		may = in.Function.Idempotent || r.idempotent.has(in)
	}
	switch {
	case !may || ctx.Err() != nil || errors.Is(err, context.Canceled):
		return attempt.Final
	case attempt.TimeIsUp(err) && r.config.AttemptTimeout <= 0:
		return attempt.Final
	}
	return attempt.AfterPause
}

// isInvalid reports whether no server would get the call.
func isInvalid(err error) bool {
	_, invalid := errors.AsType[*rpc.InvalidCallError](err)
	return invalid
}

// isUnknown reports whether a server has refused a call because it does not know the function, or does not understand
// the message. Another attempt would have the same answer.
func isUnknown(err error) bool {
	e, answered := errors.AsType[*thrift.ApplicationException](err)
	return answered && e.DeliveryOutcome() == slipstream.Refused
}

// Stats returns the number of repetitions in the field Repeated. The other fields are zero.
func (r *Retry) Stats() slipstream.Stats {
	return slipstream.Stats{Repeated: r.loop.Repeated(), HookPanics: r.hooks.Panics()}
}
