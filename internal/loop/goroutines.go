package loop

import (
	"crypto/tls"
	"errors"
	"hash/maphash"
	"math"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// drainSweep is how often time limits are checked while the server drains.
const drainSweep = 20 * time.Millisecond

// goEngine is the backend of goroutines: one for each listener accepts, one for each connection
// reads, helpers write answers that other goroutines have completed, and one sweeper checks all
// time limits.
type goEngine struct {
	// Immutable after newGoroutines.
	server  *Server
	quit    chan struct{} // closed by stop
	drained chan struct{} // closed by drain
	emptied chan struct{} // closed when no connection is left after drain

	shaking *handshakes
	helpers *Workers // as many as connections, so that none has to wait for another

	running sync.WaitGroup // all goroutines

	// Guarded by mu.
	mu        sync.Mutex
	listeners []net.Listener
	conns     []*goConn // each knows its index
	accepting int       // goroutines that accept
	draining  bool
	stopped   bool
	isEmptied bool

	// Atomics. Written by connections, read by stats. stop sets cut, the error with which all
	// connections end, before it closes their sockets.
	reads, writes atomic.Uint64
	owed          atomic.Int64
	cut           atomic.Pointer[error]
}

func newGoroutines(s *Server) (engine, error) {
	return &goEngine{server: s, shaking: newHandshakes(max(1, runtime.GOMAXPROCS(0)/2)), helpers: NewWorkers(s.config.MaxConnections),
		quit: make(chan struct{}), drained: make(chan struct{}), emptied: make(chan struct{})}, nil
}

func (g *goEngine) serve(listeners []net.Listener) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listeners = listeners
	g.accepting = len(listeners)
	g.running.Add(len(listeners) + 1)
	for _, l := range listeners {
		var secure *tls.Config
		if s, ok := l.(*secureListener); ok {
			secure = s.config
		}
		// Ends when drain or stop has closed the listener; stop waits for it.
		go g.accept(l, secure)
	}
	// Ends with quit, which stop closes; stop waits for it.
	go g.sweep()
	return nil
}

// accept accepts connections from l until the server drains. If secure is not nil, they use TLS.
func (g *goEngine) accept(l net.Listener, secure *tls.Config) {
	defer g.running.Done()
	defer g.acceptEnded(l)
	local := AtLoopback(l.Addr())
	for {
		nc, err := l.Accept()
		if err == nil {
			if !g.place(nc, secure, local) {
				return
			}
			continue
		}
		if g.isDraining() || errors.Is(err, net.ErrClosed) {
			return
		}
		// No descriptors or no memory: trying again immediately would spin.
		if g.server.refused.Add(1)%100 == 1 {
			g.server.config.Log.Warn("accepting a connection failed; trying again", "error", err)
		}
		if !g.pause() {
			return
		}
	}
}

// place adopts a connection as soon as there is a place for it. At most one connection per listener
// waits here; the others wait in the kernel. It returns false if the server stops.
func (g *goEngine) place(nc net.Conn, secure *tls.Config, local bool) bool {
	for !g.server.takePlace() {
		g.server.lacksRoom()
		if !g.pause() {
			_ = nc.Close()
			return false
		}
	}
	g.adopt(nc, secure, local)
	return true
}

// pause waits before the next attempt to accept. It returns false if there must be none.
func (g *goEngine) pause() bool {
	t := time.NewTimer(acceptPause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-g.drained:
	case <-g.quit:
	}
	return false
}

func (g *goEngine) isDraining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining || g.stopped
}

func (g *goEngine) acceptEnded(l net.Listener) {
	_ = l.Close() // drain or stop may have closed it
	g.mu.Lock()
	defer g.mu.Unlock()
	g.accepting--
	g.checkEmptyLocked()
}

