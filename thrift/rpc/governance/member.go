package governance

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// backend is the client of a member, an [rpc.Client] outside of tests.
type backend interface {
	rpc.Caller
	Shutdown(ctx context.Context) error
	Close() error
	Stats() rpc.ClientStats
}

// member is a member of a pool.
type member struct {
	// Immutable after the member has been added.
	addr    string
	hash    uint64 // hash of addr
	backend backend
	warmUp  time.Duration

	// Guarded by the lock of the set.
	conns     int       // open connections
	unreached bool      // the last attempt to connect failed
	ejected   time.Time // end of the ejection; zero if not ejected
	restored  time.Time // end of the last ejection
	series    int       // number of ejections, each soon after the previous one
	timer     *time.Timer

	// Atomics.
	weight      atomic.Int32 // written by the resolver
	outstanding atomic.Int64 // calls; written by callers
	failures    atomic.Int64 // consecutive failures; written by callers
	warming     atomic.Int64 // start of the warm-up, in Unix nanoseconds; 0 if none
}

// The tiers of members. Calls go to the first tier that is not empty.
const (
	tierReady     = iota // with a connection
	tierEjected          // with a connection, but ejected
	tierUnknown          // being connected to: calls wait
	tierUnreached        // all others
	tiers
)

// tier returns the tier of a member. The caller must hold the set's lock.
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

// note updates the state of a member's connections after an event. It reports whether the member's tier has changed.
// The caller must hold the set's lock.
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

// warm starts the warm-up.
func (m *member) warm() {
	if m.warmUp > 0 {
		m.warming.Store(time.Now().UnixNano())
	}
}

// leastShare is the fraction of its weight with which a member starts.
const leastShare = 0.1

// share returns the current fraction of a member's weight.
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

// accepts decides at random, by its share, whether a member that was picked by weight takes the call.
func (m *member) accepts() bool {
	part := m.share()
	return part == 1 || rand.Float64() < part
}

// load returns the number of a member's calls relative to its weight.
func (m *member) load() float64 {
	return float64(m.outstanding.Load()) / (float64(m.weight.Load()) * m.share())
}
