package redis

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Bounds of idle connections.
const (
	keptIdle = 16
	// idleFor is the default of exclusives.idleFor, which is how long idle connections are kept.
	idleFor = time.Minute
	// defaultExclusive is the default of Options.MaxExclusive.
	defaultExclusive = 1024
)

// exclusives is the pool of connections that are leased to one caller at a time.
type exclusives struct {
	// Immutable after newExclusives.
	waits  bool            // Options.WaitWhenFull
	places chan struct{}   // one for each connection that may be in use
	ending context.Context // ends when no new connections are admitted
	end    context.CancelFunc

	mu sync.Mutex
	// Guarded by mu.
	idle     []*exclusive            // the most recently used one is last
	idleFor  time.Duration           // how long idle connections are kept
	trimmer  *time.Timer             // calls trimIdle when the first idle connection is due
	trims    bool                    // trimmer is set, which it is only while there are idle connections
	lent     map[*exclusive]struct{} // for Close
	draining bool                    // no new connections are admitted
	closed   bool

	counts ExclusiveStats // guarded by mu

	calls sync.WaitGroup // goroutines that wait for callers; added to under mu
}

// ExclusiveStats are the statistics of dedicated connections.
type ExclusiveStats struct {
	// Lent is the number of connections that are in use, and Idle the number that are kept open.
	Lent, Idle int
	// Opened counts connections that were opened, and Reused how often an idle one was reused.
	Opened, Reused uint64
	// Unblocked counts connections that were recovered from a blocked command by CLIENT UNBLOCK; on
	// Late of them, the command had returned a result anyway. Abandoned counts connections that
	// were closed because no answer came.
	Unblocked, Late, Abandoned uint64
}

func newExclusives(o *Options) *exclusives {
	most := o.MaxExclusive
	if most <= 0 {
		most = defaultExclusive
	}
	p := &exclusives{waits: o.WaitWhenFull, places: make(chan struct{}, most), lent: make(map[*exclusive]struct{}), idleFor: idleFor}
	p.ending, p.end = context.WithCancel(context.Background())
	return p
}

// lease returns a connection to a node. It waits for a slot, or fails if the options require that.
// An error means that nothing was sent.
func (p *exclusives) lease(ctx context.Context, n *node) (*exclusive, error) {
	if p.ending.Err() != nil {
		return nil, ErrClosed
	}
	select {
	case p.places <- struct{}{}:
	default:
		if !p.waits {
			return nil, errTooManyExclusive
		}
		select {
		case p.places <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-p.ending.Done():
			// All slots may be taken by drain, or by sessions that are closed later.
			return nil, ErrClosed
		}
	}
	if x := p.takeIdle(n); x != nil {
		return x, nil
	}
	x, err := p.open(ctx, n)
	if err != nil {
		<-p.places
		return nil, err
	}
	return x, nil
}

// open opens a new connection, which is then leased.
func (p *exclusives) open(ctx context.Context, n *node) (*exclusive, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Close must not wait until the attempt to reach an unreachable server fails.
	stop := context.AfterFunc(p.ending, cancel)
	defer stop()
	x, err := openExclusive(ctx, n)
	if err != nil {
		if p.ending.Err() != nil {
			err = ErrClosed
		}
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.draining {
		x.close()
		return nil, ErrClosed
	}
	p.counts.Opened++
	p.lent[x] = struct{}{}
	return x, nil
}

// enter registers a goroutine that makes a call. It returns false if the client is
// closed.
func (p *exclusives) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.draining {
		return false
	}
	p.calls.Add(1)
	return true
}

// drain admits no new calls, waits for those in flight until ctx ends, and closes all
// connections.
func (p *exclusives) drain(ctx context.Context) error {
	p.mu.Lock()
	p.draining = true
	p.end()
	p.mu.Unlock()
	defer p.close()
	for range cap(p.places) {
		select {
		case p.places <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// takeIdle returns the most recently used idle connection to a node, or nil if there is none.
func (p *exclusives) takeIdle(n *node) *exclusive {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.trim()
	for i := len(p.idle) - 1; i >= 0; i-- {
		x := p.idle[i]
		if x.node != n {
			continue
		}
		p.idle = slices.Delete(p.idle, i, i+1)
		if x.healthy() {
			p.counts.Reused++
			p.lent[x] = struct{}{}
			return x
		}
		x.close()
	}
	return nil
}

// trim closes connections that have been idle for too long, and makes sure that the rest are closed
// in time. The caller holds mu.
func (p *exclusives) trim() {
	old := 0
	for old < len(p.idle) && (time.Since(p.idle[old].used) >= p.idleFor || len(p.idle)-old > keptIdle) {
		p.idle[old].close()
		old++
	}
	if old > 0 {
		rest := copy(p.idle, p.idle[old:])
		clear(p.idle[rest:])
		p.idle = p.idle[:rest]
	}
	switch {
	case len(p.idle) == 0 && p.trims:
		p.trimmer.Stop()
		p.trims = false
	case len(p.idle) > 0 && !p.trims:
		p.trims = true
		if due := time.Until(p.idle[0].used.Add(p.idleFor)); p.trimmer == nil {
			p.trimmer = time.AfterFunc(due, p.trimIdle)
		} else {
			p.trimmer.Reset(due)
		}
	}
}

// trimIdle is called by the timer, perhaps just when the timer has been stopped or reset. Then one
// check is superfluous.
func (p *exclusives) trimIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trims = false
	p.trim()
}

// giveBack ends a lease.
func (p *exclusives) giveBack(x *exclusive) {
	p.mu.Lock()
	delete(p.lent, x)
	if p.closed || x.broken != nil || x.dirty {
		x.close()
	} else {
		x.used = time.Now()
		p.idle = append(p.idle, x)
		p.trim()
	}
	p.mu.Unlock()
	<-p.places
}

// leave closes the connections to a node that has left. Connections in use are closed when ctx
// ends.
func (p *exclusives) leave(ctx context.Context, n *node) {
	if !p.closeIdle(n) {
		return
	}
	<-ctx.Done()
	p.closeIdle(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	for x := range p.lent {
		if x.node == n {
			x.left.Store(true)
			_ = x.conn.Close() // its other fields belong to its caller
		}
	}
}

// closeIdle closes the idle connections to a node. It reports whether others are in use.
func (p *exclusives) closeIdle(n *node) (lent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = slices.DeleteFunc(p.idle, func(x *exclusive) bool {
		if x.node == n {
			x.close()
		}
		return x.node == n
	})
	p.trim()
	for x := range p.lent {
		lent = lent || x.node == n
	}
	return lent
}

// count updates the statistics.
func (p *exclusives) count(change func(*ExclusiveStats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.counts)
}

// stats returns the statistics.
func (p *exclusives) stats() ExclusiveStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.counts
	s.Lent, s.Idle = len(p.lent), len(p.idle)
	return s
}

// close ends all connections, including those in use.
func (p *exclusives) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.end()
	for _, x := range p.idle {
		x.close()
	}
	p.idle = nil
	p.trim() // stops the timer
	for x := range p.lent {
		_ = x.conn.Close() // its other fields belong to its caller
	}
}
