package fleet

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// A Probe is the repeated check of one member by one goroutine. All methods are safe for concurrent
// use, except that only that goroutine calls Begin and Rest.
type Probe struct {
	wake chan struct{} // immutable, capacity 1: check now

	mu   sync.Mutex
	next chan struct{} // guarded by mu; closed after the next check that begins; nil if no one waits
}

// NewProbe returns a probe.
func NewProbe() *Probe { return &Probe{wake: make(chan struct{}, 1)} }

// Wake makes the next check happen soon.
func (p *Probe) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Next returns a channel that is closed after a check that begins after the call.
func (p *Probe) Next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = make(chan struct{})
	}
	return p.next
}

// Begin begins a check, which ends when end is called.
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

// Rest waits for the time of the next check: for interval, or until Wake is called, but at least
// until least after began.
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

// Recheck waits until a check of each probe has ended that began after the call. A probe that ends,
// as its context says, is not waited for.
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

// A Loaded member knows how much it has to do.
type Loaded interface {
	comparable
	Outstanding() int
}

// Lighter draws two members and returns the one with the fewer calls in flight, never the one to be
// avoided; the zero value means that there is none. To compare all of them would send every caller
// to the same one.
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
