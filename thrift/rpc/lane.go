package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

//   - A lane has the connections and the queue. A call that finds no room waits in the lane, not on a connection, so a
//     slow call delays only the calls sent after it on its connection. A call uses the first connection with room, so
//     connections that are not needed become idle. A call that is not idempotent needs a connection without calls;
//     while one waits, one connection gets no more calls until it is empty.
//   - A slot is freed by the reply, not by the caller: an abandoned call keeps its slot until its reply arrives,
//     because the server is still busy with it. The engine notifies the connection's scanner of replies (pipe.Watcher),
//     including replies that overtake others: it compares the offsets of their requests in the byte stream, which give
//     the order in which they were sent. A connection with only abandoned calls is replaced after 10 s.
//   - Large messages (64 KiB), and functions that have had large replies, use a dedicated lane, so that other calls do
//     not wait for them.

// lane holds connections to the server and the calls that wait for one.
//
// If the server of a connection answers in any order, all calls are sent on that connection and are not counted.
// Otherwise a call is assigned to the oldest connection that has room for it. If there is none, the call waits in the
// lane, so that it gets the first connection that has room.
type lane struct {
	// Immutable.
	client *Client
	engine *pipe.Engine

	// Atomic: a connection whose server answers in any order, or nil. Written with mu.
	open atomic.Pointer[conn]

	mu sync.Mutex
	// Guarded by mu.
	closed     bool
	conns      []*conn // open connections, oldest first
	first      int     // the connections before this index are full
	idempotent queue
	others     queue
	number     uint64
	reserved   *conn  // gets no more calls until it is empty and can take the first call of others; may be nil
	places     int    // target number of connections
	replies    uint64 // total, from servers that answer in order
	slow       slowest
	growth     growth
	dialErr    error // error of the last attempt to connect; nil if it succeeded
	tick       *time.Timer
	pending    time.Duration // delay for which tick is set; 0 if it is not set
	peak       [2]int        // maximum number of connections in use in this period and in the previous one
	period     time.Time     // start of the current period
	spare      spare
	notices    notices
	helped     time.Time // when the other lane closed a connection so that the server could answer here
}

func newLane(c *Client) *lane {
	l := &lane{client: c, places: 1, growth: growth{most: c.config.MaxConnections}}
	l.tick = time.AfterFunc(time.Hour, l.consider)
	l.tick.Stop()
	l.engine = pipe.New(c.engineConfig(l))
	return l
}

// Reasons why a call gets no connection.
var (
	errClosed   = errors.New("the client is closed")
	errNoneOpen = errors.New("there is no connection to the server")
)

// acquire returns a connection for a call; release must be called for it. It waits until a connection has room, ctx
// ends, or the time until is reached. waited reports whether it waited.
func (l *lane) acquire(ctx context.Context, until time.Time, idempotent bool) (c *conn, waited bool, err error) {
	if c := l.shared(); c != nil {
		return c, false, nil
	}
	l.mu.Lock()
	if err := l.refuses(); err != nil {
		l.mu.Unlock()
		return nil, false, err
	}
	c = l.room(idempotent)
	if s := l.spare.conn; c == nil && s != nil && s.busy == 0 && l.scarce(idempotent) && l.takes(s) {
		c = l.lendSpare(l.client.now())
	}
	if c != nil {
		l.begin(c)
		l.mu.Unlock()
		return c, false, nil
	}
	w := waiters.Get().(*waiter)
	l.number++
	w.number = l.number
	q := &l.others
	if idempotent {
		q = &l.idempotent
	}
	q.push(w)
	l.schedule(growthEvery)
	patience := until
	if len(l.conns) == 0 {
		patience = earlier(until, time.Now().Add(l.client.config.DialTimeout))
	}
	l.mu.Unlock()
	c, err = l.wait(ctx, q, w, patience, until)
	return c, true, err
}

// take calls acquire until it gets a connection that the server has not closed, as far as the kernel knows.
func (l *lane) take(ctx context.Context, until time.Time, idempotent bool) (c *conn, waited bool, err error) {
	for {
		c, late, err := l.acquire(ctx, until, idempotent)
		if waited = waited || late; err != nil || !c.hungUp() {
			return c, waited, err
		}
		l.mu.Lock()
		c.gone = true
		only := c.busy == 1
		l.unsend(c)
		l.mu.Unlock()
		if only { // otherwise unread replies may have arrived
			c.pin.Close(pipe.ErrHungUp)
		}
	}
}

