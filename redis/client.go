package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// A Client sends the commands of many goroutines to a Redis server over a few connections, by
// default one. All methods are safe for concurrent use.
type Client struct {
	*core
	// Immutable after Connect.
	fail   driver.Errors // the errors of calls that reach no server
	only   *node         // the server of all calls, or nil if the keys select the server
	hub    *hub          // of subscriptions
	view   bool          // for one node of a cluster; the client of the cluster closes what they share
	router *router       // nil if there is only one server
}

// core is what the client of a cluster and the clients for its nodes share.
type core struct {
	// Immutable after Connect.
	opts    Options
	hooks   driver.Hooks
	timed   bool          // calls read the clock
	several bool          // callers use several servers
	closing chan struct{} // closed by Close and Shutdown, which ends retries
	retry   attempt.Retrier
	// exclusives are the connections of commands that cannot share one.
	exclusives *exclusives
	cache      *replyCache // if nil, nothing is cached
	// dropOf drops the cached replies of a node of a cluster.
	dropOf func(*node)

	closeOnce sync.Once
	infoCache commandInfoCache
}

func newCore(o *Options) *core {
	c := &core{opts: *o, closing: make(chan struct{}), timed: o.Observer != nil || o.OnSlow != nil || o.Timeout > 0}
	c.hooks.System, c.hooks.Namespace, c.hooks.Addr, c.hooks.OnEvent = "redis", strconv.Itoa(o.DB), o.addr(), o.OnEvent
	c.hooks.Observer, c.hooks.SlowThreshold, c.hooks.OnSlow = o.Observer, o.SlowThreshold, o.OnSlow
	c.retry.Retries, c.retry.Backoff = attempt.Retries(o.Retries), pipe.Backoff{First: o.Backoff, Most: o.MaxBackoff}
	c.retry.Timeout, c.retry.FailFast, c.retry.Closing = o.Timeout, o.FailFast, c.closing
	c.exclusives = newExclusives(o)
	if o.Cache != nil {
		c.cache = newReplyCache(o.Cache)
	}
	return c
}

// isClosed reports whether Close or Shutdown was called.
func (c *core) isClosed() bool {
	select {
	case <-c.closing:
		return true
	default:
		return false
	}
}

// Connect returns a client once a connection is up. If the first attempt fails, Connect returns its
// error and no client, unless Options.NoWait is set. Lost connections are reopened in the
// background. The client must be closed.
func Connect(ctx context.Context, o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Client{core: newCore(&o), fail: driver.Errors{Addr: o.addr()}}
	var onEvent func(Event)
	if o.OnEvent != nil {
		onEvent = c.hooks.Event
	}
	c.only = c.newNode(o, "", onEvent, nil)
	c.hub = newHub(c.core, c.fail, func() *node { return c.only })
	if o.NoWait {
		return c, nil
	}
	if err := c.only.engine.Connect(ctx); err != nil {
		c.Close()
		return nil, c.fail.Named("connect", err)
	}
	return c, nil
}

// Close closes the client: calls that were not sent fail with the outcome Closed, and those in
// flight with MaybeExecuted. It waits until connections are closed and all goroutines of the client
// have ended, so it must not be called by a [Completer] or by Options.OnEvent. It may be called
// more than once.
func (c *Client) Close() error {
	if c.view {
		return nil
	}
	c.closeOnce.Do(func() { close(c.closing) })
	c.hub.close()
	c.exclusives.close()
	var err error
	if c.only != nil {
		err = c.only.engine.Close()
	} else {
		err = c.router.close()
	}
	c.exclusives.calls.Wait()
	return err
}

// Shutdown rejects new calls, waits until the calls in flight have ended, and closes the client. If
// ctx ends first, the remaining calls are cut off and the error of ctx is returned.
func (c *Client) Shutdown(ctx context.Context) error {
	if c.view {
		return nil
	}
	c.closeOnce.Do(func() { close(c.closing) })
	c.hub.close()
	err := c.exclusives.drain(ctx) // first, because canceling one of them needs the shared connection
	if c.only != nil {
		err = errors.Join(err, c.only.engine.Shutdown(ctx))
	} else {
		err = errors.Join(err, c.router.shutdown(ctx))
	}
	c.exclusives.calls.Wait()
	return err
}

// sharded reports whether keys have slots, which several nodes own.
func (c *Client) sharded() bool { return c.only == nil && c.router.sharded }

