package governance

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// fake is a member's client without a server.
type fake struct {
	config rpc.ClientConfig

	mu    sync.Mutex
	run   func(ctx context.Context, in rpc.Invocation) error // guarded by mu
	calls int                                                // guarded by mu
	ended string                                             // guarded by mu: "close" or "shutdown"
	down  bool                                               // guarded by mu: not connected
}

// Call implements rpc.Caller.
func (f *fake) Call(ctx context.Context, in rpc.Invocation) error {
	f.mu.Lock()
	f.calls++
	run, down := f.run, f.down
	f.mu.Unlock()
	switch {
	case down:
		return &slipstream.Error{Op: in.Function.Name, Addr: f.config.Addr, Outcome: slipstream.NotSent, Err: errTest}
	case run == nil:
		return answers(in, f.config.Addr)
	}
	return run(ctx, in)
}

func (f *fake) end(how string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended == "" {
		f.ended = how
	}
	return nil
}

func (f *fake) Close() error                   { return f.end("close") }
func (f *fake) Shutdown(context.Context) error { return f.end("shutdown") }
func (f *fake) Stats() rpc.ClientStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	var s rpc.ClientStats
	s.Calls = uint64(f.calls)
	return s
}

// how returns how the member was closed: "close", "shutdown", or "" if it was not.
func (f *fake) how() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// does sets the function that calls of the member run. If nil, calls return the address.
func (f *fake) does(run func(ctx context.Context, in rpc.Invocation) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run = run
}

// fail makes the calls of the member fail.
func (f *fake) fail(o slipstream.Outcome) {
	f.does(func(_ context.Context, in rpc.Invocation) error {
		return &slipstream.Error{Op: in.Function.Name, Addr: f.config.Addr, Outcome: o, Err: errTest}
	})
}

// connect makes the member connected; disconnect makes it unreachable.
func (f *fake) connect() {
	f.mu.Lock()
	f.down = false
	f.mu.Unlock()
	f.config.OnEvent(slipstream.Event{Kind: slipstream.Connected, Addr: f.config.Addr})
}

func (f *fake) disconnect() {
	f.mu.Lock()
	f.down = true
	f.mu.Unlock()
	f.config.OnEvent(slipstream.Event{Kind: slipstream.Disconnected, Addr: f.config.Addr})
	f.config.OnEvent(slipstream.Event{Kind: slipstream.DialFailed, Addr: f.config.Addr, Err: errTest})
}

// made returns the number of calls and resets it to 0.
func (f *fake) made() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.calls
	f.calls = 0
	return n
}

// answer is a resolver for tests that returns what they set.
type answer struct {
	mu      sync.Mutex
	members []Member // guarded by mu
	err     error    // guarded by mu
	panics  bool     // guarded by mu
}

func (a *answer) set(members []Member, err error, panics bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.members, a.err, a.panics = members, err, panics
}

// Resolve implements Resolver.
func (a *answer) Resolve(context.Context) ([]Member, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.panics {
		panic("of the test")
	}
	return a.members, a.err
}

// park is a pool for tests in a synctest bubble.
type park struct {
	*Pool
	t *testing.T

	mu     sync.Mutex
	fakes  map[string]*fake   // guarded by mu: the latest one for each address
	events []slipstream.Event // guarded by mu
}

// newPark returns a pool whose members are connected as soon as they are found.
func newPark(t *testing.T, config PoolConfig) *park { return newParkOf(t, config, true) }

func newParkOf(t *testing.T, config PoolConfig, connected bool) *park {
	t.Helper()
	p := &park{t: t, fakes: make(map[string]*fake)}
	config.Client.OnEvent = func(e slipstream.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events = append(p.events, e)
	}
	var err error
	p.Pool, err = newPool(config, func(c rpc.ClientConfig) (backend, error) {
		f := &fake{config: c}
		p.mu.Lock()
		p.fakes[c.Addr] = f
		p.mu.Unlock()
		if connected {
			f.connect()
		}
		return f, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func (p *park) fake(addr string) *fake {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.fakes[addr]
	if f == nil {
		p.t.Fatalf("%s was not found", addr)
	}
	return f
}

// seen returns the events of the given kind.
func (p *park) seen(kind slipstream.EventKind) []slipstream.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.events), func(e slipstream.Event) bool { return e.Kind != kind })
}

// echo calls an idempotent function of the pool, and returns the member that answered.
func (p *park) echo(ctx context.Context) (string, error) { return echo(ctx, p.Pool, &idempotentEcho) }

// shares makes calls sequentially and returns the number of calls that each member answered.
func (p *park) shares(calls int) map[string]int {
	p.t.Helper()
	all := make(map[string]int)
	for range calls {
		addr, err := p.echo(p.t.Context())
		if err != nil {
			p.t.Fatal(err)
		}
		all[addr]++
	}
	return all
}

// addrs returns members with the default weight.
func addrs(all ...string) (members []Member) {
	for _, addr := range all {
		members = append(members, Member{Addr: addr})
	}
	return members
}

// refreshed waits until the resolver has been called again.
func (p *park) refreshed() { time.Sleep(p.config.Refresh + leastRefresh) }