// shared returns a connection that takes all calls, or nil.
func (l *lane) shared() *conn {
	if c := l.open.Load(); c != nil && c.pin.Alive() {
		return c
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// refuses returns the reason why no call can get a connection now, or nil. The caller must hold mu.
func (l *lane) refuses() error {
	switch {
	case l.closed:
		return l.fail(slipstream.Closed, errClosed)
	case l.unreachable():
		return l.fail(slipstream.NotSent, l.noConnection())
	}
	return nil
}

// unreachable reports whether calls fail because no connection accepts them and connecting to the server failed. The
// caller must hold mu.
func (l *lane) unreachable() bool {
	return l.client.config.FailFast && l.dialErr != nil && !slices.ContainsFunc(l.conns, l.takes)
}

func (l *lane) fail(o slipstream.Outcome, cause error) error {
	return &slipstream.Error{Addr: l.client.config.Addr, Outcome: o, Err: cause}
}

// noConnection returns the reason why there is no connection. The caller must hold mu.
func (l *lane) noConnection() error {
	if l.dialErr == nil {
		return errNoneOpen
	}
	return fmt.Errorf("%w: %w", errNoneOpen, l.dialErr)
}

// wait waits until w, which is in q, gets a connection. It waits no longer than until, and no longer than patience
// while no connection is open.
func (l *lane) wait(ctx context.Context, q *queue, w *waiter, patience, until time.Time) (*conn, error) {
	for {
		w.timer.Reset(time.Until(patience))
		var cause error
		select {
		case <-w.ready:
		case <-ctx.Done():
			cause = ctx.Err()
		case <-w.timer.C:
			cause = context.DeadlineExceeded
		}
		w.timer.Stop()
		l.mu.Lock()
		if cause == context.DeadlineExceeded && patience.Before(until) && w.conn == nil && !l.closed {
			if len(l.conns) > 0 {
				patience = until
				l.mu.Unlock()
				continue
			}
			cause = l.noConnection()
		}
		c := w.conn
		switch {
		case c != nil && cause != nil: // it got a connection too late
			l.unsend(c)
			c = nil
		case c == nil && l.closed:
			cause = errClosed
		case w.unreachable:
			cause = l.noConnection()
		case c == nil:
			q.remove(w)
			if len(l.conns) == 0 && l.dialErr != nil && !errors.Is(cause, errNoneOpen) {
				cause = fmt.Errorf("%w: %w", cause, l.noConnection())
			}
		}
		closed := l.closed
		l.mu.Unlock()
		select {
		case <-w.ready: // it was signaled after the wait had ended otherwise
		default:
		}
		w.conn, w.unreachable = nil, false
		waiters.Put(w)
		switch {
		case c != nil:
			return c, nil
		case closed:
			return nil, l.fail(slipstream.Closed, cause)
		}
		return nil, l.fail(slipstream.NotSent, cause)
	}
}

// room returns a connection that has room for a call, or nil. The caller must hold mu.
func (l *lane) room(idempotent bool) *conn {
	for i := l.first; i < len(l.conns); i++ {
		c := l.conns[i]
		if c.full() {
			if i == l.first {
				l.first++
			}
			continue
		}
		if (c.busy == 0 || idempotent && c != l.reserved) && c != l.spare.conn && l.takes(c) {
			return c
		}
	}
	return nil
}

// takes reports whether a connection accepts calls.
func (l *lane) takes(c *conn) bool { return !c.gone && !c.leaving.Load() && c.pin.Alive() }

// begin counts a call that is assigned to c. The caller must hold mu.
func (l *lane) begin(c *conn) {
	if c.busy++; c.busy == 1 {
		c.since = l.client.now()
		l.peak[0] = max(l.peak[0], c.at+1)
		if !c.answered {
			l.schedule(growthEvery)
		}
	}
}

// end subtracts n calls that are no longer in flight on c. The caller must hold mu.
func (l *lane) end(c *conn, n int) {
	if c.busy = max(c.busy-n, 0); c.busy == 0 {
		c.lost = 0
	}
	c.lost = min(c.lost, c.busy)
	if c.at >= 0 {
		l.first = min(l.first, c.at)
	}
}

// unsend ends the assignment of a call that was not sent. The caller must hold mu.
func (l *lane) unsend(c *conn) {
	if !c.anyOrder.Load() {
		l.end(c, 1)
		l.dispatch(c)
	}
}

// release ends the assignment of a call to c if calls on c are counted. If there was a reply, the assignment has
// already ended.
func (l *lane) release(c *conn, oneway bool, err error) {
	if c.anyOrder.Load() || err == nil && !oneway {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil && slipstream.OutcomeOf(err) != slipstream.MaybeExecuted:
		l.unsend(c)
	case oneway:
		c.oneways++
		l.unsend(c)
	default:
		c.lost++ // until its reply arrives
		l.schedule(idleEvery)
	}
}

// dispatch assigns waiting calls to c. The caller must hold mu.
func (l *lane) dispatch(c *conn) {
	for c.at >= 0 && c != l.spare.conn && l.takes(c) {
		w := l.next(c)
		if w == nil {
			return
		}
		l.begin(c)
		w.conn = c
		w.ready <- struct{}{}
	}
}

// next removes and returns the next call for c, or nil. A call that is not idempotent needs a connection without calls:
// if it is the oldest call and there is no such connection, c gets no more calls until it is empty. The caller must
// hold mu.
func (l *lane) next(c *conn) *waiter {
	idempotent, other := l.idempotent.first, l.others.first
	older := other != nil && (idempotent == nil || other.number < idempotent.number)
	switch {
	case c.busy == 0 && other != nil && (idempotent == nil || older && c.answered):
		l.reserved = nil
		return l.others.pop()
	case idempotent == nil:
		return nil
	case older && c.busy > 0 && (l.reserved == nil || l.reserved == c):
		l.reserved = c
		return nil
	case !c.full():
		return l.idempotent.pop()
	}
	return nil
}

// opened adds a connection that has been established.
func (l *lane) opened(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dialErr = nil
	c.depth.fixed, c.since = l.client.config.Depth, l.client.now()
	c.at = len(l.conns)
	l.conns = append(l.conns, c)
	if l.notices.trial {
		l.tried(c, c.since)
	}
	l.dispatch(c)
}

// advice tells a connection what to do after replies.
type advice struct {
	ack    bool  // acknowledge them immediately
	batch  int   // number of replies to wait for
	listen *conn // connection to listen to; may be nil
}

// replied counts n replies that c has received. concurrent means that its server answers in any order.
func (l *lane) replied(c *conn, n int, concurrent bool) (to advice) {
	now := l.client.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	took := now.Sub(c.since)
	if !c.answered && now.Sub(l.helped) < helpPatience {
		l.client.single.Store(&single{l, now.Add(starvedPause)})
	}
	c.since, c.answered, c.oneways = now, true, 0
	c.heard.Store(now.UnixNano())
	l.replies += uint64(n)
	l.slow.add(took)
	if concurrent {
		l.use(c)
		return advice{}
	}
	c.depth.replied(n, took, now)
	l.end(c, n)
	to.ack = c.busy > 0 && c.acks.needed(took)
	to.listen = l.settleSpare(now)
	l.dispatch(c)
	to.batch = c.depth.batch(c.busy)
	return to
}

// announced records that the server of c answers in any order.
func (l *lane) announced(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use(c)
}

// use makes all calls use c, whose server answers in any order. The caller must hold mu.
func (l *lane) use(c *conn) {
	c.anyOrder.Store(true)
	if c.at < 0 || !l.takes(c) {
		return
	}
	l.open.Store(c)
	if l.reserved == c {
		l.reserved = nil
	}
	if l.spare.conn != nil {
		l.lendSpare(l.client.now())
	}
	for _, q := range []*queue{&l.idempotent, &l.others} {
		for q.first != nil {
			w := q.pop()
			w.conn = c
			w.ready <- struct{}{}
		}
	}
}

// ended removes a connection.
func (l *lane) ended(c *conn, cause error) {
	now := l.client.now()
	l.mu.Lock()
	at := c.at
	c.at = -1
	l.conns = append(l.conns[:at], l.conns[at+1:]...)
	for i := at; i < len(l.conns); i++ {
		l.conns[i].at = i
	}
	l.first = min(l.first, at)
	if l.reserved == c {
		l.reserved = nil
	}
	l.open.CompareAndSwap(c, nil)
	for _, other := range l.conns {
		if other.anyOrder.Load() {
			l.use(other)
			break
		}
	}
	if l.spare.conn == c {
		l.spare.conn = nil
	}
	// A connection that the server closed is not needed unless calls wait. A replaced one is not counted.
	closed := !l.closed && !c.leaving.Load() && !c.removed
	trial := closed && hungUp(cause) && l.try(c, now)
	fewer := closed && !trial && l.places > 1 && (l.waiting() == 0 || len(l.conns) == 0)
	if fewer {
		l.places = max(1, len(l.conns))
		if l.notices.trial && len(l.conns) > 0 {
			l.places++
		}
	}
	places := l.places
	listen := l.settleSpare(now)
	l.mu.Unlock()
	if listen != nil {
		listen.pin.Listen(true)
	}
	if fewer {
		l.engine.SetSockets(places) // fails only if the client is closed
	}
}

// waiting returns the number of waiting calls. The caller must hold mu.
func (l *lane) waiting() int { return l.idempotent.n + l.others.n }

// close wakes all waiting calls and closes the connections.
func (l *lane) close() error {
	l.mu.Lock()
	l.closed = true
	l.tick.Stop()
	for _, q := range []*queue{&l.idempotent, &l.others} {
		for q.first != nil {
			q.pop().ready <- struct{}{}
		}
	}
	l.mu.Unlock()
	return l.engine.Close()
}

// dialed records the result of an attempt to connect.
func (l *lane) dialed(err error) {
	l.mu.Lock()
	l.dialErr = err
	ends := err != nil && l.failed(err, l.client.now())
	if l.unreachable() {
		for _, q := range []*queue{&l.idempotent, &l.others} {
			for q.first != nil {
				w := q.pop()
				w.unreachable = true
				w.ready <- struct{}{}
			}
		}
	}
	l.mu.Unlock()
	if ends {
		l.client.drainOther(l)
	}
}

// state returns the number of waiting calls, and whether the server answers in any order.
func (l *lane) state() (waiting int, anyOrder bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting(), l.open.Load() != nil
}
