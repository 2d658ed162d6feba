package redis

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

// A Client sends the commands of many goroutines to a Redis server over few
// connections, by default one. All methods are safe for concurrent use.
type Client struct {
	// Immutable after Connect.
	opts    Options
	hooks   driver.Hooks
	fail    driver.Errors
	router  router
	only    *pipe.Engine  // the engine of all keys; nil if the key chooses
	timed   bool          // calls look at the clock
	closing chan struct{} // closed by Close and Shutdown, which ends repetitions
	retry   attempt.Retrier
	// exclusives are the connections of commands that cannot share one.
	exclusives *exclusives
	hub        *hub        // of subscriptions
	cache      *replyCache // nil: there is none

	closeOnce sync.Once
	learned   sync.Map // name of a command that the table does not know: whether it waits

	// Atomics, written by callers.
	learnedCount atomic.Int64 // of learned, about
}

// router chooses the engine for a command by its first key. One server is the
// simplest kind.
type router interface {
	engine(key string) *pipe.Engine
	engines() []*pipe.Engine
}

type oneServer struct{ e *pipe.Engine }

func (s oneServer) engine(string) *pipe.Engine { return s.e }
func (s oneServer) engines() []*pipe.Engine    { return []*pipe.Engine{s.e} }

// Connect returns a client once a connection is up. If the first attempt fails,
// its error is returned and there is no client; Options.NoWait changes that.
// Lost connections are opened again in the background. The client must be
// closed.
func Connect(ctx context.Context, o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Client{
		opts: o, fail: driver.Errors{Addr: o.addr()}, closing: make(chan struct{}),
		timed: o.Observer != nil || o.OnSlow != nil || o.Timeout > 0,
	}
	c.hooks.System, c.hooks.Namespace, c.hooks.Addr, c.hooks.OnEvent = "redis", strconv.Itoa(o.DB), o.addr(), o.OnEvent
	c.hooks.Observer, c.hooks.SlowThreshold, c.hooks.OnSlow = o.Observer, o.SlowThreshold, o.OnSlow
	c.retry.Retries, c.retry.Backoff = attempt.Retries(o.Retries), pipe.Backoff{First: o.Backoff, Most: o.MaxBackoff}
	c.retry.Timeout, c.retry.FailFast, c.retry.Closing = o.Timeout, o.FailFast, c.closing
	aside := c.opts // connections on which nothing is read for the cache
	aside.Cache = nil
	c.exclusives, c.hub = newExclusives(&aside), newHub(c)
	cfg := pipe.Config{
		Protocol: newProtocol(&c.opts), Traits: traits, Addr: o.addr(), Dial: c.opts.endpoint().Dial,
		Sockets: o.Sockets, MaxCalls: o.MaxCalls, MaxBytes: o.MaxBytes, WaitWhenFull: o.WaitWhenFull, FailFast: o.FailFast,
		DialTimeout: o.DialTimeout, Backoff: o.Backoff, MaxBackoff: o.MaxBackoff,
		StallTimeout: o.StallTimeout, Timeout: o.Timeout,
	}
	if o.OnEvent != nil {
		cfg.OnEvent = c.hooks.Event
	}
	if o.Cache != nil {
		c.withCache(&cfg)
	}
	c.only = pipe.New(cfg)
	c.router = oneServer{c.only}
	if o.NoWait {
		return c, nil
	}
	if err := c.only.Connect(ctx); err != nil {
		c.Close()
		return nil, c.fail.Named("connect", err)
	}
	return c, nil
}

// Close closes the client: calls that were not sent fail with the outcome Closed,
// those in flight with MaybeExecuted. It waits until connections are closed and
// all goroutines of the client have ended, so it must not be called by a
// [Completer] or by Options.OnEvent. It may be called again.
func (c *Client) Close() error {
	c.closeOnce.Do(func() { close(c.closing) })
	c.hub.close()
	c.exclusives.close()
	var err error
	for _, e := range c.router.engines() {
		err = errors.Join(err, e.Close())
	}
	c.exclusives.calls.Wait()
	return err
}

// Shutdown rejects new calls, waits until those in flight have ended, and closes
// the client. If ctx ends first, calls are cut off and the error of ctx is
// returned.
func (c *Client) Shutdown(ctx context.Context) error {
	c.closeOnce.Do(func() { close(c.closing) })
	c.hub.close()
	err := c.exclusives.drain(ctx) // first: cancelling one of them needs the shared connection
	for _, e := range c.router.engines() {
		err = errors.Join(err, e.Shutdown(ctx))
	}
	c.exclusives.calls.Wait()
	return err
}

// pick returns the engine for a key. The copy keeps callers' keys off the heap.
func (c *Client) pick(key string) *pipe.Engine {
	if c.only != nil {
		return c.only
	}
	return c.router.engine(strings.Clone(key))
}

