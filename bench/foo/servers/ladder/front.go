package main

import (
	"net"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/examples/foo/ladder"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/http1"
)

// A front answers the simplest requests on the event loop: GET or POST of /foo with an announced
// body of at most [ladder.DefaultMaxBody] bytes. Connections with other requests are passed to
// net/http, which runs the same service.
type front struct {
	// Immutable after newFront.
	rest *handedOver

	hashers sync.Pool // of *ladder.Hasher
}

// newFront starts serving on a separate port. It ends with the process.
func newFront() (*front, error) {
	listeners, err := loop.Listen("tcp", "127.0.0.1:0", runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, err
	}
	f := &front{rest: &handedOver{listeners[0].Addr(), make(chan net.Conn, 1024)}}
	f.hashers.New = func() any { return new(ladder.Hasher) }
	server, err := loop.New(loop.Config{New: func(*loop.Conn) loop.Session { return session{f} }, Detached: f.rest.take, MaxInput: maxHead + 1})
	if err != nil {
		return nil, err
	}
	return f, server.Serve(listeners...)
}

// A session is a connection on the loop.
type session struct{ front *front }

// Data implements [loop.Session].
func (s session) Data(c *loop.Conn, in []byte) (consumed int) {
	for consumed < len(in) && !c.Full() {
		head, verdict := readHead(in[consumed:])
		if verdict == headIncomplete {
			break
		}
		if verdict == headOther || head.length > ladder.DefaultMaxBody {
			c.Detach()
			break
		}
		body := in[consumed+head.size:]
		consumed += head.size
		if len(body) < head.length {
			if err := c.Expect(head.length); err != nil {
				c.Abort(err)
			}
			break
		}
		s.front.answer(c, body[:head.length])
		consumed += head.length
	}
	return consumed
}

// Received implements [loop.Receiver]: the rest of a body has come.
func (s session) Received(c *loop.Conn, p *loop.Payload) {
	s.front.answer(c, p.Parts()...)
	p.Release()
}

// Closed implements [loop.Session].
func (s session) Closed(*loop.Conn, error) {}

// large is the size from which an answer counts as large.
const large = 64 << 10

// answer answers a request whose body is given in parts.
func (f *front) answer(c *loop.Conn, parts ...[]byte) {
	h := f.hashers.Get().(*ladder.Hasher)
	defer f.hashers.Put(h)
	h.Reset()
	size := 0
	for _, part := range parts {
		size += len(part)
		if _, err := h.Write(part); err != nil {
			break // Answer returns the error, too
		}
	}
	c.Prove()
	c.Spend(1 + size>>9) // about 1 us for 512 bytes
	answer, err := h.Answer()
	o := c.Output()
	switch {
	case err != nil:
		o.B = appendHead(o.B, 500, 0)
		return
	case len(answer) >= large && !c.AdmitsLarge(len(answer)):
		o.B = appendHead(o.B, 503, 0)
		return
	}
	o.B = appendHead(o.B, 200, len(answer))
	o.B = append(o.B, answer...)
	if len(answer) >= large {
		o.Large(len(answer))
	}
}

// appendHead appends the head of an answer.
func appendHead(b []byte, status, length int) []byte {
	b = http1.AppendStatus(b, 1, status)
	if length > 0 {
		b = append(b, "Content-Type: application/json\r\n"...)
	}
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(length), 10)
	b = append(b, "\r\nDate: "...)
	b = http1.AppendDate(b, time.Now().Unix())
	return append(b, "\r\n\r\n"...)
}

// handedOver is the listener from which net/http gets the connections that leave the loop.
type handedOver struct {
	address net.Addr
	conns   chan net.Conn
}

func (h *handedOver) take(nc net.Conn, unread []byte) {
	select {
	case h.conns <- &replayed{nc, unread}:
	default:
		_ = nc.Close() // more connections than a benchmark opens; the client may retry
	}
}

// Accept implements [net.Listener].
func (h *handedOver) Accept() (net.Conn, error) { return <-h.conns, nil }

// Close implements [net.Listener]. The process ends before.
func (h *handedOver) Close() error { return nil }

// Addr implements [net.Listener].
func (h *handedOver) Addr() net.Addr { return h.address }

// replayed is a connection of which some bytes have been read already.
type replayed struct {
	net.Conn
	unread []byte // owned by the reading goroutine
}

// Read implements [net.Conn].
func (r *replayed) Read(p []byte) (int, error) {
	if len(r.unread) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}
