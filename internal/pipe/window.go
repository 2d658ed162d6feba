package pipe

import (
	"math"

	"github.com/slipstream-go/slipstream/internal/buf"
)

// A server has bounds of its own for what it has under way. Tarantool stops to read all
// connections at 768 requests (box.cfg.net_msg_max), and writes of it into its log; what
// this client has sent beyond waits in the server's socket buffer, before the requests of
// everybody else. A window keeps it here instead, where a call whose context ends is dropped
// unsent, and where one that fails with the connection is known not to have been executed.
//
// What is on its way is not yet with the server. So the window grows with the round trip, as
// the flush rule's factor does: at 50 ms it is 256 times what it is on the same machine.
//
// A full window is refilled by halves, because the rule compares what may be written with what
// is under way: so writes stay large. Calls that were given up count until their replies come:
// the server still has them. A ping passes it, before all that is queued: it asks whether the
// server lives that answers none of a full window.

// setWindow follows the round trip, unless the driver has set a depth. Under mu, or before anybody
// else has s.
func (s *socket) setWindow() {
	s.pace.window = s.pace.depth
	if n := s.engine.cfg.Traits.Depth; n > 0 && s.pace.depth == 0 {
		s.pace.window = max(n/len(s.engine.list.Load().peers), 1) * factor(s.pace.trip.get())
	}
	s.wear() // blocked tickets may fill a smaller window
}

// SetDepth bounds the calls that may be at the server on this connection from now on, in place of
// Traits.Depth and however long the round trip is. If n is zero, Traits.Depth holds again. It may
// be called at any time and by anyone; calls that are at the server already stay there.
func (p Pin) SetDepth(n int) {
	s := p.s
	s.mu.Lock()
	s.pace.depth = max(n, 0)
	s.setWindow()
	s.flushDue() // which releases mu
}

// windowRoom returns how many queued calls may be written now. Under mu.
func (s *socket) windowRoom() int {
	if s.pace.window == 0 {
		return math.MaxInt
	}
	room := max(s.pace.window-s.calls.atServer(), 0)
	if s.pace.urgent {
		room = max(room, 1)
	}
	return s.calls.whole(room)
}

// queuePing queues a ping before all that waits for the window. Under mu.
func (s *socket) queuePing(c *Call) {
	c.state.Store(statePending)
	s.calls.addFirst(c)
	size := uint64(len(c.Frame))
	for later := range s.calls.eachQueued {
		later.start += size
	}
	for _, later := range s.out.oneWays {
		later.start += size
	}
	c.start = s.out.taken
	s.out.queued.Prepend(append(buf.Get(len(c.Frame)), c.Frame...))
	s.out.appended += size
	s.counts.Calls++
	s.pace.urgent = true
}

// cut moves the bytes that the window admits to the write, with the calls that have no
// replies among them, and returns how many other calls they are. Under mu.
func (s *socket) cut() (n int) {
	n = s.calls.queued()
	room := s.windowRoom()
	s.pace.urgent = false
	if n <= room {
		s.out.queued, s.out.outgoing = s.out.outgoing, s.out.queued
		s.out.taken = s.out.appended
		s.out.leaving, s.out.oneWays = s.out.oneWays, nil
		return n
	}
	until := s.calls.queuedCall(room).start
	s.out.queued.MoveTo(&s.out.outgoing, int(until-s.out.taken))
	s.out.taken = until
	i := 0
	for i < len(s.out.oneWays) && s.out.oneWays[i].start < until {
		i++
	}
	s.out.leaving = append(s.out.leaving, s.out.oneWays[:i]...)
	s.out.oneWays = append(s.out.oneWays[:0], s.out.oneWays[i:]...)
	return room
}
