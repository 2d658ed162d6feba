package tarantool

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// A Client sends the requests of many goroutines to a Tarantool instance over a few connections, by
// default one. All methods are safe for concurrent use.
type Client struct {
	// Immutable after Connect.
	opts    Options
	hooks   driver.Hooks
	timed   bool // requests read the clock
	fail    driver.Errors
	engine  *pipe.Engine
	closing chan struct{} // closed by Close and Shutdown, which ends retries
	retry   attempt.Retrier

	schemas   schemas
	blocking  *blockingLane
	watches   *watchHub
	closeOnce sync.Once

	// Atomics.
	server  atomic.Pointer[server] // written by greetings, read by callers
	streams atomic.Uint64          // number of the newest stream; written by callers
}

// Connect returns a client once a connection is up. If the first attempt fails, Connect returns its
// error and no client, unless Options.NoWait is set. Lost connections are reopened in the
// background. The client must be closed.
func Connect(ctx context.Context, o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Client{opts: o, fail: driver.Errors{Addr: o.addr()}, closing: make(chan struct{})}
	c.timed = o.Timeout > 0 || o.Observer != nil || o.OnSlow != nil
	c.hooks.System, c.hooks.Addr, c.hooks.OnEvent = "tarantool", o.addr(), o.OnEvent
	c.hooks.Observer, c.hooks.SlowThreshold, c.hooks.OnSlow = o.Observer, o.SlowThreshold, o.OnSlow
	c.retry.Retries, c.retry.Backoff = attempt.Retries(o.Retries), pipe.Backoff{First: o.Backoff, Most: o.MaxBackoff}
	c.retry.Timeout, c.retry.FailFast, c.retry.Closing = o.Timeout, o.FailFast, c.closing
	c.schemas.load, c.schemas.loading = c.loadSchema, make(map[pipe.Pin]chan struct{})
	c.blocking, c.watches = newBlockingLane(c), newWatchHub(c)
	cfg := c.engineConfig()
	cfg.Traits.Depth = o.window()
	c.engine = pipe.New(cfg)
	if o.NoWait {
		return c, nil
	}
	if err := c.engine.Connect(ctx); err != nil {
		c.Close()
		return nil, c.fail.Named("connect", err)
	}
	return c, nil
}

func (c *Client) engineConfig() pipe.Config {
	o := &c.opts
	return pipe.Config{
		Protocol: &protocol{opts: o, learn: c.server.Store, maxReply: o.MaxReply},
		Traits:   traits,
		Addr:     o.addr(), Dial: o.endpoint().Dial,
		Sockets: o.Sockets, MaxCalls: o.MaxCalls, MaxBytes: o.MaxBytes, WaitWhenFull: o.WaitWhenFull, FailFast: o.FailFast,
		DialTimeout: o.DialTimeout, Backoff: o.Backoff, MaxBackoff: o.MaxBackoff,
		StallTimeout: o.StallTimeout, Timeout: o.Timeout, OnEvent: c.hooks.Event, OnPush: c.pushed,
	}
}

// Close closes the client: requests that were not sent fail with the outcome Closed, and those in
// flight with MaybeExecuted. It waits until connections are closed and all goroutines of the client
// have ended, so it must not be called by Options.OnEvent. It may be called more than once.
func (c *Client) Close() error {
	c.closeOnce.Do(func() { close(c.closing) })
	c.watches.close()
	return errors.Join(c.engine.Close(), c.blocking.close())
}

// Shutdown rejects new requests, waits until those in flight have ended, and closes the client. If
// ctx ends first, the remaining requests are cut off and the error of ctx is returned.
func (c *Client) Shutdown(ctx context.Context) error {
	c.closeOnce.Do(func() { close(c.closing) })
	c.watches.close()
	return errors.Join(c.engine.Shutdown(ctx), c.blocking.shutdown(ctx))
}

// ServerVersion returns the version of the server of the latest connection, such as 2.6.0.
func (c *Client) ServerVersion() string {
	if s := c.server.Load(); s != nil {
		return s.version
	}
	return ""
}

// sinceOf contains the first version of Tarantool that has a feature, and the name of the feature
// in the plural.
var sinceOf = map[box.Feature]struct{ name, since string }{
	box.FeatureStreams:      {"streams", "2.10"},
	box.FeatureTransactions: {"transactions", "2.10"},
	box.FeatureWatchers:     {"watchers", "2.10"},
	box.FeaturePagination:   {"pages of a select", "2.11"},
	box.FeatureWatchOnce:    {"single reads of a watched key", "3.0"},
	box.FeatureIsSync:       {"synchronous commits", "3.2"},
	box.FeatureArrow:        {"inserts of Arrow batches", "3.3"},
}

// errNeverConnected is the error of a request that depends on the version of the server.
var errNeverConnected = errors.New("there was no connection yet, so it is unknown what the server supports")

