package redis

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

// A Future is a call in flight. It is small and may be copied. Its result must be taken once, by
// Wait, which releases what the Future holds. A Future whose result is never taken uses memory
// until the garbage collector finds it.
type Future struct {
	p          *pending
	generation uint64
}

// pending is the state that a Future refers to. It is recycled; the generation identifies a stale
// handle.
type pending struct {
	generation atomic.Uint64 // grows when the future is waited for

	// Owned by the caller of Start, then by the caller of Wait.
	client *Client
	ctx    context.Context
	r      request
	err    error

	// For a command that has a dedicated connection, or may have one.
	alone chan struct{} // closed when raw and err are set
	raw   rawFrame
}

var pendings = sync.Pool{New: func() any { return new(pending) }}

// Start sends a command and returns without waiting for the reply. The call
// ends when ctx does. Start may wait for a connection or for room, as other calls
// do. Wait returns the error.
func (c *Client) Start(ctx context.Context, cmd Command) Future {
	p := pendings.Get().(*pending)
	p.client, p.ctx = c, ctx
	if !c.knownToShare(&cmd) {
		p.startAlone(cmd)
		return Future{p, p.generation.Load()}
	}
	p.r, p.err = c.prepare(&cmd)
	if p.err == nil {
		if c.timed {
			p.r.loop.Start = time.Now()
		}
		if p.err = p.r.node.engine.Start(ctx, p.r.call); p.err != nil {
			p.err = c.finish(ctx, &p.r, p.err)
			p.r.call.Release()
			p.r.call = nil
		}
	}
	return Future{p, p.generation.Load()}
}

// Wait waits for the reply and decodes it into dst, as [Client.Do] does. It returns early if the
// context given to Start ends. A second Wait, even on a copy, returns ErrReleased, and never the
// result of another call.
func (f Future) Wait(dst any) error {
	p := f.p
	if p == nil || !p.generation.CompareAndSwap(f.generation, f.generation+1) {
		return ErrReleased
	}
	var err error
	switch {
	case p.alone != nil:
		err = p.waitAlone(dst)
	case p.r.call != nil:
		err = p.wait(dst)
		p.r.call.Release()
	default:
		err = p.err
	}
	p.client, p.ctx, p.r, p.err, p.alone, p.raw = nil, nil, request{}, nil, nil, nil
	pendings.Put(p)
	return err
}

func (p *pending) wait(dst any) error {
	err := p.r.call.Wait()
	if err != nil || p.client.timed || isErrorFrame(p.r.reply()) {
		if err = p.client.finish(p.ctx, &p.r, err); err != nil {
			return err
		}
	}
	if err := decode(p.r.reply(), dst); err != nil {
		return p.r.node.fail.Executed(p.r.name, err)
	}
	return nil
}

// startAlone makes a blocking call, on a new goroutine.
func (p *pending) startAlone(cmd Command) {
	c := p.client
	if !c.exclusives.enter() {
		p.err = notLeased(c.fail, cmd.name, ErrClosed)
		return
	}
	p.alone = make(chan struct{})
	ctx, done := p.ctx, p.alone
	// Ends with the call: by its reply, its context, or Close, which waits for it.
	go func() {
		defer c.exclusives.calls.Done()
		defer close(done)
		p.err = c.Do(ctx, &p.raw, cmd)
	}()
}

func (p *pending) waitAlone(dst any) error {
	<-p.alone
	if p.err != nil {
		return p.err
	}
	if err := decode(p.raw, dst); err != nil {
		return p.client.fail.Executed("reply", err)
	}
	return nil
}

// A Completer is notified by [Client.DoFunc] when a call ends.
type Completer interface {
	// Complete is called once, on the goroutine that reads the connection. It must not block,
	// because all other calls of the connection wait for it; if it takes longer than 1 ms, it is
	// counted in [Stats]. The reply is valid until Complete returns, and is empty if err is not
	// nil. A panic is recovered and counted. Complete must not close the client.
	Complete(reply Reply, err error)
}

// completion waits for the engine on behalf of a Completer.
type completion struct {
	client *Client
	ctx    context.Context
	cancel context.CancelFunc // cancels the context with Options.Timeout, which only retries need; or nil
	r      request
	done   Completer
}

var completions = sync.Pool{New: func() any { return new(completion) }}

