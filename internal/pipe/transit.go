package pipe

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
)

// Calls can move. When a socket fails or is retired, its calls of which no write has taken a byte
// move to another socket, in the order of their requests, before callers see that the socket accepts no
// calls. If no other socket has room, they are in transit, in order, until a socket comes up, their
// context or deadline ends, DialTimeout passes without any socket, or the engine closes.
//
// A call does not move if it is pinned, if it is a ping, if it has moved maxMoves times, if the
// engine fails fast, if a write has taken a part of its DoAll, or if one call of a group that makes sense
// only together was given up.

// maxMoves is the maximum number of moves of a call. A server that accepts connections only to close them would
// otherwise keep it in transit forever.
const maxMoves = 3

// moving marks a call in ending.moves while it is removed from its socket.
const moving = 1 << 7

// transit holds the calls that have left a socket and that no other socket has accepted yet.
//
// The charge of such a call counts against the share of the peer that it comes from until
// another socket has room for it; it is not released in between. That socket of the peer
// accepts no calls, so no other call gets the room, and the next socket of the peer is charged with all of it
// before callers see the socket. So no share is exceeded at any time, and a call always fits
// into the next socket of its own peer.
//
// If a peer has an heir, the next socket is the heir's. It accepts the calls whatever its share is, and
// their charge moves along. A peer whose place was given up has no next socket, and shares become
// smaller when sockets are added. So if no socket has room, any socket accepts a call that comes from such a peer or
// that is greater than a share: the total charge stays the same. See SetSockets.
//
// A goroutine that moves a call holds mu and the lock of the socket that the call leaves or reaches, so a goroutine
// that holds mu finds every call in exactly one place. Lock order: mu, then the locks of sockets. Locks of two
// sockets are held only under mu.
type transit struct {
	waiting atomic.Int64 // number of calls in units; written under mu
	closed  sync.Once    // done by the first Close

	mu sync.Mutex
	// Guarded by mu.
	units    []unit        // oldest first
	moved    uint64        // number of times that a call left a socket
	failed   uint64        // number of calls that failed in transit, which no socket counts
	givenUp  uint64        // number of calls in transit that ended because of their context or deadline
	socketAt time.Duration // when the sweeper last saw a socket while calls were in transit
}

// A unit is a call, or all calls of a DoAll, which move together.
type unit struct {
	calls  []*Call
	charge int64
	places int
	from   *socket // the last socket; the share of its peer holds the charge
	since  time.Duration
}

// A taker is a socket that has accepted calls, which must be flushed without other locks.
type taker struct {
	s *socket
	// reclaims means that the reader's role was free, and that reclaim must be called.
	reclaims bool
}

// mayMove reports whether a queued call may move, regardless of other calls of its DoAll.
// The caller holds the lock of its socket.
func (c *Call) mayMove() bool {
	return c.state.Load() == statePending && c.Pin.s == nil && !c.ping && c.ending.moves&^moving < maxMoves
}

// unsent returns the queued calls that may move, in the order of their requests. The caller holds mu.
func (s *socket) unsent() (calls []*Call) {
	var last *Call
	for c := range s.calls.eachQueued {
		if c != last && c.mayMove() { // not another place of a call with several replies
			calls = append(calls, c)
		}
		last = c
	}
	for _, c := range s.out.oneWays {
		if c.mayMove() {
			calls = append(calls, c)
		}
	}
	members := map[*Call]int{}
	for _, c := range calls {
		if c.routed && c.leader != nil {
			members[c.leader]++
		}
	}
	calls = slices.DeleteFunc(calls, func(c *Call) bool {
		return c.routed && c.leader != nil && members[c.leader] != int(c.leader.ending.members)
	})
	slices.SortStableFunc(calls, func(a, b *Call) int { return cmp.Compare(a.start, b.start) })
	return calls
}

