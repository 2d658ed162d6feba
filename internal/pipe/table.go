package pipe

import (
	"slices"
	"time"
)

// A matcher holds the calls of a socket between submission and reply, and finds the call
// that a reply answers: in the order of requests (order.go) or by ticket (slots.go). No
// other type depends on the kind. All fields are guarded by the socket's lock.
//
// A call is queued until a write takes it, and in flight until its reply is matched. A call
// that was given up keeps its place until its reply comes or, if it was still queued, until
// the flusher drops it. With tickets of 32 bits it leaves its place, which stays blocked. So a
// place at the server is in flight or blocked.
type matcher struct {
	// Immutable.
	byTicket  bool
	putTicket func(frame []byte, ticket uint64)

	order     order
	slots     slots
	deadlines wheel

	slowFor time.Duration // the longest SlowFor of the calls in flight
	// probe is the place or the ticket of the call whose reply ends a measurement of the
	// round trip.
	probe     uint64
	probing   bool
	gathering bool // the reader adds replies to calls that still have places
	// filled is the call whose memory the reader writes to without the lock, or nil.
	filled *Call
	// A sweep of order visits the calls before sweepTo, which were already there at the previous
	// sweep: with 1,024 callers whose calls are answered in 1 ms, there are none. A sweep of
	// slots visits those from sweepNext to sweepTo.
	sweepTo, sweepNext uint64
	// open is a Done channel that the current sweep has found open.
	open <-chan struct{}
}

// keptCalls is the maximum number of entries of a list that shrink retains. With keptSlots, that is less than 1 KiB of
// the memory of an idle connection.
const keptCalls = 32

func newMatcher(t *Traits) matcher {
	return matcher{byTicket: t.Match == ByTicket, putTicket: t.PutTicket, slots: newSlots(t)}
}

// queued returns the number of places that no write has taken.
func (m *matcher) queued() int {
	if m.byTicket {
		return m.slots.queued()
	}
	return int(m.order.tail - m.order.sent)
}

// pending returns the number of places in flight, including those of calls that were given up.
func (m *matcher) pending() int {
	if m.byTicket {
		return m.slots.busy - m.slots.blocked - m.slots.queued()
	}
	return int(m.order.sent - m.order.head)
}

// blocked returns the number of places that await the reply to a call that has left.
func (m *matcher) blocked() int { return m.slots.blocked }

// atServer returns the number of places whose requests the server may have.
func (m *matcher) atServer() int { return m.pending() + m.slots.blocked }

func (m *matcher) size() int { return m.queued() + m.pending() }

// young returns the number of calls in flight that the flush rule waits for.
func (m *matcher) young() int {
	if m.byTicket {
		return m.slots.ages.young
	}
	return m.pending()
}

// mayAge reports whether young decreases with time.
func (m *matcher) mayAge() bool { return m.byTicket }

// age updates young.
func (m *matcher) age(e *Engine, roundTrip time.Duration) {
	if m.byTicket {
		m.slots.ages.expire(e.now(), max(roundTrip, time.Microsecond))
	}
}

// full reports whether fewer than n tickets are left. In order there is no limit; the bounds
// of the socket are reached first.
func (m *matcher) full(n int) bool { return m.byTicket && m.slots.busy+n > slotMask }

// add queues c, which gets a place for each of its replies.
func (m *matcher) add(c *Call) {
	m.slowFor = max(m.slowFor, c.SlowFor)
	if m.byTicket {
		m.stamp(c, m.slots.add(c))
		return
	}
	m.order.add(c)
}

// addFirst queues c before all other queued calls.
func (m *matcher) addFirst(c *Call) {
	if m.byTicket {
		m.stamp(c, m.slots.addFirst(c))
		return
	}
	m.order.addFirst(c)
}

// addOneWay writes the ticket of a call without a reply, which may be that of its stream. The call gets no place.
func (m *matcher) addOneWay(c *Call) {
	if !m.byTicket {
		return
	}
	if st := c.frameOf(); st != nil {
		m.stamp(c, st.ticket)
		return
	}
	m.stamp(c, m.slots.oneWay())
}

// stamp writes a ticket into the request.
func (m *matcher) stamp(c *Call, ticket uint64) {
	m.putTicket(c.Frame, ticket)
	if c.holds == holdsFrame {
		m.putTicket(c.large, ticket)
	}
}

// queuedCall returns the call of the i-th queued place.
func (m *matcher) queuedCall(i int) *Call {
	if m.byTicket {
		return m.slots.queuedCall(i)
	}
	return m.order.at(m.order.sent + uint64(i))
}

// eachQueued yields the queued calls in the order of their requests.
func (m *matcher) eachQueued(yield func(*Call) bool) {
	for i := range m.queued() {
		if !yield(m.queuedCall(i)) {
			return
		}
	}
}

