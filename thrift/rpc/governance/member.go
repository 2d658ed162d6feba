package governance

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// backend calls a member: an [rpc.Client].
type backend interface {
	rpc.Caller
	Shutdown(ctx context.Context) error
	Close() error
	Stats() rpc.ClientStats
}

// member is a member of a pool.
type member struct {
	// Immutable after it was added.
	addr    string
	hash    uint64 // of addr
	backend backend
	warmUp  time.Duration

	// Guarded by the lock of the set.
	conns     int       // connections that are up
	unreached bool      // the last attempt to connect failed
	ejected   time.Time // the end of an ejection; zero if there is none
	restored  time.Time // the end of the last one
	series    int       // ejections, each soon after the one before
	timer     *time.Timer

	// Atomics.
	weight      atomic.Int32 // written by the resolver
	outstanding atomic.Int64 // calls; written by callers
	failures    atomic.Int64 // in a row; written by callers
	warming     atomic.Int64 // when the warm-up began, in nanoseconds of Unix; 0 if there is none
}

// The tiers of members: calls go to the best one that is not empty.
const (
	tierReady     = iota // with a connection
	tierEjected          // with a connection, but ejected
	tierUnknown          // that is being connected to: calls wait
	tierUnreached        // all others
	tiers
)

// tier returns the tier of a member. The caller holds the lock of the set.
func (m *member) tier() int {
	switch {
	case m.conns > 0 && m.ejected.IsZero():
		return tierReady
	case m.conns > 0:
		return tierEjected
	case !m.unreached && m.ejected.IsZero():
		return tierUnknown
	}
	return tierUnreached
}

// note changes what is known of the connections of a member. It reports whether that changes its tier. The caller
// holds the lock of the set.
func (m *member) note(e slipstream.Event) (changed bool) {
	before := m.tier()
	switch e.Kind {
	case slipstream.Connected:
		m.conns++
		m.unreached = false
	case slipstream.Disconnected:
		m.conns = max(m.conns-1, 0)
	case slipstream.DialFailed:
		m.unreached = true
	}
	return m.tier() != before
}

// warm begins the warm-up.
func (m *member) warm() {
	if m.warmUp > 0 {
		m.warming.Store(time.Now().UnixNano())
	}
}

// leastShare is the part of its weight with which a member begins.
const leastShare = 0.1

// share returns which part of its weight a member has.
func (m *member) share() float64 {
	began := m.warming.Load()
	if began == 0 {
		return 1
	}
	part := float64(time.Now().UnixNano()-began) / float64(m.warmUp)
	if part >= 1 {
		m.warming.CompareAndSwap(began, 0)
		return 1
	}
	return max(part, leastShare)
}

// accepts draws whether a member takes a call that it was drawn for by its weight.
func (m *member) accepts() bool {
	part := m.share()
	return part == 1 || rand.Float64() < part
}

// load returns the calls of a member in comparison with its weight.
func (m *member) load() float64 {
	return float64(m.outstanding.Load()) / (float64(m.weight.Load()) * m.share())
}
