package pipe

import (
	"context"
	"sync"
	"time"
)

// A broadcast tells all who wait for it that something has changed.
type broadcast struct {
	mu sync.Mutex
	// Guarded by mu.
	changed chan struct{} // closed at the next change; nil: nobody waits
}

// next returns a channel that is closed at the next change. Who waits takes it before looking
// at what may change.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// mayWait reports whether the submission of c may wait for a connection or for
// room. One by a completer may not: it would wait for its own goroutine.
func (e *Engine) mayWait(c *Call) bool { return !c.completes() }

// until returns a context that ends at the call's deadline too.
func (e *Engine) until(ctx context.Context, deadline int64, most time.Duration) (context.Context, context.CancelFunc) {
	left := most
	if deadline > 0 {
		if d := time.Duration(deadline) - e.now(); most <= 0 || d < left {
			left = d
		}
	} else if most <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, left)
}

// waitForSocket waits for a connection of peer i, or of any other that has one.
func (e *Engine) waitForSocket(ctx context.Context, i int, c *Call) (*socket, error) {
	if s := e.anySocket(); s != nil {
		return s, nil
	}
	p := e.peers[i]
	if e.cfg.FailFast || !e.mayWait(c) {
		return nil, p.noConnection(nil)
	}
	ctx, cancel := e.until(ctx, c.deadline, e.cfg.DialTimeout)
	defer cancel()
	for {
		changed := e.changes.next()
		if s := e.anySocket(); s != nil {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, p.noConnection(ctx.Err())
		case <-e.ctx.Done():
			return nil, e.closedError()
		}
	}
}

// anySocket returns a socket, one that takes calls if there is one; nil: there is none.
func (e *Engine) anySocket() (s *socket) {
	for i := range e.sockets {
		other := e.sockets[i].Load()
		if (Pin{other}).Alive() {
			return other
		}
		if other != nil {
			s = other
		}
	}
	return s
}

// waitForAnother waits until a connection takes calls, after s has taken none, or until the
// keeper of s has noticed that it ended; without this callers would spin meanwhile. One that was
// retired may have calls under way for long. It returns where to try next.
func (e *Engine) waitForAnother(ctx context.Context, s *socket, c *Call) (int, error) {
	i, found := e.chooseOther(s)
	if found {
		return i, nil
	}
	switch mayWait := e.mayWait(c); {
	case s.life.muted.Load() && (e.cfg.FailFast || !mayWait):
		return 0, e.peers[0].noConnection(ErrSilent)
	case !mayWait:
		return 0, e.peers[0].noConnection(errNoConnection)
	case e.cfg.FailFast && s.life.retiring.Load():
		return 0, e.peers[0].noConnection(ErrRetired)
	}
	ctx, cancel := e.until(ctx, c.deadline, 0)
	defer cancel()
	for {
		changed := e.changes.next()
		if e.ctx.Err() != nil {
			return 0, e.closedError()
		}
		if i, found = e.chooseOther(s); found || !e.has(s) || (Pin{s}).Alive() {
			return i, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, e.peers[0].noConnection(ctx.Err())
		case <-e.ctx.Done():
			return 0, e.closedError()
		}
	}
}

// has reports whether s still has its place.
func (e *Engine) has(s *socket) bool {
	for i := range e.sockets {
		if e.sockets[i].Load() == s {
			return true
		}
	}
	return false
}

// waitForRoom waits until calls have ended, or fails.
func (e *Engine) waitForRoom(ctx context.Context, s *socket, cs []*Call) error {
	charge := int64(0)
	for _, c := range cs {
		charge += c.charge
	}
	if !e.cfg.WaitWhenFull || !e.mayWait(cs[0]) || !s.fits(charge) {
		s.refuse(places(cs))
		return e.refusal
	}
	room := s.roomAfter()
	s.mu.Lock()
	fits := s.life.closed || s.life.retiring.Load() || s.fits(s.charged.Load()+charge) && !s.calls.full(len(cs))
	s.mu.Unlock()
	if fits {
		return nil
	}
	ctx, cancel := e.until(ctx, cs[0].deadline, 0)
	defer cancel()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		s.refuse(places(cs))
		return e.overloaded(ctx.Err())
	case <-e.ctx.Done():
		return e.closedError()
	}
}