// needs returns an error if the server lacks a feature.
func (c *Client) needs(f box.Feature) error {
	s := c.server.Load()
	switch {
	case s == nil:
		return errNeverConnected
	case s.has(f):
		return nil
	}
	what := sinceOf[f]
	return &UnsupportedError{Feature: what.name, Since: what.since, Server: s.version}
}

// Do sends a request, waits for its reply and decodes the data into dst, a pointer. If dst is nil,
// the reply is only checked for an error. The data is an array of tuples or of a function's
// results. The package comment says which replies can be decoded into which types. Dst may be
// changed even if an error is returned.
func (c *Client) Do(ctx context.Context, dst any, req Request) error {
	return c.exec(ctx, dst, req, route{})
}

func (c *Client) exec(ctx context.Context, dst any, req Request, way route) error {
	var r exchange
	err := r.prepare(ctx, c, req, way)
	if err == nil {
		err = r.finish(ctx, r.do(ctx), dst)
	}
	r.end(ctx, err)
	return err
}

// route says how a request is sent; the zero value means on any of the connections.
type route struct {
	pin    pipe.Pin
	stream uint64 // requires a pin
	silent bool   // a request of this package, which is not observed
	// For a request in a stream: the stream, and the position of the request in it.
	of    *Stream
	place uint64
}

// exchange is one request and its reply.
type exchange struct {
	client *Client
	engine *pipe.Engine
	call   *pipe.Call
	about  requestInfo
	at     *schemaAt // the schema of the numbers in the frame; nil if none was looked up by name
	loop   attempt.Loop
	pinned bool
	silent bool            // it is not observed
	stream *Stream         // nil if the request is not in a stream
	place  uint64          // position in the stream
	lane   *laneConnection // nil if not in the blocking lane
	pushes *pushes         // nil if the caller does not want any

	limited context.Context // the context of the request with Options.Timeout; nil if not created yet
	cancel  context.CancelFunc
}

// errEmptyRequest is the error of a nil Request.
var errEmptyRequest = errors.New("the request is nil; make one with Select, Call and the like")

// prepare encodes a request into a call.
func (r *exchange) prepare(ctx context.Context, c *Client, req Request, way route) error {
	if req == nil {
		return c.fail.NotSent("request", errEmptyRequest)
	}
	r.client, r.about, r.silent = c, req.about(), way.silent
	about := &r.about
	if err := r.knowServer(ctx); err != nil {
		return err
	}
	x, at, known := c.encoding(&about.target, way.pin)
	if !known {
		var err error
		if x, at, err = r.locate(ctx, c, about, way.pin); err != nil {
			return err
		}
	}
	if about.blocking && way.pin == (pipe.Pin{}) {
		var err error
		if r.lane, err = c.blocking.enter(ctx, about.size); err != nil {
			return c.fail.Named(about.code.String(), err)
		}
	}
	r.set(at)
	if way.pin != (pipe.Pin{}) {
		r.call.Pin, r.pinned = way.pin, true
	}
	r.stream, r.place = way.of, way.place
	if about.push != nil {
		r.pushes = &pushes{tell: about.push, limits: c.opts.decoding()}
		r.call.OnInterim(r.pushes.interim)
	}
	x.header.Stream = way.stream
	return r.encoded(req.encode(r.call.Frame[:0], x))
}

// knowServer waits until the client has been connected once, because the form of a request depends
// on the version of the server.
func (r *exchange) knowServer(ctx context.Context) error {
	if r.client.server.Load() != nil {
		return nil
	}
	r.begins()
	err := r.client.knowServer(r.within(ctx), r.about.code.String())
	if err != nil {
		r.release()
	}
	return err
}

// knowServer waits for the first connection, which may be absent with Options.NoWait. IPROTO_ID is
// sent to servers from 2.10 on. A request that needs a feature that the server has not announced
// fails with UnsupportedError and is not sent, because older servers silently ignore the stream in
// the header and the position in the body.
func (c *Client) knowServer(ctx context.Context, op string) error {
	if c.server.Load() != nil {
		return nil
	}
	if _, err := c.engine.Place(ctx); err != nil {
		return c.fail.Named(op, err)
	}
	return nil
}

// set sets the call of a request whose numbers belong to the given schema.
func (r *exchange) set(at *schemaAt) {
	r.at = at
	r.begins()
	r.engine = r.client.engine
	if r.lane != nil {
		r.engine = r.lane.engine
	}
	r.call = r.engine.Acquire()
	if at != nil {
		r.call.Pin = at.pin
	}
}

// begins records when the request started, if that matters.
func (r *exchange) begins() {
	if r.client.timed && r.loop.Start.IsZero() {
		r.loop.Start = time.Now()
	}
}

