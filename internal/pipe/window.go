package pipe

import (
	"math"

	"github.com/slipstream-go/slipstream/internal/buf"
)

// A server bounds the requests that it executes at a time. Tarantool stops reading from every
// connection at 768 requests (box.cfg.net_msg_max) and logs a warning. Further requests of
// this client wait in the server's socket buffer, ahead of the requests of
// other clients. A window keeps them in the client instead, where a call whose context ends is dropped
// unsent, and where a call that fails with the connection is known not to have been executed.
//
// Requests that are in transit over the network are not at the server yet. So the window grows with
// the round trip, like the factor of the flush rule: at 50 ms it is 256 times as large as on the
// same machine.
//
// A full window is refilled by halves, because the rule compares the calls that may be written with
// those in flight; so writes stay large. Calls that were given up count until their replies come,
// because the server still has them. A ping bypasses the window and is written before all queued
// calls, because it checks whether a server that answers no call of a full window is alive.

// setWindow adapts the window to the round trip, unless the driver has set a depth. The caller
// holds mu, or is the only user of s.
func (s *socket) setWindow() {
	s.pace.window = s.pace.depth
	if n := s.engine.cfg.Traits.Depth; n > 0 && s.pace.depth == 0 {
		s.pace.window = max(n/len(s.engine.list.Load().peers), 1) * factor(s.pace.trip.get())
	}
	s.wear() // blocked tickets may fill a smaller window
}

// SetDepth bounds the calls that may be at the server on this connection, instead of Traits.Depth and
// however long the round trip is. If n is zero, Traits.Depth applies again. SetDepth is safe for
// concurrent use. It does not affect calls that are already at the server.
func (p Pin) SetDepth(n int) {
	s := p.s
	s.mu.Lock()
	s.pace.depth = max(n, 0)
	s.setWindow()
	s.flushDue() // which releases mu
}

// windowRoom returns how many queued calls may be written now. The caller holds mu.
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

// queuePing queues a ping before all queued calls. The caller holds mu.
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

// cut moves the bytes that the window admits to the write, including those of calls without
// replies, and returns the number of calls with replies among them. The caller holds mu.
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
