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

// RetryConfig configures a [Retry]. The zero value is ready to use.
type RetryConfig struct {
	// Retries is the maximum number of times that a failed call is retried. If zero, it defaults to 3; if negative, calls
	// are not retried.
	Retries int
	// Backoff is the first pause between attempts; it doubles with each attempt, with jitter, up to MaxBackoff. If zero,
	// they default to 20 ms and 2 s.
	Backoff, MaxBackoff time.Duration
	// Timeout limits the duration of a call with all its attempts and pauses. If zero, only the context limits it.
	Timeout time.Duration
	// AttemptTimeout limits the duration of an attempt. If an attempt takes longer, the call is retried if its function is
	// idempotent. If zero, attempts have only the limits of the call, and a call that reaches one is not retried.
	AttemptTimeout time.Duration
	// Budget bounds the retries of calls that a server may have received. If nil, the Retry uses its own, with the
	// defaults of [rpc.BudgetConfig]. Each user of a budget deposits into it, so do not share one between a Retry and a
	// Caller that it wraps.
	Budget *rpc.Budget
	// Idempotent lists additional idempotent functions: see rpc.ClientConfig.Idempotent.
	Idempotent []string
	// Observer, if not nil, is notified of every call, with the number of its attempts and without an address. The
	// observers of clients are notified of every attempt.
	Observer slipstream.Observer
}

// A Retry retries failed calls if that cannot execute them twice: those that were not sent, those that a server refused
// without executing them, and those of idempotent functions. The outcome of its errors covers all attempts. The clients
// that it wraps do not need retries (rpc.ClientConfig.Retries: -1). All methods are safe for concurrent use.
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

// run makes attempts until one is final.
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

// verdict decides what to do after a failed attempt. ctx is the context of the call.
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

// isInvalid reports whether the call cannot be sent to any server.
func isInvalid(err error) bool {
	_, invalid := errors.AsType[*rpc.InvalidCallError](err)
	return invalid
}

// isUnknown reports whether a server refused a call because it does not know the function or does not understand the
// message. Another attempt would get the same answer.
func isUnknown(err error) bool {
	e, answered := errors.AsType[*thrift.ApplicationException](err)
	return answered && e.DeliveryOutcome() == slipstream.Refused
}

// Stats returns the number of retries in Repeated. The other fields are zero.
func (r *Retry) Stats() slipstream.Stats {
	return slipstream.Stats{Repeated: r.loop.Repeated(), HookPanics: r.hooks.Panics()}
}
