package pipe

import "math/rand/v2"

// choose returns the index of the connection that the next call is placed on. Gathered, 16
// connections for 16,384 futures cost no more CPU than a client each for 1,024 of them; at
// random they cost 1.3 to 2.3 times that; docs/PERFORMANCE.md, "Several connections".
func (e *Engine) choose() int {
	n := uint32(len(e.sockets))
	if n == 1 {
		return 0
	}
	switch e.cfg.Traits.Place {
	case Random:
		return e.chooseAny()
	case LeastOutstanding:
		return e.chooseLess()
	}
	at := e.current.Load()
	load := e.loadOf(at)
	if load == 0 {
		return int(at)
	}
	for step := uint32(1); step < n; step++ {
		next := (at + step) % n
		if other := e.loadOf(next); other >= 0 && (load < 0 || load > other) {
			e.current.CompareAndSwap(at, next)
			return int(next)
		}
	}
	return int(at)
}

// chooseLess returns the index of the connection with fewer calls of two that are chosen at random.
// Two suffice: if each of n calls goes to the lesser of two of n queues, the longest has about log log n
// of them instead of log n / log log n (Mitzenmacher, "The power of two choices in randomized
// load balancing"). The least of all would cost a load for each connection, and callers that look at the same
// moment would all go to the same one.
func (e *Engine) chooseLess() int {
	n := uint32(len(e.sockets))
	i := rand.Uint32N(n)
	j := (i + 1 + rand.Uint32N(n-1)) % n
	a, b := e.callsOn(i), e.callsOn(j)
	if b >= 0 && (a < 0 || b < a) {
		return int(j)
	}
	return int(i)
}

// callsOn returns how many calls a connection has; negative: it is not there, or ends.
func (e *Engine) callsOn(i uint32) int64 {
	if s := e.sockets[i].Load(); (Pin{s}).Alive() {
		return s.charged.Load() >> chargeBits
	}
	return -1
}

// chooseAny returns the index of any connection.
func (e *Engine) chooseAny() int {
	if len(e.sockets) == 1 {
		return 0
	}
	return int(rand.Uint32N(uint32(len(e.sockets))))
}

// loadOf returns how much a connection has, in steps of which 0 is little; negative: it is not
// there, or ends.
func (e *Engine) loadOf(i uint32) int64 {
	s := e.sockets[i].Load()
	if !(Pin{s}).Alive() {
		return -1
	}
	charged := s.charged.Load()
	calls, bytes := charged>>chargeBits, charged&(oneCall-1)
	return calls/min(int64(e.cfg.Traits.Spill), e.maxCalls/8+1) + bytes/(e.maxBytes/8+1)
}

// chooseOther returns the index of a connection that takes calls, after s has taken none.
func (e *Engine) chooseOther(s *socket) (i int, found bool) {
	i = e.choose()
	for range e.sockets {
		if other := e.sockets[i].Load(); other != s && (Pin{other}).Alive() {
			return i, true
		}
		i = (i + 1) % len(e.sockets)
	}
	return i, false
}
