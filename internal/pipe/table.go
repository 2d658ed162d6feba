package pipe

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

	slots  []slot
	free   []uint32
	queued []*Call // with tickets: in the order of submission
	busy   int     // with tickets: slots in use
}

type slot struct {
	call       *Call
	generation uint32
}

// A ticket has 20 bits of slot and 12 of generation.
const (
	slotBits = 20
	slotMask = 1<<slotBits - 1
	genMask  = 1<<(32-slotBits) - 1
)

const firstRing = 16

func (t *table) queuedCalls() int {
	if t.matched {
		return len(t.queued)
	}
	return int(t.tail - t.sent)
}

// outstanding counts calls that were handed to the flusher and not yet
// answered, tombstones among them.
func (t *table) outstanding() int {
	if t.matched {
		return t.busy - len(t.queued)
	}
	return int(t.sent - t.head)
}

func (t *table) size() int { return t.queuedCalls() + t.outstanding() }

// full reports whether a ticket table has no ticket left. A ring grows without
// limit; the socket's bounds end it earlier.
func (t *table) full(n int) bool { return t.matched && t.busy+n > slotMask }

// add queues c.
func (t *table) add(c *Call) {
	if t.matched {
		t.addSlot(c)
		return
	}
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
		t.slots = append(t.slots, slot{})
	}
	t.slots[i].call = c
	c.ticket = t.slots[i].generation<<slotBits | i
	t.busy++
	t.queued = append(t.queued, c)
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

// pop takes out the call that a reply answers; nil: nobody asked for it.
func (t *table) pop(ticket uint32) *Call {
	if !t.matched {
		if t.head == t.sent {
			return nil
		}
		i := t.head & uint64(len(t.ring)-1)
		c := t.ring[i]
		t.ring[i] = nil
		t.head++
		return c
	}
	i := ticket & slotMask
	if int(i) >= len(t.slots) {
		return nil
	}
	s := &t.slots[i]
	if s.call == nil || s.generation != ticket>>slotBits {
		return nil
	}
	c := s.call
	t.release(i)
	return c
}

func (t *table) release(i uint32) {
	s := &t.slots[i]
	s.call = nil
	s.generation = (s.generation + 1) & genMask
	t.free = append(t.free, i)
	t.busy--
}

// take moves everything queued to the calls under way and returns how many they
// are. visit is called for each with tickets, and may be nil.
func (t *table) take() (n int) {
	n = t.queuedCalls()
	if t.matched {
		clear(t.queued)
		t.queued = t.queued[:0]
		return n
	}
	t.sent = t.tail
	return n
}

// dropQueued removes the queued calls that drop says are to go.
func (t *table) dropQueued(drop func(*Call) bool) {
	if t.matched {
		kept := t.queued[:0]
		for _, c := range t.queued {
			i := c.ticket & slotMask
			if drop(c) {
				t.release(i)
			} else {
				kept = append(kept, c)
			}
		}
		clear(t.queued[len(kept):])
		t.queued = kept
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

// all returns every call and empties the table.
func (t *table) all() []*Call {
	calls := make([]*Call, 0, t.size())
	if t.matched {
		for i := range t.slots {
			if c := t.slots[i].call; c != nil {
				calls = append(calls, c)
			}
		}
		*t = table{matched: true}
		return calls
	}
	for i := t.head; i < t.tail; i++ {
		calls = append(calls, t.at(i))
	}
	t.ring, t.head, t.sent = nil, t.tail, t.tail
	return calls
}

// shrink gives back what a burst left, when the table is empty.
func (t *table) shrink() {
	if t.size() > 0 {
		return
	}
	if len(t.ring) > 1024 {
		t.ring = nil
	}
	if cap(t.queued) > 1024 {
		t.queued = nil
	}
	// Slots keep their generations: a late reply must not find a new call.
}
