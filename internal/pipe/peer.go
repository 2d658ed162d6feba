package pipe

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
)

// A peer is the place of one connection: its keeper dials, greets and reads, and
// dials again when the socket ends.
type peer struct {
	engine *Engine

	mu sync.Mutex
	// Guarded by mu.
	socket  *socket // nil while there is none
	dialErr error   // of the last attempt
	past    *Counts // of sockets that ended; nil if none has

	// kept is what calls in transit that come from here are charged. Atomic, written under the
	// transit's mu.
	kept atomic.Int64
}

// current returns the socket and the error of the last dial.
func (p *peer) current() (*socket, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.socket, p.dialErr
}

func (p *peer) set(s *socket, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.socket != nil {
		if p.past == nil {
			p.past = new(Counts)
		}
		p.past.add(p.socket.snapshotCounts())
		p.past.Reconnects++
	}
	p.socket, p.dialErr = s, err
	p.engine.publish(p, s)
	p.engine.changes.send()
}

// keep is the keeper's life.
func (p *peer) keep(ctx context.Context) {
	defer p.engine.keepers.Done()
	e := p.engine
	backoff := e.cfg.Backoff
	for ctx.Err() == nil {
		began := time.Now()
		s, err := p.connect(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			p.set(nil, err)
			pause := jitter(backoff)
			backoff = min(2*backoff, e.cfg.MaxBackoff)
			e.event(slipstream.Event{Kind: slipstream.DialFailed, Err: err, Backoff: pause})
			sleep(ctx, pause)
			continue
		}
		e.welcome(p, s)
		e.event(slipstream.Event{Kind: slipstream.Connected})
		err = p.serve(ctx, s)
		p.set(nil, nil)
		e.event(slipstream.Event{Kind: slipstream.Disconnected, Err: err, Stalled: err == ErrStalled})
		// A socket that lived for a while was good: dial again at once. One that
		// did not counts as a failed attempt.
		if time.Since(began) > e.cfg.MaxBackoff {
			backoff = e.cfg.Backoff
			continue
		}
		sleep(ctx, jitter(backoff))
		backoff = min(2*backoff, e.cfg.MaxBackoff)
	}
}

// serve reads the socket until it ends and waits for its writer. A panic of the
// protocol ends the socket, not the process.
func (p *peer) serve(ctx context.Context, s *socket) error {
	stop := context.AfterFunc(ctx, func() { s.fail(ErrClosed) })
	if err := s.serve(); err != nil {
		s.fail(err)
	}
	stop()
	s.mu.Lock()
	writer, cause := s.out.writerDone, s.life.cause
	s.mu.Unlock()
	if writer != nil {
		<-writer
	}
	<-s.life.ended
	s.awaitReader()
	return cause
}

// contain turns a panic of f into an error.
func contain(f func() error) (err error) {
	defer recovered(&err)
	return f()
}

// recovered is to be deferred: it turns a panic into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
	}
}

// connect dials and greets.
func (p *peer) connect(ctx context.Context) (s *socket, err error) {
	e := p.engine
	ctx, cancel := context.WithTimeout(ctx, e.cfg.DialTimeout)
	defer cancel()
	err = contain(func() error {
		conn, err := e.cfg.Dial(ctx)
		if err != nil {
			return err
		}
		defer func() {
			if s == nil {
				conn.Close()
			}
		}()
		setOptions(conn, e.cfg.StallTimeout)
		stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
		rest, greeted, err := p.greet(ctx, conn)
		if !stop() && err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		conn.SetDeadline(time.Time{})
		made := newSocket(e, conn, rest, greeted)
		made.peer = p
		// Before there are calls, so that none can be given what came too early.
		if err := made.deliver(); err != nil {
			return fmt.Errorf("behind the greeting: %w", err)
		}
		s = made
		return nil
	})
	return s, err
}

func (p *peer) greet(ctx context.Context, conn net.Conn) (rest []byte, took time.Duration, err error) {
	if at, ok := ctx.Deadline(); ok {
		conn.SetDeadline(at)
	}
	began := time.Now()
	err = contain(func() error {
		rest, err = p.engine.cfg.Protocol.Greet(ctx, conn)
		return err
	})
	if err != nil {
		err = fmt.Errorf("greeting: %w", err)
	}
	return rest, time.Since(began), err
}

// jitter spreads d over [d/2, d], so that clients that lost a server together do
// not come back together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// noConnection is the error of a call that found none.
func (p *peer) noConnection(cause error) error {
	p.mu.Lock()
	dialErr := p.dialErr
	p.mu.Unlock()
	if dialErr != nil {
		if cause == nil {
			cause = dialErr
		} else {
			cause = fmt.Errorf("%w; last attempt to connect: %w", cause, dialErr)
		}
	}
	if cause == nil {
		cause = errNoConnection
	}
	return &slipstream.Error{Addr: p.engine.cfg.Addr, Outcome: slipstream.NotSent, Err: cause}
}
