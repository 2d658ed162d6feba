package loop

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Places.
const (
	// roomAtOnce is the fraction of the places, 1/128, that is freed at once when none is free: a
	// survey takes about a millisecond for 10,000 connections.
	roomAtOnce = 128
	// leastIdle is how long a connection must have been idle to make room, or open if it
	// has not proven itself: otherwise connections that have just been accepted would make
	// room for each other. For an address with more than a quarter of the places it is
	// crowdIdle.
	leastIdle = time.Second
	crowdIdle = 100 * time.Millisecond
	// keeperPause is the minimum time between two reviews, and keeperRest the minimum after a
	// review that closed nothing.
	keeperPause = 5 * time.Millisecond
	keeperRest  = 100 * time.Millisecond
)

// An AddressLimit bounds the number of connections of each address. All methods are safe for
// concurrent use.
type AddressLimit struct {
	Most int // immutable; if zero, there is no limit

	// Guarded by mu.
	mu    sync.Mutex
	count map[Group]int
}

// Take counts a connection from addr, where alone is the result of [Alone]. If limited is false,
// the connection is not counted; otherwise Release must be called with g. If ok is false, the
// address already has the maximum number of connections.
func (a *AddressLimit) Take(addr netip.Addr, alone bool) (g Group, limited, ok bool) {
	if a.Most <= 0 || alone || addr.IsLoopback() {
		return g, false, true
	}
	g = GroupOf(addr, false, nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count == nil {
		a.count = make(map[Group]int)
	}
	if a.count[g] >= a.Most {
		return g, false, false
	}
	a.count[g]++
	return g, true, true
}

// Release removes a connection from the count.
func (a *AddressLimit) Release(g Group) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count[g]--; a.count[g] == 0 {
		delete(a.count, g)
	}
}

// Alone reports whether each connection from addr counts separately: addr is that of a trusted
// proxy, or not valid.
func Alone(addr netip.Addr, proxies []netip.Prefix) bool {
	return !addr.IsValid() || slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// admitted reports whether an accepted connection may stay, and records how it is counted.
func (c *Conn) admitted() bool {
	addr := c.remote.Addr()
	c.alone = Alone(addr, c.server.config.Proxies)
	_, limited, ok := c.server.addresses.Take(addr, c.alone)
	if c.limited = limited; !ok {
		c.server.closes[ReasonAddress].Add(1)
	}
	return ok
}

// group returns the group of the connection; own is the connection itself.
func (c *Conn) group(own any) Group { return GroupOf(c.remote.Addr(), c.alone, own) }

// releasePlace releases the place of a connection.
func (c *Conn) releasePlace() {
	if c.limited {
		c.server.addresses.Release(c.group(nil))
	}
	c.server.releasePlace()
}

// inUse reports whether something is in flight on the connection.
func (c *Conn) inUse() bool {
	return !c.lingering && (c.owed > 0 || c.waiting() > 0 || c.partial != 0 || c.in.Len() > 0 || c.expected != nil || c.ending || c.detaching)
}

// peer describes the connection for a survey.
func (c *Conn) peer(now time.Duration, own Cutter) Peer {
	p := Peer{Group: c.group(own), Holds: int64(c.counted.held) + c.postedWeight(), Large: c.heldLarge(), Proven: c.proven, Idle: now - c.active, Conn: own}
	switch {
	case !c.proven:
		p.Idle = now - c.opened
	case c.inUse():
		p.Idle, p.Quiet = -1, now-c.active
	}
	return p
}

// cut makes the connection fail, unless the reason no longer holds.
func (c *Conn) cut(why CloseReason) bool {
	switch {
	case c.closed || c.failure != nil:
		return false
	case why == ReasonMemory && c.counted.held == 0 && c.postedWeight() == 0, why == ReasonLarge && c.heldLarge() == 0:
		return false
	case why == ReasonUnprovenRoom && c.proven:
		return false
	case (why == ReasonAddressRoom || why == ReasonIdleRoom) && c.inUse():
		return false
	}
	switch why {
	case ReasonMemory:
		c.server.config.Budget.CountClosed()
	case ReasonLarge:
		c.server.config.Large.CountClosed()
	}
	c.failure = &CloseError{Reason: why}
	return true
}

// wakeKeeper makes the keeper check the budgets and the places.
func (s *Server) wakeKeeper() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// lacksRoom records that there is no place for a connection that waits to be accepted.
func (s *Server) lacksRoom() {
	s.crowded.Store(true)
	s.wakeKeeper()
}

// keep is the keeper: it closes connections while a budget is exceeded or places are needed.
func (s *Server) keep() {
	defer close(s.kept)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-s.wake:
		}
		for again := true; again; {
			select {
			case <-s.quit:
				return
			case <-pause.C:
			}
			closed := s.config.Budget.Review() + s.config.Large.Review()
			if s.crowded.Swap(false) {
				s.makeRoom()
			}
			again = s.config.Budget.Over() || s.config.Large.Over()
			if again && closed == 0 {
				pause.Reset(keeperRest)
			} else {
				pause.Reset(keeperPause)
			}
		}
	}
}

// stopKeeping ends the keeper, if there is one. It is called once.
func (s *Server) stopKeeping() {
	s.mu.Lock()
	leave := s.leave
	s.leave = nil
	s.mu.Unlock()
	close(s.quit)
	if leave != nil {
		<-s.kept
		leave()
	}
}

