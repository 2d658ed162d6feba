package tarantool

import (
	"context"
	"errors"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// poolRoute is the way of one request through a pool.
type poolRoute struct {
	pool  *Pool
	mode  Mode
	start time.Time // if Options.Timeout bounds the request

	// Of the attempt that was made last.
	instance *instance
	client   *Client
	losses   uint64 // of the instance, before

	doubt bool // an attempt that failed may have been executed
	moved bool // it was refused by a read-only instance once
}

func (p *Pool) begin(mode Mode) poolRoute {
	r := poolRoute{pool: p, mode: mode}
	if p.opts.Options.Timeout > 0 {
		r.start = time.Now()
	}
	return r
}

// to takes the instance for the next attempt.
func (r *poolRoute) to(i *instance) {
	r.instance, r.client, r.losses = i, i.client.Load(), i.losses.Load()
}

// choose finds an instance, and waits for one if it has to.
func (r *poolRoute) choose(ctx context.Context) error {
	if i := r.pool.view.Load().pick(r.mode, nil); i != nil {
		r.to(i)
		return nil
	}
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	return r.wait(ctx)
}

// wait waits for an instance.
func (r *poolRoute) wait(ctx context.Context) error {
	p := r.pool
	most := p.waitTimeout()
	if most == 0 {
		v := p.view.Load()
		i := v.pick(r.mode, nil)
		switch {
		case i != nil:
			r.to(i)
			return nil
		case v.closed:
			return p.closedError("pool")
		}
		return p.noInstance(r.mode, nil)
	}
	i, err := p.await(ctx, r.mode, most)
	if err == nil {
		r.to(i)
	}
	return err
}

// bounded returns a context that ends at the end of Options.Timeout too.
func (r *poolRoute) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.start.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, r.start.Add(r.pool.opts.Options.Timeout))
}

// verdict is what becomes of a request whose attempt has failed.
type verdict uint8

const (
	final     verdict = iota // nothing
	elsewhere                // another instance
	relocate                 // the instance that takes writes now
)

// resume makes a request again for as long as that may help, and returns what came of it.
func (r *poolRoute) resume(ctx context.Context, err error, repeatable bool, again func(context.Context, *Client) error) error {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	p := r.pool
	for attempt := 1; ; attempt++ {
		v := r.judge(err, repeatable)
		if v == final || attempt > p.retries || ctx.Err() != nil {
			return r.result(err)
		}
		if v == relocate {
			if r.moved {
				return r.result(err)
			}
			r.moved = true
		}
		if slipstream.OutcomeOf(err) == slipstream.MaybeExecuted {
			r.doubt = true
		}
		if failed := r.next(ctx, v, attempt); failed != nil {
			return r.result(because(failed, err))
		}
		p.rerouted.Add(1)
		if err = again(ctx, r.client); err == nil {
			return nil
		}
	}
}

// next finds the instance for the next attempt.
func (r *poolRoute) next(ctx context.Context, v verdict, attempt int) error {
	p := r.pool
	if v == relocate {
		return r.relocate(ctx)
	}
	if i := p.view.Load().pick(r.mode, r.instance); i != nil {
		r.to(i)
		return nil
	}
	pauseFor(ctx, pipe.Backoff{First: p.opts.Options.Backoff, Most: p.opts.Options.MaxBackoff}.After(attempt))
	return r.wait(ctx)
}

// relocate finds the instance that takes writes now. What the pool knows of the roles is older
// than the refusal.
func (r *poolRoute) relocate(ctx context.Context) error {
	p := r.pool
	if r.mode == ReadWrite {
		p.recheck(ctx, []*instance{r.instance})
		return r.wait(ctx)
	}
	p.recheck(ctx, p.view.Load().serving)
	i := p.view.Load().pick(ReadWrite, nil)
	if i == nil {
		return p.noInstance(ReadWrite, nil)
	}
	r.to(i)
	return nil
}

// judge says whether a request may and should be made again.
func (r *poolRoute) judge(err error, repeatable bool) verdict {
	var answered *ServerError
	outcome := slipstream.OutcomeOf(err)
	if errors.As(err, &answered) {
		safe := repeatable || outcome == slipstream.Refused
		switch answered.Code {
		case iproto.CodeReadOnly:
			r.pool.lookAgain() // somebody else takes writes now
			if safe && (r.mode == ReadWrite || r.mode == PreferReadWrite) {
				return relocate
			}
		case iproto.CodeLoading:
			r.instance.poke()
			fallthrough
		case iproto.CodeWrongSchemaVersion: // again and again: the schema is being changed
			if safe {
				return elsewhere
			}
		}
		return final
	}
	switch outcome {
	case slipstream.Closed:
		return elsewhere // the instance was removed; a pool that is closed has no other
	case slipstream.MaybeExecuted:
		if repeatable {
			return elsewhere
		}
	case slipstream.NotSent:
		// Most that is not sent is wrong with the request itself.
		if r.isLost() {
			return elsewhere
		}
	}
	return final
}

// isLost reports whether the instance lost a connection since the attempt began. A connection
// that fails is not up any more when its calls end, and is counted before there is another.
func (r *poolRoute) isLost() bool {
	up, of := r.client.engine.Up()
	return up < of || r.instance.losses.Load() != r.losses
}

// result returns the failure of all attempts together.
func (r *poolRoute) result(err error) error {
	var e *slipstream.Error
	if !r.doubt || !errors.As(err, &e) || e.Outcome == slipstream.Executed {
		return err
	}
	// What the last attempt says does not hold for those before.
	copied := *e
	copied.Outcome = slipstream.MaybeExecuted
	return &copied
}

// because adds to the error of a request for which no instance was found why it needed
// another one.
func because(failed, earlier error) error {
	var e *slipstream.Error
	var none *NoInstanceError
	if !errors.As(failed, &e) || !errors.As(failed, &none) {
		return failed
	}
	whole := *none
	if whole.Cause == nil {
		whole.Cause = earlier
	} else {
		whole.Cause = errors.Join(whole.Cause, earlier)
	}
	copied := *e
	copied.Err = &whole
	return &copied
}
