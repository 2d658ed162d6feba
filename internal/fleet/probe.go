package fleet

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// A Probe runs the periodic check of one member, in one goroutine. All methods are safe for
// concurrent use, except that only that goroutine may call Begin and Rest.
type Probe struct {
	wake chan struct{} // immutable, capacity 1: check now

	mu   sync.Mutex
	next chan struct{} // guarded by mu; closed after the next check that begins; nil if no one waits
}

// NewProbe returns a probe.
func NewProbe() *Probe { return &Probe{wake: make(chan struct{}, 1)} }

// Wake makes the next check start soon.
func (p *Probe) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Next returns a channel that is closed after the first check that begins after the call.
func (p *Probe) Next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = make(chan struct{})
	}
	return p.next
}

// Begin records that a check begins. The check ends when end is called.
func (p *Probe) Begin() (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waits := p.next
	p.next = nil
	return func() {
		if waits != nil {
			close(waits)
		}
	}
}

// Rest waits for the time of the next check: for interval or until Wake is called, but at least
// until the duration least has passed since began.
func (p *Probe) Rest(ctx context.Context, began time.Time, least, interval time.Duration) {
	due := time.NewTimer(interval)
	defer due.Stop()
	select {
	case <-due.C:
		return
	case <-ctx.Done():
		return
	case <-p.wake:
	}
	due.Reset(time.Until(began.Add(least)))
	select {
	case <-due.C:
	case <-ctx.Done():
	}
}

// Recheck waits until each probe has finished a check that began after the call. It does not wait
// for a probe whose context ends.
func Recheck[M any](ctx context.Context, members []M, probe func(M) (*Probe, context.Context)) {
	checks := make([]<-chan struct{}, len(members))
	for i, m := range members {
		p, _ := probe(m)
		checks[i] = p.Next()
		p.Wake()
	}
	for i, m := range members {
		_, life := probe(m)
		select {
		case <-checks[i]:
		case <-ctx.Done():
		case <-life.Done():
		}
	}
}

// A Loaded member reports how much work it has.
type Loaded interface {
	comparable
	Outstanding() int
}

// Lighter draws two members at random and returns the one with fewer calls in flight. It never
// returns avoid; the zero value means that there is no other member. If callers compared all
// members, all of them would choose the same one.
func Lighter[M Loaded](members []M, avoid M) (none M) {
	n := len(members)
	switch {
	case n == 0 || n == 1 && members[0] == avoid:
		return none
	case n == 1:
		return members[0]
	}
	first, second := rand.IntN(n), rand.IntN(n-1)
	if second >= first {
		second++
	}
	a, b := members[first], members[second]
	switch {
	case a == avoid:
		return b
	case b == avoid || a.Outstanding() <= b.Outstanding():
		return a
	}
	return b
}
