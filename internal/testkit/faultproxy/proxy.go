package faultproxy

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Options configure a [Proxy]. The zero value forwards everything unchanged.
type Options struct {
	// Seed determines the jitter and the random numbers of a Planner; use testkit.Seed.
	Seed uint64
	// Plan chooses what happens to each connection; if nil, nothing does.
	Plan Planner
}

// Proxy forwards TCP connections to one target. All methods may be called from
// any goroutine.
type Proxy struct {
	// Immutable after Listen.
	target   string
	seed     uint64
	listener net.Listener
	wg       sync.WaitGroup // acceptor, relays and their links

	// Guarded by mu.
	mu      sync.Mutex
	plan    Planner
	refuse  bool
	stalled chan struct{} // not nil while stalled; closed by Resume
	upFlows bool          // while stalled, data from clients is still forwarded
	relays  map[*relay]struct{}
	closed  bool

	// Atomics: written by the acceptor and the links, read by Stats.
	accepted, refused, up, down atomic.Int64
	faults                      [len(actionNames)]atomic.Int64
}

// Listen starts a proxy to target ("host:port") on a free port of loopback.
// The caller closes it.
func Listen(target string, o Options) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fault proxy to %s: %w", target, err)
	}
	p := &Proxy{target: target, seed: o.Seed, listener: l, plan: o.Plan, relays: make(map[*relay]struct{})}
	// Stopped by Close, which closes the listener and waits for it.
	p.wg.Go(p.accept)
	return p, nil
}

// Start is Listen for tests: if it fails, the test fails, and the proxy is closed when the test
// ends.
func Start(t testing.TB, target string, o Options) *Proxy {
	t.Helper()
	p, err := Listen(target, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Addr is the address that clients connect to: host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// SetPlan changes the planner for connections accepted from now on.
func (p *Proxy) SetPlan(plan Planner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = plan
}

// Refuse resets (true) or admits (false) connections accepted from now on. Existing ones are not
// touched.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// Stall stops forwarding on all present and future connections until Resume.
// A piece that was being written when Stall was called still arrives.
func (p *Proxy) Stall() { p.stallWith(false) }

// StallReplies is like Stall for the server's data only. The clients' data is
// forwarded.
func (p *Proxy) StallReplies() { p.stallWith(true) }

func (p *Proxy) stallWith(upFlows bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled == nil {
		p.stalled = make(chan struct{})
	}
	p.upFlows = upFlows
}

// Resume ends Stall and StallReplies. Data that was held back is forwarded.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
}

// Cut gracefully closes all present connections (FIN).
func (p *Proxy) Cut() { p.endAll((*relay).close, Cut) }

// Reset closes all present connections with RST.
func (p *Proxy) Reset() { p.endAll((*relay).reset, Reset) }

func (p *Proxy) endAll(end func(*relay) bool, a Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r := range p.relays {
		if end(r) {
			p.faults[a].Add(1)
		}
	}
}

// Close stops listening, cuts every connection and waits until all goroutines of the proxy have
// ended. It may be called again.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	for r := range p.relays {
		r.close()
	}
	p.mu.Unlock()
	p.listener.Close() // an error means that it is closed already
	p.wg.Wait()
	return nil
}

// Stats are totals since Listen.
type Stats struct {
	Accepted, Refused int64
	Open              int
	// UpBytes went to the server, DownBytes to the client.
	UpBytes, DownBytes int64
	// Faults counts the actions that happened.
	Faults map[Action]int64
}

// Stats returns the counters.
func (p *Proxy) Stats() Stats {
	s := Stats{
		Accepted: p.accepted.Load(), Refused: p.refused.Load(),
		UpBytes: p.up.Load(), DownBytes: p.down.Load(),
		Faults: make(map[Action]int64),
	}
	for a := range p.faults {
		if n := p.faults[a].Load(); n > 0 {
			s.Faults[Action(a)] = n
		}
	}
	p.mu.Lock()
	s.Open = len(p.relays)
	p.mu.Unlock()
	return s
}

func (p *Proxy) accept() {
	for n := 0; ; n++ {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.accepted.Add(1)
		p.mu.Lock()
		planner, refuse := p.plan, p.refuse
		p.mu.Unlock()
		var plan Plan
		if planner != nil {
			plan = planner(n, rand.New(rand.NewPCG(p.seed, uint64(n)<<2)))
		}
		if refuse || plan.Refuse {
			p.refused.Add(1)
			reset(client)
			continue
		}
		// Ends when both directions have ended; Close ends them and waits.
		p.wg.Go(func() { p.serve(client, n, plan) })
	}
}

// serve dials the target and relays until both directions have ended.
func (p *Proxy) serve(client net.Conn, n int, plan Plan) {
	server, err := net.DialTimeout("tcp", p.target, 10*time.Second)
	if err != nil {
		// Without the proxy, the client would have seen a failed connect; a reset
		// is the closest substitute.
		p.refused.Add(1)
		reset(client)
		return
	}
	r := &relay{p: p, client: client.(*net.TCPConn), server: server.(*net.TCPConn), done: make(chan struct{})}
	if !p.register(r) {
		return
	}
	var links sync.WaitGroup
	for i, l := range []link{
		{relay: r, Link: plan.Up, src: r.client, dst: r.server, total: &p.up, toServer: true},
		{relay: r, Link: plan.Down, src: r.server, dst: r.client, total: &p.down},
	} {
		l.rand = rand.New(rand.NewPCG(p.seed, uint64(n)<<2|uint64(i+1)))
		// Ends at the end of its direction or of the relay; waited for below.
		links.Go(l.run)
	}
	links.Wait()
	r.close()
	p.mu.Lock()
	delete(p.relays, r)
	p.mu.Unlock()
}

func (p *Proxy) register(r *relay) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		r.close()
		return false
	}
	p.relays[r] = struct{}{}
	return true
}

// stall returns a channel that is closed when a direction flows again, or nil if it flows.
func (p *Proxy) stall(toServer bool) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if toServer && p.upFlows {
		return nil
	}
	return p.stalled
}
