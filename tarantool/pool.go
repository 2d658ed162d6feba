package tarantool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/fleet"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

// Mode says to which instances of a [Pool] a request may be sent.
type Mode uint8

// The modes. If several instances are suitable, two of them are drawn at random, and the one with
// fewer requests in flight is used.
const (
	// AnyInstance means any instance that answers.
	AnyInstance Mode = iota
	// ReadWrite means an instance that accepts writes.
	ReadWrite
	// ReadOnly means an instance that accepts no writes: a replica.
	ReadOnly
	// PreferReadWrite means an instance that accepts writes or, while there is none, any instance.
	PreferReadWrite
	// PreferReadOnly means an instance that accepts no writes or, while there is none, any
	// instance.
	PreferReadOnly
)

// String returns the mode as text.
func (m Mode) String() string {
	switch m {
	case AnyInstance:
		return "any"
	case ReadWrite:
		return "read-write"
	case ReadOnly:
		return "read-only"
	case PreferReadWrite:
		return "prefer read-write"
	case PreferReadOnly:
		return "prefer read-only"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// PoolOptions configure a [Pool]. The zero value is a pool with one instance, at DefaultAddr.
type PoolOptions struct {
	// Addrs are the addresses of instances, in the form of Options.Addr.
	Addrs []string
	// Options are the options for the instances in Addrs. Its own Addr is used only if Addrs and
	// Instances are empty. Timeout bounds a whole request to the pool. Retries is how often a
	// failed request is retried, with another instance if there is one. Backoff and MaxBackoff
	// bound the pauses between retries.
	Options Options
	// Instances are further instances, with their own options.
	Instances []Options

	// CheckInterval is how often the role of an instance is queried. If zero, it defaults to 1 s.
	// The role is also queried immediately when a connection was opened and when the instance
	// answers that it is read-only or loading, and every 50 ms while requests wait for an instance.
	CheckInterval time.Duration
	// CheckTimeout is how long the answer to that query may take before the instance is considered
	// stalled and gets no more requests. If zero, it defaults to 2 s.
	CheckTimeout time.Duration
	// WaitTimeout is how long a request waits while no instance is suitable for its mode. If zero,
	// it defaults to 5 s; if negative, the request fails immediately.
	WaitTimeout time.Duration

	// WaitFor is the mode for which NewPool waits for an instance.
	WaitFor Mode
	// NoWait makes NewPool return immediately, before there is a connection.
	NoWait bool

	// OnEvent, if set, is notified when the state of an instance changes. It is called in order, by
	// one goroutine at a time. It must not block, and must not call Close, Shutdown or Remove of
	// the pool.
	OnEvent func(PoolEvent)
}

// A Pool sends requests to instances of a replica set: writes to the one that accepts them, reads
// to any that their [Mode] allows. Each instance has its own [Client]. All methods are safe for
// concurrent use.
//
//	p, err := tarantool.NewPool(ctx, tarantool.PoolOptions{
//		Addrs:   []string{"10.0.0.1:3301", "10.0.0.2:3301"},
//		Options: tarantool.Options{User: "app", Password: "secret"},
//	})
//	...
//	defer p.Close()
//	err = p.Do(ctx, nil, tarantool.Replace("users", &u), tarantool.ReadWrite)
//
// # Roles
//
// The pool queries box.info.ro and box.info.status of every instance, by an expression or, if the
// user may not evaluate expressions, by calling box.info. A user that may do neither needs this
// privilege:
//
//	box.schema.func.create('box.info')
//	box.schema.user.grant('app', 'execute', 'function', 'box.info')
//
// Without it, the role remains unknown, and the instance gets only requests with the modes
// AnyInstance, PreferReadWrite and PreferReadOnly. An instance that has no connection, does not
// answer in time or is loading its data gets no requests.
//
// # Requests that fail
//
// A request that was not sent because its connection was lost is sent to another instance, or waits
// for one. So is a request that was cut off, if it only reads or is [ProcedureRequest.Idempotent].
// If an instance refuses a statement of mode ReadWrite because it is read-only, the statement is
// sent, once, to the instance that accepts writes now, as soon as there is one: a change of the
// master is not an error. A function that fails with that error may have had an effect before, so
// it is retried only if it is idempotent.
type Pool struct {
	// Immutable.
	opts   PoolOptions
	retry  attempt.Retrier
	ctx    context.Context // ended by Close and Shutdown
	cancel context.CancelFunc
	ended  chan struct{} // closed at the end of Close or Shutdown

	// set contains the instances. Their fields that are guarded by its lock are changed by
	// set.Change.
	set *fleet.Set[*instance, poolView, PoolEvent]

	// Guarded by the lock of set.
	leaving []*instance // removed and not closed yet
	left    Stats       // sum of the instances that were removed and closed
}

// poolChange is the set of instances while it is locked.
type poolChange = fleet.Change[*instance, poolView, PoolEvent]

// NewPool returns a pool once there is an instance for the mode PoolOptions.WaitFor. Instances that
// are down do not delay it. If ctx ends first, there is no pool, and the error describes the state
// of each instance; if ctx has no deadline, NewPool may wait forever. The pool must be closed.
func NewPool(ctx context.Context, o PoolOptions) (*Pool, error) {
	all, err := o.instances()
	if err != nil {
		return nil, err
	}
	p := &Pool{opts: o, ended: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.retry.Retries, p.retry.Timeout, p.retry.Closing = attempt.Retries(o.Options.Retries), o.Options.Timeout, p.ctx.Done()
	p.retry.Backoff = pipe.Backoff{First: o.Options.Backoff, Most: o.Options.MaxBackoff}
	p.set = fleet.New(viewOf, o.OnEvent)
	for _, one := range all {
		if err := p.Add(one); err != nil {
			p.Close()
			return nil, err
		}
	}
	if o.NoWait {
		return p, nil
	}
	if err := p.Wait(ctx, o.WaitFor); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// instances returns the options of every instance.
func (o *PoolOptions) instances() ([]Options, error) {
	if o.CheckInterval < 0 || o.CheckTimeout < 0 {
		return nil, errors.New("tarantool: PoolOptions.CheckInterval and CheckTimeout must not be negative")
	}
	if o.WaitFor > PreferReadOnly {
		return nil, fmt.Errorf("tarantool: PoolOptions.WaitFor is %v; use one of the constants of Mode", o.WaitFor)
	}
	all := make([]Options, 0, len(o.Addrs)+len(o.Instances))
	for _, addr := range o.Addrs {
		one := o.Options
		one.Addr = addr
		all = append(all, one)
	}
	all = append(all, o.Instances...)
	if len(all) == 0 {
		all = append(all, o.Options)
	}
	return all, nil
}

func (p *Pool) checkInterval() time.Duration { return cmp.Or(p.opts.CheckInterval, time.Second) }
func (p *Pool) checkTimeout() time.Duration  { return cmp.Or(p.opts.CheckTimeout, 2*time.Second) }

// waitTimeout returns how long a request waits for an instance, or 0 if it does not wait.
func (p *Pool) waitTimeout() time.Duration {
	return max(cmp.Or(p.opts.WaitTimeout, 5*time.Second), 0)
}

// Add adds an instance and returns immediately. The instance gets requests as soon as it is
// connected and its role is known. An address can be added only once.
func (p *Pool) Add(o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	i := newInstance(p, o)
	var err error
	p.set.Change(func(c *poolChange) {
		switch {
		case c.Closed():
			err = p.closedError("add")
		case slices.ContainsFunc(c.Members(), i.hasAddr):
			err = fmt.Errorf("tarantool: the pool already has the instance %s", i.addr)
		default:
			c.Add(i)
			// Stopped by its context; the caller that removes the instance waits for it.
			go i.run()
		}
	})
	if err != nil {
		i.cancel()
	}
	return err
}

// Remove removes the instance with the given address from the pool. The instance gets no new
// requests. Remove waits until its requests in flight have ended, and closes its connections. If
// ctx ends first, the requests are cut off and the error of ctx is returned.
func (p *Pool) Remove(ctx context.Context, addr string) error {
	var i *instance
	p.set.Change(func(c *poolChange) {
		at := slices.IndexFunc(c.Members(), func(i *instance) bool { return i.addr == addr })
		if at < 0 || c.Closed() {
			return
		}
		i = c.Members()[at]
		i.become(c, InstanceRemoved, nil)
		c.Remove(i)
		p.leaving = append(p.leaving, i)
	})
	if i == nil {
		return fmt.Errorf("tarantool: the pool has no instance %q", addr)
	}
	err := i.shutdown(ctx)
	final := i.stats()
	final.RoundTrip, final.FlushFactor = 0, 0 // they are meaningful only for servers in use
	p.set.Change(func(*poolChange) {
		p.leaving = slices.DeleteFunc(p.leaving, func(other *instance) bool { return other == i })
		p.left.add(final)
	})
	return err
}

// Instances returns the current state of every instance, in the order in which they were added.
func (p *Pool) Instances() []InstanceInfo {
	var infos []InstanceInfo
	p.set.Change(func(c *poolChange) {
		infos = make([]InstanceInfo, 0, len(c.Members()))
		for _, i := range c.Members() {
			infos = append(infos, i.info())
		}
	})
	return infos
}

// Wait waits until there is an instance for requests of the given mode. Only ctx bounds it; the
// error describes the state of each instance.
func (p *Pool) Wait(ctx context.Context, mode Mode) error {
	_, err := p.await(ctx, mode, 0)
	return err
}

// Client returns the client of an instance that is suitable for the given mode, for operations
// without a pool method. It remains the client of that instance whatever happens to the instance,
// so call Client again for each unit of work. The client belongs to the pool and must not be
// closed.
func (p *Pool) Client(mode Mode) (*Client, error) {
	if i := p.pick(mode, nil); i != nil {
		return i.client.Load(), nil
	}
	return nil, p.noInstance(mode, nil)
}

// Do sends a request to an instance that is suitable for the given mode, waits for its reply and
// decodes the data into dst, as [Client.Do] does.
func (p *Pool) Do(ctx context.Context, dst any, req Request, mode Mode) error {
	r := p.begin(mode)
	if err := r.choose(ctx); err != nil {
		return err
	}
	err := r.client.Do(ctx, dst, req)
	if err == nil {
		return nil
	}
	return r.resume(ctx, err, isRepeatable(req), func(ctx context.Context, c *Client) error {
		return c.Do(ctx, dst, req)
	})
}

func isRepeatable(req Request) bool { return req != nil && req.about().repeatable }

// A PoolFuture is a request to a [Pool] in flight. The rules of [Future] apply.
type PoolFuture struct {
	first Future
	route poolRoute
	ctx   context.Context
	req   Request
}

// Start sends a request to an instance that is suitable for the given mode, and returns without
// waiting for its reply, as [Client.Start] does. If the request has to be sent again, the caller
// that takes the result does that.
func (p *Pool) Start(ctx context.Context, req Request, mode Mode) PoolFuture {
	f := PoolFuture{route: p.begin(mode), ctx: ctx, req: req}
	if err := f.route.choose(ctx); err != nil {
		f.first = failed(err)
	} else {
		f.first = f.route.client.Start(ctx, req)
	}
	return f
}

// Get waits for the reply and returns its data: see [Future.Get].
func (f PoolFuture) Get() ([]any, error) {
	var data []any
	err := f.Wait(&data)
	return data, err
}

// Wait waits for the reply and decodes its data into dst, as [Client.Do] does. If dst is nil, it
// only returns the error.
func (f PoolFuture) Wait(dst any) error {
	err := f.first.Wait(dst)
	if err == nil || f.route.client == nil || errors.Is(err, ErrReleased) {
		return err
	}
	return f.route.resume(f.ctx, err, isRepeatable(f.req), func(ctx context.Context, c *Client) error {
		return c.Do(ctx, dst, f.req)
	})
}

// Done returns a channel that is closed when the first attempt has ended: see [Future.Done]. Taking
// the result blocks only if another attempt is needed.
func (f PoolFuture) Done() <-chan struct{} { return f.first.Done() }

// Rerouted returns the number of requests that were sent again so far, to another instance or after
// waiting for one.
func (p *Pool) Rerouted() uint64 { return p.retry.Repeated() }

// Close closes the pool as [Client.Close] closes a client: requests that were not sent fail with
// the outcome Closed, and those in flight with MaybeExecuted. It waits until all connections are
// closed and all goroutines have ended. It may be called more than once.
func (p *Pool) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p.end(ctx)
	return nil
}

// Shutdown rejects new requests, waits until those in flight have ended, and closes the pool. If
// ctx ends first, the remaining requests are cut off and the error of ctx is returned.
func (p *Pool) Shutdown(ctx context.Context) error { return p.end(ctx) }

// end closes the pool, or waits until another caller has closed it.
func (p *Pool) end(ctx context.Context) error {
	all, first := p.set.Close()
	if !first {
		return p.awaitEnd(ctx, all)
	}
	p.cancel()
	results := make(chan error, len(all))
	for _, i := range all {
		// Ends with ctx at the latest; the results are awaited below.
		go func() { results <- i.shutdown(ctx) }()
	}
	var err error
	for range all {
		err = cmp.Or(err, <-results)
	}
	close(p.ended)
	return err
}

// awaitEnd waits until another caller has closed the pool, and cuts requests off when ctx ends.
func (p *Pool) awaitEnd(ctx context.Context, all []*instance) error {
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
	}
	for _, i := range all {
		if c := i.client.Load(); c != nil {
			c.Close()
		}
	}
	<-p.ended
	return ctx.Err()
}

func (p *Pool) closedError(op string) error {
	return &slipstream.Error{Op: op, Outcome: slipstream.Closed, Err: ErrClosed}
}
