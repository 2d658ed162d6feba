package clientload

import (
	"context"
	"sync"

	"github.com/slipstream-go/slipstream/internal/load"
)

// A Tally counts replies in the measured window.
type Tally struct {
	Writes  uint64
	Hits    uint64 // reads of keys that have a value
	Misses  uint64
	Others  uint64 // replies to other requests
	Wrong   uint64 // replies with the value of another key
	Stale   uint64 // hits with a value that was replaced before
	Foreign uint64 // hits with a value that was not written here, so that nothing is known
}

// plus returns t and u together.
func (t Tally) plus(u *Tally) Tally {
	return Tally{
		Writes: t.Writes + u.Writes, Hits: t.Hits + u.Hits, Misses: t.Misses + u.Misses, Others: t.Others + u.Others,
		Wrong: t.Wrong + u.Wrong, Stale: t.Stale + u.Stale, Foreign: t.Foreign + u.Foreign,
	}
}

// Tallies are those of all callers of a target. The zero value is ready for use.
type Tallies struct {
	mu       sync.Mutex
	all      []*Tally // guarded by mu; what they count is owned by the callers while requests are under way
	measured bool     // guarded by mu: the window has begun
}

// New returns the tally of one more caller.
func (t *Tallies) New() *Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := new(Tally)
	t.all = append(t.all, one)
	return one
}

// Counter returns what [load.Run] reads before and after the window. The first reading
// forgets what was counted before it.
func (t *Tallies) Counter() load.Counter {
	return load.Counter{Name: "wrong answers", Read: func(context.Context) (float64, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.measured {
			t.measured = true
			for _, one := range t.all {
				*one = Tally{}
			}
		}
		return float64(t.sum().Wrong), nil
	}}
}

// sum adds up all callers. None of them has a request under way, and mu is held.
func (t *Tallies) sum() (sum Tally) {
	for _, one := range t.all {
		sum = sum.plus(one)
	}
	return sum
}

// Sum returns what was counted in the window. No request may be under way.
func (t *Tallies) Sum() Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.measured {
		return Tally{}
	}
	return t.sum()
}
