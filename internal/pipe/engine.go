package pipe

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
)

var errNoConnection = errors.New("there is no connection")

// An Engine sends the calls of many goroutines to one server over a few sockets. All methods are
// safe for concurrent use.
type Engine struct {
	// Immutable.
	cfg     Config
	epoch   time.Time
	ctx     context.Context // canceled by Close
	cancel  context.CancelFunc
	keepers sync.WaitGroup // keepers, probes and the sweeper
	sweep   chan struct{}  // capacity 1: requests a round of the sweeper
	sleep   *time.Timer    // starts the sweeper after a long pause
	// refusal is the error of every call that does not fit, allocated once, because
	// the process may be short of memory then.
	refusal error
	changes broadcast // signals changes of the list of sockets and of their states
	// keeperless is set only by tests that do what keepers do.
	keeperless bool
	releases   releases
	transit    transit
	streams    streamRoom

	past *Counts // of peers that have left, or nil; guarded by the transit's mu

	// Owned by the sweeper.
	givenUp  []*Call // calls with completers that this sweep gave up
	prober   prober
	lastRest time.Duration // when stalls were checked last

	// Atomics.
	list     atomic.Pointer[list] // written under the transit's mu, read by callers
	draining atomic.Bool          // written by Shutdown and Close
	asleep   atomic.Bool          // the sweeper has no goroutine; cleared by the goroutine that runs or ends it
	current  atomic.Uint32        // see placeIn; written by callers
	slow     atomic.Uint64        // number of completers slower than slowCompleter; written by readers
	panics   atomic.Uint64        // number of completers that panicked; written by readers
	sweeping sweepCounts          // written by the sweeper
}

// New returns an engine that connects in the background.
func New(cfg Config) *Engine {
	cfg = cfg.withDefaults()
	e := &Engine{cfg: cfg, epoch: time.Now(), sweep: make(chan struct{}, 1)}
	e.refusal = e.overloaded(ErrOverloaded)
	e.ctx, e.cancel = context.WithCancel(context.Background())
	var peers []*peer
	for range cfg.Sockets {
		peers = append(peers, &peer{engine: e})
	}
	e.list.Store(newList(&e.cfg, cfg.Sockets, peers, make([]*socket, cfg.Sockets)))
	e.keepers.Add(cfg.Sockets + 1)
	e.sleep = time.AfterFunc(time.Hour, e.alarm)
	e.asleep.Store(true)
	e.sleep.Reset(e.rest(true))
	for _, p := range peers {
		// Stopped by SetSockets or Close; Close waits for it.
		go p.keep()
	}
	return e
}

// now is the engine's clock.
func (e *Engine) now() time.Duration { return time.Since(e.epoch) }

// Acquire returns a call from a pool. The call must be released.
func (e *Engine) Acquire() *Call { return acquire(e) }

// Connect waits until a socket is up. If the first attempt
// to connect fails, Connect returns its error, and attempts continue in the background.
func (e *Engine) Connect(ctx context.Context) error {
	for {
		changed := e.changes.next()
		_, dialErr := e.list.Load().peers[0].current()
		switch {
		case e.ctx.Err() != nil:
			return e.closedError()
		case e.anySocket() != nil:
			return nil
		case dialErr != nil:
			return e.noConnection(nil)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return e.noConnection(ctx.Err())
		case <-e.ctx.Done():
		}
	}
}

func (e *Engine) closedError() error {
	return &slipstream.Error{Addr: e.cfg.Addr, Outcome: slipstream.Closed, Err: ErrClosed}
}

// Do submits c and waits for its reply. It returns nil if there is one. In
// any case, c belongs to the caller afterwards and must be released.
func (e *Engine) Do(ctx context.Context, c *Call) error {
	c.route(nil, nil)
	one := [1]*Call{c}
	s, solo, err := e.submit(ctx, one[:], true)
	if err != nil {
		c.failWith(err)
		return err
	}
	if solo {
		s.readSolo(c)
	} else {
		c.ending.wait()
	}
	return c.Err()
}

// DoAll submits calls contiguously on one socket and waits for all of them. It returns
// the error of the first call that failed; Err returns the error of each call. If not
// all of them fit, none is sent.
func (e *Engine) DoAll(ctx context.Context, cs []*Call) error {
	if len(cs) == 0 {
		return nil
	}
	s, solo, err := e.submitAll(ctx, cs, true)
	if err != nil {
		return err
	}
	if solo {
		s.readSolo(cs[0])
	} else {
		cs[0].ending.wait()
	}
	return firstError(cs)
}

