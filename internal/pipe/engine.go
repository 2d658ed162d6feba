package pipe

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
)

var errNoConnection = errors.New("there is no connection")

// An Engine sends calls of many goroutines to one server over few sockets. All
// its methods may be called concurrently.
type Engine struct {
	// Immutable.
	cfg      Config
	epoch    time.Time
	maxCalls int64 // a socket
	maxBytes int64 // a socket
	peers    []*peer
	ctx      context.Context // ended by Close
	cancel   context.CancelFunc
	keepers  sync.WaitGroup // keepers and the sweeper
	sweep    chan struct{}  // capacity 1: calls with a deadline or a context came
	// refusal is the error of every call that does not fit: one each would be
	// garbage at the very time when there is too much of all.
	refusal error
	spills  bool // see choose

	// Owned by the sweeper.
	givenUp []*Call // with completers, given up by this sweep

	// Atomics.
	sockets  []atomic.Pointer[socket] // a peer's; written by its keeper, read by callers
	draining atomic.Bool              // written by Shutdown and Close
	current  atomic.Uint32            // see choose; written by callers
	slow     atomic.Uint64            // completers slower than slowCompleter; written by readers
	panics   atomic.Uint64            // completers that panicked; written by readers
	sweeping sweepCounts              // written by the sweeper
}

// New returns an engine that connects in the background.
func New(cfg Config) *Engine {
	cfg = cfg.withDefaults()
	e := &Engine{
		cfg: cfg, epoch: time.Now(),
		maxCalls: int64(min(max(cfg.MaxCalls/cfg.Sockets, 1), mostCalls)),
		maxBytes: min(int64(max(cfg.MaxBytes/cfg.Sockets, 1)), oneCall/2),
		sweep:    make(chan struct{}, 1),
		sockets:  make([]atomic.Pointer[socket], cfg.Sockets),
	}
	e.refusal = e.overloaded(ErrOverloaded)
	_, e.spills = cfg.Protocol.(TicketProtocol)
	e.ctx, e.cancel = context.WithCancel(context.Background())
	for range cfg.Sockets {
		p := &peer{engine: e}
		e.peers = append(e.peers, p)
	}
	e.keepers.Add(cfg.Sockets + 1)
	for _, p := range e.peers {
		// Stopped and waited for by Close.
		go p.keep(e.ctx)
	}
	// Stopped and waited for by Close.
	go e.runSweeper()
	return e
}

// now is the engine's clock.
func (e *Engine) now() time.Duration { return time.Since(e.epoch) }

// publish makes a peer's socket known to callers. Under the peer's lock.
func (e *Engine) publish(p *peer, s *socket) {
	for i := range e.peers {
		if e.peers[i] == p {
			e.sockets[i].Store(s)
		}
	}
}

// Acquire returns a call from a pool. It must be released.
func (e *Engine) Acquire() *Call { return acquire(e) }

// Connect waits until a socket is up. It returns the error of the first attempt
// to connect if that fails; attempts go on in the background all the same.
func (e *Engine) Connect(ctx context.Context) error {
	p := e.peers[0]
	for {
		s, changed, dialErr := p.current()
		switch {
		case e.ctx.Err() != nil:
			return e.closedError()
		case s != nil:
			return nil
		case dialErr != nil:
			return p.noConnection(nil)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return p.noConnection(ctx.Err())
		case <-e.ctx.Done():
		}
	}
}

func (e *Engine) closedError() error {
	return &slipstream.Error{Addr: e.cfg.Addr, Outcome: slipstream.Closed, Err: ErrClosed}
}

// Do submits c and waits for its reply. It returns nil when there is one. In
// any case c belongs to the caller again and must be released.
func (e *Engine) Do(ctx context.Context, c *Call) error {
	c.completer, c.leader = nil, nil
	one := [1]*Call{c}
	s, solo, err := e.submit(ctx, one[:], true)
	if err != nil {
		c.err = err
		return err
	}
	if solo {
		s.readSolo(c)
	} else {
		c.ending.wait()
	}
	return c.err
}