// whole returns how many of the first n queued places may be written.
func (m *matcher) whole(n int) int {
	if m.byTicket {
		return n
	}
	return m.order.whole(n)
}

// startProbe makes the reply to the first queued call end a measurement.
func (m *matcher) startProbe() {
	m.probing, m.probe = true, m.order.sent
	if m.byTicket {
		m.probe = m.slots.queuedTicket(0)
	}
}

// take marks the first n queued places as in flight.
func (m *matcher) take(n int, e *Engine, roundTrip time.Duration) {
	if !m.byTicket {
		m.order.sent += uint64(n)
	} else if n > 0 {
		m.slots.take(n, e.now(), max(roundTrip, time.Microsecond))
	}
}

// match removes the calls that the replies answer and appends them to calls. It removes
// late replies, and reports whether the probe was answered. In order
// it matches all replies or none, because a surplus reply may have been the first.
func (m *matcher) match(replies []arrived, calls []*Call) (_ []arrived, _ []*Call, probed bool, err error) {
	if !m.byTicket {
		if len(replies) > m.pending() {
			return replies, calls, false, ErrUnsolicited
		}
		probed = m.probing && m.probe-m.order.head < uint64(len(replies))
		for range replies {
			c := m.order.pop()
			m.await(c)
			if !c.several || c.awaited == 0 {
				m.disarm(c)
			}
			calls = append(calls, c)
		}
		return replies, calls, probed, nil
	}
	kept := 0
	for i, r := range replies {
		c, timer, known := m.slots.match(r.ticket)
		if !known {
			return replies, calls, probed, ErrUnsolicited
		}
		m.deadlines.disarm(timer)
		probed = probed || m.probing && r.ticket == m.probe
		if c == nil {
			continue
		}
		if kept < i {
			replies[kept] = r
		}
		kept++
		calls = append(calls, c)
	}
	return replies[:kept], calls, probed, nil
}

// dropEarly handles a reply whose first bytes arrived while no call was in flight. It answers no call,
// so it is an error unless it is late.
func (m *matcher) dropEarly(ticket uint64) error {
	if !m.byTicket || m.slots.find(ticket) != nil {
		return ErrUnsolicited
	}
	if _, _, known := m.slots.match(ticket); !known {
		return ErrUnsolicited
	}
	return nil
}

// ticketOf returns the ticket of a call that has a place.
func (m *matcher) ticketOf(c *Call) uint64 { return m.slots.ticket(c.slot) }

// holds reports whether c, which was added, still has its slot.
func (m *matcher) holds(c *Call) bool {
	return int(c.slot) < len(m.slots.slots) && m.slots.slots[c.slot].call == c
}

// streamOf returns the stream in flight with the given ticket. If there is none, it returns nil and whether
// the ticket was sent before.
func (m *matcher) streamOf(ticket uint64) (st *Stream, known bool) {
	if !m.byTicket {
		return nil, false
	}
	at := m.slots.awaits(ticket)
	switch {
	case at == nil:
		return nil, m.slots.wasSent(ticket)
	case at.call == nil:
		return nil, true
	}
	return at.call.stream(), true
}

// find returns the call in flight with the given ticket, or nil if there is none.
func (m *matcher) find(ticket uint64) *Call { return m.slots.find(ticket) }

// arm makes c, which was added, expire at its deadline. It reports whether the sweeper must be
// woken.
func (m *matcher) arm(c *Call) (wakeSweeper bool) {
	wakeSweeper = m.deadlines.arm(c, tickOf(time.Duration(c.deadline)))
	if m.byTicket && !c.OneWay {
		m.slots.slots[c.slot].timer = c.timer
	}
	return wakeSweeper
}

// disarm removes the timer of c.
func (m *matcher) disarm(c *Call) {
	if c.timer == 0 {
		return
	}
	m.deadlines.disarm(c.timer)
	m.disarmed(c)
}

// disarmed records that c no longer has a timer.
func (m *matcher) disarmed(c *Call) {
	if c.timer = 0; m.byTicket && !c.OneWay {
		m.slots.slots[c.slot].timer = 0
	}
}

// expire passes at most expireChunk calls whose deadline has passed to giveUp, and rearms those that giveUp
// rejects for the next tick. It reports whether there are more.
func (m *matcher) expire(now time.Duration, giveUp func(*Call) bool) (more bool) {
	at := uint64(now / tick)
	return m.deadlines.advance(at, expireChunk, func(c *Call) {
		m.disarmed(c)
		if !giveUp(c) {
			c.deadline = int64(now + tick)
			m.arm(c)
		}
	})
}

// forget stops watching the context and the deadline of a call that was given up.
func (m *matcher) forget(c *Call) {
	m.disarm(c)
	if m.byTicket && !c.OneWay {
		m.slots.unwatch(c)
	}
}

