package thriftfront

import (
	"crypto/tls"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/recent"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
)

// session is a client's connection. The state of a turn comes from a pool.
type session struct {
	// Immutable after newSession.
	server *Server
	addr   netip.AddrPort
	client uint64 // identifies the address for rate limits

	// Owned by the connection's turn.
	scanner     frame.Scanner
	certificate *access.Certificate // the client's certificate, or nil
	format      frame.Format        // of the last call
	announced   bool                // the client has been told that its answers come in any order
	told        bool                // the client has been told that the connection will be closed

	// Atomic: bytes of documents that have been loaded but not yet appended to an answer. Written by the goroutines that
	// load and by the connection's turn, read by surveys.
	held atomic.Int64
}

func (s *Server) newSession(c *loop.Conn) loop.Session {
	addr := c.RemoteAddr()
	return &session{server: s, addr: addr, client: limit.ClientKey(addr.Addr()), scanner: frame.Scanner{Max: maxMessage}}
}

// HoldsLarge implements [loop.LargeHolder].
func (x *session) HoldsLarge() int64 { return x.held.Load() }

// Secured implements [loop.SecureSession].
func (x *session) Secured(c *loop.Conn, state tls.ConnectionState) {
	certificate, err := access.NewCertificate(&state)
	if err != nil {
		c.Abort(err)
		return
	}
	x.certificate = certificate
}

// Closed implements [loop.Session].
func (x *session) Closed(*loop.Conn, error) {}

// Drain implements [loop.Drainer].
func (x *session) Drain(c *loop.Conn) { x.tellEnd(c) }

// tellEnd notifies a client whose calls are answered in any order, once, that the connection will be closed. Other
// clients that use headers are notified by their next answer.
func (x *session) tellEnd(c *loop.Conn) {
	if x.announced && !x.told && c.Draining() && x.format.HasHeader() {
		x.told = true
		o := c.Output()
		o.B = frame.AppendControl(o.B, x.format, frame.KeyReset)
	}
}

// announce notifies a client that uses package rpc that its calls are answered in any order.
func (x *session) announce(c *loop.Conn, k *call) {
	if !x.announced && k.anyOrder && k.asksOrder {
		x.announced = true
		o := c.Output()
		o.B = frame.AppendControl(o.B, x.format, frame.KeyAnyOrder)
	}
}

// Data implements [loop.Session].
func (x *session) Data(c *loop.Conn, in []byte) (consumed int) {
	t := x.server.turns.Get().(*turn)
	t.begin(x, c)
	for consumed < len(in) && !c.Full() {
		n, whole, err := x.scanner.Size(in[consumed:])
		if err != nil {
			t.malformed(err)
			consumed = len(in)
			break
		}
		if !whole {
			break
		}
		if err := t.message(in[consumed : consumed+n]); err != nil {
			t.malformed(err)
			consumed = len(in)
			break
		}
		consumed += n
	}
	t.end()
	return consumed
}

// turn is the state of one call of a session's Data. The Thrift calls answered in it share a clock reading. It is
// pooled.
type turn struct {
	server  *Server // immutable
	session *session
	conn    *loop.Conn
	view    *View
	start   time.Duration // when the input was read, on the cache's clock
	began   time.Time     // the same, for latencies
	call    call          // the current call
	tally   tally
	text    []byte // of the current call in recent

	// recent is the table of the lane, or nil if another connection of the lane has it or each call is logged. hitsAgain
	// is the number of its hits that the cache has not counted, of the resource hitsOf.
	recent    *recent.Table[*subject]
	hitsOf    *served
	hitsAgain int
}

// begin prepares the turn for a session's connection.
func (t *turn) begin(x *session, c *loop.Conn) {
	t.session, t.conn, t.view = x, c, t.server.live.Load()
	t.start, t.began = c.ReadAt(), time.Now()
	if t.view.requests == nil {
		t.recent = t.server.recent.Borrow(c.Lane())
	}
}

// end updates the counters and returns the turn to the pool.
func (t *turn) end() {
	if y := &t.tally; y.hits+y.others > 0 {
		took := time.Since(t.began)
		t.server.figures.Latency(frontend.SourceHit).RecordMany(took, int(y.hits))
		t.server.figures.Latency(frontend.SourceOther).RecordMany(took, int(y.others))
	}
	t.tally.addTo(&t.server.figures)
	t.countAgain(nil)
	t.server.recent.GiveBack(t.conn.Lane(), t.recent)
	t.recent = nil
	t.call.reset()
	t.session, t.conn, t.view = nil, nil, nil
	t.server.turns.Put(t)
}

