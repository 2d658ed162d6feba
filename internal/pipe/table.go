package pipe

import "slices"

// table holds the calls of a socket between submission and reply, in the order
// of their requests for FIFO protocols and by ticket for the others. All of it
// is guarded by the socket's lock.
//
// A FIFO table is a ring whose positions only grow: [head, sent) are under way,
// [sent, tail) are queued. A ticket table has slots; a ticket is the slot's
// number and its generation, so that a reply that comes twice finds nobody. A
// given-up call keeps its place until its reply comes, or, if it was still
// queued, until the flusher drops it.
type table struct {
	matched bool

	ring             []*Call // a power of two long
	head, sent, tail uint64

	slots   []slot
	free    []uint32
	newborn uint32   // generation of new slots; grows when slots were dropped
	queued  []uint32 // slots in the order of submission; those before first have gone
	first   int
	busy    int // with tickets: slots in use
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

// keptSlots are the slots that shrink leaves, keptCalls the entries of lists: 3 KiB
// of the 24 that an idle connection may take.
const (
	keptSlots = 64
	keptCalls = 128
)

// A ticket has 20 bits of slot and 12 of generation.
const (
	slotBits = 20
	slotMask = 1<<slotBits - 1
	genMask  = 1<<(32-slotBits) - 1
)

const firstRing = 16

func (t *table) queuedCalls() int {
	if t.matched {
		return len(t.queued) - t.first
	}
	return int(t.tail - t.sent)
}

// outstanding counts calls that were handed to the flusher and not yet
// answered, tombstones among them.
func (t *table) outstanding() int {
	if t.matched {
		return t.busy - t.queuedCalls()
	}
	return int(t.sent - t.head)
}

func (t *table) size() int { return t.queuedCalls() + t.outstanding() }

// full reports whether a ticket table has no ticket left. A ring grows without
// limit; the socket's bounds end it earlier.
func (t *table) full(n int) bool { return t.matched && t.busy+n > slotMask }

// add queues c, which has a place for each of its replies.
func (t *table) add(c *Call) {
	if t.matched {
		t.addSlot(c)
		return
	}
	for range c.places() {
		t.addPlace(c)
	}
}

func (t *table) addPlace(c *Call) {
	if int(t.tail-t.head) == len(t.ring) {
		t.growRing()
	}
	t.ring[t.tail&uint64(len(t.ring)-1)] = c
	t.tail++
}

func (t *table) addSlot(c *Call) {
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
	c.ticket = s.generation<<slotBits | i
	t.busy++
	t.queued = append(t.queued, i)
}

// addFirst queues c before all others, in a table with tickets.
func (t *table) addFirst(c *Call) {
	t.addSlot(c)
	queue := t.queued[t.first:]
	copy(queue[1:], queue)
	queue[0] = c.ticket & slotMask
}

func (t *table) growRing() {
	t.resizeRing(max(2*len(t.ring), firstRing))
}

func (t *table) resizeRing(n int) {
	ring := make([]*Call, n)
	for i := t.head; i < t.tail; i++ {
		ring[i&uint64(n-1)] = t.ring[i&uint64(len(t.ring)-1)]
	}
	t.ring = ring
}

// at returns the call of a FIFO table at position i.
func (t *table) at(i uint64) *Call { return t.ring[i&uint64(len(t.ring)-1)] }

// eachQueued yields the queued calls in the order of their requests.
func (t *table) eachQueued(yield func(*Call) bool) {
	if t.matched {
		for _, i := range t.queued[t.first:] {
			if !yield(t.slots[i].call) {
				return
			}
		}
		return
	}
	for i := t.sent; i < t.tail; i++ {
		if !yield(t.at(i)) {
			return
		}
	}
}

// pop takes the oldest call under way out of a FIFO table; nil: there is none.
func (t *table) pop() *Call {
	if t.head == t.sent {
		return nil
	}
	i := t.head & uint64(len(t.ring)-1)
	c := t.ring[i]
	t.ring[i] = nil
	t.head++
	return c
}

// find returns the slot of the call under way with that ticket, nil if there is none. A
// server could answer a call that is still queued.
func (t *table) find(ticket uint64) *slot {
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

// release makes a slot free.
func (t *table) release(i uint32) {
	s := &t.slots[i]
	s.call, s.sent, s.slow = nil, false, false
	s.generation = (s.generation + 1) & genMask
	t.free = append(t.free, i)
	t.busy--
}

// queuedTicket returns the ticket of the i-th queued call.
func (t *table) queuedTicket(i int) uint32 {
	at := t.queued[t.first+i]
	return t.slots[at].generation<<slotBits | at
}

// queuedCall returns the i-th queued call of a table with tickets.
func (t *table) queuedCall(i int) *Call { return t.slots[t.queued[t.first+i]].call }

// take moves the first n queued calls to those under way, which leave with that write.
func (t *table) take(n int, batch uint64) {
	if !t.matched {
		t.sent += uint64(n)
		return
	}
	for _, i := range t.queued[t.first : t.first+n] {
		s := &t.slots[i]
		s.sent, s.batch = true, batch
	}
	t.first += n
	// Moved when half has gone, so an entry is moved once on average.
	if t.first > len(t.queued)/2 {
		t.queued, t.first = t.queued[:copy(t.queued, t.queued[t.first:])], 0
	}
}

// dropQueued removes the queued calls that drop says are to go.
func (t *table) dropQueued(drop func(*Call) bool) {
	if t.matched {
		kept := t.queued[:0]
		for _, i := range t.queued[t.first:] {
			if drop(t.slots[i].call) {
				t.release(i)
			} else {
				kept = append(kept, i)
			}
		}
		t.queued, t.first = kept, 0
		return
	}
	to := t.sent
	for i := t.sent; i < t.tail; i++ {
		c := t.at(i)
		if drop(c) {
			continue
		}
		t.ring[to&uint64(len(t.ring)-1)] = c
		to++
	}
	for i := to; i < t.tail; i++ {
		t.ring[i&uint64(len(t.ring)-1)] = nil
	}
	t.tail = to
}

// each yields every call.
func (t *table) each(yield func(*Call) bool) {
	if t.matched {
		for i := range t.slots {
			if c := t.slots[i].call; c != nil && !yield(c) {
				return
			}
		}
		return
	}
	for i := t.head; i < t.tail; i++ {
		if !yield(t.at(i)) {
			return
		}
	}
}

// all returns the call of every place and empties the table, for good.
func (t *table) all() []*Call {
	calls := slices.AppendSeq(make([]*Call, 0, t.size()), t.each)
	*t = table{matched: t.matched, head: t.tail, sent: t.tail, tail: t.tail}
	return calls
}

// shrink gives back what a burst left, when the table is empty.
func (t *table) shrink() {
	if t.size() > 0 {
		return
	}
	if len(t.ring) > keptCalls {
		t.ring = nil
	}
	if cap(t.queued) > keptCalls {
		t.queued = nil // first is 0
	}
	// Nothing is under way, so no ticket is awaited. The slots that stay keep
	// their generations, and those that come again begin at one that none of the
	// dropped ones had, so that a reply which comes twice finds nobody.
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
