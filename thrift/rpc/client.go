package rpc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
)

// A client connects to one address through the sockets of one engine (internal/pipe). The ticket of a call is its
// sequence ID, in the message and in the header, so replies can be matched by it with every server. The number of calls
// in flight on a connection depends on what is known about its server:
//
//   - Nothing is known yet: one call.
//   - A reply has overtaken another, or the server has announced that it answers in any order (the control frame of
//     server.go): no limit. This connection takes all calls, and calls are not counted.
//   - Otherwise the server is serial, like stock servers of Apache Thrift and Kitex: one call, or up to 64 idempotent
//     calls if the server needs less than 0.5 ms for all of them (depth.go).
//
//	Stub.Invoke --> Client.Call --> encode --> lane.acquire --> Engine.Do, pinned to the connection --> decode
//	                                             |    ^
//	                                 no room: the queue    conn.Replied (pipe.Watcher), on the goroutine that reads

// A Client calls the functions of services at one address. All goroutines share a few connections, or a single one if
// the server answers in any order, as servers of this package do with TTHeader. Other servers process one call of a
// connection at a time, so a client opens more connections to them while calls wait. As long as such a server is fast,
// idempotent calls may be sent on a connection before earlier ones have been answered. All methods are safe for
// concurrent use.
type Client struct {
	// Immutable after NewClient.
	config     ClientConfig
	format     frame.Format
	fail       driver.Errors
	hooks      driver.Hooks
	retry      attempt.Retrier
	closing    chan struct{} // closed by Close and Shutdown
	idempotent map[string]bool
	small      *lane
	now        func() time.Time // clock for measuring servers

	closeOnce sync.Once

	mu sync.Mutex
	// Guarded by mu.
	large *lane // for large messages; nil until the first one

	single atomic.Pointer[single] // atomic: the lane that takes all calls, or nil; written by lanes and callers

	// Atomics, written by callers.
	calls, bytes atomic.Int64 // in progress
	refused      atomic.Uint64
	largeReplies sync.Map // set of *Function: functions that have had large replies
	anyLarge     atomic.Bool
}

// NewClient returns a client that connects in the background. The client must be closed.
func NewClient(config ClientConfig) (*Client, error) { return newClient(config, time.Now) }

func newClient(config ClientConfig, now func() time.Time) (*Client, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	c := &Client{config: config.withDefaults(), fail: driver.Errors{Addr: config.Addr}, closing: make(chan struct{}), idempotent: make(map[string]bool), now: now}
	c.format = frame.Format{Transport: transports[config.Transport], Compact: config.Compact, Protobuf: config.Protobuf}
	if config.Protobuf && config.Transport == TTHeader {
		c.format.Transport = frame.HeaderFramed
	}
	for _, name := range config.Idempotent {
		c.idempotent[name] = true
	}
	c.hooks.System, c.hooks.Addr, c.hooks.OnEvent = "thrift", config.Addr, config.OnEvent
	c.hooks.Observer, c.hooks.SlowThreshold, c.hooks.OnSlow = config.Observer, config.SlowThreshold, config.OnSlow
	c.retry.Retries, c.retry.Backoff = attempt.Retries(config.Retries), pipe.Backoff{First: c.config.Backoff, Most: c.config.MaxBackoff}
	c.retry.Timeout, c.retry.FailFast, c.retry.Closing = c.config.Timeout, config.FailFast, c.closing
	if config.Budget != nil {
		c.retry.Afford = config.Budget.Withdraw
	}
	c.small = newLane(c)
	return c, nil
}

// engineConfig returns the configuration of a lane's engine, which has the bounds of the client.
func (c *Client) engineConfig(l *lane) pipe.Config {
	endpoint := &driver.Endpoint{Addr: c.config.Addr, TLS: c.config.TLS, Dialer: c.config.Dialer}
	timeout := c.config.Timeout
	if c.unbounded() {
		timeout = 0
	}
	return pipe.Config{
		Protocol: protocol{l}, Traits: traits,
		Addr: c.config.Addr, Dial: endpoint.Dial,
		MaxCalls: math.MaxInt32, MaxBytes: math.MaxInt,
		DialTimeout: c.config.DialTimeout, Backoff: c.config.Backoff, MaxBackoff: c.config.MaxBackoff,
		Timeout: timeout,
		OnEvent: func(e slipstream.Event) {
			if e.Kind != slipstream.Disconnected {
				l.dialed(e.Err)
			}
			c.hooks.Event(e)
		},
	}
}

// Connect waits until a connection is up. If the first attempt to connect fails, Connect returns its error, and
// attempts continue in the background. Calling Connect is optional.
func (c *Client) Connect(ctx context.Context) error {
	if err := c.small.engine.Connect(ctx); err != nil {
		return c.fail.Named("connect", err)
	}
	return nil
}

