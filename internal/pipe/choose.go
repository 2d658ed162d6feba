package pipe

import "math/rand/v2"

// choose returns the socket that the next call is placed on; nil: there is none at that place.
func (e *Engine) choose() *socket {
	l := e.list.Load()
	return l.sockets[e.placeIn(l)]
}

// placeIn returns the place that the next call goes to. Gathered, 16
// connections for 16,384 futures cost no more CPU than a client each for 1,024 of them; at
// random they cost 1.3 to 2.3 times that; docs/PERFORMANCE.md, "Several connections".
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
	if at >= n { // it was chosen while there were more
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

// lessUsed returns the place with fewer calls of two that are chosen at random.
// Two suffice: if each of n calls goes to the lesser of two of n queues, the longest has about log log n
// of them instead of log n / log log n (Mitzenmacher, "The power of two choices in randomized
// load balancing"). The least of all would cost a load for each connection, and callers that look at the same
// moment would all go to the same one.
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

// callsOn returns how many calls a connection has; negative: it is not there, or ends.
func (l *list) callsOn(i uint32) int64 {
	if s := l.sockets[i]; (Pin{s}).Alive() {
		return s.charged.Load() >> chargeBits
	}
	return -1
}

// chooseAny returns the socket of any place.
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

// loadOf returns how much a connection has, in steps of which 0 is little; negative: it is not
// there, or ends.
func (l *list) loadOf(i uint32, spill int64) int64 {
	s := l.sockets[i]
	if !(Pin{s}).Alive() {
		return -1
	}
	charged := s.charged.Load()
	calls, bytes := charged>>chargeBits, charged&(oneCall-1)
	return calls/min(spill, l.maxCalls/8+1) + bytes/(l.maxBytes/8+1)
}

// chooseOther returns a socket that takes calls, after s has taken none; nil: there is none.
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
