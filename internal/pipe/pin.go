package pipe

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream"
)

// ErrPinLost means that the connection that a call is pinned to has ended.
var ErrPinLost = errors.New("the connection of this session has ended")

// ErrRetired is the cause of the end of a retired connection.
var ErrRetired = errors.New("the connection takes no more calls and will be replaced")

// maxBlocked is the number of blocked tickets from which a socket is replaced.
const maxBlocked = 1024

// A Pin identifies a connection, for requests that depend on its state. It does not outlive the connection.
// The zero value identifies none.
type Pin struct{ s *socket }

// Pin chooses a random connection for requests that depend on its state. It waits for one as a
// call does.
func (e *Engine) Pin(ctx context.Context) (Pin, error) { return e.pin(ctx, e.chooseAny) }

// Place returns the connection on which a call would be placed now. It waits for one as a call does.
func (e *Engine) Place(ctx context.Context) (Pin, error) { return e.pin(ctx, e.choose) }

func (e *Engine) pin(ctx context.Context, choose func() *socket) (Pin, error) {
	if e.draining.Load() {
		return Pin{}, e.closedError()
	}
	s := choose()
	for {
		if s == nil {
			c := Call{engine: e}
			var err error
			if s, err = e.waitForSocket(ctx, &c); err != nil {
				return Pin{}, err
			}
		}
		pin := Pin{s}
		if pin.Alive() {
			return pin, nil
		}
		var err error
		if s, err = e.waitForAnother(ctx, s, &Call{engine: e}); err != nil {
			return Pin{}, err
		}
	}
}

// PinNow returns a connection that accepts calls, and never waits.
func (e *Engine) PinNow() (Pin, error) {
	if pin := (Pin{e.anySocket()}); pin.Alive() {
		return pin, nil
	}
	return Pin{}, e.noConnection(nil)
}

// Engine returns the engine of the connection, or nil for the zero value.
func (p Pin) Engine() *Engine {
	if p.s == nil {
		return nil
	}
	return p.s.engine
}

// Alive reports whether the connection accepts calls.
func (p Pin) Alive() bool {
	if p.s == nil || p.s.life.retiring.Load() || p.s.life.muted.Load() {
		return false
	}
	select {
	case <-p.s.life.done:
		return false
	default:
		return true
	}
}

// Retire makes the connection accept no more calls and end with the last call in flight. A call
// that is not pinned to it uses another connection, even if it is queued on this one; see transit.go.
func (p Pin) Retire() {
	if cause := p.s.retire(ErrRetired); cause != nil {
		p.s.fail(cause)
	}
}

// Close ends the connection. Calls in flight fail with cause.
func (p Pin) Close(cause error) { p.s.fail(cause) }

// HungUp reports whether the server has closed the connection. The keeper may not have noticed it yet. It costs a system
// call. It is false for TLS, and for systems on which package net does all reads.
func (p Pin) HungUp() bool { return p.s.hungUp() }

// Listen sets whether the connection is read while it has no call. Then its end is noticed
// immediately, and not with the next call or up to half a second later. That costs a lone caller
// some speed. Listen must not be called with locks that the scanner needs.
func (p Pin) Listen(on bool) {
	s := p.s
	s.listens.Store(on) // before the lock: if the role becomes free later, endSolo and lend see it
	if !on {
		return
	}
	s.mu.Lock()
	s.recall()
	if s.role != roleFree || s.life.closed {
		s.mu.Unlock()
		return
	}
	s.role, s.out.writing = roleCaller, true
	s.mu.Unlock()
	s.reclaim()
}

// retire makes the socket accept no more calls, and moves those that were not sent. If it has no calls
// left, retire returns why the socket is to end, which is the first reason for its retirement.
// Otherwise the next connection is dialed while the calls are in flight, see succeed.
func (s *socket) retire(why error) (cause error) {
	t := &s.engine.transit
	t.mu.Lock()
	s.mu.Lock()
	if s.life.closed {
		s.mu.Unlock()
		t.mu.Unlock()
		return nil
	}
	// Callers see the retirement only after the calls have moved, so that their later calls come
	// after those.
	takers := s.moveUnsent()
	cause = s.closeToCalls(why)
	s.mu.Unlock()
	var next *peer
	if cause == nil {
		if next = s.engine.succeed(s.peer, s); next != nil {
			s.engine.startKeeper(next)
		}
	}
	t.mu.Unlock()
	flushTaken(takers)
	if next != nil {
		s.engine.share()
	}
	return cause
}

// closeToCalls is the part of retire after the unsent calls have moved. The caller holds mu.
func (s *socket) closeToCalls(why error) (cause error) {
	if s.life.retired == nil {
		s.life.retired = why
	}
	s.life.retiring.Store(true)
	s.makeRoom() // callers that wait for room here must choose another socket
	if s.over() {
		return s.life.retired
	}
	return nil
}

// wear retires a socket with too many blocked tickets. The caller holds mu.
func (s *socket) wear() {
	most := maxBlocked
	if s.pace.window > 0 {
		most = min(most, s.pace.window)
	}
	if s.calls.blocked() >= most {
		if s.life.retired == nil {
			s.life.retired = errWorn
		}
		s.life.retiring.Store(true)
	}
}

// over reports whether a retired socket has no more calls that can end normally. Queued calls fail
// if blocked tickets leave no room for them at the server. The caller holds mu.
func (s *socket) over() bool {
	return s.unused() || s.calls.blocked() > 0 && !s.out.writing && s.calls.pending() == 0 && s.windowRoom() == 0
}

// pinLost returns the error of a call that is pinned to the socket, which accepts no more calls.
func (s *socket) pinLost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.life.cause != nil:
		return fmt.Errorf("%w: %w", ErrPinLost, s.life.cause)
	case s.life.retired != nil:
		return fmt.Errorf("%w: %w", ErrPinLost, s.life.retired)
	}
	return ErrPinLost
}

// submitPinned queues calls on their connection.
func (e *Engine) submitPinned(ctx context.Context, cs []*Call, canRead bool) (*socket, bool, error) {
	s := cs[0].Pin.s
	for {
		solo, err := s.submit(cs, canRead)
		switch err {
		case nil:
			return s, solo, nil
		case errFull:
			err = e.waitForRoom(ctx, s, cs)
		case errGone:
			err = &slipstream.Error{Addr: e.cfg.Addr, Outcome: slipstream.NotSent, Err: s.pinLost()}
		case errDraining:
			err = e.closedError()
		}
		if err != nil {
			return nil, false, err
		}
	}
}
