package pipe

import "slices"

// This file is the part of the model in transit_model_test.go for a changing number of connections, and for the
// order of calls on several.

// mostPlaces is the maximum number of connections that a resize requests.
const mostPlaces = 3

// resize does what SetSockets does, without keepers.
func (w *transitWorld) resize(n int) {
	w.note("%d connections", n)
	e := w.engine
	before := e.list.Load().peers
	e.transit.mu.Lock()
	e.grow(n)
	r := e.shrink(n)
	e.transit.mu.Unlock()
	r.end()
	e.share()
	for _, p := range before {
		if !p.leaving || p.ended {
			continue
		}
		switch s, _ := p.current(); {
		case s == nil:
			p.end()
		case s.life.closed:
			w.ended(s)
		}
	}
	if l := e.list.Load(); l.places != n || len(l.peers) != len(l.sockets) {
		w.fatal("there are %d places for %d peers and %d connections", l.places, len(l.peers), len(l.sockets))
	}
}

// checkShares checks that no share is exceeded that was not exceeded before, except by calls that move from one
// peer to another.
func (w *transitWorld) checkShares() {
	l, before := w.engine.list.Load(), w.held
	w.held = map[*peer]int64{}
	grown, over := int64(0), -1
	for i, p := range l.peers {
		n := w.account(i)
		w.held[p] = n
		grown += n
		if n > before[p] && n>>chargeBits > l.maxCalls {
			over = i
		}
	}
	for _, n := range before {
		grown -= n
	}
	if over >= 0 && (grown > 0 || !w.resizes && !w.retires) {
		w.fatal("connection %d is charged for %d calls, its share is %d", over, w.account(over)>>chargeBits, l.maxCalls)
	}
}

// remember records for new calls which calls are queued before them on the same connection.
func (w *transitWorld) remember(own []*transitCall) {
	at := w.places()
	for _, c := range own {
		for _, b := range w.calls {
			if b != c && b.ends == 0 && !b.written && !c.written && at[b.call] == at[c.call] {
				c.before = append(c.before, b)
			}
			if b == own[0] {
				break
			}
		}
	}
}

// places returns the connection that holds each call, or nil if the call is in transit.
func (w *transitWorld) places() map[*Call]*socket {
	at := map[*Call]*socket{}
	for _, s := range w.engine.list.Load().sockets {
		if s != nil {
			for c := range s.calls.each {
				at[c] = s
			}
		}
	}
	return at
}

// part removes recorded calls that have ended, were written, or are not on the same connection anymore.
func (w *transitWorld) part() {
	at := w.places()
	for _, c := range w.calls {
		c.before = slices.DeleteFunc(c.before, func(b *transitCall) bool { return b.ends > 0 || b.written || at[b.call] != at[c.call] })
	}
}
