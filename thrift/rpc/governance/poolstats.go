package governance

import (
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
)

// PoolStats are the counters of a [Pool] since it was created, and its current state.
type PoolStats struct {
	// Stats are the sums for all members, also those that were removed. Moved counts calls that went to another
	// member as well.
	slipstream.Stats
	Members []MemberStats
	// Unresolved are calls of the resolver that failed or found no members. ResolveError is the error of the last
	// call, or nil.
	Unresolved   uint64
	ResolveError error
}

// MemberStats is the current state of a member of a [Pool].
type MemberStats struct {
	Member
	Connected   int       // connections
	Outstanding int       // calls
	Failures    int       // in a row
	Ejected     time.Time // the end of its ejection; zero if it is not ejected
}

// Stats returns the statistics of the pool. It is cheap enough to be called once a second.
func (p *Pool) Stats() PoolStats {
	var s PoolStats
	var members []*member
	p.set.Change(func(c *change) {
		members = c.Members()
		s.Stats = p.left
		s.Ejections, s.Ejected = p.ejections, p.ejected
		s.Unresolved, s.ResolveError = p.unresolved, p.resolveErr
		s.Members = make([]MemberStats, len(members))
		for i, m := range members {
			s.Members[i] = MemberStats{
				Member:    Member{Addr: m.addr, Weight: int(m.weight.Load())},
				Connected: m.conns, Outstanding: int(m.outstanding.Load()), Failures: int(m.failures.Load()), Ejected: m.ejected,
			}
		}
	})
	for _, m := range members {
		one := m.backend.Stats().Stats
		driver.AddStats(&s.Stats, &one)
	}
	s.Moved += p.moved.Load()
	return s
}
