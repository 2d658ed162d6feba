package tarantool

import (
	"context"
	"errors"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// poolRoute is the state of one request to a pool.
type poolRoute struct {
	pool *Pool
	mode Mode

	// For the last attempt.
	instance *instance
	client   *Client
	losses   uint64 // losses of the instance before the attempt

	loop  attempt.Loop
	moved bool // a read-only instance has refused the request once
}

func (p *Pool) begin(mode Mode) poolRoute {
	r := poolRoute{pool: p, mode: mode}
	if p.retry.Timeout > 0 {
		r.loop.Start = time.Now()
	}
	return r
}

// to sets the instance for the next attempt.
func (r *poolRoute) to(i *instance) {
	r.instance, r.client, r.losses = i, i.client.Load(), i.losses.Load()
}

// choose finds an instance, and waits for one if necessary.
func (r *poolRoute) choose(ctx context.Context) error {
	if i := r.pool.pick(r.mode, nil); i != nil {
		r.to(i)
		return nil
	}
	ctx, cancel := r.pool.retry.Within(ctx, r.loop.Start)
	defer cancel()
	return r.wait(ctx)
}

// wait waits for an instance.
func (r *poolRoute) wait(ctx context.Context) error {
	p := r.pool
	most := p.waitTimeout()
	if most == 0 {
		v := p.set.View()
		i := v.Value.pick(r.mode, nil)
		switch {
		case i != nil:
			r.to(i)
			return nil
		case v.Closed:
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

// verdict says what happens to a request after a failed attempt.
type verdict uint8

const (
	final     verdict = iota // it is not retried
	elsewhere                // it is sent to another instance
	relocate                 // it is sent to the instance that accepts writes now
)

// resume retries a request as long as that may help, and returns the result.
func (r *poolRoute) resume(ctx context.Context, err error, repeatable bool, again func(context.Context, *Client) error) error {
	p := r.pool
	ctx, cancel := p.retry.Within(ctx, r.loop.Start)
	defer cancel()
	for r.loop.Made = 1; ; r.loop.Made++ {
		v := r.judge(err, repeatable)
		if v == final || ctx.Err() != nil || !p.retry.Left(&r.loop) {
			return r.result(err)
		}
		if v == relocate {
			if r.moved {
				return r.result(err)
			}
			r.moved = true
		}
		r.loop.Over(slipstream.OutcomeOf(err))
		if failed := r.next(ctx, v); failed != nil {
			return r.result(because(failed, err))
		}
		p.retry.Count()
		if err = again(ctx, r.client); err == nil {
			return nil
		}
	}
}

// next finds the instance for the next attempt.
func (r *poolRoute) next(ctx context.Context, v verdict) error {
	p := r.pool
	if v == relocate {
		return r.relocate(ctx)
	}
	if i := p.pick(r.mode, r.instance); i != nil {
		r.to(i)
		return nil
	}
	p.retry.Pause(ctx, r.loop.Made, r.loop.Start)
	return r.wait(ctx)
}

// relocate finds the instance that accepts writes now. The pool's view of the roles is older than
// the refusal.
func (r *poolRoute) relocate(ctx context.Context) error {
	p := r.pool
	if r.mode == ReadWrite {
		p.recheck(ctx, []*instance{r.instance})
		return r.wait(ctx)
	}
	p.recheck(ctx, p.set.View().Value.serving)
	i := p.pick(ReadWrite, nil)
	if i == nil {
		return p.noInstance(ReadWrite, nil)
	}
	r.to(i)
	return nil
}

// judge decides whether and where a request is retried.
func (r *poolRoute) judge(err error, repeatable bool) verdict {
	var answered *ServerError
	outcome := slipstream.OutcomeOf(err)
	if errors.As(err, &answered) {
		safe := repeatable || outcome == slipstream.Refused
		switch answered.Code {
		case iproto.CodeReadOnly:
			r.pool.lookAgain() // another instance accepts writes now
			if safe && (r.mode == ReadWrite || r.mode == PreferReadWrite) {
				return relocate
			}
		case iproto.CodeLoading:
			r.instance.probe.Wake()
			fallthrough
		case iproto.CodeWrongSchemaVersion: // after several attempts, because the schema is being changed
			if safe {
				return elsewhere
			}
		}
		return final
	}
	switch outcome {
	case slipstream.Closed:
		return elsewhere // the instance was removed; a closed pool has no other
	case slipstream.MaybeExecuted:
		if repeatable {
			return elsewhere
		}
	case slipstream.NotSent:
		// Most requests that were not sent are invalid themselves.
		if r.isLost() {
			return elsewhere
		}
	}
	return final
}

// isLost reports whether the instance has lost a connection since the attempt started. A connection
// that fails is no longer up when its calls end, and is counted before there is another one.
func (r *poolRoute) isLost() bool {
	up, of := r.client.engine.Up()
	return up < of || r.instance.losses.Load() != r.losses
}

// result returns the error for all attempts together.
func (r *poolRoute) result(err error) error {
	var e *slipstream.Error
	if !errors.As(err, &e) {
		return err
	}
	outcome := r.loop.Over(e.Outcome)
	if outcome == e.Outcome {
		return err
	}
	copied := *e
	copied.Outcome = outcome
	return &copied
}

// because adds the error of the previous attempt to the error of a request for which no other
// instance was found.
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
