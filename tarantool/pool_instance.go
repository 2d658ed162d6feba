package tarantool

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/fleet"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

// instance is one server of a pool. Its goroutine opens the first client, which then reconnects
// automatically, and queries the role.
type instance struct {
	// Immutable.
	pool   *Pool
	addr   string
	opts   Options // options of the client
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when run has ended
	probe  *fleet.Probe  // queries the role

	// Owned by run.
	byCall bool // the role is queried by a call, because evaluations are denied

	// Guarded by the lock of pool.set.
	state InstanceState
	since time.Time
	err   error

	// Atomics.
	client atomic.Pointer[Client] // written once by run, read by callers
	losses atomic.Uint64          // connections that ended; written under the lock of pool.set, read by callers
}

func newInstance(p *Pool, o Options) *instance {
	i := &instance{pool: p, addr: o.addr(), done: make(chan struct{}), probe: fleet.NewProbe(), since: time.Now()}
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

func (i *instance) hasAddr(other *instance) bool { return i.addr == other.addr }

// info is called with pool.set locked.
func (i *instance) info() InstanceInfo {
	info := InstanceInfo{Addr: i.addr, State: i.state, Since: i.since, Err: i.err}
	if c := i.client.Load(); c != nil {
		info.Version, info.Outstanding = c.ServerVersion(), c.outstanding()
	}
	return info
}

// Outstanding returns the number of requests in flight at an instance that has been connected.
func (i *instance) Outstanding() int { return i.client.Load().outstanding() }

// connection handles events of connections, on the goroutine that maintains them.
func (i *instance) connection(e Event) {
	client := i.client.Load()
	i.pool.set.Change(func(c *poolChange) {
		switch e.Kind {
		case Disconnected:
			i.losses.Add(1)
			if client != nil && !client.isUp() {
				i.become(c, InstanceDown, e.Err)
			}
		case DialFailed:
			if i.state == InstanceDown {
				i.err = e.Err
			}
		case Connected:
			if i.state == InstanceDown && client != nil && client.isUp() { // and not a connection of its blocking lane
				i.become(c, InstanceChecking, nil)
			}
		}
		i.probe.Wake()
	})
}

// run is the goroutine of the instance.
func (i *instance) run() {
	defer close(i.done)
	defer i.cancel()
	defer func() { i.probe.Begin()() }() // so that no caller waits for a check that will not happen
	c := i.connect()
	if c == nil {
		return
	}
	i.client.Store(c)
	i.set(InstanceChecking, nil)
	for i.ctx.Err() == nil {
		began := time.Now()
		i.check(c)
		interval := i.pool.checkInterval()
		if i.pool.set.Waiting() > 0 {
			interval = min(interval, eagerInterval)
		}
		i.probe.Rest(i.ctx, began, leastInterval, interval)
	}
}

// connect returns a client once the server could be reached, or nil if the pool ended first.
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
		i.set(InstanceDown, err)
		if !attempt.Sleep(i.ctx, backoff.After(made)) {
			return nil
		}
	}
}

// leastInterval is the minimum time between two checks.
const leastInterval = 10 * time.Millisecond

// check queries the role and sets the state.
func (i *instance) check(c *Client) {
	defer i.probe.Begin()()
	losses := i.losses.Load()
	if !c.isUp() {
		i.pool.set.Change(func(c *poolChange) { i.become(c, InstanceDown, i.err) })
		return
	}
	state, err := i.ask(c)
	if i.ctx.Err() != nil {
		return
	}
	i.pool.set.Change(func(c *poolChange) {
		// The answer of a server whose connection was lost in the meantime says nothing about the
		// current one.
		if i.losses.Load() == losses && state != InstanceDown {
			i.become(c, state, err)
		}
	})
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
