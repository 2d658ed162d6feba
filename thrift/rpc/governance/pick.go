package governance

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// A view holds the members to which calls go. It is immutable.
type view struct {
	members []*member // empty if calls must wait
	sums    []float64 // cumulative sums of the weights; nil if all weights are equal
	ready   bool      // the members have connections and are not ejected
}

// viewOf returns the view of the members of a pool. The caller must hold the set's lock.
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

// skip holds the members that must not get a call.
type skip struct {
	route *route    // members that have received the call; may be nil
	tried []*member // members to which the call could not be sent
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

// draw returns a random member by weight, other than not, or nil if all others are skipped.
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

// random returns a random member by weight. The view must have members.
func (v *view) random() *member {
	n := len(v.members)
	if v.sums == nil {
		return v.members[rand.IntN(n)]
	}
	x := rand.Float64() * v.sums[n-1]
	at := sort.Search(n, func(i int) bool { return v.sums[i] > x })
	return v.members[min(at, n-1)]
}

// owner returns the member to which a key belongs, or nil if all are skipped. That is the member with the highest
// score, a pseudorandom number that depends on the key and the member and is distributed according to the weight
// (weighted rendezvous hashing).
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

// hashOf returns the FNV-1a hash of a key, which is the same in all processes.
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

// WithHashKey returns a context whose calls go to the pool member to which the key belongs, if the pool's Balance is
// ConsistentHash.
func WithHashKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, hashKey{}, key)
}
