package cluster

import "time"

// A Policy selects the node of a shard that executes a read.
type Policy uint8

// The policies. Each falls back to the next best node, so a read fails only if no node can be reached.
const (
	// MasterOnly reads from the master.
	MasterOnly Policy = iota
	// PreferReplica reads from a replica, or from the master if no replica is healthy.
	PreferReplica
	// AnyNode reads from the master and the replicas.
	AnyNode
	// Nearest reads from a node whose round-trip time is about the shortest.
	Nearest
	// SameZone reads from a replica in the zone of the client, otherwise from the master if it is in that
	// zone, otherwise from a replica in another zone, otherwise from the master.
	SameZone
)

// Health says how well a node can execute reads.
type Health uint8

// The values of Health, best first.
const (
	// Well is a healthy node.
	Well Health = iota
	// Doubtful is a node that another node cannot reach, or to which this client has no connection.
	Doubtful
	// Unfit is a node that has failed, is loading its data, or has just joined.
	Unfit
)

// Health returns the health of the node according to the cluster.
func (n *Node) Health() Health {
	switch {
	case n.Flags&(Failed|Handshake|NoAddress|Loading) != 0:
		return Unfit
	case n.Flags&(MaybeFailed|Disconnected) != 0:
		return Doubtful
	}
	return Well
}

// A Candidate is a node that could execute a read.
type Candidate struct {
	Master bool
	Health Health
	// RoundTrip is the round-trip time. If zero, it was not measured.
	RoundTrip time.Duration
	Zone      string
}

// Choose returns the index of the candidate that a policy selects, or -1 if there is none. Among equally
// good candidates, seed selects one; see [Seed]. Health takes precedence over the preference of the
// policy. If all candidates are unfit, Choose returns the master. Zone is the zone of the client.
func Choose(policy Policy, candidates []Candidate, zone string, seed uint64) int {
	best, master := 1<<30, -1
	for i := range candidates {
		c := &candidates[i]
		if c.Master {
			master = i
		}
		best = min(best, policy.rank(c, zone))
	}
	if policy == MasterOnly || best >= unfit && master >= 0 {
		return master
	}
	limit := time.Duration(0) // of a round trip; 0 if there is none
	if policy == Nearest {
		limit = nearestLimit(policy, candidates, zone, best)
	}
	good := func(c *Candidate) bool {
		return policy.rank(c, zone) == best && (limit == 0 || c.RoundTrip != 0 && c.RoundTrip <= limit)
	}
	n := 0
	for i := range candidates {
		if good(&candidates[i]) {
			n++
		}
	}
	if n == 0 {
		return -1
	}
	k := int(seed % uint64(n))
	for i := range candidates {
		if good(&candidates[i]) {
			if k == 0 {
				return i
			}
			k--
		}
	}
	return -1
}

// Ranks: each health has four classes.
const (
	classes = 4
	unfit   = int(Unfit) * classes
)

// rank returns the rank of a candidate; lower is better.
func (p Policy) rank(c *Candidate, zone string) int {
	class := 0
	near := zone != "" && c.Zone == zone
	switch {
	case p == PreferReplica && c.Master:
		class = 1
	case p == SameZone && near && c.Master:
		class = 1
	case p == SameZone && !near && !c.Master:
		class = 2
	case p == SameZone && !near:
		class = 3
	}
	return int(c.Health)*classes + class
}

// nearestLimit returns the longest round-trip time that counts as near: the shortest one plus a quarter
// of it plus 50 µs, so that nodes in the same place share the reads. It returns zero if none was
// measured.
func nearestLimit(policy Policy, candidates []Candidate, zone string, best int) time.Duration {
	shortest := time.Duration(0)
	for i := range candidates {
		c := &candidates[i]
		if c.RoundTrip > 0 && (shortest == 0 || c.RoundTrip < shortest) && policy.rank(c, zone) == best {
			shortest = c.RoundTrip
		}
	}
	if shortest == 0 {
		return 0
	}
	return shortest + shortest/4 + 50*time.Microsecond
}

// seedSlice is how long a seed remains the same.
const seedSlice = 40 * time.Millisecond

// Seed returns a seed for [Choose]. It changes every 40 ms and differs between processes. Until it
// changes, the reads of a process go to the same node of a shard, so that they share writes, while
// different processes use different nodes. Process is a random number of the process. Now is the
// reading of a monotonic clock.
func Seed(process uint64, now time.Duration) uint64 {
	x := process + uint64(now/seedSlice)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