// routeOf returns the node that a command is sent to.
func (c *Client) routeOf(cmd *Command) (*node, route, error) {
	if c.only != nil {
		return c.only, route{}, nil
	}
	n, to, err := c.router.routeOf(cmd)
	switch {
	case err == nil:
		return n, to, nil
	case c.splits(cmd.info):
		return c.router.any(), route{slot: noSlot}, nil // run splits it into several commands
	}
	return nil, to, c.fail.NotSent(cmd.name, err)
}

// routeKeys returns the node that owns the slot of keys, or any node if there are none.
func (c *Client) routeKeys(keys []string) (*node, error) {
	switch {
	case c.only != nil:
		return c.only, nil
	case len(keys) == 0 || !c.router.sharded:
		return c.router.one(), nil
	}
	s := slot.Of(keys[0])
	for _, key := range keys[1:] {
		if slot.Of(key) != s {
			return nil, ErrCrossSlot
		}
	}
	return c.router.owner(int32(s)), nil
}

// routeAll returns the node for commands that must all have keys in the same slot. Commands whose
// keys are guessed count only if there are no others.
func (c *Client) routeAll(ctx context.Context, cmds []Command) (*node, route, error) {
	if c.only != nil {
		return c.only, route{}, nil
	}
	if !c.router.sharded {
		return c.router.one(), route{}, nil
	}
	to, guess := route{slot: noSlot}, int32(noSlot)
	for i := range cmds {
		cmd := &cmds[i]
		if cmd.info == unknownCommand {
			resolved := *cmd
			if _, err := c.needsOwn(ctx, &resolved); err != nil {
				return nil, to, fmt.Errorf("command %d: %w", i, err)
			}
			cmd = &resolved
		}
		s, err := slotOf(cmd.info, cmd.frame)
		switch {
		case err != nil:
			return nil, to, fmt.Errorf("command %d: %w", i, err)
		case cmd.info.guessed():
			guess = s
		case s == noSlot || s == to.slot:
		case to.slot != noSlot:
			return nil, to, fmt.Errorf("command %d: %w", i, ErrCrossSlot)
		default:
			to.slot = s
		}
	}
	if to.slot == noSlot && guess != noSlot {
		to.slot, to.guessed = guess, true
	}
	return c.router.owner(to.slot), to, nil
}

// Do sends a command and decodes the reply into dst, a pointer. If dst is nil, the reply is only
// checked for an error. The package comment says which replies can be decoded into which types. Dst
// may be changed even if an error is returned.
//
// A blocking command, such as BLPOP, gets a dedicated connection; Options.MaxExclusive bounds the
// number of these. If ctx ends before the server has answered, the client asks the server to end
// the command, and its answer decides: if the server had already returned an element, that is the
// result, and there is no error. Otherwise the outcome of the error is Refused, and no element was
// taken. If no answer comes in time, the outcome is MaybeExecuted, with [ErrElementLost] in the
// chain.
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
		if err = decode(r.reply(), dst); err != nil {
			err = r.node.fail.Executed(r.name, err)
		}
	}
	r.call.Release()
	return err
}

var errEmptyCommand = errors.New("an empty Command; make one with Cmd")

// request is a call that is being made.
type request struct {
	node       *node
	call       *pipe.Call
	info       *commandInfo
	name       string
	loop       attempt.Loop
	route      route
	joined     *joint // the call that replaces several commands; nil for one command
	repeatable bool   // the command may be executed twice
}

// reply returns the reply to the command.
func (r *request) reply() []byte {
	switch {
	case r.joined != nil:
		return r.joined.reply
	case r.route.asking:
		return r.call.ReplyAt(1) // the first one is that of ASKING
	}
	return r.call.Reply()
}

// sharedFrame is the size from which the frame of a command is lent to the call instead of copied
// into it. The engine neither writes to a frame nor keeps one of more than 1 KiB, so each copy
// would be an allocation.
const sharedFrame = 1<<10 + 1

// prepare makes a call for a command.
func (c *Client) prepare(cmd *Command) (request, error) {
	if err := c.sendable(cmd); err != nil {
		return request{}, err
	}
	n, to, err := c.routeOf(cmd)
	if err != nil {
		return request{}, err
	}
	call := n.engine.Acquire()
	lend(call, cmd.frame)
	call.SlowFor, call.Whole = cmd.slowFor, cmd.whole
	return request{node: n, call: call, info: cmd.info, name: cmd.name, repeatable: cmd.repeatable(), route: to}, nil
}

// sendable returns why a command cannot be sent on the shared connection, or nil if it can.
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

