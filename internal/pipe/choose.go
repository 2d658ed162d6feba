package pipe

import "math/rand/v2"

// spillCalls is how many calls one of several connections has before the next one gets some.
// A server of Tarantool with its defaults reads about as many small requests of a connection
// at once (readahead, 16 KiB).
const spillCalls = 512

// choose returns the index of the connection that the next call goes to.
//
// Where replies come in order one that takes long holds up all behind it, so calls are spread
// at random. With tickets it does not, and what counts is that many calls travel together: all
// stay with one connection until it has spillCalls more than the next. At random, 16
// connections for 16,384 futures cost 1.3 to 2.3 times the CPU of a client each for 1,024 of
// them; docs/PERFORMANCE.md, async-16conn.
func (e *Engine) choose() int {
	n := uint32(len(e.sockets))
	if n == 1 || !e.spills {
		return e.chooseAny()
	}
	at := e.current.Load()
	calls := e.callsOf(at)
	if calls >= 0 && calls < spillCalls {
		return int(at)
	}
	for step := uint32(1); step < n; step++ {
		next := (at + step) % n
		if other := e.callsOf(next); other >= 0 && (calls < 0 || calls-other >= spillCalls) {
			e.current.CompareAndSwap(at, next)
			return int(next)
		}
	}
	return int(at)
}

// chooseAny returns the index of any connection.
func (e *Engine) chooseAny() int {
	if len(e.sockets) == 1 {
		return 0
	}
	return int(rand.Uint32N(uint32(len(e.sockets))))
}

// callsOf returns how many calls a connection has; negative: it is not there, or ends.
func (e *Engine) callsOf(i uint32) int64 {
	s := e.sockets[i].Load()
	if s == nil || s.retiring.Load() {
		return -1
	}
	return s.charged.Load() >> chargeBits
}

// isOther reports whether connection i is there and not s, which takes no calls.
func (e *Engine) isOther(i int, s *socket) bool {
	other := e.sockets[i].Load()
	return other != nil && other != s && !other.retiring.Load()
}
