package tarantoolsim

import (
	"context"
	"crypto/rand"
	"net"
	"slices"
	"sync"

	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// conn is a connection to the server.
type conn struct {
	// Immutable.
	server *Server
	socket net.Conn
	number int
	salt   []byte
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	more   chan struct{} // capacity 1: there is something to write

	// Owned by read.
	streams map[uint64]*stream

	// Guarded by server.mu.
	user     string
	features uint64 // of the client
	watches  map[string]*watch

	// Guarded by mu.
	mu       sync.Mutex
	out      []byte
	held     [][]byte // replies that wait for others to be sent before them
	reorders int
	hangs    bool
	done     bool // nothing follows
}

func newConn(s *Server, socket net.Conn, number int) *conn {
	c := &conn{
		server: s, socket: socket, number: number, salt: make([]byte, 32), more: make(chan struct{}, 1),
		user: guest, streams: make(map[uint64]*stream), watches: make(map[string]*watch), reorders: s.reorders, hangs: s.hangs,
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	rand.Read(c.salt)
	return c
}

// close ends the connection; its goroutines do the rest.
func (c *conn) close() {
	c.cancel()
	c.socket.Close()
}

// read answers requests until the connection ends.
func (c *conn) read() {
	defer c.end()
	c.send(box.AppendGreeting(nil, box.Greeting{Version: c.server.config.Version, Protocol: "Binary", Instance: c.server.instance, Salt: c.salt}))
	var in []byte
	chunk := make([]byte, 16<<10)
	for {
		n, err := c.socket.Read(chunk)
		if err != nil {
			return
		}
		in = append(in, chunk[:n]...)
		for len(in) > 0 {
			m, err := box.ScanRequest(in, 0)
			if err != nil {
				c.send(box.AppendError(nil, 0, 0, fail(iproto.CodeInvalidMessagePack, "Invalid MsgPack - packet header")))
				return
			}
			if m.More {
				break
			}
			// Handlers may keep the body.
			r := &Request{conn: c, code: m.Code, sync: m.Sync, schema: m.Schema, Type: m.Code.String(), Stream: m.Stream, Body: slices.Clone(in[m.BodyAt:m.Len])}
			in = in[m.Len:]
			c.take(r)
		}
	}
}

// end makes write send the rest and close the connection.
func (c *conn) end() {
	c.cancel()
	c.mu.Lock()
	c.done = true
	c.mu.Unlock()
	c.notify()
	c.server.mu.Lock()
	delete(c.server.conns, c)
	c.server.mu.Unlock()
}

func (c *conn) notify() {
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// send sends messages other than replies, before the replies that are held back.
func (c *conn) send(b []byte) {
	c.mu.Lock()
	c.out = append(c.out, b...)
	c.mu.Unlock()
	c.notify()
}

// reply sends a reply when it is its turn.
func (c *conn) reply(b []byte) {
	c.mu.Lock()
	if c.held = append(c.held, b); len(c.held) >= c.reorders {
		c.release()
	}
	c.mu.Unlock()
	c.notify()
}

// release sends the replies that are held, the last first. It is called with mu held.
func (c *conn) release() {
	for _, b := range slices.Backward(c.held) {
		c.out = append(c.out, b...)
	}
	c.held = nil
}

func (c *conn) reorder(n int) {
	c.mu.Lock()
	if c.reorders = n; len(c.held) >= n {
		c.release()
	}
	c.mu.Unlock()
	c.notify()
}

func (c *conn) hang(on bool) {
	c.mu.Lock()
	c.hangs = on
	c.mu.Unlock()
	c.notify()
}

// write sends pending data, in a separate goroutine because a client may write before it reads.
func (c *conn) write() {
	defer c.close()
	for range c.more {
		c.mu.Lock()
		out, done := c.out, c.done
		if c.hangs {
			out = nil
		} else {
			c.out = nil
		}
		c.mu.Unlock()
		if len(out) > 0 {
			if _, err := c.socket.Write(out); err != nil {
				return
			}
		}
		if done {
			return
		}
	}
}

// stream is a stream of requests, which are answered one after another.
type stream struct {
	last chan struct{} // closed when the last request so far is answered

	tx *transaction // guarded by server.mu: nil outside of transactions
}

// take starts answering a request.
func (c *conn) take(r *Request) {
	s := c.server
	if r.Stream != 0 && !s.has(box.FeatureStreams) {
		r.Stream = 0 // as servers without streams did
	}
	handler, waits := s.note(r)
	if r.Stream == 0 {
		if !waits {
			r.answer(nil)
			return
		}
		// Ends with its handler, whose context the end of the connection cancels; Close
		// waits for it.
		s.serving.Go(func() { r.answer(handler) })
		return
	}
	st := c.streams[r.Stream]
	if st == nil {
		st = &stream{last: make(chan struct{})}
		close(st.last)
		c.streams[r.Stream] = st
	}
	before, done := st.last, make(chan struct{})
	st.last, r.stream = done, st
	// Ends like the one above, after those before it in the stream.
	s.serving.Go(func() {
		defer close(done)
		<-before
		r.answer(handler)
	})
}