// Do sends a command and decodes the reply into dst, a pointer; with nil the
// reply is only looked at for an error. See the package comment for what can be
// decoded into what. Dst may be changed even if an error is returned.
//
// A command that waits at the server, such as BLPOP, gets a dedicated connection;
// Options.MaxExclusive bounds them. If ctx ends before the server has answered, the client
// asks the server to end the command, and the answer decides: if the server had already
// returned an element, that is the result, and there is no error; if not, the outcome of the
// error is Refused, and nothing was taken. If no answer comes in time, the outcome is
// MaybeExecuted, with [ErrElementLost] in the chain.
func (c *Client) Do(ctx context.Context, dst any, cmd Command) error {
	if cmd.waits || cmd.info == unknownCommand {
		if own, err := c.needsOwn(ctx, &cmd); own || err != nil {
			if err == nil {
				err = c.doAlone(ctx, dst, &cmd)
			}
			return err
		}
	}
	r, err := c.prepare(&cmd)
	if err != nil {
		return err
	}
	if err = c.run(ctx, &r); err == nil {
		if err = decode(r.call.Reply(), dst); err != nil {
			err = c.fail.Executed(r.name, err)
		}
	}
	r.call.Release()
	return err
}

var errEmptyCommand = errors.New("an empty Command; make one with Cmd")

// request is one call on its way.
type request struct {
	engine     *pipe.Engine
	call       *pipe.Call
	info       *commandInfo
	name       string
	loop       attempt.Loop
	repeatable bool // may be executed twice
}

// sharedFrame is the size from which the frame of a command is not copied into
// the call but lent to it: the engine neither writes to a frame nor keeps one of
// more than 1 KiB, so that each copy would be an allocation.
const sharedFrame = 1<<10 + 1

// prepare makes a call of a command.
func (c *Client) prepare(cmd *Command) (request, error) {
	if err := c.sendable(cmd); err != nil {
		return request{}, err
	}
	e := c.only
	if e == nil {
		e = c.router.engine(string(cmd.key()))
	}
	call := e.Acquire()
	lend(call, cmd.frame)
	call.SlowFor, call.Whole = cmd.slowFor, cmd.whole
	return request{engine: e, call: call, info: cmd.info, name: cmd.name, repeatable: cmd.repeatable()}, nil
}

// sendable returns what is wrong with a command for the shared connection.
func (c *Client) sendable(cmd *Command) error {
	switch {
	case cmd.info == nil:
		return c.fail.NotSent("command", errEmptyCommand)
	case cmd.err != nil:
		return c.fail.NotSent(cmd.name, cmd.err)
	case cmd.unshared != nil:
		return c.fail.NotSent(cmd.name, cmd.unshared)
	}
	return nil
}

// lend gives the frame of a command to a call.
func lend(call *pipe.Call, frame []byte) {
	if n := len(frame); n >= sharedFrame {
		call.Frame = frame[:n:n]
	} else {
		call.Frame = append(call.Frame[:0], frame...)
	}
}

// run makes the call until it succeeds or must not be repeated. After nil the
// call has a reply that is no error. The call must be released in any case.
func (c *Client) run(ctx context.Context, r *request) error {
	if c.timed {
		r.loop.Start = time.Now()
	}
	err := r.engine.Do(ctx, r.call)
	if err == nil && !c.timed && !isErrorFrame(r.call.Reply()) {
		return nil
	}
	return c.finish(ctx, r, err)
}

// finish turns the result of the first attempt into that of the call, and reports the call to the
// observers.
func (c *Client) finish(ctx context.Context, r *request, err error) error {
	err = c.settle(ctx, r, err)
	if c.hooks.Observing() {
		c.hooks.Observe(ctx, Observation{
			Op: r.name, Start: r.loop.Start, Requests: 1, Attempts: r.loop.Made,
			RequestBytes: len(r.call.Frame), ReplyBytes: len(r.call.Reply()), Err: err,
		})
	}
	return err
}

// settle repeats a call that failed as long as that is safe and makes sense.
func (c *Client) settle(ctx context.Context, r *request, err error) error {
	for r.loop.Made = 1; ; r.loop.Made++ {
		failure := c.failure(r, err)
		if failure == nil {
			return nil
		}
		if !c.retry.Again(ctx, &r.loop, failure, c.verdict(failure, r.repeatable)) {
			return failure
		}
		r.renew()
		within, cancel := c.retry.Within(ctx, r.loop.Start)
		err = r.engine.Do(within, r.call)
		cancel()
	}
}

// failure returns what is wrong with the result of an attempt, nil if nothing.
func (c *Client) failure(r *request, err error) *slipstream.Error {
	if err != nil {
		return c.fail.Named(r.name, err)
	}
	if e := serverErrorIn(r.call.Reply()); e != nil {
		return c.fail.With(r.name, e.outcome(r.info), e)
	}
	return nil
}

// verdict says whether a call that failed is repeated. A refusal is repeated if it ends without action.
func (c *Client) verdict(failure *slipstream.Error, repeatable bool) attempt.Verdict {
	if failure.Outcome != slipstream.Refused {
		return c.retry.Verdict(failure, repeatable)
	}
	if e, ok := errors.AsType[*ServerError](failure.Err); ok && e.passing() {
		return attempt.AfterPause
	}
	return attempt.Final
}

// renew makes the call ready to be submitted again.
func (r *request) renew() {
	if !r.call.Spent() {
		return
	}
	fresh := r.engine.Acquire()
	fresh.Frame = append(fresh.Frame[:0], r.call.Frame...)
	fresh.SlowFor, fresh.Whole = r.call.SlowFor, r.call.Whole
	r.call.Release()
	r.call = fresh
}
