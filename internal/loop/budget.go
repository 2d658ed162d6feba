package loop

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultBudget is the default limit of a [Budget], in bytes.
const DefaultBudget = 64 << 20

// DefaultLarge is the default limit of large answers, in bytes.
const DefaultLarge = 256 << 20

// Defaults for the timeout and the number of connections of a frontend, which tests use. A gateway
// passes the values of its configuration.
const (
	DefaultTimeout     = 30 * time.Second
	DefaultConnections = 17_000
)

// The room of a connection while memory is short: see [Budget.room].
const (
	roomThrottled = 16 << 10
	roomOver      = 4 << 10
)

// A Budget bounds the memory that the connections of one or more servers hold together: answers
// below 64 KiB that their peers have not read, requests that wait for an answer, tasks that were
// posted, and unconsumed input: the starts of requests, and what has arrived of inputs that
// [Conn.Expect] announced.
//
// Above half of the limit, a connection whose peer reads slowly gets at most 16 KiB of answers at a
// time. Above the limit, connections are closed, each time the largest one of the address that
// holds the most. All methods are safe for concurrent use.
//
// Large answers have a separate budget: see [NewLargeBudget].
type Budget struct {
	// Immutable.
	limit int64
	large bool // it bounds large answers

	// Guarded by mu, which reviews hold.
	mu      sync.Mutex
	sources []Source

	// Atomics. used differs from what connections hold by at most 1/64 of the limit.
	used      atomic.Int64
	closed    atomic.Uint64
	throttled atomic.Uint64
	refused   atomic.Uint64
	alone     atomic.Int64 // bytes of a single answer that is larger than the limit
}

// NewBudget returns a budget of limit bytes. If limit is zero, it is [DefaultBudget].
func NewBudget(limit int64) *Budget {
	if limit <= 0 {
		limit = DefaultBudget
	}
	return &Budget{limit: limit}
}

// NewLargeBudget returns a budget of limit bytes for large answers: those that [Output.Large] marks
// and [Server.HoldLarge] adds. Above half of the limit, a connection that owes a large answer gets
// no other one. Above the limit, connections are closed, each time the one that owes the most of
// the address that owes the most. Above one and a half times the limit, large answers are refused:
// see [Budget.Admits].
func NewLargeBudget(limit int64) *Budget {
	b := NewBudget(limit)
	b.large = true
	return b
}

// Admits reports whether n more bytes may be held. The room above the limit is for what arrives
// until the connections that hold the most have been closed. An answer is always admitted if
// nothing else is held.
func (b *Budget) Admits(n int64) bool {
	used := b.used.Load()
	switch {
	case used <= 0 && n > b.limit:
		b.alone.Store(n)
		return true
	case used <= 0:
		b.alone.Store(0)
		return true
	case used+n <= b.limit+b.limit/2:
		return true
	}
	b.refused.Add(1)
	return false
}

// holds returns how many bytes of a connection count toward the budget.
func (b *Budget) holds(p *Peer) int64 {
	if b.large {
		return p.Large
	}
	return p.Holds
}

// reason returns the reason that is given for connections that the budget closes.
func (b *Budget) reason() CloseReason {
	if b.large {
		return ReasonLarge
	}
	return ReasonMemory
}

// BudgetStats are the metrics of a [Budget].
type BudgetStats struct {
	Used, Limit int64
	// Closed counts connections that were closed because of the memory they held, Throttled counts
	// connections that got fewer answers at a time.
	Closed, Throttled uint64
	// Refused counts answers that were not admitted.
	Refused uint64
}

// Stats returns the current metrics.
func (b *Budget) Stats() BudgetStats {
	return BudgetStats{Used: max(b.used.Load(), 0), Limit: b.limit, Closed: b.closed.Load(), Throttled: b.throttled.Load(),
		Refused: b.refused.Load()}
}

// A Source reports connections that may hold memory or places.
type Source interface {
	// Survey appends the current connections to dst.
	Survey(dst []Peer) []Peer
}

// A Peer is a connection at the time of a survey.
type Peer struct {
	Group  Group
	Holds  int64         // bytes that count toward the budget
	Large  int64         // bytes that count toward the budget of large answers
	Proven bool          // it has completed a request, or a login where one is required
	Idle   time.Duration // since its last event or, if it is not proven, since it was opened; negative if it is in use
	Quiet  time.Duration // since its last event, if it is in use
	Conn   Cutter

	rank int64
}

// A Cutter is a connection that can be closed from outside its turn.
type Cutter interface {
	// Cut closes the connection soon, unless the reason no longer holds.
	Cut(why CloseReason)
}