// evict moves calls from a socket that accepts no more calls into transit. The caller holds mu of the transit
// and of the socket.
func (s *socket) evict() {
	e := s.engine
	if e.cfg.FailFast || s.calls.queued()+len(s.out.oneWays) == 0 || e.ctx.Err() != nil {
		return
	}
	if s.out.dead > 0 {
		s.cutDead()
	}
	calls := s.unsent()
	if len(calls) == 0 {
		return
	}
	for _, c := range calls {
		c.ending.moves |= moving
		if s.reader != nil && (s.reader == c || c.routed && s.reader == c.leader) {
			s.interrupt()
			s.reader = nil // see readFor
		}
	}
	s.cutQueued(func(c *Call) bool { return c.ending.moves&moving != 0 }, s.calls.disarm)
	t, now := &e.transit, e.now()
	for i := 0; i < len(calls); {
		u := unit{from: s, since: now}
		first := i
		for {
			c := calls[i]
			c.ending.moves = c.ending.moves&^moving + 1
			u.charge += c.charge
			u.places += c.places()
			i++
			if i == len(calls) || !c.routed || c.leader == nil || calls[i].leader != c.leader {
				break
			}
		}
		u.calls = calls[first:i:i]
		s.counts.Calls -= uint64(u.places)
		s.peer.kept.Add(u.charge)
		t.moved += uint64(u.places)
		t.waiting.Add(int64(u.places))
		t.units = append(t.units, u)
	}
}

// moveUnsent moves the unsent calls of a socket that accepts no more calls. The takers must be
// flushed. The caller holds mu of the transit and of the socket.
func (s *socket) moveUnsent() []taker {
	before := len(s.engine.transit.units)
	s.evict()
	if len(s.engine.transit.units) == before {
		return nil
	}
	takers := s.engine.place(s.engine.list.Load(), s)
	s.engine.wakeSweeper(len(s.engine.transit.units) > 0)
	return takers
}

// place moves calls in transit to sockets of l that have room, the oldest first, until there is no
// room for one. It does not use the socket whose lock the caller holds. The takers must be flushed.
// The caller holds mu of the transit.
func (e *Engine) place(l *list, locked *socket) (takers []taker) {
	t := &e.transit
	n := 0
	for n < len(t.units) && e.placeOne(l, &t.units[n], locked, &takers) {
		n++
	}
	t.units = slices.Delete(t.units, 0, n)
	return takers
}

// placeOne moves a unit to a socket that has room for it or, if the unit is homeless, to the one with the smallest
// charge. It reports whether it did.
func (e *Engine) placeOne(l *list, u *unit, locked *socket, takers *[]taker) bool {
	i := e.placeIn(l)
	var least *socket
	for range l.places {
		if s := l.sockets[i]; s != locked && (Pin{s}).Alive() {
			if s.adopt(u, false, takers) {
				return true
			}
			if least == nil || s.charged.Load() < least.charged.Load() {
				least = s
			}
		}
		i = (i + 1) % l.places
	}
	return least != nil && u.homeless(l) && least.adopt(u, true, takers)
}

// adopt accepts a unit if there is room for it or anyway is true, and reports whether it did. The caller holds mu
// of the transit.
func (s *socket) adopt(u *unit, anyway bool, takers *[]taker) bool {
	if !s.reserve(u.charge, anyway) {
		return false
	}
	if s.accept(u, takers) {
		return true
	}
	s.free(u.charge)
	return false
}

// homeless reports whether any socket must accept the unit, whatever its share is: the peer that it
// comes from has no next socket, or the unit is greater than a share. The caller holds mu.
func (u *unit) homeless(l *list) bool { return u.from.peer.home().leaving || !l.fits(u.charge) }

// home returns the peer whose next socket accepts the calls that left p. The caller holds the transit's mu.
func (p *peer) home() *peer {
	if p.heir != nil {
		return p.heir
	}
	return p
}

// accept queues a unit whose charge is reserved, and reports whether it did. It subtracts the charge from the
// peer that the unit comes from. The caller holds mu of the transit.
func (s *socket) accept(u *unit, takers *[]taker) bool {
	for _, c := range u.calls {
		if len(c.Frame) >= s.engine.cfg.choices.LinkedFrame && c.lent == nil {
			c.link()
		}
	}
	s.mu.Lock()
	if s.life.closed || s.life.retiring.Load() || s.life.muted.Load() || s.calls.full(len(u.calls)) {
		s.mu.Unlock()
		return false
	}
	if s.lone = 0; !s.unused() {
		s.pace.crowd = crowdLasts
	}
	s.recall()
	reclaims := s.role == roleFree
	if reclaims {
		s.role, s.out.writing = roleCaller, true
	}
	wakeSweeper := s.queue(u.calls)
	s.out.kicking = true // cleared by flushTaken
	s.mu.Unlock()
	s.engine.wakeSweeper(wakeSweeper)
	s.engine.transit.discharge(u)
	if !slices.ContainsFunc(*takers, func(t taker) bool { return t.s == s }) {
		*takers = append(*takers, taker{s, reclaims})
	}
	return true
}

