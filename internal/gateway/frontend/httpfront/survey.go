package httpfront

import (
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// Connections that net/http serves, as seen by the budget and the rules for slots.

// holds returns how much memory the connection holds in addition to its goroutine: the
// received part of its request, and the answer that is being written, unless that is a large
// one, which [Config.MaxPending] bounds.
//
// What HTTP/2 requests hold is not included; it is in c.streams.
func (c *conn) holds() int64 {
	n := c.came.Load()
	if c.several.Load() {
		n = min(n, c.of.unread)
	}
	if w := c.writing.Load(); w < largeBody {
		n += w
	}
	return n
}

// Bounds of an HTTP/2 connection: streamsAtOnce bounds the requests that are answered
// concurrently, as many as an HTTP/1 connection may wait for; the others are what net/http keeps
// of bodies and of a frame.
const (
	streamsAtOnce  = 128
	bodyOfStream   = 16 << 10
	bodiesOfStream = 64 << 10 // of all streams
	frameOfStream  = 16 << 10
)

// weightOfStream is what an HTTP/2 request in flight holds in addition to its fields and body: a
// goroutine, the state of the stream in net/http, and a buffer for the answer. Measured: 15 to 16
// KiB while requests wait for a load.
const weightOfStream = 16 << 10

// weigh returns how many bytes a request of HTTP/2 holds while it is answered.
func weigh(r *http.Request) int64 {
	n := int64(weightOfStream + len(r.RequestURI))
	for name, values := range r.Header {
		n += int64(len(name))
		for _, value := range values {
			n += int64(len(value)) + 16 // and its string header
		}
	}
	if r.ContentLength != 0 { // nothing reads it before the answer
		n += bodyOfStream
	}
	return n
}

// Survey implements [loop.Source].
func (c *conns) Survey(dst []loop.Peer) []loop.Peer {
	now := time.Since(c.started)
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.all {
		p := loop.Peer{Group: loop.GroupOf(addrOf(one), one.alone, one), Holds: one.holds() + one.streams.Load(), Large: one.large.Load(), Proven: one.proven.Load(), Idle: -1, Conn: one}
		switch idle := one.idleSince.Load(); {
		case !p.Proven:
			p.Idle = now - time.Duration(one.opened.Load())
		case idle != 0 && one.headSince.Load() == 0:
			p.Idle = now - time.Duration(idle)
		default:
			if wrote := one.writeSince.Load(); wrote != 0 {
				p.Quiet = now - time.Duration(wrote)
			}
		}
		dst = append(dst, p)
	}
	return dst
}

// account updates the budget with what the connections hold, except HTTP/2 requests. The sweep calls
// it: each connection holds a request and an answer, for which a sum a few times per second is
// accurate enough.
func (c *conns) account() {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := int64(0)
	for one := range c.all {
		sum += one.holds()
	}
	c.budget.Add(sum - c.held)
	c.held = sum
}

// Cut implements [loop.Cutter].
func (c *conn) Cut(why loop.CloseReason) {
	switch why {
	case loop.ReasonMemory:
		c.of.budget.CountClosed()
	case loop.ReasonLarge:
		if c.large.Load() == 0 {
			return // it has been written meanwhile
		}
		c.of.large.CountClosed()
	case loop.ReasonCrowdRoom:
	case loop.ReasonUnprovenRoom:
		if c.proven.Load() {
			return
		}
	default:
		if c.idleSince.Load() == 0 || c.headSince.Load() != 0 {
			return // a request has arrived meanwhile
		}
	}
	c.of.cuts[why].Add(1)
	_ = c.Close() // the goroutine that waits on it gets the error
}

// addCuts adds the connections that were closed by rule to a count by reason.
func (c *conns) addCuts(closes map[string]uint64) {
	for why := range c.cuts {
		if n := c.cuts[why].Load(); n > 0 {
			closes[loop.CloseReason(why).String()] += n
		}
	}
}

// addrOf returns the address of a connection's peer; it is not valid for a unix socket.
func addrOf(c net.Conn) netip.Addr {
	if t, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