// A Group is a set of connections that count together: those of one address, of one IPv6 network of
// 64 bits, or a single connection.
type Group struct {
	addr netip.Addr
	own  any // the connection; nil if the group is that of addr
}

// GroupOf returns the group of a connection from addr. If alone is true, as for a trusted proxy,
// or if addr is not valid, as for a Unix socket, the address says nothing about the client, and the
// group is only this connection.
func GroupOf(addr netip.Addr, alone bool, own any) Group {
	switch {
	case alone || !addr.IsValid():
		return Group{own: own}
	case addr.Is6():
		p, _ := addr.Prefix(64) // a valid length for IPv6
		return Group{addr: p.Addr()}
	}
	return Group{addr: addr}
}

// Join adds the connections of s to those that are reviewed, until leave is called.
func (b *Budget) Join(s Source) (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sources = append(b.sources, s)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.sources = slices.DeleteFunc(b.sources, func(one Source) bool { return one == s })
	}
}

// CountClosed counts a connection that was closed because of the memory it held.
func (b *Budget) CountClosed() { b.closed.Add(1) }

// Add counts delta bytes and reports whether the budget is exceeded.
func (b *Budget) Add(delta int64) (over bool) { return b.used.Add(delta) > b.limit }

// take counts n bytes that are about to be allocated, and reports whether the budget is exceeded.
// If one and a half times the limit would be exceeded, ok is false and nothing is counted. The room
// above the limit serves the same purpose as in [Budget.Admits].
func (b *Budget) take(n int64) (ok, over bool) {
	used := b.used.Add(n)
	if used > b.limit+b.limit/2 {
		b.used.Add(-n)
		return false, true
	}
	return true, used > b.limit
}

// exhausted reports whether the room above the limit is used up, too.
func (b *Budget) exhausted() bool { return b.used.Load() > b.limit+b.limit/2 }

// Over reports whether the budget is exceeded.
func (b *Budget) Over() bool { return b.used.Load() > b.limit }

// room returns how many bytes may wait at a connection: most, or less while memory is short.
func (b *Budget) room(most int) int {
	switch used := b.used.Load(); {
	case used <= b.limit/2:
		return most
	case used <= b.limit:
		return min(most, roomThrottled)
	}
	return min(most, roomOver)
}

// Parallel returns how many requests a connection may have in flight: most, an eighth of it above
// half of the limit, and one above seven eighths.
func (b *Budget) Parallel(most int) int {
	switch used := b.used.Load(); {
	case used <= b.limit/2:
		return most
	case used <= b.limit-b.limit/8:
		return max(most/8, 1)
	}
	return 1
}

// Review closes connections if the budget is exceeded, until an eighth of it is free, and returns
// how many it has closed. It does not close the connection of a single large answer.
func (b *Budget) Review() (closed int) {
	if !b.Over() {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var peers []Peer
	for _, s := range b.sources {
		peers = s.Survey(peers)
	}
	peers = slices.DeleteFunc(peers, func(p Peer) bool { return b.holds(&p) <= 0 })
	sum := int64(0)
	for i := range peers {
		sum += b.holds(&peers[i])
	}
	if !b.Over() || len(peers) == 1 && sum <= b.alone.Load() { // a survey takes some time
		return 0
	}
	rankByMemory(peers, b.holds)
	// Memory allocated since the survey is left to the next one, so that it does not cause surveyed
	// connections to be closed.
	excess := min(sum, b.used.Load()) - (b.limit - b.limit/8)
	for closed < len(peers) && excess > 0 {
		p := &peers[closed]
		p.Conn.Cut(b.reason())
		excess -= b.holds(p)
		closed++
	}
	return closed
}

// rankByMemory sorts connections in the order in which they are to be closed: each is the one that
// holds the most of the group that holds the most after the connections before it have been closed.
func rankByMemory(peers []Peer, holds func(*Peer) int64) {
	slices.SortFunc(peers, func(a, b Peer) int { return cmp.Compare(holds(&b), holds(&a)) })
	left := make(map[Group]int64)
	for i := range peers {
		left[peers[i].Group] += holds(&peers[i])
	}
	rank(peers, left, holds)
	slices.SortStableFunc(peers, func(a, b Peer) int { return cmp.Compare(b.rank, a.rank) })
}

// rank sets the rank of each of peers, which are in order, to the weight of its group without
// the peers before it. left has the weights of the groups, and is consumed.
func rank(peers []Peer, left map[Group]int64, weight func(*Peer) int64) {
	for i := range peers {
		p := &peers[i]
		p.rank = left[p.Group]
		left[p.Group] -= weight(p)
	}
}
