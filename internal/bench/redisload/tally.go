package redisload

import (
	"context"

	"github.com/slipstream-go/slipstream/internal/load"
)

// A Tally counts replies in the measured window.
type Tally struct {
	Sets    uint64
	Hits    uint64 // GETs of keys that have a value
	Misses  uint64
	Others  uint64 // replies to other commands
	Wrong   uint64 // hits with the value of another key
	Foreign uint64 // hits with a value that was not written here, so that nothing is known
}

// plus returns t with n times u.
func (t Tally) plus(u *Tally, n uint64) Tally {
	return Tally{
		Sets: t.Sets + n*u.Sets, Hits: t.Hits + n*u.Hits, Misses: t.Misses + n*u.Misses,
		Others: t.Others + n*u.Others, Wrong: t.Wrong + n*u.Wrong, Foreign: t.Foreign + n*u.Foreign,
	}
}

// Counters returns what [load.Run] reads before and after the window, so that
// Tally knows the difference. What they count is of no interest.
func (t *Target) Counters() []load.Counter {
	return []load.Counter{{Name: "redis_wrong", Read: func(context.Context) (float64, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.after = Tally{}
		for _, c := range t.callers {
			t.after = t.after.plus(&c.tally, 1)
		}
		if t.before == nil {
			before := t.after
			t.before = &before
		}
		return float64(t.after.Wrong), nil
	}}}
}

// Tally returns what came between the two readings of the counters.
func (t *Target) Tally() Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before == nil {
		return Tally{}
	}
	const minus = ^uint64(0) // -1
	return t.after.plus(t.before, minus)
}
