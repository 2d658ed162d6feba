package pipe

import "time"

// slots hold the calls of a protocol with tickets. A ticket is the number of a slot and its
// generation, so that a reply that comes twice finds no call.
type slots struct {
	slots   []slot
	free    []uint32
	newborn uint32   // generation of new slots; grows when slots were dropped
	queue   []uint32 // slots in the order of submission; those before first have gone
	first   int
	busy    int // slots in use
	slow    int // of them, those of calls with SlowFor
	ages    ages
}

// A slot has what is asked of a call while the socket is locked. The calls themselves, ten
// thousands of them, are not in the processor's cache then.
type slot struct {
	call       *Call
	batch      uint64 // number of the write it left with
	generation uint32
	sent       bool
	slow       bool // it has SlowFor
}

// keptSlots are the slots that shrink leaves.
const keptSlots = 64

// A ticket has 20 bits of slot and 12 of generation.
const (
	slotBits = 20
	slotMask = 1<<slotBits - 1
	genMask  = 1<<(32-slotBits) - 1
)

func (t *slots) queued() int { return len(t.queue) - t.first }

// ticket returns the ticket of the call in slot i.
func (t *slots) ticket(i uint32) uint64 {
	return uint64(t.slots[i].generation)<<slotBits | uint64(i)
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
	}
	s := &t.slots[i]
	s.call, s.slow = c, c.SlowFor > 0
	if s.slow {
		t.slow++
	}
	c.slot = i
	t.busy++
	t.queue = append(t.queue, i)
	return t.ticket(i)
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
		s := &t.slots[i]
		s.sent, s.batch = true, batch
	}
	t.first += n
	// Moved when half has gone, so an entry is moved once on average.
	if t.first > len(t.queue)/2 {
		t.queue, t.first = t.queue[:copy(t.queue, t.queue[t.first:])], 0
	}
}

// find returns the slot of the call in flight with that ticket, nil if there is none. A
// server could answer a call that is still queued.
func (t *slots) find(ticket uint64) *slot {
	i := ticket & slotMask
	if int(i) >= len(t.slots) {
		return nil
	}
	s := &t.slots[i]
	if s.call == nil || uint64(s.generation) != ticket>>slotBits || !s.sent {
		return nil
	}
	return s
}

// match takes the call out that a reply answers; nil: there is none.
func (t *slots) match(ticket uint64) *Call {
	s := t.find(ticket)
	if s == nil {
		return nil
	}
	t.ages.answered(s.batch)
	c := s.call
	t.release(uint32(ticket & slotMask))
	return c
}

// release makes a slot free.
func (t *slots) release(i uint32) {
	s := &t.slots[i]
	if s.slow {
		t.slow--
	}
	s.call, s.sent, s.slow = nil, false, false
	s.generation = (s.generation + 1) & genMask
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
	// Nothing is in flight, so no ticket is awaited. The slots that stay keep their
	// generations, and those that come again begin at one that none of the dropped ones
	// had, so that a reply that comes twice finds no call.
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