// Close closes the client. Calls that have not been sent fail with the outcome Closed, and calls in flight fail with
// MaybeExecuted. Close waits until all goroutines of the client have ended, so it must not be called from
// ClientConfig.OnEvent. Further calls do nothing.
func (c *Client) Close() error {
	c.closeOnce.Do(func() { close(c.closing) })
	c.mu.Lock()
	large := c.large
	c.mu.Unlock()
	err := c.small.close()
	if large != nil {
		err = errors.Join(err, large.close())
	}
	return err
}

// Shutdown rejects new calls, waits until those in progress have ended, and closes the client. If ctx ends first,
// Shutdown closes the client immediately and returns the error of ctx.
func (c *Client) Shutdown(ctx context.Context) error {
	c.closeOnce.Do(func() { close(c.closing) })
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var err error
	for err == nil && c.calls.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return errors.Join(err, c.Close())
}

// A single lane takes all calls until a given time, because the server does not have enough threads for the connections
// of both lanes.
type single struct {
	lane  *lane
	until time.Time
}

// other returns the other lane, or nil if there is none.
func (c *Client) other(l *lane) *lane {
	if l != c.small {
		return c.small
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.large
}

// makeRoom closes a connection of the other lane, because the server does not answer on any connection of l: it may use
// one thread per connection and have none left. It reports whether there was a connection to close.
func (c *Client) makeRoom(l *lane) bool {
	other := c.other(l)
	return other != nil && other.yield()
}

// drainOther closes the connections of the other lane after their last replies, because the server is shutting down.
func (c *Client) drainOther(l *lane) {
	if other := c.other(l); other != nil {
		other.mu.Lock()
		other.drain(c.now())
		other.mu.Unlock()
	}
}

// lane returns the lane for a call of f whose arguments have size bytes. A function that has had large replies uses the
// lane for large messages.
func (c *Client) lane(f *Function, size int) *lane {
	if s := c.single.Load(); s != nil {
		if c.now().Before(s.until) {
			return s.lane
		}
		c.single.CompareAndSwap(s, nil)
	}
	if size < largeMessage {
		if !c.anyLarge.Load() {
			return c.small
		}
		if _, large := c.largeReplies.Load(f); !large {
			return c.small
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.large == nil {
		select {
		case <-c.closing:
			return c.small // it refuses the call
		default:
		}
		c.large = newLane(c)
	}
	return c.large
}

// largeMessage is the size from which messages use separate connections, so that small ones do not wait for them.
const largeMessage = 64 << 10

// replied records the size of a reply.
func (c *Client) replied(f *Function, size int) {
	if size < largeMessage {
		return
	}
	if _, known := c.largeReplies.LoadOrStore(f, true); !known {
		c.anyLarge.Store(true)
	}
}

// callCost is the number of bytes that a call is charged in addition to its arguments.
const callCost = 1 << 10

// enter counts a call in progress. If there are too many, or the client is closed, it returns an error.
func (c *Client) enter(size int) error {
	select {
	case <-c.closing:
		return c.small.fail(slipstream.Closed, errClosed)
	default:
	}
	charge := int64(2*size + callCost)
	if c.calls.Add(1) <= int64(c.config.MaxCalls) {
		if c.bytes.Add(charge) <= int64(c.config.MaxBytes) {
			return nil
		}
		c.bytes.Add(-charge)
	}
	c.calls.Add(-1)
	c.refused.Add(1)
	return c.small.fail(slipstream.Overloaded, pipe.ErrOverloaded)
}

// leave undoes enter after the call has ended.
func (c *Client) leave(size int) {
	c.bytes.Add(-int64(2*size + callCost))
	c.calls.Add(-1)
}

// unbounded reports whether calls without a deadline are possible.
func (c *Client) unbounded() bool { return c.config.Timeout == noDeadline }

// repeatable reports whether a function is idempotent.
func (c *Client) repeatable(in *Invocation) bool {
	f := in.Function
	return f.Idempotent || len(c.idempotent) > 0 && (c.idempotent[f.Name] || c.idempotent[in.Service+"."+f.Name])
}

// ClientStats holds the counters of a client since it was created, and its current state.
type ClientStats struct {
	// Stats holds the totals over all connections.
	slipstream.Stats
	InProgress int  // calls
	Waiting    int  // calls that are waiting for a connection
	AnyOrder   bool // the server answers in any order
	Large      int  // connections for large messages
}

// Stats returns the client's counters and current state. It is cheap enough to call once per second.
func (c *Client) Stats() ClientStats {
	c.mu.Lock()
	large := c.large
	c.mu.Unlock()
	s := ClientStats{Stats: driver.Stats(c.small.engine.Snapshot(), c.retry.Repeated(), c.hooks.Panics()), InProgress: int(c.calls.Load())}
	s.Waiting, s.AnyOrder = c.small.state()
	if large != nil {
		more := driver.Stats(large.engine.Snapshot(), 0, 0)
		s.Large = more.Connected
		driver.AddStats(&s.Stats, &more)
		waiting, _ := large.state()
		s.Waiting += waiting
	}
	s.Overloaded += c.refused.Load()
	return s
}

// String returns a description of the client for logs.
func (c *Client) String() string {
	return fmt.Sprintf("thrift client of %s (%v)", c.config.Addr, c.format)
}
