package httpfront

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// sweepInterval is how often the time limits are checked, and their precision.
const sweepInterval = 250 * time.Millisecond

// reviewPause is the minimum time between two reviews of large answers.
const reviewPause = 5 * time.Millisecond

// drainPoll is how often Shutdown checks whether all connections have ended.
const drainPoll = 5 * time.Millisecond

// conns are the open connections of a server and their time limits.
//
// The limits of net/http set a timer two to four times per request, 2 of 28.9 us of
// CPU with 16,384 connections (memory-hit/16384). Here a connection only records
// since when it has been waiting, and one goroutine checks all of them four times a
// second.
type conns struct {
	// Immutable after newConns.
	head, idle, stall time.Duration
	unread            int64         // the maximum of unread HTTP/2 bytes that net/http keeps for a connection, apart from requests in flight
	places            chan struct{} // one for each connection that may be open
	budget, large     *loop.Budget
	leave             func()        // takes the connections out of the budgets' reviews
	over              chan struct{} // large is exceeded
	proxies           []netip.Prefix
	addresses         loop.AddressLimit
	quit              chan struct{} // closed by stop
	swept             chan struct{} // closed when sweep has ended
	started           time.Time

	// Guarded by mu. held is what is accounted for in the budget.
	mu   sync.Mutex
	all  map[*conn]struct{}
	held int64

	// Atomics. now is written by sweep; open by Accept and Close; both read by all.
	now     atomic.Int64 // since started; never 0
	open    atomic.Int64
	stopped atomic.Bool
	cuts    [loop.CloseReasons]atomic.Uint64 // connections that were closed by rule
}

func newConns(config Config) *conns {
	c := &conns{
		head: config.HeaderTimeout, idle: config.IdleTimeout, stall: config.StallTimeout,
		places: make(chan struct{}, config.MaxConnections),
		quit:   make(chan struct{}), swept: make(chan struct{}),
		unread:  bodiesOfStream + frameOfStream + int64(config.MaxHeader),
		started: time.Now(), all: make(map[*conn]struct{}),
		budget: config.Budget, large: config.Large, over: make(chan struct{}, 1), proxies: config.TrustedProxies, addresses: loop.AddressLimit{Most: config.MaxPerAddress},
	}
	leave, leaveLarge := c.budget.Join(c), c.large.Join(c)
	c.leave = func() { leave(); leaveLarge() }
	c.now.Store(1)
	// Ends with stop, which waits for it.
	go c.sweep()
	return c
}

// sweep closes connections that have waited for too long.
func (c *conns) sweep() {
	defer close(c.swept)
	ticker := time.NewTicker(min(sweepInterval, c.head/4, c.idle/4, c.stall/4))
	defer ticker.Stop()
	var late []*conn
	for {
		select {
		case <-c.quit:
			return
		case <-c.over:
			c.large.Review()
			time.Sleep(reviewPause)
			continue
		case <-ticker.C:
		}
		now := time.Since(c.started)
		c.now.Store(int64(now))
		c.mu.Lock()
		for one := range c.all {
			if why := one.late(now); why != loop.ReasonEnd {
				c.cuts[why].Add(1)
				late = append(late, one)
			}
		}
		c.mu.Unlock()
		for _, one := range late {
			_ = one.Close() // the goroutine that waits on it gets the error
		}
		clear(late)
		late = late[:0]
		c.account()
		c.budget.Review()
		c.large.Review()
	}
}

// wakeReview makes the sweep review large answers.
func (c *conns) wakeReview() {
	select {
	case c.over <- struct{}{}:
	default:
	}
}

// stop ends the sweep. It may be called more than once.
func (c *conns) stop() {
	if !c.stopped.Swap(true) {
		close(c.quit)
		<-c.swept
		c.leave()
		c.account()
	}
	<-c.swept
}

// awaitNone waits until no connection is open, but no longer than until and ctx.
func (c *conns) awaitNone(ctx context.Context, until time.Time) {
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	for c.open.Load() > 0 && ctx.Err() == nil && time.Now().Before(until) {
		<-ticker.C
	}
}

