package loop

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultBudget is the limit of a [Budget] that says none.
const DefaultBudget = 64 << 20

// DefaultLarge is the limit of large answers that is used where none is said.
const DefaultLarge = 256 << 20

// Timeouts and connections of a frontend whose configuration does not say them, as in tests: a
// gateway passes what its configuration says.
const (
	DefaultTimeout     = 30 * time.Second
	DefaultConnections = 17_000
)

// Room of a connection while memory is short: see [Budget.room].
const (
	roomThrottled = 16 << 10
	roomOver      = 4 << 10
)

// A Budget bounds the memory that the connections of some servers hold together: answers
// below 64 KiB that their peers have not read, requests that wait for an answer, and input that
// was not consumed: starts of requests, and what has arrived of inputs that [Conn.Expect] announced.
// Above half of the limit a connection whose peer reads slowly gets no more answers than
// roomThrottled bytes; above the limit connections are closed: of the address that holds most, the
// one that holds most. It is safe for concurrent use.
//
// Large answers have a budget of their own, see [NewLargeBudget].
type Budget struct {
	// Immutable.
	limit int64
	large bool // it bounds large answers

	// Guarded by mu, which reviews hold.
	mu      sync.Mutex
	sources []Source

	// Atomics. used lags behind what connections hold by 1/64 of the limit at most.
	used      atomic.Int64
	closed    atomic.Uint64
	throttled atomic.Uint64
	refused   atomic.Uint64
	alone     atomic.Int64 // bytes of an answer that is larger than the limit
}

// NewBudget returns a budget of limit bytes. If limit is zero, it is [DefaultBudget].
func NewBudget(limit int64) *Budget {
	if limit <= 0 {
		limit = DefaultBudget
	}
	return &Budget{limit: limit}
}

// NewLargeBudget returns a budget of limit bytes for large answers: what [Output.Large] marks
// and [Server.HoldLarge] adds. Above half of it a connection that owes a large answer gets no
// other one; above it connections are closed: of the address that owes most, the one that
// owes most; and at one and a half of it large answers are refused, see [Budget.Admits].
func NewLargeBudget(limit int64) *Budget {
	b := NewBudget(limit)
	b.large = true
	return b
}

// Admits reports whether n bytes more may be held. The room above the limit is for what comes
// until those who hold most have been closed. An answer that is alone always may.
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

// holds returns what a connection has of the budget.
func (b *Budget) holds(p *Peer) int64 {
	if b.large {
		return p.Large
	}
	return p.Holds
}

// reason is why connections are closed for the budget.
func (b *Budget) reason() CloseReason {
	if b.large {
		return ReasonLarge
	}
	return ReasonMemory
}

// BudgetStats are the metrics of a [Budget].
type BudgetStats struct {
	Used, Limit int64
	// Closed counts connections that were closed for what they held, Throttled those
	// that got fewer answers at a time.
	Closed, Throttled uint64
	// Refused counts answers that were not admitted.
	Refused uint64
}

// Stats returns the metrics of now.
func (b *Budget) Stats() BudgetStats {
	return BudgetStats{Used: max(b.used.Load(), 0), Limit: b.limit, Closed: b.closed.Load(), Throttled: b.throttled.Load(),
		Refused: b.refused.Load()}
}

// Source has connections that may hold memory or places.
type Source interface {
	// Survey appends the connections of now to dst.
	Survey(dst []Peer) []Peer
}

// Peer is a connection at the time of a survey.
type Peer struct {
	Group  Group
	Holds  int64         // bytes that count in the budget
	Large  int64         // bytes that count in that of large answers
	Proven bool          // it has completed a request, or a login where one is required
	Idle   time.Duration // since its last event, or if it is not proven since it was opened; negative: it is in use
	Quiet  time.Duration // since its last event, if it is in use
	Conn   Cutter

	rank int64
}

// Cutter is a connection that can be closed from outside of its turn.
type Cutter interface {
	// Cut closes the connection soon, unless the reason does not hold any more.
	Cut(why CloseReason)
}

// Group is what counts together: connections of one address, of one IPv6 network of 64
// bits, or a single connection.
type Group struct {
	addr netip.Addr
	own  any // the connection; nil: the address
}

// GroupOf returns the group of a connection from addr. The address of a trusted proxy, or
// none, as of a unix socket, says nothing about the client: such connections count one by one.
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

// Join adds connections to those that are reviewed, until leave is called.
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

// CountClosed counts a connection that was closed for what it held.
func (b *Budget) CountClosed() { b.closed.Add(1) }

// Add counts delta bytes and reports whether the budget is exceeded.
func (b *Budget) Add(delta int64) (over bool) { return b.used.Add(delta) > b.limit }

// take counts n bytes that are about to be allocated, and reports whether the budget is exceeded.
// If one and a half of the limit would be exceeded, ok is false and nothing is counted. The room
// above the limit is as for [Budget.Admits].
func (b *Budget) take(n int64) (ok, over bool) {
	used := b.used.Add(n)
	if used > b.limit+b.limit/2 {
		b.used.Add(-n)
		return false, true
	}
	return true, used > b.limit
}

// exhausted reports whether the room above the limit is used too.
func (b *Budget) exhausted() bool { return b.used.Load() > b.limit+b.limit/2 }

// Over reports whether the budget is exceeded.
func (b *Budget) Over() bool { return b.used.Load() > b.limit }

// room returns how many bytes may wait in a connection that may have most otherwise.
func (b *Budget) room(most int) int {
	switch used := b.used.Load(); {
	case used <= b.limit/2:
		return most
	case used <= b.limit:
		return min(most, roomThrottled)
	}
	return min(most, roomOver)
}

// Parallel returns how many requests a connection may have under way that may have most of them
// while there is memory: an eighth above half of the limit, and where closing connections is near
// only one.
func (b *Budget) Parallel(most int) int {
	switch used := b.used.Load(); {
	case used <= b.limit/2:
		return most
	case used <= b.limit-b.limit/8:
		return max(most/8, 1)
	}
	return 1
}

// Review closes connections if the budget is exceeded, until an eighth of it is free, and
// returns how many. A large answer that is alone stays.
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
	if !b.Over() || len(peers) == 1 && sum <= b.alone.Load() { // a survey takes a moment
		return 0
	}
	rankByMemory(peers, b.holds)
	// What has come since the survey is left to the next one: none of those who were
	// surveyed is closed for it.
	excess := min(sum, b.used.Load()) - (b.limit - b.limit/8)
	for closed < len(peers) && excess > 0 {
		p := &peers[closed]
		p.Conn.Cut(b.reason())
		excess -= b.holds(p)
		closed++
	}
	return closed
}

// rankByMemory sorts connections in the order in which they are to be closed: always the
// one that holds most, of the group that holds most by then.
func rankByMemory(peers []Peer, holds func(*Peer) int64) {
	slices.SortFunc(peers, func(a, b Peer) int { return cmp.Compare(holds(&b), holds(&a)) })
	left := make(map[Group]int64)
	for i := range peers {
		left[peers[i].Group] += holds(&peers[i])
	}
	rank(peers, left, holds)
	slices.SortStableFunc(peers, func(a, b Peer) int { return cmp.Compare(b.rank, a.rank) })
}

// rank gives each of peers, which are in order, the weight that its group has once those
// before it are gone. left holds what groups have, and is used up.
func rank(peers []Peer, left map[Group]int64, weight func(*Peer) int64) {
	for i := range peers {
		p := &peers[i]
		p.rank = left[p.Group]
		left[p.Group] -= weight(p)
	}
}
