package pipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// MaxSockets is the maximum number of sockets of an engine.
const MaxSockets = 1024

// ErrSocketCount means that the number of sockets is less than 1 or greater than MaxSockets.
var ErrSocketCount = errors.New("number of sockets out of range")

// ErrSurplus is the cause of the end of a connection that SetSockets has retired.
var ErrSurplus = errors.New("the connection is no longer needed")

// A list contains the sockets of an engine at one time. It is immutable, so callers read it without a lock. It is
// replaced under the transit's mu.
//
// A place is what SetSockets counts. A peer without a place has no part in placement; it
// stays in the list until the last call of its socket has ended. Its place was given up, or has another
// peer because the socket was retired, see succeed.
type list struct {
	// places is the number of sockets that the engine should have. Calls are placed on the first ones.
	places  int
	peers   []*peer   // those of the places, then those that leave
	sockets []*socket // of the peers; nil for a peer without a socket

	// share is what each peer may be charged with. Peers that leave have a share, too, because their calls are
	// still in flight.
	share
	whole share // what share becomes when the peers that leave have ended
}

func newList(cfg *Config, places int, peers []*peer, sockets []*socket) *list {
	n := len(peers)
	return &list{places: places, peers: peers, sockets: sockets, share: newShare(cfg, n), whole: newShare(cfg, places)}
}

// A share is a part of the bounds of an engine.
type share struct{ maxCalls, maxBytes int64 }

// newShare returns one of n equal shares.
func newShare(cfg *Config, n int) share {
	return share{
		maxCalls: int64(min(max(cfg.MaxCalls/n, 1), mostCalls)),
		maxBytes: min(int64(max(cfg.MaxBytes/n, 1)), oneCall/2),
	}
}

// fits reports whether calls with this charge in total are within the share.
func (s share) fits(charge int64) bool {
	return charge>>chargeBits <= s.maxCalls && charge&(oneCall-1) <= s.maxBytes
}

// replace makes l the list. The caller holds the transit's mu.
func (e *Engine) replace(l *list) {
	e.list.Store(l)
	e.changes.send()
}

// publish puts the socket of a peer into the list. The caller holds the transit's mu.
func (e *Engine) publish(p *peer, s *socket) {
	next := *e.list.Load()
	next.sockets = slices.Clone(next.sockets)
	next.sockets[slices.Index(next.peers, p)] = s
	e.replace(&next)
}

// SetSockets changes the number of sockets to n, from 1 to MaxSockets. It does not wait. A new socket gets calls
// as soon as it is up. A surplus socket gets no more calls and ends with ErrSurplus after the last reply that it
// awaits; its calls that were not sent move to other sockets. SetSockets keeps the sockets that are up, preferring
// those that have been silent for the shortest time.
//
// MaxCalls, MaxBytes and Traits.Depth are divided evenly among all sockets, including those that have not
// ended yet. A socket that has more than its new share, because there were fewer
// sockets before or because calls have moved to it, accepts no calls until it has less. Until then the
// sum may exceed the bound.
// A retired socket that still has calls counts as one that has not ended, in addition to the one
// that takes its place.
func (e *Engine) SetSockets(n int) error {
	if n < 1 || n > MaxSockets {
		return fmt.Errorf("%w: %d, expected 1 to %d", ErrSocketCount, n, MaxSockets)
	}
	t := &e.transit
	t.mu.Lock()
	if e.draining.Load() { // Close sets it, then locks mu, and then waits for keepers
		t.mu.Unlock()
		return e.closedError()
	}
	added := e.grow(n)
	for _, p := range added {
		e.startKeeper(p)
	}
	r := e.shrink(n)
	t.mu.Unlock()
	r.end()
	e.share()
	return nil
}

// startKeeper starts the keeper of a new peer. The caller holds the transit's mu, and the engine is not draining.
func (e *Engine) startKeeper(p *peer) {
	if e.keeperless {
		return
	}
	e.keepers.Add(1)
	// Stopped by SetSockets or Close; Close waits for it.
	go p.keep()
}

// grow adds places until there are n, and returns their peers. The caller holds the transit's mu.
func (e *Engine) grow(n int) (added []*peer) {
	l := e.list.Load()
	if n <= l.places {
		return nil
	}
	for range n - l.places {
		added = append(added, &peer{engine: e})
	}
	peers := slices.Insert(slices.Clone(l.peers), l.places, added...)
	sockets := slices.Insert(slices.Clone(l.sockets), l.places, make([]*socket, len(added))...)
	e.replace(newList(&e.cfg, n, peers, sockets))
	return added
}

// A reduction is the work that remains to be done without locks after places were given up.
type reduction struct {
	takers []taker
	idle   []*socket            // sockets without calls
	stops  []context.CancelFunc // stop attempts to connect
}

// shrink gives up places until n are left. Like retire, it moves unsent calls before callers
// see that a socket accepts no calls. The caller holds the transit's mu.
func (e *Engine) shrink(n int) (r reduction) {
	l := e.list.Load()
	if n >= l.places {
		return r
	}
	kept, left := l.healthiest(n)
	return e.giveUp(l, kept, left)
}

// Remove retires the connection as Retire does, and reduces the number of sockets by one. It does
// nothing and returns false if the connection no longer has a place, or has the only one.
func (p Pin) Remove() bool {
	e := p.s.engine
	t := &e.transit
	t.mu.Lock()
	l := e.list.Load()
	at := slices.Index(l.sockets[:l.places], p.s)
	if e.draining.Load() || at < 0 || l.places == 1 {
		t.mu.Unlock()
		return false
	}
	var kept []int
	for i := range l.places {
		if i != at {
			kept = append(kept, i)
		}
	}
	r := e.giveUp(l, kept, []int{at})
	t.mu.Unlock()
	r.end()
	e.share()
	return true
}