// makeRoom closes some connections so that others can be accepted.
func (s *Server) makeRoom() {
	peers := s.Survey(nil)
	if s.config.Handed != nil {
		peers = s.config.Handed.Survey(peers)
	}
	s.room.Make(peers, time.Now())
	for _, e := range s.used {
		e.resume()
	}
}

// A Room closes connections when all places are taken, so that others can be accepted. It is used
// by one goroutine at a time.
type Room struct {
	Places int // immutable: the number of places

	// packedAt is when a call first closed nothing because of an address with most of the
	// places; last is the time of the last call.
	packedAt, last time.Time
}

// Make closes a few of peers, which hold all places: first connections that have not proven
// themselves, then idle ones, then those in use of an address that has several. Among these it
// closes those of the address with the most connections first, and then those that were idle for
// the longest time. An address with more than a quarter of the places loses connections in use
// together with idle ones.
//
// While most of the places belong to one address and most of its connections are in use, no
// proven connection of a smaller address is closed. If none of its connections is quiet for a
// second of such calls, those that have been quiet for the longest time are closed.
func (r *Room) Make(peers []Peer, now time.Time) {
	c := crowdsOf(peers, r.Places)
	if now.Sub(r.last) > leastIdle {
		r.packedAt = time.Time{} // places were free in the meantime
	}
	r.last = now
	c.impatient = !r.packedAt.IsZero() && now.Sub(r.packedAt) >= leastIdle
	candidates := c.rank(peers)
	switch {
	case len(candidates) > 0 || !c.packed:
		r.packedAt = time.Time{}
	case r.packedAt.IsZero():
		r.packedAt = now
	}
	for _, p := range candidates[:min(len(candidates), r.Places/roomAtOnce+1)] {
		switch {
		case !p.Proven:
			p.Conn.Cut(ReasonUnprovenRoom)
		case p.Idle < 0:
			p.Conn.Cut(ReasonCrowdRoom)
		case c.all[p.Group] > 1:
			p.Conn.Cut(ReasonAddressRoom)
		default:
			p.Conn.Cut(ReasonIdleRoom)
		}
	}
}

// crowds is what a survey has found out about groups.
type crowds struct {
	places int64
	all    map[Group]int64 // connections of a group
	busy   map[Group]int64 // proven connections of a group that are in use
	young  int64           // connections that are new and have not proven themselves

	packed    bool // most of the places belong to one group, and most of its connections are in use
	impatient bool // this has lasted for a second, and none of its connections was quiet
}

func crowdsOf(peers []Peer, places int) *crowds {
	c := &crowds{places: int64(places), all: make(map[Group]int64), busy: make(map[Group]int64)}
	for _, p := range peers {
		c.all[p.Group]++
		switch {
		case !p.Proven && p.Idle < leastIdle:
			c.young++
		case p.Proven && p.Idle < 0:
			c.busy[p.Group]++
		}
	}
	for g, n := range c.all {
		c.packed = c.packed || 2*n > c.places && 2*c.busy[g] > n
	}
	return c
}

// A rung says when a connection makes room: those of the first rung are closed first.
type rung uint8

const (
	rungUnproven rung = iota
	rungIdle          // and those in use of a group with more than a quarter of the places
	rungUsed
	rungNone

	rungs = rungNone
)

// rung returns the rung of p. A single unread byte keeps a connection in use, so an address could
// hold all places that way; therefore connections in use may be closed, too.
func (c *crowds) rung(p *Peer) rung {
	n := c.all[p.Group]
	large := n > c.places/4
	ripe := p.Idle >= leastIdle || p.Idle >= crowdIdle && large
	switch {
	case !p.Proven && ripe:
		return rungUnproven
	case !p.Proven || c.young > c.places/8:
		// The many new ones will soon be closed or have proven themselves: no other connection is
		// closed for them.
		return rungNone
	case c.packed && !large:
		return rungNone
	case ripe, p.Idle < 0 && large && (p.Quiet >= leastIdle || p.Quiet >= crowdIdle && 2*c.busy[p.Group] > n):
		return rungIdle
	case p.Idle < 0 && n > 1 && p.Quiet >= leastIdle, p.Idle < 0 && c.impatient && 2*n > c.places:
		return rungUsed
	}
	return rungNone
}

// rank returns the connections that may be closed, in that order.
func (c *crowds) rank(peers []Peer) (candidates []Peer) {
	strangers := make(map[Group]int64)
	var on [rungs][]Peer
	for i := range peers {
		p := &peers[i]
		switch r := c.rung(p); r {
		case rungNone:
			continue
		case rungUnproven:
			strangers[p.Group]++
			fallthrough
		default:
			on[r] = append(on[r], *p)
		}
	}
	for r, some := range on {
		left := strangers
		if rung(r) != rungUnproven {
			left = maps.Clone(c.all)
		}
		// Idle is negative for connections in use, so that they come after the idle ones of
		// their group.
		slices.SortFunc(some, func(a, b Peer) int { return cmp.Or(cmp.Compare(b.Idle, a.Idle), cmp.Compare(b.Quiet, a.Quiet)) })
		rank(some, left, func(*Peer) int64 { return 1 })
		slices.SortStableFunc(some, func(a, b Peer) int { return cmp.Compare(b.rank, a.rank) })
		candidates = append(candidates, some...)
	}
	return candidates
}
