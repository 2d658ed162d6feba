package governance

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// ErrNotIdempotent is the cause when a call fails because HedgeConfig.Functions names its function, which is not
// declared to be idempotent.
var ErrNotIdempotent = errors.New("hedging is refused because the function is not declared to be idempotent")

// HedgeConfig configures a [Hedge]. All fields but Delay may be zero.
type HedgeConfig struct {
	// Delay is how long a call waits for its reply before the second attempt starts. A value above the 95th percentile of
	// the latency keeps the additional load small.
	Delay time.Duration
	// Functions lists the functions to hedge: see rpc.ClientConfig.Idempotent for the form of the names. Calls of a
	// function that is not declared to be idempotent fail as NotSent with ErrNotIdempotent. If empty, all idempotent
	// functions are hedged.
	Functions []string
	// Idempotent lists functions that are idempotent in addition to those declared so in the IDL.
	Idempotent []string
	// Budget bounds second attempts. If nil, the Hedge uses its own, with the defaults of [rpc.BudgetConfig]. Each user of
	// a budget deposits into it, so do not share one between a Hedge and a Retry around it.
	Budget *rpc.Budget
	// Observer, if not nil, is notified of every call that may be hedged, with the number of its attempts.
	Observer slipstream.Observer
}

// A Hedge makes a second attempt of calls whose first attempt takes long, and returns the first answer. The other
// attempt is canceled. A call is hedged only if its function is idempotent and its result is a pointer to a struct, as
// in generated code: the struct is copied for the second attempt. All methods are safe for concurrent use.
type Hedge struct {
	// Immutable.
	next       rpc.Caller
	config     HedgeConfig
	only       functions
	idempotent functions
	hooks      driver.Hooks

	// Atomics, written by callers.
	hedges, won atomic.Uint64
}

// NewHedge returns a Hedge around another Caller.
func NewHedge(next rpc.Caller, config HedgeConfig) (h *Hedge, err error) {
	if config.Delay <= 0 {
		return nil, fmt.Errorf("%s: delay %v, expected a positive duration", check, config.Delay)
	}
	h = &Hedge{next: next, config: config}
	if h.only, err = functionsOf("hedged function", config.Functions); err != nil {
		return nil, err
	}
	if h.idempotent, err = functionsOf("idempotent function", config.Idempotent); err != nil {
		return nil, err
	}
	if h.config.Budget == nil {
		if h.config.Budget, err = rpc.NewBudget(rpc.BudgetConfig{}); err != nil {
			return nil, err
		}
	}
	h.hooks.System, h.hooks.Observer = "thrift", config.Observer
	return h, nil
}

// Call implements [rpc.Caller].
func (h *Hedge) Call(ctx context.Context, in rpc.Invocation) error {
	hedged, err := h.covers(&in)
	if err != nil {
		return err
	}
	if !hedged {
		return h.next.Call(ctx, in)
	}
	second, ok := copyOf(in.Result)
	if !ok {
		return h.next.Call(ctx, in)
	}
	h.config.Budget.Deposit()
	start := time.Now()
	r := &race{hedge: h, in: in, done: make(chan struct{})}
	r.in.Result = second
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.ctx, _ = withRoute(r.ctx)
	err = r.run(in)
	if h.hooks.Observing() {
		o := slipstream.Observation{Op: in.Function.Name, Start: start, Requests: 1, Attempts: 1, Err: err}
		if r.sent {
			o.Attempts = 2
		}
		h.hooks.Observe(ctx, o)
	}
	return err
}

// covers reports whether to hedge a call. It returns an error if the configuration names the function but it is not
// idempotent.
func (h *Hedge) covers(in *rpc.Invocation) (bool, error) {
	idempotent := in.Function.Idempotent || h.idempotent.has(in)
	switch {
	case h.only == nil:
		return idempotent && !in.Function.Oneway, nil
	case !h.only.has(in):
		return false, nil
	case !idempotent:
		return false, driver.Errors{}.NotSent(in.Function.Name, ErrNotIdempotent)
	}
	return !in.Function.Oneway, nil
}

// copyOf returns a copy of the struct to which a result points.
func copyOf(result thrift.Struct) (second thrift.Struct, ok bool) {
	from := reflect.ValueOf(result)
	if from.Kind() != reflect.Pointer || from.IsNil() || from.Elem().Kind() != reflect.Struct {
		return nil, false
	}
	to := reflect.New(from.Elem().Type())
	to.Elem().Set(from.Elem())
	second, ok = to.Interface().(thrift.Struct)
	return second, ok
}

// Stats returns the number of second attempts in Hedges, and the number of those that were answered first in HedgesWon.
// The other fields are zero.
func (h *Hedge) Stats() slipstream.Stats {
	return slipstream.Stats{Hedges: h.hedges.Load(), HedgesWon: h.won.Load(), HookPanics: h.hooks.Panics()}
}

// A race holds the state of the two attempts of a call.
type race struct {
	// Immutable.
	hedge  *Hedge
	ctx    context.Context // context of both attempts; ends with the first answer
	cancel context.CancelFunc
	in     rpc.Invocation // invocation of the second attempt
	done   chan struct{}  // closed after the second attempt, if its timer has fired

	// Owned by the second attempt until done is closed.
	sent bool
	err  error
}

// run makes the first attempt and waits for both. in is the invocation of the first attempt.
func (r *race) run(in rpc.Invocation) error {
	defer r.cancel()
	timer := time.AfterFunc(r.hedge.config.Delay, r.second) // run waits for it
	returned := false
	defer func() {
		if !returned && !timer.Stop() { // the attempt panicked; the caller may recover
			r.cancel()
			<-r.done
		}
	}()
	err := r.hedge.next.Call(r.ctx, in)
	returned = true
	if timer.Stop() {
		return err
	}
	late := r.ctx.Err() != nil // the second attempt was answered, or the caller's context ended
	if answered(err) {
		r.cancel()
	}
	<-r.done // the second attempt uses the caller's arguments
	switch {
	case !r.sent || answered(err) && !(late && answered(r.err)):
		return err
	case answered(r.err):
		r.hedge.won.Add(1)
		reflect.ValueOf(in.Result).Elem().Set(reflect.ValueOf(r.in.Result).Elem())
		return r.err
	}
	var doubt attempt.Doubt
	doubt.Over(slipstream.OutcomeOf(r.err))
	failure := driver.Errors{}.Named(in.Function.Name, err)
	failure.Outcome = doubt.Over(failure.Outcome)
	return failure
}

// second makes the second attempt. It runs on a timer.
func (r *race) second() {
	defer close(r.done)
	defer func() {
		if v := recover(); v != nil {
			r.err = fmt.Errorf("the second attempt panicked: %v", v)
		}
	}()
	if r.ctx.Err() != nil || !r.hedge.config.Budget.Withdraw() {
		return
	}
	r.sent = true
	r.hedge.hedges.Add(1)
	if r.err = r.hedge.next.Call(r.ctx, r.in); answered(r.err) {
		r.cancel()
	}
}

// answered reports whether an attempt ended with an answer from a server.
func answered(err error) bool { return err == nil || slipstream.OutcomeOf(err) == slipstream.Executed }
