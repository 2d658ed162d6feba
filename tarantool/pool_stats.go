package tarantool

import "github.com/slipstream-go/slipstream/internal/driver"

// PoolStats is what a [Pool] has done since it was created, and what it holds now.
type PoolStats struct {
	// Stats is the sum over all instances, including those that were removed. Repeated includes what
	// [Pool.Rerouted] counts; RoundTrip is the shortest and FlushFactor the greatest of an instance.
	Stats
	// Instances are the instances that the pool has, in the order in which they were added.
	Instances []InstanceStats
}

// InstanceStats is what an instance of a [Pool] has done, and what it holds now. It is zero before
// the first connection.
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
