package respfront

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// session is a client's connection. An idle one holds only these 208 bytes: the state of a
// turn is borrowed from a pool.
type session struct {
	// Immutable after newSession.
	server  *Server
	id      uint64
	addr    netip.AddrPort
	client  uint64        // the address for rate limits
	guesser uint64        // the key under which failed logins are counted
	created time.Duration // on the cache's clock

	// Owned by the connection's turn.
	view     *View                // of the last turn
	hash     [32]byte             // of the password or API key of the client's login
	scanner  *resp.CommandScanner // holds the start of a command; nil if there is none
	secured  *secured             // the certificate of the client; nil if it has none, or it has expired
	recheck  time.Duration        // when to check whether the login is still valid, on the cache's clock
	bounds   bool                 // the scanner has those of known clients
	by       credential           // the kind of the client's login
	failures uint8                // failed logins
	large    bool                 // a large command is in flight

	// Atomics. Written by the connection's turn, read by CLIENT LIST of others.
	three  atomic.Bool                   // RESP3
	caller atomic.Pointer[access.Caller] // nil before a login
	about  atomic.Pointer[about]         // nil if the client reported nothing
	last   atomic.Pointer[command]
	active atomic.Int64 // when the last command came, on the cache's clock

	// Atomic: bytes of documents that were loaded and wait for their turn in an answer.
	// Written by goroutines that load and by the connection's turn, read by surveys.
	held atomic.Int64

	// Guarded by the lock of a shard of clients.
	previous, next *session
	list           uint64 // the caller in whose list it is
}

// about is what a client reported about itself. It is immutable.
type about struct{ name, library, version string }

// conn is what a session needs of its connection.
type conn interface {
	Output() *loop.Output
	Full() bool
	Owed() int
	AdmitsLarge(n int) bool
	Prove()
	Lane() int
	ReadAt() time.Duration
	Context() context.Context
	Defer(r loop.Reply) completer
	Spend(units int)
	Pause(on bool)
	End()
	Abort(err error)
}

// completer reports that a deferred answer is complete, and what it holds until
// then.
type completer interface {
	Complete()
	Weigh(bytes int)
}

// engineConn adapts the engine's connection for sessions.
type engineConn struct{ *loop.Conn }

// Defer implements conn.
func (c engineConn) Defer(r loop.Reply) completer { return c.Conn.Defer(r) }

func (s *Server) newSession(c *loop.Conn) loop.Session {
	return s.open(c.ID(), c.RemoteAddr())
}

// open returns a session and registers it as a client.
func (s *Server) open(id uint64, addr netip.AddrPort) *session {
	x := &session{server: s, id: id, addr: addr, client: limit.ClientKey(addr.Addr()), created: s.cache.Now(), view: s.live.Load()}
	if x.guesser = x.client; !addr.IsValid() {
		x.guesser = id // all peers of unix sockets have the same address
	}
	x.active.Store(int64(x.created))
	s.clients.add(x)
	return x
}

// Data implements [loop.Session].
func (x *session) Data(c *loop.Conn, in []byte) (consumed int) { return x.data(engineConn{c}, in) }

// Closed implements [loop.Session].
func (x *session) Closed(*loop.Conn, error) { x.close() }

// HoldsLarge implements [loop.LargeHolder].
func (x *session) HoldsLarge() int64 { return x.held.Load() }

func (x *session) close() {
	x.scanner = nil
	x.setLarge(false)
	x.server.clients.remove(x)
}

// known reports whether the client has logged in, or need not.
func (x *session) known() bool { return !x.view.requireAuth || x.caller.Load() != nil }

// data answers all complete commands in in.
func (x *session) data(c conn, in []byte) (consumed int) {
	t := x.server.turns.Get().(*turn)
	t.begin(x, c)
	n := 0
	for n < len(in) && !c.Full() {
		if x.scanner == nil {
			x.bounds = x.known()
			x.scanner = x.server.scanner(x.bounds)
		}
		size, args, verdict, err := x.scanner.Scan(in[n:])
		if err != nil {
			t.fail(FailProtocol, protocolError(in[n:], err, x.bounds))
			x.scanner = nil // it would repeat the error forever
			n = len(in)
			c.End()
			break
		}
		if verdict != resp.Done {
			t.await(size)
			break
		}
		inline := in[n] != byte(resp.Array)
		n += size
		if len(args) > 0 {
			t.units = 1
			t.answer(args, inline)
			c.Spend(t.units)
			if x.known() {
				c.Prove()
			}
		}
		x.setLarge(false)
		if n == len(in) || x.known() != x.bounds || c.Full() {
			x.server.scanners[index(x.bounds)].Put(x.scanner)
			x.scanner = nil
		}
	}
	t.end()
	return n
}

// scanner returns a scanner with the bounds for known or unknown clients.
func (s *Server) scanner(known bool) *resp.CommandScanner {
	return s.scanners[index(known)].Get().(*resp.CommandScanner)
}

func index(known bool) int {
	if known {
		return 1
	}
	return 0
}

// Large commands: many connections could each send most of one and fill the memory
// within the time that the engine gives to a command.
const (
	largeCommand = 64 << 10
	maxLarge     = 256 // connections, of up to 1 MiB each
)

// await decides about a command of at least size bytes.
func (t *turn) await(size int) {
	if size <= largeCommand || t.session.large {
		return
	}
	if !t.session.setLarge(true) {
		t.fail(FailOverloaded, "too many clients are sending large commands")
		t.session.scanner = nil
		t.conn.End()
	}
}

// setLarge acquires or releases a slot for a large command; it returns false if
// there is none.
func (x *session) setLarge(large bool) bool {
	if x.large == large {
		return true
	}
	if !large {
		x.server.large.Add(-1)
	} else if x.server.large.Add(1) > maxLarge {
		x.server.large.Add(-1)
		return false
	}
	x.large = large
	return true
}
