package pipe

import "time"

// slots hold the calls of a protocol with tickets. A ticket is the number of a slot and the
// low bits of its generation, which counts the tickets of the slot that were sent. So a
// ticket is sent again only after its call has been answered: with 64 bits never, with 32
// after 4,096 calls of its slot.
//
// A call that was given up keeps its slot until its reply comes. With 32 bits, where replies
// may be lost, the call leaves the slot, which stays blocked. The last slot is that of
// requests without a reply and holds no call.
type slots struct {
	// Immutable.
	genMask uint64 // of the generation in a ticket
	birth   uint64 // the smallest generation of a ticket
	leaves  bool   // a call that was given up leaves its slot

	slots   []slot
	done    []<-chan struct{} // of the contexts of the calls in slots; may be shorter
	watched int               // of them, those that are not nil
	free    []uint32
	newborn uint64   // generation of new slots; grows when slots were dropped
	peak    int      // the most slots that there were
	queue   []uint32 // slots in the order of submission; those before first have gone
	first   int
	busy    int    // slots in use
	blocked int    // of them, those that their call has left
	slow    int    // of them, those of calls with SlowFor
	oneWays uint64 // generation of the next ticket of a request without a reply
	ages    ages
}

// A slot has what is asked of a call while the socket is locked. The calls themselves, ten
// thousands of them, are not in the processor's cache then.
type slot struct {
	call       *Call  // nil: the slot is free, or blocked
	generation uint64 // of the next ticket, or of the call's
	write      uint64 // the number of the write that the call left with, and the flags below
	timer      uint32 // of the call
}

const (
	slotSent uint64 = 1 << 63 // the call is in flight, or the slot blocked
	slotSlow uint64 = 1 << 62 // the call has SlowFor
	// slotWatched: the context of the call can be canceled.
	slotWatched uint64 = 1 << 61

	slotFlags = slotSent | slotSlow | slotWatched
)

// keptSlots are the slots that shrink leaves.
const keptSlots = 64

// A ticket has 20 bits of slot, and 12 or 44 of generation.
const (
	slotBits = 20
	slotMask = 1<<slotBits - 1
)

func newSlots(t *Traits) slots {
	bits := max(t.TicketBits, 32)
	birth := (uint64(t.FirstTicket) + slotMask) >> slotBits
	s := slots{genMask: 1<<(bits-slotBits) - 1, birth: birth, leaves: bits == 32, newborn: birth, oneWays: birth}
	s.oneWay() // that of Traits.GreetingTicket
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

// watch lets a sweep look at the context of the call in slot i.
func (t *slots) watch(i uint32, done <-chan struct{}) {
	for int(i) >= len(t.done) {
		t.done = append(t.done, nil)
	}
	t.done[i] = done
	t.watched++
}

// unwatch undoes watch for a call that was given up.
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

// take moves the first n queued calls to those in flight, which leave with one write.
func (t *slots) take(n int, now, roundTrip time.Duration) {
	batch := t.ages.next()
	t.ages.add(now, n)
	t.ages.expire(now, roundTrip)
	for _, i := range t.queue[t.first : t.first+n] {
		t.slots[i].write |= slotSent | batch
	}
	t.first += n
	// Moved when half has gone, so an entry is moved once on average.
	if t.first > len(t.queue)/2 {
		t.queue, t.first = t.queue[:copy(t.queue, t.queue[t.first:])], 0
	}
}

// awaits returns the slot that awaits a reply with that ticket, nil if there is none. A
// server could answer a call that is still queued.
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

// find returns the call in flight with that ticket, nil if there is none.
func (t *slots) find(ticket uint64) *Call {
	if s := t.awaits(ticket); s != nil {
		return s.call
	}
	return nil
}

// match takes the call out that a reply answers, and returns its timer. If there is none,
// known reports whether the ticket was sent before: then the reply is late, or the second one.
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

// wasSent reports whether a ticket was sent before and awaits no reply now. Of slots that
// were dropped it knows only the greatest generation.
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

// leave lets a call in flight that was given up leave its slot, if it may, and reports
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

// release makes a slot free.
func (t *slots) release(i uint32) {
	s := &t.slots[i]
	if s.write&slotSlow != 0 {
		t.slow--
	}
	if s.write&slotWatched != 0 {
		t.done[i] = nil
		t.watched--
	}
	if s.write >= slotSent { // else nobody has seen the ticket
		s.generation = t.next(s.generation)
	}
	s.call, s.write, s.timer = nil, 0, 0
	t.free = append(t.free, i)
	t.busy--
}

// dropQueued removes the queued calls that drop says are to go.
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
	// No reply is awaited. The slots that stay keep their generations, and those that come
	// again begin at one that none of the dropped ones had.
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