// DoAll submits calls contiguously on one socket and waits for all. It returns
// the error of the first call that failed; each call has its own in Err. If not
// all of them fit, none is sent.
func (e *Engine) DoAll(ctx context.Context, cs []*Call) error {
	if len(cs) == 0 {
		return nil
	}
	leader := cs[0]
	leader.left.Store(int32(len(cs)))
	for _, c := range cs {
		c.completer, c.leader = nil, leader
	}
	s, solo, err := e.submit(ctx, cs, true)
	if err != nil {
		for _, c := range cs {
			c.err = err
		}
		return err
	}
	if solo {
		s.readSolo(leader)
	} else {
		leader.ending.wait()
	}
	for _, c := range cs {
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// Start submits c and returns. After nil, Wait must be called exactly once; an
// error means that c was not submitted. The engine ends the call when ctx ends.
func (e *Engine) Start(ctx context.Context, c *Call) error {
	c.completer, c.leader = nil, nil
	one := [1]*Call{c}
	_, _, err := e.submit(ctx, one[:], false)
	return err
}

// Wait waits for a call that Start has submitted, as Do does.
func (c *Call) Wait() error {
	c.ending.wait()
	return c.err
}

// StartFunc submits c, whose end done is told of. An error means that c was not
// submitted and that done is not called. It never waits, whatever Config says,
// so that a Completer may use it: without a connection or without room it fails
// at once, as NotSent or Overloaded.
func (e *Engine) StartFunc(ctx context.Context, c *Call, done Completer) error {
	c.completer, c.leader = done, nil
	one := [1]*Call{c}
	_, _, err := e.submit(ctx, one[:], false)
	return err
}

// submit finds a socket and queues the calls there.
func (e *Engine) submit(ctx context.Context, cs []*Call, canRead bool) (*socket, bool, error) {
	if e.draining.Load() {
		return nil, false, e.closedError()
	}
	if err := ctx.Err(); err != nil {
		return nil, false, &slipstream.Error{Addr: e.cfg.Addr, Outcome: slipstream.NotSent, Err: err}
	}
	for _, c := range cs {
		c.prepare(ctx, e)
	}
	if cs[0].Pin.s != nil {
		return e.submitPinned(ctx, cs, canRead)
	}
	i := e.choose()
	for {
		s := e.sockets[i].Load()
		if s == nil {
			var err error
			if s, err = e.waitForSocket(ctx, i, cs[0]); err != nil {
				return nil, false, err
			}
		}
		solo, err := s.submit(cs, canRead)
		switch err {
		case nil:
			return s, solo, nil
		case errFull:
			err = e.waitForRoom(ctx, s, cs)
		case errGone:
			if i = e.choose(); e.isOther(i, s) {
				continue
			}
			err = e.waitWhileGone(ctx, s, cs[0])
		case errDraining:
			err = e.closedError()
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// mayWait reports whether the submission of c may wait for a connection or for
// room. One by a completer may not: it would wait for its own goroutine.
func (e *Engine) mayWait(c *Call) bool { return c.completer == nil }

// until returns a context that ends at the call's deadline too.
func (e *Engine) until(ctx context.Context, deadline int64, most time.Duration) (context.Context, context.CancelFunc) {
	left := most
	if deadline > 0 {
		if d := time.Duration(deadline) - e.now(); most <= 0 || d < left {
			left = d
		}
	} else if most <= 0 {
		return context.WithCancel(ctx)
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
		s, changed, _ := p.current()
		if s != nil {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, p.noConnection(ctx.Err())
		case <-e.ctx.Done():
			return nil, e.closedError()
		}
		if s := e.anySocket(); s != nil {
			return s, nil
		}
	}
}

// anySocket returns a socket that is up, nil if there is none.
func (e *Engine) anySocket() *socket {
	for i := range e.sockets {
		if s := e.sockets[i].Load(); s != nil {
			return s
		}
	}
	return nil
}

// waitWhileGone waits until the keeper has noticed that s ended, so that callers
// do not spin meanwhile. One that was retired may have calls under way for long.
func (e *Engine) waitWhileGone(ctx context.Context, s *socket, c *Call) error {
	if !e.mayWait(c) {
		return e.peers[0].noConnection(errNoConnection)
	}
	if e.cfg.FailFast && s.retiring.Load() {
		return e.peers[0].noConnection(ErrRetired)
	}
	ctx, cancel := e.until(ctx, c.deadline, 0)
	defer cancel()
	for _, p := range e.peers {
		for {
			now, changed, _ := p.current()
			if now != s {
				break
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return p.noConnection(ctx.Err())
			case <-e.ctx.Done():
				return e.closedError()
			}
		}
	}
	if e.ctx.Err() != nil {
		return e.closedError()
	}
	return nil
}

func (e *Engine) overloaded(cause error) error {
	return &slipstream.Error{Addr: e.cfg.Addr, Outcome: slipstream.Overloaded, Err: cause}
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
	fits := s.closed || s.fits(s.charged.Load()+charge) && !s.table.full(len(cs))
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

// slowCompleter is how long a completer may hold up a reader unnoticed.
const slowCompleter = time.Millisecond

// complete calls the completer of c, which may be anything.
func (e *Engine) complete(c *Call) {
	began := time.Now()
	defer func() {
		if r := recover(); r != nil {
			e.panics.Add(1)
		}
		if time.Since(began) > slowCompleter {
			e.slow.Add(1)
		}
	}()
	c.completer.Complete(c)
}

func (e *Engine) event(ev Event) {
	if e.cfg.OnEvent == nil {
		return
	}
	ev.Addr, ev.At = e.cfg.Addr, time.Now()
	// The user's code: what it does wrong ends with it.
	defer func() { _ = recover() }()
	e.cfg.OnEvent(ev)
}

// Close ends everything and waits for the engine's goroutines and for the end of
// every call. Calls that were queued fail as Closed, written ones as
// MaybeExecuted. It must not be called by a Completer, OnPush or OnEvent, which
// it would wait for.
func (e *Engine) Close() error {
	e.draining.Store(true)
	e.cancel()
	e.keepers.Wait()
	return nil
}

// Shutdown refuses new calls, waits until none is under way or ctx ends, and
// closes the engine. It returns the error of ctx if calls were cut off.
func (e *Engine) Shutdown(ctx context.Context) error {
	e.draining.Store(true)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var err error
	for err == nil && e.busy() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	e.Close()
	return err
}

func (e *Engine) busy() bool {
	for i := range e.sockets {
		if s := e.sockets[i].Load(); s != nil && s.awaited() {
			return true
		}
	}
	return false
}