// StartAll submits at least one call as DoAll does, and does not wait. If it returns nil, WaitAll must be
// called exactly once with the same calls. If it returns an error, no call was submitted.
func (e *Engine) StartAll(ctx context.Context, cs []*Call) error {
	_, _, err := e.submitAll(ctx, cs, false)
	return err
}

// WaitAll waits for calls submitted by StartAll and returns as DoAll does.
func WaitAll(cs []*Call) error {
	cs[0].ending.wait()
	return firstError(cs)
}

// submitAll submits calls that are waited for at the first one.
func (e *Engine) submitAll(ctx context.Context, cs []*Call, canRead bool) (*socket, bool, error) {
	leader := cs[0]
	leader.left.Store(int32(len(cs)))
	if leader.ending.members = uint16(len(cs)); len(cs) > math.MaxUint16 {
		leader.ending.members = 0
	}
	for _, c := range cs {
		c.route(nil, leader)
	}
	s, solo, err := e.submit(ctx, cs, canRead)
	if err != nil {
		for _, c := range cs {
			c.failWith(err)
		}
	}
	return s, solo, err
}

// firstError returns the error of the first call that failed, or nil.
func firstError(cs []*Call) error {
	for _, c := range cs {
		if c.failed {
			return c.Err()
		}
	}
	return nil
}

// Start submits c and does not wait. If it returns nil, Wait must be called exactly once. If it returns an
// error, c was not submitted. The engine ends the call when ctx ends.
func (e *Engine) Start(ctx context.Context, c *Call) error {
	c.route(nil, nil)
	one := [1]*Call{c}
	_, _, err := e.submit(ctx, one[:], false)
	return err
}

// Wait waits for a call submitted by Start and returns as Do does.
func (c *Call) Wait() error {
	c.ending.wait()
	return c.Err()
}

// StartFunc submits c and notifies done of its end. If it returns an error, c was not
// submitted and done is not called. It never waits, whatever Config contains,
// so that a Completer may use it: without a connection or without room it fails
// immediately, as NotSent or Overloaded.
func (e *Engine) StartFunc(ctx context.Context, c *Call, done Completer) error {
	c.route(done, nil)
	one := [1]*Call{c}
	_, _, err := e.submit(ctx, one[:], false)
	return err
}

// submit chooses a socket and queues the calls on it.
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
	s := e.choose()
	for {
		if s == nil {
			var err error
			if s, err = e.waitForSocket(ctx, cs[0]); err != nil {
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
			s, err = e.waitForAnother(ctx, s, cs[0])
		case errDraining:
			err = e.closedError()
		}
		if err != nil {
			return nil, false, err
		}
	}
}

func (e *Engine) overloaded(cause error) error {
	return &slipstream.Error{Addr: e.cfg.Addr, Outcome: slipstream.Overloaded, Err: cause}
}

// slowCompleter is the duration above which a completer is counted as slow.
const slowCompleter = time.Millisecond

// complete calls the completer of c, which is code of the user.
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

func (e *Engine) event(ev slipstream.Event) {
	if e.cfg.OnEvent == nil {
		return
	}
	ev.Addr, ev.At = e.cfg.Addr, time.Now()
	// OnEvent is code of the user: a panic is recovered.
	defer func() { _ = recover() }()
	e.cfg.OnEvent(ev)
}

// Close closes all connections and waits for the engine's goroutines and for the end of
// every call. Calls that were queued or in transit fail as Closed, written ones as
// MaybeExecuted. Close must not be called by a Completer, OnPush or OnEvent, because
// it waits for them.
func (e *Engine) Close() error {
	e.draining.Store(true)
	e.transit.mu.Lock() // a concurrent SetSockets or retire starts keepers
	e.cancel()
	e.transit.mu.Unlock()
	e.endSweeper()
	e.keepers.Wait()
	e.transit.closed.Do(e.closeTransit)
	e.release()
	return nil
}

// Shutdown refuses new calls, waits until no call is in flight or ctx ends, and
// closes the engine. It returns the error of ctx if calls were still in flight.
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
	e.transit.mu.Lock() // so that no call moves
	defer e.transit.mu.Unlock()
	if len(e.transit.units) > 0 {
		return true
	}
	for _, s := range e.list.Load().sockets {
		if s != nil && s.awaited() {
			return true
		}
	}
	return false
}
