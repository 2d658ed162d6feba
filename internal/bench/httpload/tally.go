package httpload

import (
	"context"
	"maps"

	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A Tally counts the responses of a server in the measured window.
type Tally struct {
	Statuses map[int]uint64 // responses by status
	Bytes    uint64         // of all bodies, in their content coding
	Opened   uint64         // connections
	// Duplicates counts responses that belong to no request.
	Duplicates uint64
}

// counts holds the counts of one caller.
type counts struct {
	bytes      uint64
	opened     uint64
	duplicates uint64
	status     int // of the last response
	run        uint64
	statuses   map[int]uint64 // responses before the last change of status
}

func (c *counts) add(r *Response) {
	c.bytes += uint64(r.Length)
	if r.Status != c.status {
		c.settle()
		c.status = r.Status
	}
	c.run++
}

// settle adds the responses with the current status to statuses.
func (c *counts) settle() {
	if c.run == 0 {
		return
	}
	if c.statuses == nil {
		c.statuses = map[int]uint64{}
	}
	c.statuses[c.status] += c.run
	c.run = 0
}

// Counters returns counters that [load.Run] reads before and after the window, so that Tally can
// compute the difference. The values themselves are not used.
func (t *Target) Counters() []load.Counter {
	return append(t.recorder.Counters(), load.Counter{Name: "http_connections", Read: func(context.Context) (float64, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.after = t.count()
		if t.before == nil {
			before := t.after
			t.before = &before
			t.turn.Store(0) // the window begins with the first request of a file
			for _, part := range t.firstByte {
				part.Reset()
			}
		}
		return float64(t.after.Opened), nil
	}})
}

// Figures returns the figures of each request of a mix.
func (t *Target) Figures() []mix.Figures { return t.recorder.Figures() }

// count adds up the counts of all callers. None of them has a request in flight, and mu is held.
func (t *Target) count() Tally {
	sum := Tally{Statuses: map[int]uint64{}}
	for _, c := range t.callers {
		c.checkIdle()
		c.counts.settle()
		sum.Bytes += c.counts.bytes
		sum.Opened += c.counts.opened
		sum.Duplicates += c.counts.duplicates
		for status, n := range c.counts.statuses {
			sum.Statuses[status] += n
		}
	}
	for _, l := range t.links {
		sum.Opened += l.opened()
	}
	return sum
}

// Tally returns what was counted between the two readings of the counters.
func (t *Target) Tally() Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.before == nil {
		return Tally{}
	}
	diff := Tally{Statuses: maps.Clone(t.after.Statuses), Bytes: t.after.Bytes - t.before.Bytes, Opened: t.after.Opened - t.before.Opened, Duplicates: t.after.Duplicates - t.before.Duplicates}
	for status, n := range t.before.Statuses {
		if diff.Statuses[status] -= n; diff.Statuses[status] == 0 {
			delete(diff.Statuses, status)
		}
	}
	return diff
}