// end reports the request to the observers and releases what it holds.
func (r *exchange) end(ctx context.Context, err error) {
	if c := r.client; c != nil && c.hooks.Observing() && !r.silent {
		o := Observation{Op: r.about.code.String(), Start: r.loop.Start, Requests: 1, Attempts: max(r.loop.Made, 1), Err: err}
		if o.Start.IsZero() {
			o.Start = time.Now()
		}
		if r.call != nil {
			o.RequestBytes, o.ReplyBytes = len(r.call.Frame), len(r.call.Reply())
		}
		c.hooks.Observe(ctx, o)
	}
	r.release()
}

// release releases what the request holds.
func (r *exchange) release() {
	if r.pushes != nil {
		r.pushes.end()
	}
	if r.call != nil {
		r.call.Release()
		r.call = nil
	}
	if r.lane != nil {
		r.lane.leave()
		r.lane = nil
	}
	if r.cancel != nil {
		r.cancel()
		r.limited, r.cancel = nil, nil
	}
}

// encoded stores the result of an encoding.
func (r *exchange) encoded(frame []byte, err error) error {
	if err != nil {
		r.release()
		return r.client.fail.NotSent(r.about.code.String(), err)
	}
	r.call.Frame = frame
	return nil
}

// finish converts the result of the first attempt into that of the request.
func (r *exchange) finish(ctx context.Context, err error, dst any) error {
	for r.loop.Made = 1; ; r.loop.Made++ {
		verdict, result := r.result(err, dst)
		if result == nil {
			return nil
		}
		if !r.client.retry.Again(ctx, &r.loop, result, verdict) {
			return result
		}
		ctx = r.within(ctx)
		if err := r.renew(ctx); err != nil {
			failure := r.client.fail.Named(r.about.code.String(), err)
			failure.Outcome = r.loop.Over(failure.Outcome)
			return failure
		}
		if r.stream != nil && !r.stream.isLast(r.place) {
			return result // other requests follow it, such as the end of the transaction
		}
		err = r.do(ctx)
	}
}

// result decodes the reply, and says whether the request is retried.
func (r *exchange) result(err error, dst any) (attempt.Verdict, *slipstream.Error) {
	c, op := r.client, r.about.code.String
	if err != nil {
		failure := c.fail.Named(op(), err)
		if r.pinned {
			return attempt.Final, failure
		}
		return c.retry.Verdict(failure, r.about.repeatable), failure
	}
	m, body, err := replyOf(r.call.Reply())
	if err != nil {
		return attempt.Final, c.fail.Executed(op(), err)
	}
	if m.Code == uint32(box.CodeOK) {
		if err := decodeReply(c.opts.decoding(), m, body, dst); err != nil {
			return attempt.Final, c.fail.Executed(op(), err)
		}
		return attempt.Final, nil
	}
	response, err := box.ParseBody(m.Code, body)
	if err != nil {
		return attempt.Final, c.fail.Executed(op(), err)
	}
	e := serverError(m.Code, response.Error)
	failure := c.fail.With(op(), e.outcome(r.about.code), e)
	verdict := attempt.Final
	switch {
	case failure.Outcome != slipstream.Refused:
	case e.Code == iproto.CodeWrongSchemaVersion:
		verdict = attempt.Immediately // a changed schema is no reason to wait
	case e.passing():
		verdict = attempt.AfterPause
	}
	return verdict, failure
}

// decodeReply decodes the data of a reply.
func decodeReply(l iproto.Limits, m box.Message, body []byte, dst any) error {
	if v, ok := dst.(versioned); ok {
		v.setVersion(m.Schema)
	}
	if v, ok := dst.(wholeReply); ok {
		return v.readReply(l, m, body)
	}
	if dst == nil {
		return nil
	}
	data, err := dataOf(body)
	if err != nil {
		return err
	}
	return decodeData(l, data, dst)
}

// wholeReply is a destination that needs more of a reply than its data.
type wholeReply interface {
	readReply(l iproto.Limits, m box.Message, body []byte) error
}

// renew makes the call ready to be submitted again, with current numbers.
func (r *exchange) renew(ctx context.Context) error {
	if r.call.Spent() {
		fresh := r.engine.Acquire()
		fresh.Frame = append(fresh.Frame[:0], r.call.Frame...)
		fresh.Pin = r.call.Pin
		fresh.OnInterim(r.call.Interim())
		r.call.Release()
		r.call = fresh
	}
	if r.at == nil {
		return nil
	}
	m, _, err := replyOf(r.call.Reply())
	if err == nil && m.Code == uint32(box.CodeError)|uint32(iproto.CodeWrongSchemaVersion) {
		return r.correct(ctx)
	}
	if r.pinned {
		return nil
	}
	return r.redirect(ctx, pipe.Pin{})
}

// within returns a context that also ends when Options.Timeout has passed.
func (r *exchange) within(ctx context.Context) context.Context {
	if r.client.retry.Timeout <= 0 {
		return ctx
	}
	if r.cancel == nil {
		r.limited, r.cancel = r.client.retry.Within(ctx, r.loop.Start)
	}
	return r.limited
}
