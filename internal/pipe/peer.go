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
	engine *Engine // immutable

	// Guarded by the transit's mu.
	leaving bool               // its place was given up, or belongs to heir
	heir    *peer              // the peer that has its place now; nil if there is none
	ended   bool               // its keeper has ended
	stop    context.CancelFunc // ends its attempts to connect; nil if it makes none

	// Owned by the keeper; succeed reads them while the keeper serves a socket.
	began   time.Time // its last attempt to connect
	backoff time.Duration

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

// set notes the socket of p, nil if there is none, and the error of an attempt to connect. Under the
// transit's mu.
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
}

// unset notes that p has no socket.
func (p *peer) unset(dialErr error) {
	t := &p.engine.transit
	t.mu.Lock()
	defer t.mu.Unlock()
	p.set(nil, dialErr)
}

// trying returns a context for attempts to connect. It ends when the place is given up, and by Close.
func (p *peer) trying() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(p.engine.ctx)
	t := &p.engine.transit
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.stop = cancel; p.leaving {
		cancel()
	}
	return ctx, cancel
}

// end notes the end of the keeper.
func (p *peer) end() {
	t := &p.engine.transit
	t.mu.Lock()
	p.ended = true
	t.mu.Unlock()
	p.engine.prune()
	p.engine.wakeSweeper(p.heir != nil) // heir may be retired, and too many sockets had calls
}

// keep is the keeper's life. It ends with the engine, and if its place was given up, with the last call
// of its socket. What is needed only to connect is in other functions: an idle connection
// keeps this one's stack.
func (p *peer) keep() {
	defer p.engine.keepers.Done()
	defer p.end()
	if p.backoff == 0 { // it has no predecessor
		p.backoff = p.engine.cfg.Backoff
	}
	for {
		s := p.dial()
		if s == nil {
			return
		}
		p.lost(p.serve(p.engine.ctx, s))
	}
}

// dial connects until there is a socket, and makes it known. nil: the keeper is to end.
func (p *peer) dial() *socket {
	e := p.engine
	ctx, cancel := p.trying()
	defer cancel()
	// A socket that lived for a while was good: dial again at once. One that
	// did not counts as a failed attempt.
	if time.Since(p.began) > e.cfg.MaxBackoff {
		p.backoff = e.cfg.Backoff
	} else {
		sleep(ctx, p.pause())
	}
	for ctx.Err() == nil {
		p.began = time.Now()
		s, err := p.connect(ctx)
		switch {
		case err == nil && e.welcome(p, s):
			e.event(slipstream.Event{Kind: slipstream.Connected})
			return s
		case err == nil:
			s.fail(ErrSurplus) // a push may have told somebody of it
			p.serve(e.ctx, s)
			return nil
		case ctx.Err() != nil:
			return nil
		}
		p.unset(err)
		pause := p.pause()
		e.event(slipstream.Event{Kind: slipstream.DialFailed, Err: err, Backoff: pause})
		sleep(ctx, pause)
	}
	return nil
}

// pause returns how long to wait before the next attempt to connect.
func (p *peer) pause() time.Duration {
	d := jitter(p.backoff)
	p.backoff = min(2*p.backoff, p.engine.cfg.MaxBackoff)
	return d
}

// lost notes that the socket has ended.
func (p *peer) lost(cause error) {
	p.unset(nil)
	p.engine.event(slipstream.Event{Kind: slipstream.Disconnected, Err: cause, Stalled: cause == ErrStalled})
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
