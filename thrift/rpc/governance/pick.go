package governance

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// A view is the members that calls go to. It is immutable.
type view struct {
	members []*member // empty if calls are to wait
	sums    []float64 // of the weights of members up to this one; nil if all are equal
	ready   bool      // the members have connections, and are not ejected
}

// viewOf returns the view of the members of a pool. It is called with the lock of the set.
func viewOf(members []*member) *view {
	var by [tiers][]*member
	for _, m := range members {
		t := m.tier()
		by[t] = append(by[t], m)
	}
	v := new(view)
	for t, some := range by {
		if t == tierUnknown && len(some) > 0 {
			return v
		}
		if len(some) > 0 {
			v.members, v.ready = some, t == tierReady
			break
		}
	}
	sum, equal := 0., true
	sums := make([]float64, len(v.members))
	for i, m := range v.members {
		w := float64(m.weight.Load())
		sum += w
		sums[i] = sum
		equal = equal && w*float64(i+1) == sum
	}
	if !equal {
		v.sums = sums
	}
	return v
}

// skip says which members are not to get a call.
type skip struct {
	route *route    // those that had the call; nil if there are none
	tried []*member // those that it could not be sent to
}

func (s *skip) has(m *member) bool {
	return s.route.has(m.addr) || slices.Contains(s.tried, m)
}

// pick returns the member for a call, or nil if all are skipped.
func (v *view) pick(key string, hashed bool, s *skip) *member {
	if hashed {
		return v.owner(key, s)
	}
	a := v.draw(nil, s)
	if a == nil || len(v.members) == 1 {
		return a
	}
	if b := v.draw(a, s); b != nil && b.load() < a.load() {
		return b
	}
	return a
}

// mostDraws bounds the attempts to draw a member.
const mostDraws = 8

// draw returns a member by weight, or nil if all are skipped. It does not return not, if there is another one.
func (v *view) draw(not *member, s *skip) *member {
	n := len(v.members)
	if n == 0 {
		return nil
	}
	for range mostDraws {
		if m := v.random(); m != not && !s.has(m) && m.accepts() {
			return m
		}
	}
	first := rand.IntN(n)
	for i := range n {
		if m := v.members[(first+i)%n]; m != not && !s.has(m) {
			return m
		}
	}
	return nil
}

// random returns a member by weight. There must be one.
func (v *view) random() *member {
	n := len(v.members)
	if v.sums == nil {
		return v.members[rand.IntN(n)]
	}
	x := rand.Float64() * v.sums[n-1]
	at := sort.Search(n, func(i int) bool { return v.sums[i] > x })
	return v.members[min(at, n-1)]
}

// owner returns the member that a key belongs to, or nil if all are skipped: that with the greatest score, which is
// random, but the same for the same key, and whose distribution follows the weight (weighted rendezvous hashing).
func (v *view) owner(key string, s *skip) (best *member) {
	hash, most := hashOf(key), 0.
	for _, m := range v.members {
		if s.has(m) {
			continue
		}
		u := float64(mix(hash^m.hash)>>11+1) / (1 << 53) // in (0, 1]
		score := float64(m.weight.Load()) * m.share() / -math.Log(u)
		if best == nil || score > most {
			best, most = m, score
		}
	}
	return best
}

// hashOf returns the hash of a key, which is the same in all processes: FNV-1a.
func hashOf(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	return mix(h)
}

// mix makes every bit of the result depend on every bit of x: the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

type hashKey struct{}

// WithHashKey returns a context whose calls go to the member of a pool that the key belongs to, if its Balance is
// ConsistentHash.
func WithHashKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, hashKey{}, key)
}