// lend lends the frame of a command to a call.
func lend(call *pipe.Call, frame []byte) {
	if n := len(frame); n >= sharedFrame {
		call.Frame = frame[:n:n]
	} else {
		call.Frame = append(call.Frame[:0], frame...)
	}
}

// run makes the call until it succeeds or must not be repeated. If run returns nil, the call has a
// reply that is not an error. The call must be released in any case.
func (c *Client) run(ctx context.Context, r *request) error {
	if c.timed {
		r.loop.Start = time.Now()
	}
	if c.sharded() && r.info.spreads() {
		if done, err := c.spread(ctx, r); done {
			return err
		}
	}
	err := r.node.engine.Do(ctx, r.call)
	if err == nil && !c.timed && !isErrorFrame(r.reply()) {
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
			Op: r.name, Addr: r.node.fail.Addr, Start: r.loop.Start, Requests: 1, Attempts: r.loop.Made,
			RequestBytes: len(r.call.Frame), ReplyBytes: len(r.call.Reply()) + len(r.call.Placed()), Err: err,
		})
	}
	return err
}

// settle retries a failed call as long as that is safe and useful.
func (c *Client) settle(ctx context.Context, r *request, err error) error {
	for r.loop.Made = 1; ; r.loop.Made++ {
		failure := c.failure(r, err)
		if failure == nil {
			return nil
		}
		if !c.goesOn(ctx, r, failure) {
			return failure
		}
		within, cancel := c.retry.Within(ctx, r.loop.Start)
		err = r.node.engine.Do(within, r.call)
		cancel()
	}
}

// goesOn reports whether a call is retried after a failed attempt, and prepares the retry. It first
// waits as long as necessary.
func (c *Client) goesOn(ctx context.Context, r *request, failure *slipstream.Error) bool {
	if c.only == nil {
		return c.router.goesOn(ctx, r, failure)
	}
	if !c.retry.Again(ctx, &r.loop, failure, c.verdict(failure, r.repeatable)) {
		return false
	}
	r.renew(r.node, false)
	return true
}

// failure returns what is wrong with the result of an attempt, or nil if nothing is.
func (c *Client) failure(r *request, err error) *slipstream.Error {
	if err != nil {
		failure := r.node.fail.Named(r.name, err)
		if c.view && failure.Outcome == slipstream.Closed && !c.isClosed() {
			failure.Outcome, failure.Err = slipstream.NotSent, errNodeLeft
		}
		return failure
	}
	if e := serverErrorIn(r.reply()); e != nil {
		return r.node.fail.With(r.name, e.outcome(r.info, r.frame()), e)
	}
	return nil
}

// verdict says whether a failed call is repeated. A refusal is repeated if its cause goes away
// without any action.
func (c *Client) verdict(failure *slipstream.Error, repeatable bool) attempt.Verdict {
	if failure.Outcome != slipstream.Refused {
		return c.retry.Verdict(failure, repeatable)
	}
	if e, ok := errors.AsType[*ServerError](failure.Err); ok && e.passing() {
		return attempt.AfterPause
	}
	return attempt.Final
}

// make makes the call for an encoded command to the node of the request.
func (r *request) make(frame []byte, slowFor time.Duration, whole bool) {
	call := r.node.engine.Acquire()
	if r.route.asking {
		call.Frame = append(append(call.Frame[:0], askingFrame...), frame...)
		call.Replies, whole = 2, true
	} else {
		lend(call, frame)
	}
	call.SlowFor, call.Whole = slowFor, whole
	r.call = call
}

// renew prepares the call for another attempt at node n. If asking is true, ASKING is sent before
// the command.
func (r *request) renew(n *node, asking bool) {
	old, frame := r.call, r.frame()
	same := r.node == n && r.route.asking == asking
	r.node, r.route.asking = n, asking
	if old == nil || same && !old.Spent() {
		return
	}
	fresh := n.engine.Acquire()
	fresh.Frame = fresh.Frame[:0]
	fresh.SlowFor, fresh.Whole = old.SlowFor, old.Whole
	if asking {
		fresh.Frame = append(fresh.Frame, askingFrame...)
		fresh.Replies, fresh.Whole = 2, true
	}
	fresh.Frame = append(fresh.Frame, frame...)
	old.Release()
	r.call = fresh
}

// frame returns the encoded command of a call.
func (r *request) frame() []byte {
	switch {
	case r.call == nil:
		return nil
	case r.route.asking:
		return r.call.Frame[len(askingFrame):]
	}
	return r.call.Frame
}
