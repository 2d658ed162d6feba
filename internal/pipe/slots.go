package pipe

import "time"

// slots holds the calls of a protocol with tickets. A ticket consists of the number of a slot and the
// low bits of its generation, which counts the tickets of the slot that were sent. So a
// ticket is sent again only after its call has been answered: never with 64 bits, and after 4,096 calls of its slot
// with 32 bits.
//
// A call that was given up keeps its slot until its reply comes. With 32 bits, where replies
// may be lost, the call leaves the slot, which stays blocked. The last slot is for
// requests without a reply and holds no call.
type slots struct {
	// Immutable.
	genMask uint64 // of the generation in a ticket
	birth   uint64 // the smallest generation of a ticket
	leaves  bool   // a call that was given up leaves its slot

	slots   []slot
	done    []<-chan struct{} // Done of the contexts of the calls in slots; may be shorter
	watched int               // entries of done that are not nil
	free    []uint32
	newborn uint64   // generation of new slots; grows when slots are dropped
	peak    int      // maximum number of slots so far
	queue   []uint32 // queued slots in the order of submission, from index first
	first   int
	busy    int    // slots in use
	blocked int    // busy slots whose call has left
	slow    int    // busy slots whose call has SlowFor
	oneWays uint64 // generation of the next ticket of a request without a reply
	ages    ages
}

// A slot contains those data of a call that are needed while the socket is locked, because the
// calls themselves, of which there may be tens of thousands, are not in a processor cache.
type slot struct {
	call       *Call  // nil if the slot is free or blocked
	generation uint64 // of the ticket of the call, or of the next ticket
	write      uint64 // the number of the write that contained the call, and the flags below
	timer      uint32 // of the call
}

const (
	slotSent    uint64 = 1 << 63 // the call is in flight, or the slot is blocked
	slotSlow    uint64 = 1 << 62 // the call has SlowFor
	slotWatched uint64 = 1 << 61 // the context of the call can be canceled

	slotFlags = slotSent | slotSlow | slotWatched
)

// keptSlots is the number of slots that shrink retains.
const keptSlots = 16

// A ticket has 20 bits of slot, and 12 or 44 of generation.
const (
	slotBits = 20
	slotMask = 1<<slotBits - 1
)

func newSlots(t *Traits) slots {
	bits := max(t.TicketBits, 32)
	birth := (uint64(t.FirstTicket) + slotMask) >> slotBits
	s := slots{genMask: 1<<(bits-slotBits) - 1, birth: birth, leaves: bits == 32, newborn: birth, oneWays: birth}
	s.oneWay() // skips the ticket of Traits.GreetingTicket
	return s
}

func (t *slots) queued() int { return len(t.queue) - t.first }

// ticket returns the ticket of the call in slot i.
func (t *slots) ticket(i uint32) uint64 {
	return (t.slots[i].generation&t.genMask)<<slotBits | uint64(i)
}

// next returns the generation after g.
func (t *slots) next(g uint64) uint64 {
	if g++; g&t.genMask < t.birth {
		g += t.birth
	}
	return g
}

// oneWay returns a ticket for a request without a reply.
func (t *slots) oneWay() uint64 {
	ticket := (t.oneWays&t.genMask)<<slotBits | slotMask
	t.oneWays = t.next(t.oneWays)
	return ticket
}

// add queues c and returns its ticket.
func (t *slots) add(c *Call) uint64 {
	var i uint32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, slot{generation: t.newborn})
		t.peak = max(t.peak, len(t.slots))
	}
	s := &t.slots[i]
	s.call = c
	if c.SlowFor > 0 {
		s.write = slotSlow
		t.slow++
	}
	if c.watched {
		s.write |= slotWatched
		t.watch(i, c.ctx.Done())
	}
	c.slot = i
	t.busy++
	t.queue = append(t.queue, i)
	return t.ticket(i)
}

// watch makes sweeps check the context of the call in slot i.
func (t *slots) watch(i uint32, done <-chan struct{}) {
	for int(i) >= len(t.done) {
		t.done = append(t.done, nil)
	}
	t.done[i] = done
	t.watched++
}

// unwatch reverts watch for a call that was given up.
func (t *slots) unwatch(c *Call) {
	if s := &t.slots[c.slot]; s.write&slotWatched != 0 {
		s.write &^= slotWatched
		t.done[c.slot] = nil
		t.watched--
	}
}

// addFirst queues c before all other queued calls.
func (t *slots) addFirst(c *Call) uint64 {
	ticket := t.add(c)
	queue := t.queue[t.first:]
	copy(queue[1:], queue)
	queue[0] = c.slot
	return ticket
}

// queuedTicket returns the ticket of the i-th queued call.
func (t *slots) queuedTicket(i int) uint64 { return t.ticket(t.queue[t.first+i]) }

