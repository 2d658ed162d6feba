package governance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/internal/fleet"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// A Pool calls the functions of a service with several members. A resolver finds the members, which may change. Each
// member has an [rpc.Client]. Calls go to members that are connected and not ejected, or to others if there are none. A
// call that could not be sent to its member goes to another one; all other failures are left to the caller or to a
// [Retry] around the pool. All methods are safe for concurrent use.
type Pool struct {
	// Immutable.
	config  PoolConfig
	open    func(config rpc.ClientConfig) (backend, error)
	ctx     context.Context // ended by Close and Shutdown
	cancel  context.CancelFunc
	drains  context.Context // context of closing removed members; ended by Close, or when Shutdown runs out of time
	cut     context.CancelFunc
	probe   *fleet.Probe   // schedules the calls of the resolver
	running sync.WaitGroup // the goroutine of the resolver, and those that close removed members
	closed  chan struct{}  // closed when Close returns

	// set holds the members. Their fields that are guarded by its lock are changed in set.Change.
	set *fleet.Set[*member, *view, slipstream.Event]

	// Guarded by the lock of set.
	ejected    int // members
	ejections  uint64
	unresolved uint64           // failed calls of the resolver
	resolveErr error            // error of the last call, or nil
	left       slipstream.Stats // totals of removed members

	// Atomics, written by callers.
	moved atomic.Uint64
}

// change is the locked set of members.
type change = fleet.Change[*member, *view, slipstream.Event]

// NewPool returns a pool that finds its members and connects to them in the background. It must be closed.
func NewPool(config PoolConfig) (*Pool, error) {
	return newPool(config, func(c rpc.ClientConfig) (backend, error) { return rpc.NewClient(c) })
}

func newPool(config PoolConfig, open func(rpc.ClientConfig) (backend, error)) (*Pool, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	p := &Pool{config: config.withDefaults(), open: open, probe: fleet.NewProbe(), closed: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.drains, p.cut = context.WithCancel(context.Background())
	p.set = fleet.New(viewOf, config.Client.OnEvent)
	p.running.Go(p.watch) // ended by Close, which waits for it
	return p, nil
}

// Connect waits until a member is connected or ctx ends. Calling Connect is optional.
func (p *Pool) Connect(ctx context.Context) error {
	err := p.set.Await(ctx, func(v *view) bool { return v.ready }, p.probe.Wake)
	if err != nil {
		return p.without("connect", err)
	}
	return nil
}

// mostTries is the maximum number of members that are tried for a call that could not be sent.
const mostTries = 3

// Call implements [rpc.Caller].
func (p *Pool) Call(ctx context.Context, in rpc.Invocation) error {
	key, hashed := "", false
	if p.config.Balance == ConsistentHash {
		key, hashed = ctx.Value(hashKey{}).(string)
	}
	route := routeOf(ctx)
	s := skip{route: route}
	var failure error
	for {
		m, err := p.choose(ctx, in.Function.Name, key, hashed, &s)
		if m == nil {
			if failure != nil {
				return failure
			}
			return err
		}
		if route != nil {
			route.add(m.addr)
		}
		m.outstanding.Add(1)
		err = m.backend.Call(ctx, in)
		m.outstanding.Add(-1)
		if err == nil {
			if !in.Function.Oneway && m.failures.Load() != 0 {
				m.failures.Store(0)
			}
			return nil
		}
		p.judge(m, err)
		if len(s.tried) == mostTries-1 || !p.moves(ctx, err) {
			return err
		}
		failure, s.tried = err, append(s.tried, m)
		p.moved.Add(1)
	}
}

// moves reports whether a failed call goes to another member: it was not sent to this one, and another one may accept
// it.
func (p *Pool) moves(ctx context.Context, err error) bool {
	switch slipstream.OutcomeOf(err) {
	case slipstream.NotSent:
		return !isInvalid(err) && ctx.Err() == nil && !attempt.TimeIsUp(err)
	case slipstream.Closed: // the member was removed after it had been chosen
		return p.ctx.Err() == nil
	}
	return false
}

// choose returns the member for a call, preferably one that has not received it yet. It waits while the pool has no
// members for calls. It returns nil without an error if the call has been tried on all members.
func (p *Pool) choose(ctx context.Context, op, key string, hashed bool, s *skip) (*member, error) {
	for {
		v := p.set.View()
		m := v.Value.pick(key, hashed, s)
		switch {
		case m != nil:
			return m, nil
		case v.Closed:
			return nil, p.without(op, fleet.ErrClosed)
		case len(v.Value.members) == 0:
			if err := p.await(ctx); err != nil {
				return nil, p.without(op, err)
			}
		case s.route == nil:
			return nil, nil
		default:
			s.route = nil // all members have received the call
		}
	}
}

// await waits until the pool has members for calls.
func (p *Pool) await(ctx context.Context) error {
	patience := p.config.Client.DialTimeout
	if patience == 0 {
		patience = defaultPatience
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.set.Await(bounded, func(v *view) bool { return len(v.members) > 0 }, p.probe.Wake)
}

// defaultPatience is how long a call waits for members if Client.DialTimeout is not set.
const defaultPatience = 5 * time.Second

// without returns the error of a call that was not sent to any member.
func (p *Pool) without(op string, err error) *slipstream.Error {
	if errors.Is(err, fleet.ErrClosed) {
		return driver.Errors{}.With(op, slipstream.Closed, errors.New("the pool is closed"))
	}
	p.set.Change(func(*change) {
		if p.resolveErr != nil {
			err = fmt.Errorf("%w: there are no members: %w", err, p.resolveErr)
		} else {
			err = fmt.Errorf("%w: no member is connected", err)
		}
	})
	return driver.Errors{}.NotSent(op, err)
}

// Close closes the pool. Calls that have not been sent fail with the outcome Closed, and calls in flight fail with
// MaybeExecuted. Close waits until all goroutines of the pool have ended, so it must not be called from OnEvent.
// Further calls do nothing.
func (p *Pool) Close() error {
	p.cut()
	return p.end(func(m *member) error { return m.backend.Close() })
}

// Shutdown rejects new calls, waits until those in progress have ended, and closes the pool. If ctx ends first,
// Shutdown closes the pool immediately and returns the error of ctx.
func (p *Pool) Shutdown(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.cut)
	defer stop()
	return p.end(func(m *member) error { return m.backend.Shutdown(ctx) })
}

// end closes the pool, and calls each for every member.
func (p *Pool) end(each func(m *member) error) error {
	members, first := p.set.Close()
	if !first {
		<-p.closed
		return nil
	}
	p.cancel()
	p.set.Change(func(*change) {
		for _, m := range members {
			p.forget(m)
		}
	})
	errs := make([]error, len(members))
	var ending sync.WaitGroup
	for i, m := range members {
		ending.Go(func() { errs[i] = each(m) }) // ends when the member is closed; waited for below
	}
	ending.Wait()
	p.running.Wait()
	p.cut()
	close(p.closed)
	return errors.Join(errs...)
}

// String returns a description of the pool for logs.
func (p *Pool) String() string {
	members := p.set.Members()
	addrs := make([]string, len(members))
	for i, m := range members {
		addrs[i] = m.addr
	}
	slices.Sort(addrs)
	return fmt.Sprintf("thrift pool of %v", addrs)
}