// next returns the call that the next message answers, which has the given ticket, or nil if it answers none.
func (m *matcher) next(ticket uint64) *Call {
	switch {
	case m.byTicket:
		return m.slots.find(ticket)
	case m.pending() == 0:
		return nil
	}
	return m.order.at(m.order.head)
}

// leave removes a call in flight that was given up from its place, if that is possible, and reports
// whether it did.
func (m *matcher) leave(c *Call) bool { return m.byTicket && !c.OneWay && m.slots.leave(c) }

// dropQueued removes the queued calls for which drop returns true.
func (m *matcher) dropQueued(drop func(*Call) bool) {
	if m.byTicket {
		m.slots.dropQueued(drop)
	} else {
		m.order.dropQueued(drop)
	}
}

// each yields the call of every place.
func (m *matcher) each(yield func(*Call) bool) {
	if m.byTicket {
		m.slots.each(yield)
	} else {
		m.order.each(yield)
	}
}

// all returns the call of every place and empties the matcher, which is no longer used.
func (m *matcher) all() []*Call {
	calls := slices.AppendSeq(make([]*Call, 0, m.size()), m.each)
	m.slots, m.order = slots{}, order{head: m.order.tail, sent: m.order.tail, tail: m.order.tail}
	m.deadlines = wheel{}
	return calls
}

// shrink releases memory retained after a burst, if no call is queued or at the server.
func (m *matcher) shrink() {
	if m.size()+m.blocked() > 0 {
		return
	}
	m.order.shrink()
	m.slots.shrink()
	m.deadlines.shrink()
}

// sweep visits the calls from position at on whose context can be canceled, or, with tickets,
// those whose context has ended. It checks at most sweepChunk calls. Position 0 starts a
// round. sweep returns where to continue, and whether it left calls to a later round.
func (m *matcher) sweep(at uint64, visit func(*Call)) (next uint64, more, left bool) {
	m.open = nil // it may have been closed
	if m.byTicket {
		return m.sweepSlots(at, visit)
	}
	if at == 0 {
		m.sweepTo, m.sweepNext = m.sweepNext, m.order.tail
	}
	at = max(at, m.order.head)
	last := min(m.sweepTo, m.order.tail)
	for end := min(at+sweepChunk, last); at < end; at++ {
		visit(m.order.at(at))
	}
	return at, at < last, false
}

// sweepSlots is sweep for tickets. A round starts where the previous one ended and checks half
// of the slots.
func (m *matcher) sweepSlots(at uint64, visit func(*Call)) (next uint64, more, left bool) {
	all := uint64(len(m.slots.done))
	if at == 0 {
		if m.sweepNext >= all {
			m.sweepNext = 0
		}
		at = m.sweepNext
		m.sweepTo = at + max(sweepShare, (all+1)/2)
		left = m.slots.watched > 0
	}
	last := min(m.sweepTo, all)
	for end := min(at+sweepChunk, last); at < end; at++ {
		// A context that several callers share is checked once.
		if done := m.slots.done[at]; done != nil && done != m.open {
			select {
			case <-done:
				visit(m.slots.slots[at].call)
			default:
				m.open = done
			}
		}
	}
	m.sweepNext = at
	return at, at < last, left
}

// unswept reports whether there are calls that only the next sweep visits.
func (m *matcher) unswept() bool {
	return !m.byTicket && m.order.tail > max(m.sweepTo, m.order.head)
}

// patience returns for how long the calls in flight permit the server to be silent beyond the stall
// timeout.
func (m *matcher) patience() time.Duration {
	if m.byTicket && m.slots.slow == 0 || !m.byTicket && m.order.head >= m.order.slowUntil {
		m.slowFor = 0
	}
	return m.slowFor
}

// oldestGivenUp reports whether the calls in flight are answered in order and the oldest one was given up. If
// its reply never comes, no more calls are answered.
func (m *matcher) oldestGivenUp() bool {
	return !m.byTicket && m.pending() > 0 && m.order.at(m.order.head).state.Load() != statePending
}

// A verdict is what to do about a server that owes replies and is silent.
type verdict uint8

const (
	verdictWait verdict = iota
	verdictPing
	verdictStalled
)

// judge decides what to do after a silence. Calls with tickets may all be slow, so only an unanswered ping
// proves a stall. In order, a ping would also wait for the slow calls.
func (m *matcher) judge(silent, stall, patience time.Duration, pinged bool) verdict {
	switch {
	case !m.byTicket && silent >= stall+patience, m.byTicket && pinged && silent >= stall:
		return verdictStalled
	case m.byTicket && !pinged && silent >= stall/2:
		return verdictPing
	}
	return verdictWait
}