// discharge subtracts the charge of a unit where it comes from. The caller holds mu.
func (t *transit) discharge(u *unit) {
	u.from.peer.kept.Add(-u.charge)
	u.from.charged.Add(-u.charge)
	t.waiting.Add(-int64(u.places))
}

// flushTaken writes the calls that takers have accepted, if the flush rule allows it. The caller holds no lock.
func flushTaken(takers []taker) {
	for _, t := range takers {
		t.s.flushTaken(t.reclaims)
	}
}

func (s *socket) flushTaken(reclaims bool) {
	s.mu.Lock()
	s.out.kicking = false
	if reclaims {
		s.mu.Unlock()
		s.reclaim()
		return
	}
	s.flushDue()
}

// welcome publishes a new socket of p, after moving calls in transit to it: all
// whose home is p, homeless ones, and of the others the oldest for which there is
// room. If the place of p was given up, welcome does
// nothing and returns false.
func (e *Engine) welcome(p *peer, s *socket) bool {
	t := &e.transit
	t.mu.Lock()
	if p.leaving {
		t.mu.Unlock()
		return false
	}
	p.stop = nil
	s.mu.Lock()
	s.setWindow() // because the number of sockets may have changed
	s.mu.Unlock()
	l := e.list.Load()
	var takers []taker
	stay, blocked := t.units[:0], false
	for _, u := range t.units {
		own := u.from.peer.home() == p || u.homeless(l)
		if blocked = blocked || !own && !l.fits(s.charged.Load()+l.keptFor(p)+u.charge); blocked && !own {
			stay = append(stay, u)
			continue
		}
		s.charged.Add(u.charge)
		if !s.accept(&u, &takers) { // too few tickets
			s.charged.Add(-u.charge)
			stay, blocked = append(stay, u), true
		}
	}
	clear(t.units[len(stay):])
	t.units = stay
	p.set(s, nil)
	t.mu.Unlock()
	flushTaken(takers)
	return true
}

// keptFor returns the charge of the calls in transit whose home is p. The caller holds the
// transit's mu.
func (l *list) keptFor(p *peer) int64 {
	kept := p.kept.Load()
	for _, other := range l.peers[l.places:] {
		if other.heir == p {
			kept += other.kept.Load()
		}
	}
	return kept
}

// visitTransit ends the calls in transit whose time is up and tries to place the others. It returns
// the time until it must be called again. Only the sweeper calls it.
func (e *Engine) visitTransit(now time.Duration) time.Duration {
	t := &e.transit
	if t.waiting.Load() == 0 {
		return restEvery
	}
	t.mu.Lock()
	if e.anySocket() != nil {
		t.socketAt = now
	}
	ended := e.expireTransit(now)
	takers := e.place(e.list.Load(), nil)
	left := len(t.units)
	t.mu.Unlock()
	flushTaken(takers)
	resolveAll(ended)
	if left == 0 {
		return restEvery
	}
	return min(heldEvery, e.cfg.choices.SweepEvery)
}

// expireTransit removes and returns the calls whose context or deadline has ended, and those that have
// waited for DialTimeout while there was no socket. All calls of a DoAll have the same context.
// The caller holds mu.
func (e *Engine) expireTransit(now time.Duration) (ended []*Call) {
	t := &e.transit
	t.units = slices.DeleteFunc(t.units, func(u unit) bool {
		cause := u.calls[0].timeIsUp(now)
		late := now-max(u.since, t.socketAt) >= e.cfg.DialTimeout
		if cause == nil && !late {
			return false
		}
		t.discharge(&u)
		if cause != nil {
			t.givenUp += uint64(u.places)
			e.sweeping.cancelled.Add(uint64(len(u.calls)))
		} else {
			t.failed += uint64(u.places)
		}
		for _, c := range u.calls {
			if cause != nil {
				c.fail(slipstream.NotSent, cause)
			} else {
				c.failWith(e.noConnection(context.DeadlineExceeded))
			}
		}
		ended = append(ended, u.calls...)
		return true
	})
	return ended
}

// closeTransit ends the calls in transit. It is called when no goroutine moves calls anymore.
func (e *Engine) closeTransit() {
	t := &e.transit
	t.mu.Lock()
	units := t.units
	t.units = nil
	for i := range units {
		t.discharge(&units[i])
		t.failed += uint64(units[i].places)
	}
	t.mu.Unlock()
	for _, u := range units {
		for _, c := range u.calls {
			c.failWith(e.closedError())
		}
		resolveAll(u.calls)
	}
}

func resolveAll(calls []*Call) {
	for _, c := range calls {
		c.resolve()
	}
}
