package tarantool

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

// instance is one server of a pool. Its goroutine connects for the first time, later the
// client does that itself, and asks for the role.
type instance struct {
	// Immutable.
	pool   *Pool
	addr   string
	opts   Options // of the client
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when run has ended
	wake   chan struct{} // capacity 1: ask for the role now

	// Owned by run.
	byCall bool // the role is asked for by a call, because evaluations are denied

	// Guarded by pool.mu.
	state   InstanceState
	since   time.Time
	err     error
	checked chan struct{} // closed after the next check that begins; nil: nobody waits

	// Atomics.
	client atomic.Pointer[Client] // written once by run, read by everybody
	losses atomic.Uint64          // connections that ended; written under pool.mu, read by callers
}

func newInstance(p *Pool, o Options) *instance {
	i := &instance{pool: p, addr: o.addr(), done: make(chan struct{}), wake: make(chan struct{}, 1), since: time.Now()}
	i.ctx, i.cancel = context.WithCancel(p.ctx)
	told := o.OnEvent
	o.OnEvent = func(e Event) {
		i.connection(e)
		if told != nil {
			told(e)
		}
	}
	i.opts = o
	return i
}

// info is called with pool.mu held.
func (i *instance) info() InstanceInfo {
	info := InstanceInfo{Addr: i.addr, State: i.state, Since: i.since, Err: i.err}
	if c := i.client.Load(); c != nil {
		info.Version, info.Outstanding = c.ServerVersion(), c.outstanding()
	}
	return info
}

// outstanding returns the requests under way of an instance that has been connected.
func (i *instance) outstanding() int { return i.client.Load().outstanding() }

// connection is told what happens to connections, by the goroutine that keeps them.
func (i *instance) connection(e Event) {
	p := i.pool
	c := i.client.Load()
	p.mu.Lock()
	switch e.Kind {
	case Disconnected:
		i.losses.Add(1)
		if c != nil && !c.isUp() {
			p.setLocked(i, InstanceDown, e.Err)
		}
	case DialFailed:
		if i.state == InstanceDown {
			i.err = e.Err
		}
	case Connected:
		if i.state == InstanceDown && c != nil && c.isUp() { // and not one of its blocking lane
			p.setLocked(i, InstanceChecking, nil)
		}
	}
	p.mu.Unlock()
	i.poke()
	p.tell()
}

// poke has the role asked for soon.
func (i *instance) poke() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// run is the goroutine of the instance.
func (i *instance) run() {
	defer close(i.done)
	defer i.cancel()
	defer func() { i.endWaits(i.takeWaits()) }()
	c := i.connect()
	if c == nil {
		return
	}
	i.client.Store(c)
	i.pool.set(i, InstanceChecking, nil)
	for i.ctx.Err() == nil {
		began := time.Now()
		i.check(c)
		i.rest(began)
	}
}

// connect returns a client once the server could be reached; nil: never.
func (i *instance) connect() *Client {
	backoff := pipe.Backoff{First: i.opts.Backoff, Most: i.opts.MaxBackoff}
	for made := 1; ; made++ {
		c, err := connectMember(i.ctx, i.opts)
		if err == nil {
			return c
		}
		if i.ctx.Err() != nil {
			return nil
		}
		i.pool.set(i, InstanceDown, err)
		if !attempt.Sleep(i.ctx, backoff.After(made)) {
			return nil
		}
	}
}

// leastInterval is the least time between two checks, whoever asks for them.
const leastInterval = 10 * time.Millisecond

// rest waits until the next check is due.
func (i *instance) rest(began time.Time) {
	interval := i.pool.checkInterval()
	if i.pool.waiting.Load() > 0 {
		interval = min(interval, eagerInterval)
	}
	due := time.NewTimer(interval)
	defer due.Stop()
	select {
	case <-due.C:
		return
	case <-i.ctx.Done():
		return
	case <-i.wake:
	}
	attempt.Sleep(i.ctx, time.Until(began.Add(leastInterval)))
}

// check asks for the role and notes what came of it.
func (i *instance) check(c *Client) {
	waits := i.takeWaits()
	defer i.endWaits(waits)
	losses := i.losses.Load()
	if !c.isUp() {
		i.pool.set(i, InstanceDown, i.lastError())
		return
	}
	state, err := i.ask(c)
	if i.ctx.Err() != nil {
		return
	}
	p := i.pool
	p.mu.Lock()
	// The answer of a server that was lost meanwhile says nothing of the one that is there now.
	if i.losses.Load() == losses && state != InstanceDown {
		p.setLocked(i, state, err)
	}
	p.mu.Unlock()
	p.tell()
}

func (i *instance) lastError() error {
	i.pool.mu.Lock()
	defer i.pool.mu.Unlock()
	return i.err
}

// recheck waits until of each of these instances a check has ended that began after the call.
func (p *Pool) recheck(ctx context.Context, these []*instance) {
	checks := make([]chan struct{}, 0, len(these))
	p.mu.Lock()
	for _, i := range these {
		if i.checked == nil {
			i.checked = make(chan struct{})
		}
		checks = append(checks, i.checked)
	}
	p.mu.Unlock()
	p.lookAgain()
	for n, i := range these {
		select {
		case <-checks[n]:
		case <-ctx.Done():
		case <-i.ctx.Done():
		}
	}
}

func (i *instance) takeWaits() chan struct{} {
	i.pool.mu.Lock()
	defer i.pool.mu.Unlock()
	waits := i.checked
	i.checked = nil
	return waits
}

func (i *instance) endWaits(waits chan struct{}) {
	if waits != nil {
		close(waits)
	}
}

// shutdown ends the instance: see Client.Shutdown.
func (i *instance) shutdown(ctx context.Context) error {
	i.cancel()
	<-i.done
	if c := i.client.Load(); c != nil {
		return c.Shutdown(ctx)
	}
	return nil
}
