package rpc

import (
	"crypto/tls"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// mostWhole is the size up to which the event loop decodes messages in the input buffer. Larger ones are read into
// separate memory and decoded by the handler's goroutine.
const mostWhole = 64 << 10

// session is the server's side of a connection.
type session struct {
	server *Server // immutable

	// Owned by the connection's turn.
	scanner   frame.Scanner
	reader    thrift.Reader
	last      frame.Format // format of the last call
	anyOrder  bool         // the last call allowed answers in any order
	announced bool         // the client has been notified that the server uses any order
	told      bool         // the client has been notified that the connection will be closed
	grown     bool         // the limit for messages without a length has been raised
	tls       *tls.ConnectionState
	decided   bool          // it is known whether the connection carries streams
	streams   streamSession // nil if the connection carries calls

	// Atomic: bytes of large answers that wait to be sent, or bytes that streams hold. Written by workers and by the
	// connection's turn, read by surveys.
	complete atomic.Int64
}

func (s *Server) newSession(c *loop.Conn) loop.Session {
	return &session{server: s, scanner: frame.Scanner{Max: s.config.MaxMessage}, reader: thrift.Reader{MaxMemory: s.config.MaxMemory}}
}

// HoldsLarge implements [loop.LargeHolder].
func (x *session) HoldsLarge() int64 { return x.complete.Load() }

// Secured implements [loop.SecureSession].
func (x *session) Secured(_ *loop.Conn, state tls.ConnectionState) { x.tls = &state }

// Closed implements [loop.Session].
func (x *session) Closed(_ *loop.Conn, err error) {
	if x.streams != nil {
		x.streams.closed(err)
	}
}

// PeerEnded implements [loop.EndWatcher]. A client that has stopped sending may still read the answers to its calls.
// Streams end, because their handlers might wait for the client forever.
func (x *session) PeerEnded(c *loop.Conn) {
	if x.streams != nil {
		x.streams.ended(c)
	}
}

// Drain implements [loop.Drainer].
func (x *session) Drain(c *loop.Conn) {
	if x.streams != nil {
		x.streams.drain(c)
		return
	}
	x.tellEnd(c)
}

// hold counts bytes that large answers or streams hold.
func (x *session) hold(n int64) {
	x.complete.Add(n)
	x.server.engine.HoldLarge(n)
}

// tellEnd notifies a client of this package whose calls are answered in any order, once, that the connection will be
// closed: when the server starts to drain, or with the client's first call if that comes later. Other clients are
// notified with their next answer. Kitex's multiplexing clients support the message, but Kitex v0.16 panics on it and
// closes the connection (remote.GetPayloadCodec reads a nil configuration).
func (x *session) tellEnd(c *loop.Conn) {
	if x.announced && !x.told && c.Draining() && x.last.HasHeader() {
		x.told = true
		x.control(c, frame.KeyReset)
	}
}

// announce notifies a client that has asked for it that its calls are answered in any order, so that it does not have
// to wait for the answer to its first call, which may take long.
func (x *session) announce(c *loop.Conn, info *frame.Info) {
	if !x.announced && x.anyOrder && info.String(keyAnyOrder) != nil {
		x.announced = true
		x.control(c, keyAnyOrder)
	}
}

// control sends a message that does not answer a call and has the given key.
func (x *session) control(c *loop.Conn, key string) {
	o := c.Output()
	o.B = frame.AppendControl(o.B, x.last, key)
}

// Data implements [loop.Session].
func (x *session) Data(c *loop.Conn, in []byte) (consumed int) {
	if x.streams != nil || !x.decided && x.server.streams != nil && x.begins(c, in) {
		return x.streams.data(c, in)
	}
	now := time.Now()
	for consumed < len(in) && !c.Full() {
		rest := in[consumed:]
		n, whole, err := x.scanner.Size(rest)
		switch {
		case err != nil:
			x.malformed(c, err)
			return len(in)
		case whole && n <= mostWhole:
			x.message(c, rest[:n], now)
			consumed += n
		case n <= mostWhole:
			return consumed
		case x.scanner.HasLength():
			if err := c.Expect(n); err != nil {
				x.malformed(c, err)
				return len(in)
			}
			return consumed
		case whole:
			k := x.newCall(c, n, now)
			k.whole = append([]byte(nil), rest[:n]...)
			x.large(c, k, k.whole)
			consumed += n
		default: // its length is unknown, so it is collected in the input buffer
			x.grow(c)
			return consumed
		}
	}
	return consumed
}

// grow allows large messages whose length is not known in advance.
func (x *session) grow(c *loop.Conn) {
	if !x.grown {
		x.grown = true
		c.SetLimits(loop.Limits{MaxInput: x.server.config.MaxMessage, PartialTimeout: largePartial})
	}
}

// largePartial is the time within which a large message without a length must arrive. It is longer than the time for
// small messages. Messages with a length must arrive at a minimum rate instead, which is a better check.
const largePartial = time.Minute

// malformed ends the connection after the pending answers, because the data after a malformed message cannot be read.
func (x *session) malformed(c *loop.Conn, err error) {
	x.server.figures.malformed.Add(1)
	x.server.warn("a client sent a message that is not a call; the connection is closed", "client", c.RemoteAddr(), "error", err)
	c.End()
}

// message answers a call that has arrived completely. b is valid only during the turn.
func (x *session) message(c *loop.Conn, b []byte, now time.Time) {
	c.Spend(1 + len(b)>>9)
	k := x.newCall(c, len(b), now)
	m, body, err := k.open(b)
	if err != nil {
		x.malformed(c, err)
		return
	}
	c.Prove()
	x.last, x.anyOrder = k.format, k.anyOrder
	x.announce(c, &m.Info)
	x.tellEnd(c)
	if k.failure == nil && k.admitted() {
		k.read(&x.reader, m.Payload, body)
	}
	if k.failure == nil && !k.function.inline {
		x.later(c, k)
		return
	}
	if k.failure == nil {
		k.handle()
	}
	k.leave()
	k.answer()
	k.append(c)
}

// newCall returns a call for a message of n bytes.
func (x *session) newCall(c *loop.Conn, n int, now time.Time) *call {
	k := &call{server: x.server, session: x, start: now, received: n, peer: c.RemoteAddr(), tls: x.tls}
	k.limit.Context = c.Context()
	return k
}

// Received implements [loop.Receiver].
func (x *session) Received(c *loop.Conn, p *loop.Payload) {
	if x.streams != nil {
		x.streams.received(c, p)
		return
	}
	k := x.newCall(c, p.Len(), time.Now())
	k.payload = p
	x.large(c, k, p.Parts()[0])
}

// large passes a large call to a worker, which decodes and runs it. front is the start of its message.
func (x *session) large(c *loop.Conn, k *call, front []byte) {
	c.Prove()
	x.anyOrder = frame.AllowsAnyOrder(front)
	if info, compact, ok := frame.ReadInfo(front); ok {
		x.last = frame.Format{Transport: frame.Header, Compact: compact}
		x.announce(c, &info)
		x.tellEnd(c)
	}
	x.later(c, k)
}

// later passes a call to a worker, which runs it.
func (x *session) later(c *loop.Conn, k *call) {
	if x.anyOrder {
		k.ticket = c.DeferAnyOrderInto(&k.deferred, k)
	} else {
		// Unless a header allows another order, calls run one after another.
		k.ticket, k.serial = c.DeferInto(&k.deferred, k), true
		c.Pause(true)
	}
	k.deferred.Weigh(weightOfCall + k.weight())
	x.server.jobs.Add(1)
	x.server.workers.Start(k) // ends when the handler returns
}

// weightOfCall is the memory of a call in addition to its message: the call itself and its goroutine's stack.
const weightOfCall = 9 << 10