// DoFunc sends a command and returns without waiting; done gets the reply. If DoFunc returns an
// error, the command was not sent and done is not called. DoFunc never waits for a connection or
// for room, regardless of the options, so that a Completer can call it. Such calls are never
// retried, except that the client of a cluster follows redirects and retries the same calls as
// other clients of a cluster. A call whose connection ends before anything of it was sent waits for
// another one, at most for DialTimeout, unless Options.FailFast is set.
//
// For a blocking command, Complete is called on a new goroutine.
func (c *Client) DoFunc(ctx context.Context, cmd Command, done Completer) error {
	if !c.knownToShare(&cmd) {
		return c.funcAlone(ctx, cmd, done)
	}
	r, err := c.prepare(&cmd)
	if err != nil {
		return err
	}
	k := completions.Get().(*completion)
	k.client, k.ctx, k.r, k.done = c, ctx, r, done
	if c.timed {
		k.r.loop.Start = time.Now()
	}
	if err := r.node.engine.StartFunc(ctx, r.call, k); err != nil {
		failure := r.node.fail.Named(r.name, err)
		if c.only != nil || !k.resume(failure) {
			k.release()
			return failure
		}
	}
	return nil
}

// funcAlone is DoFunc for a command that has a dedicated connection.
func (c *Client) funcAlone(ctx context.Context, cmd Command, done Completer) error {
	if !c.exclusives.enter() {
		return notLeased(c.fail, cmd.name, ErrClosed)
	}
	// Ends with the call: by its reply, its context, or Close, which waits for it.
	go func() {
		defer c.exclusives.calls.Done()
		var raw rawFrame
		err := c.Do(ctx, &raw, cmd)
		c.hooks.Call(func() {
			if err != nil {
				done.Complete(Reply{}, err)
			} else {
				done.Complete(Reply{raw}, nil)
			}
		})
	}()
	return nil
}

// Complete implements the engine's Completer.
func (k *completion) Complete(call *pipe.Call) {
	failure := k.client.failure(&k.r, call.Err())
	if failure != nil && k.client.only == nil && k.resume(failure) {
		return
	}
	k.end(failure)
}

// end notifies the Completer of the end of the call.
func (k *completion) end(failure *slipstream.Error) {
	defer k.release() // even if the user's code panics
	var err error
	if failure != nil {
		err = failure
	}
	if k.client.hooks.Observing() {
		k.client.hooks.Observe(k.ctx, Observation{
			Op: k.r.name, Addr: k.r.node.fail.Addr, Start: k.r.loop.Start, Requests: 1, Attempts: k.r.loop.Made + 1,
			RequestBytes: len(k.r.call.Frame), ReplyBytes: len(k.r.call.Reply()), Err: err,
		})
	}
	if err != nil {
		k.done.Complete(Reply{}, err)
		return
	}
	k.done.Complete(Reply{k.r.reply()}, nil)
}

// resume retries the call after a failed attempt, if it may continue. It never waits: a separate
// goroutine does.
func (k *completion) resume(failure *slipstream.Error) bool {
	router := k.client.router
	d := router.judge(&k.r, failure)
	if d.how == goNow {
		if failure = k.again(d); failure == nil {
			return true
		}
		d = router.judge(&k.r, failure)
	}
	if d.how == goEnd || !router.delay() {
		return false
	}
	if !k.client.exclusives.enter() {
		router.delayed.Add(-1)
		return false
	}
	// Ends when the call is in flight again, when its context ends, or at the latest with Close,
	// which waits for it.
	go k.await(d, failure)
	return true
}

// await retries the call after the necessary wait, or ends it.
func (k *completion) await(d detour, failure *slipstream.Error) {
	c := k.client
	defer c.exclusives.calls.Done()
	defer c.router.delayed.Add(-1)
	for c.router.wait(k.ctx, &k.r, &d) {
		if failure = k.again(d); failure == nil {
			return // k belongs to the engine
		}
		if d = c.router.judge(&k.r, failure); d.how == goEnd {
			break
		}
	}
	c.hooks.Call(func() { k.end(failure) })
}

// again makes the call once more.
func (k *completion) again(d detour) *slipstream.Error {
	c := k.client
	if k.cancel == nil && c.opts.Timeout > 0 {
		k.ctx, k.cancel = c.retry.Within(k.ctx, k.r.loop.Start)
	}
	c.router.ready(&k.r, d)
	k.r.loop.Made++
	c.retry.Count()
	if err := k.r.node.engine.StartFunc(k.ctx, k.r.call, k); err != nil {
		return k.r.node.fail.Named(k.r.name, err)
	}
	return nil
}

func (k *completion) release() {
	k.r.call.Release()
	if k.cancel != nil {
		k.cancel()
	}
	*k = completion{}
	completions.Put(k)
}
