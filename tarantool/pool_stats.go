package tarantool

import "github.com/slipstream-go/slipstream/internal/driver"

// PoolStats are the counters of a [Pool] since it was created, and its current state.
type PoolStats struct {
	// Stats is the sum over all instances, including those that were removed. Repeated includes the
	// requests that [Pool.Rerouted] counts. RoundTrip is the shortest one of any instance, and
	// FlushFactor the greatest one.
	Stats
	// Instances are the instances of the pool, in the order in which they were added.
	Instances []InstanceStats
}

// InstanceStats are the counters of an instance of a [Pool], and its current state. They are zero
// before the first connection.
type InstanceStats struct {
	Addr string
	Stats
}

// Stats returns the statistics of the pool. It is cheap enough to be called once a second.
func (p *Pool) Stats() PoolStats {
	var s PoolStats
	var members, leaving []*instance
	p.set.Change(func(c *poolChange) {
		members, leaving, s.Stats = c.Members(), append(leaving, p.leaving...), p.left
	})
	for _, i := range leaving {
		s.add(i.stats())
	}
	for _, i := range members {
		one := InstanceStats{i.addr, i.stats()}
		s.Instances = append(s.Instances, one)
		s.add(one.Stats)
	}
	s.Repeated += p.Rerouted()
	return s
}

// stats returns the statistics of the instance.
func (i *instance) stats() (s Stats) {
	if c := i.client.Load(); c != nil {
		s = c.Stats()
	}
	return s
}

// add adds the statistics of another client.
func (s *Stats) add(o Stats) {
	driver.AddStats(&s.Stats, &o.Stats)
	s.Blocking += o.Blocking
}