// awaitFirst waits until a request of each connection of HTTP/1 is being answered, or the connection
// has ended, but no longer than ctx: net/http drops requests that it reads after its Shutdown has
// begun. The wait for a missing request ends with the limits of [conn.late].
func (c *conns) awaitFirst(ctx context.Context) {
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	for c.someUnread() && ctx.Err() == nil {
		<-ticker.C
	}
}

// someUnread reports whether no request of some connection of HTTP/1 has been read yet.
func (c *conns) someUnread() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.all {
		if !one.several.Load() && !one.proven.Load() {
			return true
		}
	}
	return false
}

// conn is a connection that records what it has been waiting for, and since when.
type conn struct {
	// Immutable after add.
	net.Conn
	of     *conns
	placed bool   // it has one of the slots
	alone  bool   // it is not counted with others of its address
	local  bool   // its listener is bound to a loopback address
	limit  func() // takes it out of the count of its address; nil if it is not counted

	// Written by the first call of identify with a handshake, before any other reads it.
	identified  sync.Once
	certificate *access.Certificate

	// Atomics, on the clock of conns, 0 if not waiting. Written by the goroutine
	// that serves the connection, read by sweep.
	idleSince  atomic.Int64 // no request is in flight
	headSince  atomic.Int64 // part of a request's head has arrived
	writeSince atomic.Int64 // an answer is being written
	opened     atomic.Int64 // when it was accepted
	proven     atomic.Bool  // a request has arrived
	shaking    atomic.Int32 // the progress of the TLS handshake
	several    atomic.Bool  // requests of HTTP/2 share it: bytes between them are not a head
	requests   atomic.Int64 // requests of HTTP/2 that are being answered
	streams    atomic.Int64 // bytes that these hold, which are accounted for in the budget

	// Atomics. Written by the goroutine that serves the connection, read by account.
	came    atomic.Int64 // bytes read since the last answer; of HTTP/2 since the last request
	writing atomic.Int64 // bytes of the write in flight
	large   atomic.Int64 // bytes of large answers that are being written

	closed atomic.Bool // written by the first to close it
}

// Progress of a TLS handshake: net/http does not report its end.
const (
	shakingNot      = iota
	shakingBegins   // waiting for the client hello
	shakingAnswered // waiting for the client's answer
)

// late returns which wait of the connection has taken too long, or ReasonEnd if none
// has.
func (c *conn) late(now time.Duration) loop.CloseReason {
	past := func(since *atomic.Int64, limit time.Duration) bool {
		s := since.Load()
		return s != 0 && now-time.Duration(s) > limit
	}
	switch {
	case past(&c.headSince, c.of.head):
		return loop.ReasonPartial
	case past(&c.writeSince, c.of.stall):
		return loop.ReasonStalled
	case !past(&c.idleSince, c.of.idle):
		return loop.ReasonEnd
	case !c.proven.Load():
		return loop.ReasonUnproven
	}
	return loop.ReasonIdle
}

// identify returns the client's certificate, which the first call with the state of a handshake reads
// from it. A refused certificate counts as none: the handshake should have failed.
func (c *conn) identify(state *tls.ConnectionState) *access.Certificate {
	if state != nil {
		c.identified.Do(func() { c.certificate, _ = access.NewCertificate(state) })
	}
	return c.certificate
}

// connOf returns the conn below a connection of net/http, or nil if there is none.
func connOf(nc net.Conn) *conn {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}

type connKey struct{}

// withConn is called by net/http to add the connection to the context of its
// requests.
func withConn(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, connOf(nc))
}

// trackState is called by net/http when the state of a connection changes.
func trackState(nc net.Conn, state http.ConnState) {
	c := connOf(nc)
	if c == nil {
		return
	}
	switch state {
	case http.StateNew: // until the first request it is idle, except for what it begins to send
		c.idleSince.Store(c.of.now.Load())
		if _, secure := nc.(*tls.Conn); secure {
			c.shaking.Store(shakingBegins)
			c.headSince.Store(c.of.now.Load())
		}
	case http.StateActive: // the head is complete; of HTTP/2 at first the preface
		if t, ok := nc.(*tls.Conn); ok && t.ConnectionState().NegotiatedProtocol == protocolHTTP2 {
			c.several.Store(true)
		}
		c.headSince.Store(0)
		c.idleSince.Store(0)
	case http.StateIdle:
		if !c.several.Load() {
			c.proven.Store(true) // net/http has answered OPTIONS * itself
		}
		c.idleSince.Store(c.of.now.Load())
		c.came.Store(0)
	}
}