func (t *slots) queuedCall(i int) *Call { return t.slots[t.queue[t.first+i]].call }

// take marks the first n queued calls as in flight. One write contains them all.
func (t *slots) take(n int, now, roundTrip time.Duration) {
	batch := t.ages.next()
	t.ages.add(now, n)
	t.ages.expire(now, roundTrip)
	for _, i := range t.queue[t.first : t.first+n] {
		t.slots[i].write |= slotSent | batch
	}
	t.first += n
	// Entries move when half of the queue was taken, so each moves once on average.
	if t.first > len(t.queue)/2 {
		t.queue, t.first = t.queue[:copy(t.queue, t.queue[t.first:])], 0
	}
}

// awaits returns the slot that awaits a reply with the given ticket, or nil if there is none. A
// slot whose call is still queued awaits no reply.
func (t *slots) awaits(ticket uint64) *slot {
	i := ticket & slotMask
	if int(i) >= len(t.slots) {
		return nil
	}
	s := &t.slots[i]
	if s.write < slotSent || s.generation&t.genMask != ticket>>slotBits {
		return nil
	}
	return s
}

// find returns the call in flight with the given ticket, or nil if there is none.
func (t *slots) find(ticket uint64) *Call {
	if s := t.awaits(ticket); s != nil {
		return s.call
	}
	return nil
}

// match removes the call that a reply answers, and returns it with its timer. If there is none,
// known reports whether the ticket was sent before: then the reply is late or a duplicate.
func (t *slots) match(ticket uint64) (c *Call, timer uint32, known bool) {
	s := t.awaits(ticket)
	if s == nil {
		return nil, 0, t.wasSent(ticket)
	}
	if c = s.call; c == nil {
		t.blocked--
	} else {
		t.ages.answered(s.write &^ slotFlags)
	}
	timer = s.timer
	t.release(uint32(ticket & slotMask))
	return c, timer, true
}

// wasSent reports whether a ticket that awaits no reply was sent before. For dropped slots, only
// the greatest generation is known.
func (t *slots) wasSent(ticket uint64) bool {
	i, g := ticket&slotMask, ticket>>slotBits
	switch {
	case g < t.birth || g > t.genMask:
		return false
	case i == slotMask:
		return g < t.oneWays
	case int(i) < len(t.slots):
		return g < t.slots[i].generation
	}
	return int(i) < t.peak && g < t.newborn
}

// leave removes a call in flight that was given up from its slot, if that is possible, and reports
// whether it did. The slot stays blocked until the reply comes.
func (t *slots) leave(c *Call) bool {
	if !t.leaves || int(c.slot) >= len(t.slots) {
		return false
	}
	s := &t.slots[c.slot]
	if s.call != c || s.write < slotSent {
		return false
	}
	t.ages.answered(s.write &^ slotFlags)
	if s.write&slotSlow != 0 {
		t.slow--
	}
	s.call, s.write = nil, slotSent
	t.blocked++
	return true
}

// release frees a slot.
func (t *slots) release(i uint32) {
	s := &t.slots[i]
	if s.write&slotSlow != 0 {
		t.slow--
	}
	if s.write&slotWatched != 0 {
		t.done[i] = nil
		t.watched--
	}
	if s.write >= slotSent { // otherwise the ticket was not sent
		s.generation = t.next(s.generation)
	}
	s.call, s.write, s.timer = nil, 0, 0
	t.free = append(t.free, i)
	t.busy--
}

// dropQueued removes the queued calls for which drop returns true.
func (t *slots) dropQueued(drop func(*Call) bool) {
	kept := t.queue[:0]
	for _, i := range t.queue[t.first:] {
		if drop(t.slots[i].call) {
			t.release(i)
		} else {
			kept = append(kept, i)
		}
	}
	t.queue, t.first = kept, 0
}

func (t *slots) each(yield func(*Call) bool) {
	for i := range t.slots {
		if c := t.slots[i].call; c != nil && !yield(c) {
			return
		}
	}
}

func (t *slots) shrink() {
	if cap(t.queue) > keptCalls {
		t.queue = nil // first is 0
	}
	if len(t.done) > keptSlots {
		t.done = nil
	}
	// No reply is awaited. The retained slots keep their generations, and new slots
	// start with a generation that no dropped slot had.
	if len(t.slots) > keptSlots {
		for _, gone := range t.slots[keptSlots:] {
			t.newborn = max(t.newborn, gone.generation)
		}
		t.slots = append(make([]slot, 0, keptSlots), t.slots[:keptSlots]...)
		t.free = make([]uint32, keptSlots)
		for i := range t.free {
			t.free[i] = uint32(keptSlots - 1 - i)
		}
	}
}
