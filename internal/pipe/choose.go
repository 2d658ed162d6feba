package pipe

import "math/rand/v2"

// choose returns the socket for the next call, or nil if its place has none.
func (e *Engine) choose() *socket {
	l := e.list.Load()
	return l.sockets[e.placeIn(l)]
}

// placeIn returns the place for the next call. With Gather, 16
// connections for 16,384 futures cost no more CPU than 16 clients with 1,024 futures each; with
// Random they cost 1.3 to 2.3 times as much. See docs/PERFORMANCE.md, "Several connections".
func (e *Engine) placeIn(l *list) int {
	n := uint32(l.places)
	if n == 1 {
		return 0
	}
	switch e.cfg.Traits.Place {
	case Random:
		return l.anyPlace()
	case LeastOutstanding:
		return l.lessUsed()
	}
	current := e.current.Load()
	at := current
	if at >= n { // it was chosen while there were more places
		at = 0
	}
	spill := int64(e.cfg.Traits.Spill)
	load := l.loadOf(at, spill)
	if load == 0 {
		return int(at)
	}
	for step := uint32(1); step < n; step++ {
		next := (at + step) % n
		if other := l.loadOf(next, spill); other >= 0 && (load < 0 || load > other) {
			e.current.CompareAndSwap(current, next)
			return int(next)
		}
	}
	return int(at)
}

// lessUsed returns the one of two random places that has fewer calls. Two suffice: if each of n calls goes to the
// shorter of two random queues out of n, the longest has about log log n calls instead of log n / log log n
// (Mitzenmacher, "The power of two choices in randomized load balancing"). Finding the least loaded of all would
// cost an atomic load for each connection, and concurrent callers would all choose the same one.
func (l *list) lessUsed() int {
	n := uint32(l.places)
	i := rand.Uint32N(n)
	j := (i + 1 + rand.Uint32N(n-1)) % n
	a, b := l.callsOn(i), l.callsOn(j)
	if b >= 0 && (a < 0 || b < a) {
		return int(j)
	}
	return int(i)
}

// callsOn returns the number of calls of the connection at place i. It is negative if there is no connection
// or if it accepts no calls.
func (l *list) callsOn(i uint32) int64 {
	if s := l.sockets[i]; (Pin{s}).Alive() {
		return s.charged.Load() >> chargeBits
	}
	return -1
}

// chooseAny returns the socket of a random place, or nil if it has none.
func (e *Engine) chooseAny() *socket {
	l := e.list.Load()
	return l.sockets[l.anyPlace()]
}

func (l *list) anyPlace() int {
	if l.places == 1 {
		return 0
	}
	return int(rand.Uint32N(uint32(l.places)))
}

// loadOf returns the load of the connection at place i, in steps of which 0 is low. It is negative if there is
// no connection or if it accepts no calls.
func (l *list) loadOf(i uint32, spill int64) int64 {
	s := l.sockets[i]
	if !(Pin{s}).Alive() {
		return -1
	}
	charged := s.charged.Load()
	calls, bytes := charged>>chargeBits, charged&(oneCall-1)
	return calls/min(spill, l.maxCalls/8+1) + bytes/(l.maxBytes/8+1)
}

// chooseOther returns a socket other than s that accepts calls, or nil if there is none.
func (e *Engine) chooseOther(s *socket) *socket {
	l := e.list.Load()
	i := e.placeIn(l)
	for range l.places {
		if other := l.sockets[i]; other != s && (Pin{other}).Alive() {
			return other
		}
		i = (i + 1) % l.places
	}
	return nil
}