// giveUp gives up the places left. The caller holds the transit's mu.
func (e *Engine) giveUp(l *list, kept, left []int) (r reduction) {
	var peers []*peer
	var sockets []*socket
	for _, i := range kept {
		peers, sockets = append(peers, l.peers[i]), append(sockets, l.sockets[i])
	}
	peers, sockets = append(peers, l.peers[l.places:]...), append(sockets, l.sockets[l.places:]...)
	for _, i := range left {
		peers, sockets = append(peers, l.peers[i]), append(sockets, l.sockets[i])
	}
	next := newList(&e.cfg, len(kept), peers, sockets)
	// All sockets are locked at the same time, so that none of them gets the calls of another.
	var locked []*socket
	for _, i := range left {
		p, s := l.peers[i], l.sockets[i]
		if p.leaving = true; p.stop != nil {
			r.stops = append(r.stops, p.stop)
		}
		if s == nil {
			continue
		}
		s.mu.Lock()
		if locked = append(locked, s); !s.life.closed {
			s.evict()
		}
	}
	r.takers = e.place(next, nil)
	e.wakeSweeper(len(e.transit.units) > 0)
	e.current.Store(uint32(max(slices.Index(kept, int(e.current.Load())), 0)))
	e.replace(next)
	for _, s := range locked {
		if !s.life.closed && s.closeToCalls(ErrSurplus) != nil {
			r.idle = append(r.idle, s)
		}
		s.mu.Unlock()
	}
	return r
}

// end does the remaining work. The caller holds no lock.
func (r *reduction) end() {
	flushTaken(r.takers)
	for _, s := range r.idle {
		s.fail(ErrSurplus)
	}
	for _, stop := range r.stops {
		stop()
	}
}

// maxRetired is how many retired sockets of a place may have calls while another peer has the place. A
// server that retires each of its connections does not get more.
const maxRetired = 4

// succeed gives the place of p, whose socket s was retired and still has calls, to another peer, so that a slow
// call does not delay the next connection. It returns that peer, whose keeper is not started yet. It does nothing
// and returns nil if p has no place, if s is not published yet, or if too many sockets of the place still have
// calls; then the sweeper calls retire again. The caller holds the transit's mu.
func (e *Engine) succeed(p *peer, s *socket) *peer {
	if p.leaving || e.draining.Load() {
		return nil
	}
	l := e.list.Load()
	i := slices.Index(l.sockets[:l.places], s)
	if i < 0 {
		return nil
	}
	retired := 0
	for _, other := range l.peers[l.places:] {
		if other.heir == p && !other.ended {
			retired++
		}
	}
	if retired >= maxRetired {
		return nil
	}
	// The pause before the next attempt to connect is the same as for p.
	next := &peer{engine: e, began: p.began, backoff: p.backoff}
	for _, other := range l.peers[l.places:] {
		if other.heir == p {
			other.heir = next
		}
	}
	p.leaving, p.heir = true, next
	peers, sockets := append(slices.Clone(l.peers), p), append(slices.Clone(l.sockets), s)
	peers[i], sockets[i] = next, nil
	e.replace(newList(&e.cfg, l.places, peers, sockets))
	return next
}

// healthiest returns the n places to keep and the other ones, both in ascending order. It prefers places whose
// socket accepts calls, then silent ones, then those without a socket, then those whose last attempt to connect
// failed, then retired ones. Of the sockets that accept calls it prefers those that have been silent for the
// shortest time while they awaited replies, and then those with more calls, which would take longer to end.
func (l *list) healthiest(n int) (kept, left []int) {
	type health struct {
		place, class   int
		silence, calls int64
	}
	all := make([]health, l.places)
	for i := range all {
		h := health{place: i}
		s := l.sockets[i]
		switch {
		case s != nil && s.life.retiring.Load():
			h.class = 4
		case s != nil && (Pin{s}).Alive():
			h.silence = s.silence.Load()
			h.calls = s.charged.Load() >> chargeBits
		case s != nil && s.life.muted.Load():
			h.class = 1
		default: // there is no socket, or it has failed
			h.class = 2
			if _, err := l.peers[i].current(); err != nil {
				h.class = 3
			}
		}
		all[i] = h
	}
	slices.SortStableFunc(all, func(a, b health) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.silence, b.silence), cmp.Compare(b.calls, a.calls))
	})
	for i, h := range all {
		if i < n {
			kept = append(kept, h.place)
		} else {
			left = append(left, h.place)
		}
	}
	slices.Sort(kept)
	slices.Sort(left)
	return kept, left
}

// share applies the current shares to all sockets. The caller holds no lock.
func (e *Engine) share() {
	for _, s := range e.list.Load().sockets {
		if s != nil {
			s.mu.Lock()
			s.setWindow()
			s.makeRoom() // waiting callers check the new share
			s.flushDue() // releases mu
		}
	}
}

// prune removes the peers that have left: their keepers have ended, and no call in transit is charged
// to them.
func (e *Engine) prune() {
	t := &e.transit
	t.mu.Lock()
	l := e.list.Load()
	peers, sockets := slices.Clone(l.peers[:l.places]), slices.Clone(l.sockets[:l.places])
	for i, p := range l.peers[l.places:] {
		if !p.ended || p.kept.Load() != 0 {
			peers, sockets = append(peers, p), append(sockets, l.sockets[l.places+i])
		} else if p.past != nil {
			if e.past == nil {
				e.past = new(Counts)
			}
			e.past.add(*p.past)
		}
	}
	pruned := len(peers) < len(l.peers)
	if pruned {
		e.replace(newList(&e.cfg, l.places, peers, sockets))
	}
	t.mu.Unlock()
	if pruned {
		e.share()
	}
}
