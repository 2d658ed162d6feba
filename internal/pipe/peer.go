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

// A peer maintains one connection: its keeper dials, greets and reads, and
// dials again when the socket ends.
type peer struct {
	engine *Engine // immutable

	// Guarded by the transit's mu.
	leaving bool               // the place was given up or belongs to heir
	heir    *peer              // the peer that has the place now; nil if there is none
	ended   bool               // the keeper has ended
	stop    context.CancelFunc // stops the attempts to connect; nil if there are none

	// Owned by the keeper; succeed reads them while the keeper serves a socket.
	began   time.Time // the last attempt to connect
	backoff time.Duration

	mu sync.Mutex
	// Guarded by mu.
	socket  *socket // nil if there is none
	dialErr error   // of the last attempt to connect
	past    *Counts // of sockets that ended, or nil

	// kept is the charge of the calls in transit that left this peer. Atomic, written under the
	// transit's mu.
	kept atomic.Int64
}

// current returns the socket and the error of the last dial.
func (p *peer) current() (*socket, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.socket, p.dialErr
}

// set sets the socket of p, which may be nil, and the error of an attempt to connect. The caller holds the
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

// unset records that p has no socket.
func (p *peer) unset(dialErr error) {
	t := &p.engine.transit
	t.mu.Lock()
	defer t.mu.Unlock()
	p.set(nil, dialErr)
}

// trying returns a context for attempts to connect. It is canceled when the place is given up, and by Close.
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

// end records the end of the keeper.
func (p *peer) end() {
	t := &p.engine.transit
	t.mu.Lock()
	p.ended = true
	succeeded := p.heir != nil
	t.mu.Unlock()
	p.engine.prune()
	p.engine.wakeSweeper(succeeded) // the heir's socket may be retired and have waited for this, see succeed
}

// keep is the goroutine of the keeper. It ends with the engine or, if the peer no longer has a place,
// with the last call of its socket. Variables that are needed only to connect are in other functions,
// because the stack of keep is in use while the connection is idle.
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
		p.lost(s, p.serve(p.engine.ctx, s))
	}
}

// dial tries to connect until there is a socket, and publishes it. It returns nil if the keeper is to end.
func (p *peer) dial() *socket {
	e := p.engine
	ctx, cancel := p.trying()
	defer cancel()
	// If the last socket lived for some time, dial immediately. Otherwise it
	// counts as a failed attempt.
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
			if s.in.watch.watcher != nil {
				s.in.watch.watcher.Opened(Pin{s})
			}
			e.event(slipstream.Event{Kind: slipstream.Connected})
			return s
		case err == nil:
			s.fail(ErrSurplus) // a push may have passed it to other goroutines
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

// lost records that the socket has ended.
func (p *peer) lost(s *socket, cause error) {
	p.unset(nil)
	if s.in.watch.watcher != nil {
		s.in.watch.watcher.Ended(cause)
	}
	p.engine.event(slipstream.Event{Kind: slipstream.Disconnected, Err: cause, Stalled: cause == ErrStalled})
}

// serve reads the socket until it ends and waits for its writer. A panic of the
// protocol closes the socket but does not end the process.
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

// contain calls f and turns a panic into an error.
func contain(f func() error) (err error) {
	defer recovered(&err)
	return f()
}

// recovered turns a panic into an error. It must be deferred.
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
		// This is done before there are calls, so that no call gets a reply that came too early.
		if err := made.deliver(); err != nil {
			return fmt.Errorf("after the greeting: %w", err)
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

// jitter returns a random duration in [d/2, d], so that clients that lost a server together do
// not reconnect together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
