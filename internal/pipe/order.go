package pipe

const firstRing = 16

// order holds the calls of a protocol that answers in the order of requests. It is a ring
// whose positions only increase: [head, sent) are in flight, [sent, tail) are queued.
type order struct {
	ring             []*Call // the length is a power of two
	head, sent, tail uint64
	slowUntil        uint64 // the position after the last call with SlowFor
}

// add queues c, which has a place for each of its replies.
func (o *order) add(c *Call) {
	for range c.places() {
		o.grow()
		o.ring[o.tail&uint64(len(o.ring)-1)] = c
		o.tail++
	}
	if c.SlowFor > 0 {
		o.slowUntil = o.tail
	}
}

// addFirst queues c, which has one reply, before all other queued calls.
func (o *order) addFirst(c *Call) {
	o.grow()
	mask := uint64(len(o.ring) - 1)
	for i := o.tail; i > o.sent; i-- {
		o.ring[i&mask] = o.ring[(i-1)&mask]
	}
	o.ring[o.sent&mask] = c
	o.tail++
	if o.slowUntil > o.sent {
		o.slowUntil++
	}
}

// grow makes room for one more call.
func (o *order) grow() {
	if int(o.tail-o.head) < len(o.ring) {
		return
	}
	n := max(2*len(o.ring), firstRing)
	ring := make([]*Call, n)
	for i := o.head; i < o.tail; i++ {
		ring[i&uint64(n-1)] = o.at(i)
	}
	o.ring = ring
}

// at returns the call at position i.
func (o *order) at(i uint64) *Call { return o.ring[i&uint64(len(o.ring)-1)] }

// whole returns how many of the first n queued places may be written so that no call is
// split. If nothing is in flight, the first call is written in any case.
func (o *order) whole(n int) int {
	queued := int(o.tail - o.sent)
	if queued > n && o.sent == o.head {
		n = max(n, o.at(o.sent).places())
	}
	if n >= queued {
		return n
	}
	for n > 0 && o.at(o.sent+uint64(n)) == o.at(o.sent+uint64(n-1)) {
		n--
	}
	return n
}

// pop removes and returns the oldest call in flight. There must be one.
func (o *order) pop() *Call {
	i := o.head & uint64(len(o.ring)-1)
	c := o.ring[i]
	o.ring[i] = nil
	o.head++
	return c
}

// dropQueued removes the queued calls for which drop returns true.
func (o *order) dropQueued(drop func(*Call) bool) {
	to, slowUntil := o.sent, min(o.slowUntil, o.sent)
	for i := o.sent; i < o.tail; i++ {
		c := o.at(i)
		if drop(c) {
			continue
		}
		o.ring[to&uint64(len(o.ring)-1)] = c
		to++
		if c.SlowFor > 0 {
			slowUntil = to
		}
	}
	for i := to; i < o.tail; i++ {
		o.ring[i&uint64(len(o.ring)-1)] = nil
	}
	o.tail = to
	o.slowUntil = slowUntil
}

func (o *order) each(yield func(*Call) bool) {
	for i := o.head; i < o.tail; i++ {
		if !yield(o.at(i)) {
			return
		}
	}
}

func (o *order) shrink() {
	if len(o.ring) > keptCalls {
		o.ring = nil
	}
}
