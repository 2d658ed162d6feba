package pipe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream"
)

// A broadcast notifies all waiting goroutines of a change.
type broadcast struct {
	mu sync.Mutex
	// Guarded by mu.
	changed chan struct{} // closed at the next change; nil if no goroutine waits
}

// next returns a channel that is closed at the next change. A waiter must call next before it checks
// the state that may change.
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
// room. A call with a completer must not wait, because a completer may submit it on the reading goroutine.
func (e *Engine) mayWait(c *Call) bool { return !c.completes() }

// until returns a context that also ends at the deadline of a call, and after most if that is positive.
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

// waitForSocket waits for a connection.
func (e *Engine) waitForSocket(ctx context.Context, c *Call) (*socket, error) {
	if s := e.anySocket(); s != nil {
		return s, nil
	}
	if e.cfg.FailFast || !e.mayWait(c) {
		return nil, e.noConnection(nil)
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
			return nil, e.noConnection(ctx.Err())
		case <-e.ctx.Done():
			return nil, e.closedError()
		}
	}
}

// anySocket returns a socket, preferably one that accepts calls, or nil if there is none.
func (e *Engine) anySocket() (s *socket) {
	l := e.list.Load()
	for _, other := range l.sockets[:l.places] {
		if (Pin{other}).Alive() {
			return other
		}
		if other != nil {
			s = other
		}
	}
	return s
}

// waitForAnother waits until a connection accepts calls, after s has accepted none, or until s has
// lost its place; otherwise callers would spin meanwhile. A retired connection
// may have calls in flight for a long time. It returns the socket to try next, or nil if none is known.
func (e *Engine) waitForAnother(ctx context.Context, s *socket, c *Call) (*socket, error) {
	if other := e.chooseOther(s); other != nil {
		return other, nil
	}
	switch mayWait := e.mayWait(c); {
	case s.life.muted.Load() && (e.cfg.FailFast || !mayWait):
		return nil, e.noConnection(ErrSilent)
	case !mayWait:
		return nil, e.noConnection(errNoConnection)
	case e.cfg.FailFast && s.life.retiring.Load():
		return nil, e.noConnection(ErrRetired)
	}
	ctx, cancel := e.until(ctx, c.deadline, 0)
	defer cancel()
	for {
		changed := e.changes.next()
		if e.ctx.Err() != nil {
			return nil, e.closedError()
		}
		if other := e.chooseOther(s); other != nil || !e.has(s) {
			return other, nil
		}
		if (Pin{s}).Alive() {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, e.noConnection(ctx.Err())
		case <-e.ctx.Done():
			return nil, e.closedError()
		}
	}
}

// has reports whether s has a place.
func (e *Engine) has(s *socket) bool {
	l := e.list.Load()
	return slices.Contains(l.sockets[:l.places], s)
}

// noConnection returns the error of a call that found no connection. It includes why the last attempt to
// connect failed.
func (e *Engine) noConnection(cause error) error {
	var dialErr error
	l := e.list.Load()
	for i := 0; i < l.places && dialErr == nil; i++ {
		_, dialErr = l.peers[i].current()
	}
	switch {
	case cause == nil && dialErr == nil:
		cause = errNoConnection
	case cause == nil:
		cause = dialErr
	case dialErr != nil:
		cause = fmt.Errorf("%w; last attempt to connect: %w", cause, dialErr)
	}
	return &slipstream.Error{Addr: e.cfg.Addr, Outcome: slipstream.NotSent, Err: cause}
}

// waitForRoom waits until there may be room. It returns an error if the calls must not wait or cannot fit.
func (e *Engine) waitForRoom(ctx context.Context, s *socket, cs []*Call) error {
	charge := int64(0)
	for _, c := range cs {
		charge += c.charge
	}
	if !e.cfg.WaitWhenFull || !e.mayWait(cs[0]) || !s.mayFit(charge) {
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