// Read records when the head of a request begins to arrive.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.came.Add(int64(n))
	if n > 0 && c.shaking.Load() == shakingAnswered {
		c.shaking.Store(shakingNot)
		c.headSince.Store(0) // the handshake is over, or almost
		return n, err
	}
	if n > 0 && !c.several.Load() && c.idleSince.Load() != 0 && c.headSince.Load() == 0 {
		c.headSince.Store(c.of.now.Load())
	}
	return n, err
}

// Write records the start of a write while it lasts.
func (c *conn) Write(b []byte) (int, error) {
	if c.shaking.Load() == shakingBegins {
		c.shaking.Store(shakingAnswered)
	} else if !c.proven.Load() {
		c.headSince.Store(0) // the handshake may be over: a request comes next
	}
	c.writing.Store(int64(len(b)))
	c.writeSince.Store(c.of.now.Load())
	n, err := c.Conn.Write(b)
	c.writeSince.Store(0)
	c.writing.Store(0)
	return n, err
}

// Close releases the connection's slot, if it has one.
func (c *conn) Close() error {
	if !c.closed.Swap(true) {
		c.of.mu.Lock()
		delete(c.of.all, c)
		c.of.mu.Unlock()
		c.of.open.Add(-1)
		if c.placed {
			<-c.of.places
		}
		if c.limit != nil {
			c.limit()
		}
	}
	return c.Conn.Close()
}

// add registers a connection.
func (c *conns) add(nc net.Conn, placed, local bool) *conn {
	c.open.Add(1)
	one := &conn{Conn: nc, of: c, placed: placed, local: local, alone: loop.Alone(addrOf(nc), c.proxies)}
	one.opened.Store(c.now.Load())
	c.mu.Lock()
	c.all[one] = struct{}{}
	c.mu.Unlock()
	return one
}

// limitedListener accepts no more connections than there are slots.
type limitedListener struct {
	net.Listener
	conns  *conns
	closed chan struct{}
	once   atomic.Bool
	room   loop.Room // owned by Accept
}

// Accept accepts one connection and waits for a slot for it; the kernel's queue holds the
// others.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !l.awaitPlace() {
			_ = nc.Close() // the listener is closed
			return nil, net.ErrClosed
		}
		g, limited, ok := l.conns.addresses.Take(addrOf(nc), loop.Alone(addrOf(nc), l.conns.proxies))
		if !ok {
			l.conns.cuts[loop.ReasonAddress].Add(1)
			<-l.conns.places
			_ = nc.Close() // nothing was sent
			continue
		}
		c := l.conns.add(nc, true, loop.AtLoopback(l.Addr()))
		if limited {
			c.limit = func() { l.conns.addresses.Release(g) }
		}
		return c, nil
	}
}

// awaitPlace acquires a slot, for which another connection may be closed. It returns false if
// the listener is closed.
func (l *limitedListener) awaitPlace() bool {
	for {
		select {
		case l.conns.places <- struct{}{}:
			return true
		default:
		}
		l.room.Make(l.conns.Survey(nil), time.Now())
		pause := time.NewTimer(placePause)
		select {
		case l.conns.places <- struct{}{}:
			pause.Stop()
			return true
		case <-l.closed:
			pause.Stop()
			return false
		case <-pause.C:
		}
	}
}

// placePause is how long a connection waits for a slot before more connections are
// closed.
const placePause = 50 * time.Millisecond

// Close stops accepting.
func (l *limitedListener) Close() error {
	if !l.once.Swap(true) {
		close(l.closed)
	}
	return l.Listener.Close()
}
