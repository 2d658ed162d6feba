package httpfront

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// handOvers are the listeners through which net/http gets the connections that the
// event loop hands over.
type handOvers struct{ http1, http2 *handedListener }

// take takes over a connection. unread is read before any further bytes.
func (h handOvers) take(nc net.Conn, unread []byte) {
	state := agreed(nc)
	to := h.http1
	if state != nil && state.NegotiatedProtocol == protocolHTTP2 {
		to = h.http2
	}
	to.take(nc, state, unread)
}

// agreed returns the state of the TLS handshake, or nil if there was none.
func agreed(nc net.Conn) *tls.ConnectionState {
	below, ok := nc.(interface{ NetConn() net.Conn })
	if !ok {
		return nil
	}
	t, ok := below.NetConn().(*tls.Conn)
	if !ok {
		return nil
	}
	state := t.ConnectionState()
	return &state
}

// handedListener passes one protocol's connections to net/http.
type handedListener struct {
	// Immutable after Server.Serve.
	addr  net.Addr
	conns *conns
	http2 bool

	// Guarded by mu. There are no more in queue than the loop has connections.
	mu     sync.Mutex
	came   *sync.Cond // queue or closed has changed
	queue  []net.Conn
	closed bool
}

func newHandedListener(conns *conns, http2 bool) *handedListener {
	l := &handedListener{conns: conns, http2: http2}
	l.came = sync.NewCond(&l.mu)
	return l
}

func (l *handedListener) take(nc net.Conn, state *tls.ConnectionState, unread []byte) {
	at, ok := nc.(interface{ AtLoopback() bool })
	c := l.conns.add(&replayConn{Conn: nc, unread: unread}, false, ok && at.AtLoopback())
	c.several.Store(l.http2)
	c.identify(state)
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.queue = append(l.queue, c)
		l.came.Signal()
	}
	l.mu.Unlock()
	if closed {
		_ = c.Close() // the client may retry: nothing was answered
	}
}

// Accept implements [net.Listener].
func (l *handedListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.closed {
		l.came.Wait()
	}
	if len(l.queue) == 0 {
		return nil, net.ErrClosed
	}
	c := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	return c, nil
}

// Close implements [net.Listener]. Connections that were taken over are still accepted: they
// have a request without an answer.
func (l *handedListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.came.Broadcast()
	return nil
}

// Addr implements [net.Listener].
func (l *handedListener) Addr() net.Addr { return l.addr }

// replayConn is a connection of which some bytes have already been read.
type replayConn struct {
	net.Conn
	// Owned by the reader.
	unread []byte
}

// Read implements [net.Conn].
func (r *replayConn) Read(p []byte) (int, error) {
	if len(r.unread) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.unread)
	if r.unread = r.unread[n:]; len(r.unread) == 0 {
		r.unread = nil
	}
	return n, nil
}

// logClose logs connections that ended because of what their clients did or did not do, at
// most one per second.
func (f *front) logClose(c *loop.Conn, err error) {
	var why *loop.CloseError
	if !errors.As(err, &why) {
		return
	}
	switch why.Reason {
	case loop.ReasonPartial, loop.ReasonStalled, loop.ReasonTooLarge, loop.ReasonAborted, loop.ReasonMemory, loop.ReasonLarge:
	default:
		return
	}
	if leftOut, ok := f.closed.Take(f.cache.Now()); ok {
		f.config.Log.Warn("connection ended", "reason", why.Reason.String(), "client", c.RemoteAddr().String(),
			"connection", c.ID(), "error", err, "left_out", leftOut)
	}
}
