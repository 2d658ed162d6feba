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
	Stale   uint64 // hits with a value that had been replaced before the request
	Foreign uint64 // hits with a value of another program, which cannot be checked
}

// plus returns the sum of t and u.
func (t Tally) plus(u *Tally) Tally {
	return Tally{
		Writes: t.Writes + u.Writes, Hits: t.Hits + u.Hits, Misses: t.Misses + u.Misses, Others: t.Others + u.Others,
		Wrong: t.Wrong + u.Wrong, Stale: t.Stale + u.Stale, Foreign: t.Foreign + u.Foreign,
	}
}

// Tallies holds the tallies of all callers of a target. The zero value is ready to use.
type Tallies struct {
	mu       sync.Mutex
	all      []*Tally // guarded by mu; their counts are owned by the callers while requests are in flight
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

// Counter returns what [load.Run] reads before and after the window. The first reading discards
// what was counted before it.
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

// sum adds up the counts of all callers. None of them has a request in flight, and mu is held.
func (t *Tallies) sum() (sum Tally) {
	for _, one := range t.all {
		sum = sum.plus(one)
	}
	return sum
}

// Sum returns what was counted in the window. No request may be in flight.
func (t *Tallies) Sum() Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.measured {
		return Tally{}
	}
	return t.sum()
}
