package governance

import (
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
)

// PoolStats holds the counters of a [Pool] since it was created, and its current state.
type PoolStats struct {
	// Stats holds the totals over all members, including removed ones. Moved also counts calls that went to another
	// member.
	slipstream.Stats
	Members []MemberStats
	// Unresolved is the number of calls of the resolver that failed or found no members. ResolveError is the error of the
	// last call, or nil.
	Unresolved   uint64
	ResolveError error
}

// MemberStats is the current state of a member of a [Pool].
type MemberStats struct {
	Member
	Connected   int       // connections
	Outstanding int       // calls
	Failures    int       // consecutive
	Ejected     time.Time // end of the ejection; zero if not ejected
}

// Stats returns the pool's counters and current state. It is cheap enough to call once per second.
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
