package loop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Server serves connections. Make it with [New], then call Serve and Shutdown.
type Server struct {
	// Immutable after New.
	config  Config
	limits  Limits // of connections that did not set their own
	started time.Time
	engine  engine   // of Config.Backend
	engines []engine // engine and, if that is epoll, one of goroutines for TLS
	used    []engine // those with listeners; set by Serve before the first survey
	step    int64    // how far an account may change before the budget is updated
	wake    chan struct{}
	quit    chan struct{} // closed by stopKeeping
	kept    chan struct{} // closed when keep has ended

	room Room // owned by keep

	accounts  []account // one for each lane
	addresses AddressLimit

	// Guarded by mu.
	mu      sync.Mutex
	serving bool
	down    bool   // Shutdown has been called
	leave   func() // removes the connections from the budgets' reviews; nil if there is no keeper

	// Atomics. Written by the backend and by connections that close, read by all.
	ids      atomic.Uint64
	open     atomic.Int64 // places in use, including detached connections
	crowded  atomic.Bool  // a connection waits for a place
	accepted atomic.Uint64
	refused  atomic.Uint64 // accept(2) failed
	closes   [CloseReasons]atomic.Uint64
	panics   panicLog

	// Atomics. Written by Shutdown, read by connections. drainedAt is on the engine's clock, or 0
	// if the server is not draining; after drainBy, connections in use end, too.
	draining  atomic.Bool
	drainedAt atomic.Int64
	drainBy   atomic.Int64
}

// acceptPause is how long the server stops accepting when it has run out of descriptors or places.
const acceptPause = 50 * time.Millisecond

// lastAccepts is how long accepting continues after Shutdown: the kernel may not yet have processed
// the last packet of a client that has connected.
const lastAccepts = 30 * time.Millisecond

// engine is what a backend does for the server.
type engine interface {
	// serve starts accepting from the listeners, which the engine then owns.
	serve(listeners []net.Listener) error
	// drain stops accepting, once the kernel's queues are empty, and checks the time
	// limits often.
	drain()
	// empty returns a channel that is closed when all connections have ended after drain.
	empty() <-chan struct{}
	// stop ends all connections with err and all goroutines, and waits for them.
	stop(err error)
	// survey appends the connections to dst.
	survey(dst []Peer) []Peer
	// resume ends a pause in accepting.
	resume()
	// stats adds the backend's counters.
	stats(s *Stats)
}

// New returns a server on which Serve has not been called yet.
func New(config Config) (*Server, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{config: config, started: time.Now(), limits: Limits{config.MaxInput, config.MaxDeferred, config.IdleTimeout, config.PartialTimeout},
		wake: make(chan struct{}, 1), quit: make(chan struct{}), kept: make(chan struct{}),
		room: Room{Places: config.MaxConnections}, accounts: make([]account, config.Loops), addresses: AddressLimit{Most: config.MaxPerAddress},
		step: min(max(config.Budget.limit/int64(64*config.Loops), 1), 1<<20)}
	if config.Backend == Epoll {
		s.engine, err = newEpoll(s)
	} else {
		s.engine, err = newGoroutines(s)
	}
	if err != nil {
		return nil, err
	}
	s.engines = []engine{s.engine}
	if config.Backend == Epoll {
		secure, _ := newGoroutines(s) // it never fails
		s.engines = append(s.engines, secure)
	}
	return s, nil
}

// Survey implements [Source].
func (s *Server) Survey(dst []Peer) []Peer {
	for _, e := range s.used {
		dst = e.survey(dst)
	}
	return dst
}

// Backend returns the backend that the server chose.
func (s *Server) Backend() Backend { return s.config.Backend }

// now is the engine's clock: the time since New, never 0.
func (s *Server) now() time.Duration { return time.Since(s.started) + 1 }

// Serve starts serving connections to the listeners and returns. Listeners that [Secure] returned
// are served by goroutines, whatever the backend. The server owns the listeners from then on, even
// if Serve fails. Serve may be called only once.
func (s *Server) Serve(listeners ...net.Listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errors.New("no listeners")
	switch {
	case s.down:
		err = net.ErrClosed
	case s.serving:
		err = errors.New("Serve was already called")
	case len(listeners) > 0:
		s.serving = true
		if err = s.serve(listeners); err == nil {
			leave, leaveLarge := s.config.Budget.Join(s), s.config.Large.Join(s)
			s.leave = func() { leave(); leaveLarge() }
			// Ends with Shutdown, which waits for it.
			go s.keep()
			return nil
		}
	}
	for _, l := range listeners {
		_ = l.Close() // the first error is reported
	}
	return fmt.Errorf("loop: serve: %w", err)
}

