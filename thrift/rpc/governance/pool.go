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

// A Pool calls the functions of a service that has several members, which a resolver finds and may change. Each
// member has an [rpc.Client]. Calls go to members that are connected and not ejected; while there are none, to
// others. A call that its member did not get goes to another one; all other failures are the caller's, or those of a
// [Retry] around the pool. All methods are safe for concurrent use.
type Pool struct {
	// Immutable.
	config  PoolConfig
	open    func(config rpc.ClientConfig) (backend, error)
	ctx     context.Context // ended by Close and Shutdown
	cancel  context.CancelFunc
	drains  context.Context // of members that were removed; ended by Close, or when Shutdown has no time left
	cut     context.CancelFunc
	probe   *fleet.Probe   // of the resolver
	running sync.WaitGroup // the goroutine of the resolver, and those that close members that were removed
	closed  chan struct{}  // closed at the end of Close

	// set has the members; what of them is guarded by its lock is changed by set.Change.
	set *fleet.Set[*member, *view, slipstream.Event]

	// Guarded by the lock of set.
	ejected    int // members
	ejections  uint64
	unresolved uint64           // calls of the resolver that failed
	resolveErr error            // of the last call, if it failed
	left       slipstream.Stats // of members that were removed and closed

	// Atomics, written by callers.
	moved atomic.Uint64
}

// change is the set of members while it is locked.
type change = fleet.Change[*member, *view, slipstream.Event]

// NewPool returns a pool, which finds its members and connects to them in the background. It must be closed.
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

// Connect waits until a member is connected. Only ctx bounds it. Calls do not need it.
func (p *Pool) Connect(ctx context.Context) error {
	err := p.set.Await(ctx, func(v *view) bool { return v.ready }, p.probe.Wake)
	if err != nil {
		return p.without("connect", err)
	}
	return nil
}

// mostTries bounds the members that a call is sent to because the ones before did not get it.
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

// moves reports whether a call that failed goes to another member: this one has not got it, and another one may.
func (p *Pool) moves(ctx context.Context, err error) bool {
	switch slipstream.OutcomeOf(err) {
	case slipstream.NotSent:
		return !isInvalid(err) && ctx.Err() == nil && !attempt.TimeIsUp(err)
	case slipstream.Closed: // the member was removed after it was chosen
		return p.ctx.Err() == nil
	}
	return false
}

// choose returns the member for a call: one that has not had it, if there is one. It waits while the pool has none.
// It returns nil without an error if the call has been tried on all members.
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
			s.route = nil // all have had it
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

// defaultPatience is how long a call waits for members, unless Client.DialTimeout says otherwise.
const defaultPatience = 5 * time.Second

// without returns the error of a call that no member got.
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

// Close closes the pool: calls that were not sent fail with the outcome Closed, those in flight with MaybeExecuted.
// It waits until all goroutines of the pool have ended, so it must not be called by OnEvent. It may be called again.
func (p *Pool) Close() error {
	p.cut()
	return p.end(func(m *member) error { return m.backend.Close() })
}

// Shutdown rejects new calls, waits until those in progress have ended, and closes the pool. If ctx ends first, they
// are cut off and the error of ctx is returned.
func (p *Pool) Shutdown(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.cut)
	defer stop()
	return p.end(func(m *member) error { return m.backend.Shutdown(ctx) })
}

// end ends the pool, and each member by a function.
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
		ending.Go(func() { errs[i] = each(m) }) // ends with the member, and is waited for below
	}
	ending.Wait()
	p.running.Wait()
	p.cut()
	close(p.closed)
	return errors.Join(errs...)
}

// String describes the pool, for logs.
func (p *Pool) String() string {
	members := p.set.Members()
	addrs := make([]string, len(members))
	for i, m := range members {
		addrs[i] = m.addr
	}
	slices.Sort(addrs)
	return fmt.Sprintf("thrift pool of %v", addrs)
}