// malformed ends the connection after the pending answers, because the data after a malformed message cannot be read.
func (t *turn) malformed(err error) {
	t.server.figures.malformed.Add(1)
	t.server.warnMalformed(t, err)
	t.conn.End()
}

// message answers a call. b is valid only during the turn.
func (t *turn) message(b []byte) error {
	k := &t.call
	k.reset()
	k.session, k.view, k.start, k.began = t.session, t.view, t.start, t.began
	if err := k.open(b); err != nil {
		return err
	}
	t.session.format = k.format
	t.session.announce(t.conn, k)
	t.session.tellEnd(t.conn)
	k.last = t.conn.Draining() && k.format.HasHeader()
	units := 1 + len(b)>>9
	if wait, ok := t.view.clientLimit.Allow(t.session.client, t.start, 1); !ok {
		t.tally.calls[groupRefused]++
		t.fail(k.tooMany(wait, "calls from this address"))
	} else if k.method == nil {
		t.tally.calls[groupRefused]++
		t.tally.others++
		k.appendUnknown(t.conn.Output())
	} else {
		t.tally.calls[k.method.group()]++
		units += t.known()
	}
	t.conn.Spend(units)
	return nil
}

// known answers a call of a known method, and returns the cost in the engine's units.
func (t *turn) known() (units int) {
	f := t.admit()
	if f == nil {
		if e := t.recall(); e != nil {
			return t.answerAgain(e)
		}
		f = t.find()
	}
	units = t.call.fresh >> 6
	switch {
	case f == errLater:
		t.postpone()
	case f != nil:
		t.fail(f)
	default:
		units += t.answer()
		t.remember()
	}
	return units
}

// admit reads the keys, and decides whether the caller may read their documents. It does not block: it returns errLater
// if a worker must decide.
func (t *turn) admit() *failure {
	k := &t.call
	if f := k.read(); f != nil {
		return f
	}
	if f := k.admitKeys(); f != nil {
		return f
	}
	if f := k.authorize(atOnce); f != nil {
		return f
	}
	t.conn.Prove()
	return nil
}

// find finds the documents in memory. It returns errLater if a worker must do the rest.
func (t *turn) find() *failure {
	k := &t.call
	if len(k.keys) > maxPeeked {
		return errLater
	}
	if f := k.parse(); f != nil {
		return f
	}
	for i := range k.slots {
		a, ok := t.server.cache.Peek(k.slots[i].key, k.start)
		if !ok {
			return errLater
		}
		k.slots[i].doc = a.Doc
	}
	if f := k.encode(true); f != nil {
		return f
	}
	if k.converts() {
		if f := k.convert(true); f != nil {
			return f
		}
	}
	if size := k.size(); size >= largeAnswer {
		switch {
		case t.conn.Owed() > 0:
			return errLater // behind a pending answer, it would not be charged
		case !t.conn.AdmitsLarge(size):
			return failPending
		}
	}
	return nil
}

// maxPeeked is the maximum number of keys that are looked up in a turn. A call with more is passed to a worker.
const maxPeeked = 256

// answer appends the documents, and returns the cost in the engine's units.
func (t *turn) answer() (units int) {
	k, size := &t.call, t.call.size()
	units = len(k.slots) / 4
	if size < linked*len(k.slots) {
		units += size >> 9
	}
	failed := k.append(t.conn.Output())
	if failed != nil {
		t.tally.failed[failed.exception]++
	}
	t.tally.hits++
	t.tally.bytes += int64(size)
	if t.view.requests != nil {
		k.record(failed, size, time.Since(k.began), frontend.SourceHit)
	}
	return units
}

// fail answers with an exception.
func (t *turn) fail(f *failure) {
	t.tally.failed[f.exception]++
	t.tally.others++
	t.call.appendFailure(t.conn.Output(), f)
	if t.view.requests != nil {
		t.call.record(f, 0, time.Since(t.call.began), frontend.SourceOther)
	}
}