// serve passes each listener to the engine that serves it.
func (s *Server) serve(listeners []net.Listener) error {
	secure := s.engines[len(s.engines)-1]
	of := make(map[engine][]net.Listener)
	for _, l := range listeners {
		e := s.engine
		if _, ok := l.(*secureListener); ok {
			e = secure
		}
		of[e] = append(of[e], l)
	}
	for _, e := range s.engines {
		if len(of[e]) == 0 {
			continue
		}
		if err := e.serve(of[e]); err != nil {
			return err // never from the last engine: the backend of goroutines does not fail
		}
		s.used = append(s.used, e)
	}
	return nil
}

// Shutdown stops accepting, waits until requests in flight have ended, and closes the connections
// in order. If ctx ends first, it closes the remaining connections immediately and returns the
// context's error. It may be called again after it has returned. It does not wait for detached
// connections.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	first := !s.down
	s.down = true
	s.mu.Unlock()
	if first {
		now := s.now()
		s.drainBy.Store(int64(now + s.drainPatience(ctx)))
		s.drainedAt.Store(int64(now))
		s.draining.Store(true)
		for _, e := range s.engines {
			e.drain()
		}
	}
	var err error
	for _, e := range s.engines {
		select {
		case <-e.empty():
			continue
		default:
		}
		select {
		case <-e.empty():
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if first {
		s.stopKeeping()
	}
	for _, e := range s.engines {
		e.stop(&CloseError{Reason: ReasonDrained})
	}
	s.settleAccounts()
	return err
}

// drainPatience returns how long, while the server drains, connections stay open that send requests
// without answers more often than once in Config.DrainGrace: a multiple of the grace, at most half
// of the time until ctx ends.
func (s *Server) drainPatience(ctx context.Context) time.Duration {
	const times = 10
	patience := times * s.config.DrainGrace
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(end)/2)
	}
	return patience
}

// takePlace takes a place for a new connection and reports whether one was free.
func (s *Server) takePlace() bool {
	for {
		n := s.open.Load()
		if n >= int64(s.config.MaxConnections) {
			return false
		}
		if s.open.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// releasePlace releases a place.
func (s *Server) releasePlace() { s.open.Add(-1) }

// releaseOnce returns a function that releases the place of c the first time it is called.
func releaseOnce(c *Conn) func() {
	var once sync.Once
	return func() { once.Do(c.releasePlace) }
}

// handOver passes a detached connection to Config.Detached.
func (s *Server) handOver(c *Conn, nc net.Conn, unread []byte) {
	p := &placedConn{Conn: nc, release: releaseOnce(c), local: c.local}
	if s.config.Detached == nil {
		_ = p.Close() // it has no owner
		return
	}
	defer func() {
		if v := recover(); v != nil {
			_ = s.panicked(c, v) // it is logged
			_ = p.Close()        // it has no owner
		}
	}()
	s.config.Detached(p, unread)
}

// countClose counts the end of a connection.
func (s *Server) countClose(err error) {
	reason := ReasonEnd
	var e *CloseError
	switch {
	case errors.As(err, &e):
		reason = e.Reason
	case err != nil:
		reason = ReasonReset
	}
	s.closes[reason].Add(1)
}

// Stats are the metrics of a server at one moment.
type Stats struct {
	Backend     string
	Connections int64  // open, including detached ones
	Accepted    uint64 // since the start
	// AcceptErrors counts failures of accept(2), mostly for lack of descriptors.
	AcceptErrors uint64
	// Unwritten is the number of bytes that wait for peers to read, and Large is the part of it
	// that belongs to large answers; Owed is the number of deferred answers.
	Unwritten, Large, Owed int64
	// Reads and Writes are system calls. Wakes counts the calls of epoll_wait that returned events,
	// Events counts those events, and Sleeps counts the waits that did not return immediately.
	Reads, Writes, Wakes, Events, Sleeps uint64
	// Postponed counts turns that ended with work left because their share was spent.
	Postponed uint64
	// Late counts those of Events that may have waited for more than a millisecond to be served
	// while another loop slept.
	Late uint64
	// Closes counts connections that ended, by the name of a [CloseReason].
	Closes map[string]uint64
}

// EachClose calls visit with the name of each reason, in alphabetical order, and the number of
// connections that ended for that reason.
func (s *Stats) EachClose(visit func(reason string, n uint64)) {
	for _, reason := range slices.Sorted(maps.Keys(s.Closes)) {
		visit(reason, s.Closes[reason])
	}
}

// Connections returns the number of open connections, including detached ones.
func (s *Server) Connections() int64 { return s.open.Load() }

// Stats returns the current metrics.
func (s *Server) Stats() Stats {
	st := Stats{
		Backend: s.config.Backend.String(), Closes: make(map[string]uint64), Connections: s.open.Load(), Accepted: s.accepted.Load(),
		AcceptErrors: s.refused.Load(), Unwritten: s.unwritten(), Large: s.unwrittenLarge(),
	}
	for i := range s.closes {
		st.Closes[CloseReason(i).String()] = s.closes[i].Load()
	}
	for _, e := range s.engines {
		e.stats(&st)
	}
	return st
}