// adopt starts serving a connection that has a place.
func (g *goEngine) adopt(raw net.Conn, secure *tls.Config, local bool) {
	s := g.server
	c := &goConn{engine: g, raw: raw, nc: raw}
	c.cond.L = &c.mu
	c.server, c.limits, c.backend, c.remote = s, &s.limits, c, addrPortOf(raw.RemoteAddr())
	c.id, c.local = s.ids.Add(1), local
	c.lane, c.share = int(c.id%uint64(s.config.Loops)), math.MaxInt
	c.room = s.config.MaxOutput
	if !c.admitted() {
		_ = raw.Close()
		s.releasePlace()
		return
	}
	c.opened, c.readAt = s.now(), -1
	c.active = c.opened
	if secure != nil {
		c.shaking = &shakingConn{Conn: raw, all: g.shaking, client: maphash.Comparable(g.shaking.seed, c.group(c.id)), left: maxHandshake}
		c.nc = tls.Server(c.shaking, secure)
		c.partial = c.active // PartialTimeout also bounds the handshake
	}
	c.busy = true // the first turn is the reader's
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		_ = raw.Close()
		c.releasePlace()
		return
	}
	s.accepted.Add(1)
	c.place = len(g.conns)
	g.conns = append(g.conns, c)
	g.running.Add(1)
	// Ends with the connection, which stop cuts and waits for.
	go c.run()
}

func addrPortOf(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := t.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

// remove removes a connection that has ended or was detached.
func (g *goEngine) remove(c *goConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := len(g.conns) - 1
	g.conns[c.place] = g.conns[last]
	g.conns[c.place].place = c.place
	g.conns[last] = nil
	g.conns = g.conns[:last]
	g.checkEmptyLocked()
}

func (g *goEngine) checkEmptyLocked() {
	if (g.draining || g.stopped) && g.accepting == 0 && len(g.conns) == 0 && !g.isEmptied {
		g.isEmptied = true
		close(g.emptied)
	}
}

// sweep checks the time limits of all connections periodically.
func (g *goEngine) sweep() {
	defer g.running.Done()
	interval := g.server.config.sweepInterval()
	t := time.NewTicker(interval)
	defer t.Stop()
	drained := g.drained
	var conns []*goConn
	for {
		select {
		case <-g.quit:
			return
		case <-drained:
			drained = nil
			t.Reset(min(interval, drainSweep))
		case <-t.C:
		}
		g.mu.Lock()
		conns = append(conns[:0], g.conns...)
		g.mu.Unlock()
		now := g.server.now()
		for i, c := range conns {
			c.lookAt(now)
			conns[i] = nil
		}
	}
}

func (g *goEngine) drain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.draining = true
	close(g.drained)
	for _, l := range g.listeners {
		if d, ok := l.(interface{ SetDeadline(time.Time) error }); !ok || d.SetDeadline(time.Now().Add(lastAccepts)) != nil {
			_ = l.Close() // ends its Accept, too
		}
	}
	g.checkEmptyLocked()
}

func (g *goEngine) empty() <-chan struct{} { return g.emptied }

func (g *goEngine) stop(err error) {
	g.mu.Lock()
	if !g.stopped {
		g.stopped = true
		close(g.quit)
	}
	for _, l := range g.listeners {
		_ = l.Close() // it may be closed already
	}
	conns := slices.Clone(g.conns)
	g.mu.Unlock()
	g.cut.CompareAndSwap(nil, &err)
	for _, c := range conns {
		_ = c.raw.Close() // ends reads and writes that wait for the peer, also inside a turn
	}
	for _, c := range conns {
		c.end(err)
	}
	g.running.Wait()
	g.helpers.Close()
}

func (g *goEngine) survey(dst []Peer) []Peer {
	g.mu.Lock()
	conns := slices.Clone(g.conns)
	g.mu.Unlock()
	now := g.server.now()
	for _, c := range conns {
		dst = append(dst, c.look(now))
	}
	return dst
}

// resume does nothing: a connection that waits for a place tries again soon.
func (g *goEngine) resume() {}

func (g *goEngine) stats(s *Stats) {
	s.Reads += g.reads.Load()
	s.Writes += g.writes.Load()
	s.Owed += g.owed.Load()
}
