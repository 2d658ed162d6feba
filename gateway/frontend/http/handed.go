package httpfront

import (
	"errors"
	"net"
	"sync"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// handedListener is where net/http gets the connections that the event loop hands over.
type handedListener struct {
	// Immutable after newHandedListener.
	addr  net.Addr
	conns *conns

	// Guarded by mu. There are no more in queue than the loop has connections.
	mu     sync.Mutex
	came   *sync.Cond // queue or closed has changed
	queue  []net.Conn
	closed bool
}

func newHandedListener(addr net.Addr, conns *conns) *handedListener {
	l := &handedListener{addr: addr, conns: conns}
	l.came = sync.NewCond(&l.mu)
	return l
}

// take takes over a connection. unread is read before anything else that comes.
func (l *handedListener) take(nc net.Conn, unread []byte) {
	c := l.conns.add(&replayConn{Conn: nc, unread: unread}, false)
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.queue = append(l.queue, c)
		l.came.Signal()
	}
	l.mu.Unlock()
	if closed {
		_ = c.Close() // the client may ask again: nothing was answered
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

// Close implements [net.Listener]. What has been taken is accepted still: it has a request
// that nobody has answered.
func (l *handedListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.came.Broadcast()
	return nil
}

// Addr implements [net.Listener].
func (l *handedListener) Addr() net.Addr { return l.addr }

// replayConn is a connection of which some bytes have been read already.
type replayConn struct {
	net.Conn
	// Owned by who reads.
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

// joinListeners returns a listener that accepts from all of them.
func joinListeners(all []net.Listener) net.Listener {
	if len(all) == 1 {
		return all[0]
	}
	j := &joinedListener{all: all, accepted: make(chan acceptance), quit: make(chan struct{})}
	for _, l := range all {
		j.accepting.Add(1)
		// Ends with Close, which closes l and waits for it.
		go func() {
			defer j.accepting.Done()
			j.accept(l)
		}()
	}
	return j
}

// joinedListener accepts from several sockets of one address.
type joinedListener struct {
	// Immutable after joinListeners.
	all      []net.Listener
	accepted chan acceptance
	quit     chan struct{}

	once      sync.Once // of Close
	accepting sync.WaitGroup
}

type acceptance struct {
	conn net.Conn
	err  error
}

func (j *joinedListener) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		select {
		case j.accepted <- acceptance{c, err}:
		case <-j.quit:
			if err == nil {
				_ = c.Close()
			}
			return
		}
	}
}

// Accept implements [net.Listener].
func (j *joinedListener) Accept() (net.Conn, error) {
	select {
	case a := <-j.accepted:
		return a.conn, a.err
	case <-j.quit:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (j *joinedListener) Close() error {
	j.once.Do(func() {
		close(j.quit)
		for _, l := range j.all {
			_ = l.Close() // they are of no use any more
		}
	})
	j.accepting.Wait()
	return nil
}

// Addr implements [net.Listener].
func (j *joinedListener) Addr() net.Addr { return j.all[0].Addr() }

// logClose tells of connections that ended because of what their clients did or did not
// do, at most one a second.
func (f *front) logClose(c *loop.Conn, err error) {
	var why *loop.CloseError
	if !errors.As(err, &why) {
		return
	}
	switch why.Reason {
	case loop.ReasonPartial, loop.ReasonStalled, loop.ReasonTooLarge, loop.ReasonAborted, loop.ReasonMemory:
	default:
		return
	}
	if leftOut, ok := f.closed.Take(f.cache.Now()); ok {
		f.config.Log.Warn("connection ended", "reason", why.Reason.String(), "client", c.RemoteAddr().String(),
			"connection", c.ID(), "error", err, "left_out", leftOut)
	}
}
