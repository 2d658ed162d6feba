package cluster

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/fleet"
)

// An Asker sends commands to a node.
type Asker interface {
	// Ask sends the commands to the node at addr in one round trip and returns the frames of the
	// replies, which Ask must not reuse. It returns soon after ctx has ended.
	Ask(ctx context.Context, addr string, commands []Command) (frames [][]byte, err error)
}

// Config configures a [Refresher]. Durations that are zero have defaults.
type Config struct {
	// Addresses maps announced addresses. Its seeds are asked while there is no topology, and after the
	// nodes of a topology.
	Addresses *Addresses
	// Asker asks nodes. It is used by several goroutines.
	Asker Asker
	// Begin, if set, is called when a refresh starts. Apply is called with the topology of a
	// refresh and the result of Begin. Both are called by one goroutine; see [Map.Begin] and
	// [Map.Apply].
	Begin func() Round
	Apply func(t *Topology, asked Round)
	// Interval is the time between refreshes that were not requested, reduced by up to a tenth at
	// random. If zero, it defaults to 60 s. If negative, there are no such refreshes.
	Interval time.Duration
	// Least is the minimum time between the starts of two refreshes if the first one succeeded. If
	// zero, it defaults to 1 s.
	Least time.Duration
	// Urgent, if set, reports whether slots of the current topology cannot be reached. Then
	// requested refreshes start four times as often, because calls wait for the failover.
	Urgent func(inForce *Topology) bool
	// Patience is how long to wait for a node before another one is asked as well. If zero, it
	// defaults to 300 ms.
	Patience time.Duration
	// Timeout bounds the answer of a node. If zero, it defaults to 5 s.
	Timeout time.Duration
}

// Bounds of a refresh.
const (
	mostAsked   = 16 // nodes that are queried, in addition to as many seeds
	mostAtOnce  = 4  // nodes that are queried at the same time
	urgency     = 4  // how many times as often to refresh while slots cannot be reached
	mostPause   = 8  // times Least: the longest pause after failures
	mostUseless = 4  // times Least: the longest pause between refreshes that change nothing
)

// A Refresher keeps the topology of a cluster up to date. All methods are safe for concurrent use.
//
// It queries the topology once per [Config.Interval], and soon after [Refresher.Request]. The
// client calls Request when something indicates that the topology has changed: a MOVED, a refused
// connection, READONLY, CLUSTERDOWN, or the end of subscriptions to shard channels. Any number of
// requests leads to one refresh, and refreshes start at most once per [Config.Least]. While
// requested refreshes change nothing, the pause doubles up to 4 times Least; after failures it
// grows from a quarter of Least to 8 times Least. A request after a quiet time takes effect after a
// random delay of up to 50 ms plus 1 ms for each node, at most 1 s, so that the clients of a
// cluster do not all query it at the same time.
//
// A refresh queries one node, selected at random, preferably a healthy one. It queries the next one
// if the answer does not suffice (see the package comment), is an error, or takes longer than
// [Config.Patience].
type Refresher struct {
	// Immutable.
	config Config
	probe  *fleet.Probe
	cancel context.CancelFunc
	first  <-chan struct{} // closed when the first refresh has ended
	done   chan struct{}   // closed when run has ended

	asks sync.WaitGroup // goroutines that query nodes

	// Owned by run.
	olds     int // consecutive refreshes with only older views
	failed   int // consecutive refreshes that failed
	useless  int // refreshes since the last quiet time that changed nothing
	noShards int // number of further refreshes without CLUSTER SHARDS

	// Atomics.
	topology atomic.Pointer[Topology] // written by run
	awaited  atomic.Bool              // a caller waits for the next refresh; written by Await
	last     atomic.Pointer[error]    // of the latest refresh; written by run
	begun    atomic.Uint64            // number of refreshes; written by run
	asked    atomic.Uint64            // number of queried nodes; written by run
}

// NewRefresher returns a refresher that starts the first refresh immediately.
func NewRefresher(config Config) *Refresher {
	config.Interval = cmp.Or(config.Interval, time.Minute)
	config.Least = cmp.Or(max(config.Least, 0), time.Second)
	config.Patience = cmp.Or(max(config.Patience, 0), 300*time.Millisecond)
	config.Timeout = cmp.Or(max(config.Timeout, 0), 5*time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	r := &Refresher{config: config, probe: fleet.NewProbe(), cancel: cancel, done: make(chan struct{})}
	r.first = r.probe.Next()
	go r.run(ctx) // stopped by Close, which waits for it
	return r
}

// Close ends the refresher and all calls that wait for it.
func (r *Refresher) Close() {
	r.cancel()
	<-r.done
	r.asks.Wait()
}

// Topology returns the current topology, or nil if there is none yet.
func (r *Refresher) Topology() *Topology { return r.topology.Load() }

// Refreshes returns how many refreshes have started, and how many nodes they have queried.
func (r *Refresher) Refreshes() (begun, asked uint64) { return r.begun.Load(), r.asked.Load() }

// Request makes a refresh start soon.
func (r *Refresher) Request() { r.probe.Wake() }

// Ready waits for the end of the first refresh. It returns nil if there is a topology, and otherwise the
// error of the latest refresh or of ctx.
func (r *Refresher) Ready(ctx context.Context) error {
	if err := r.wait(ctx, r.first); err != nil {
		return err
	}
	if r.Topology() != nil {
		return nil
	}
	return *r.last.Load()
}

// Await waits for the end of a refresh that starts after the call, and returns its error or that of
// ctx. If there is an error, the topology is unchanged.
func (r *Refresher) Await(ctx context.Context) error {
	next := r.probe.Next()
	r.awaited.Store(true)
	r.Request()
	if err := r.wait(ctx, next); err != nil {
		return err
	}
	return *r.last.Load()
}

// Verify reports whether a node of the cluster has the address. The client calls it before it
// connects to the target of a redirect. If no node is listed at the address, Verify waits for a
// refresh that starts after the call. The error is that of the refresh or of ctx.
func (r *Refresher) Verify(ctx context.Context, addr string) (node Node, ok bool, err error) {
	if node, ok = r.listed(addr); ok {
		return node, true, nil
	}
	if err = r.Await(ctx); err != nil {
		return Node{}, false, err
	}
	node, ok = r.listed(addr)
	return node, ok, nil
}

func (r *Refresher) listed(addr string) (Node, bool) {
	t := r.Topology()
	if t == nil {
		return Node{}, false
	}
	i := t.Find(addr)
	if i < 0 || t.Nodes[i].Flags&Handshake != 0 {
		return Node{}, false
	}
	return t.Nodes[i], true
}

func (r *Refresher) wait(ctx context.Context, ended <-chan struct{}) error {
	select {
	case <-ended:
		return nil
	default:
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-r.done:
		return ErrClosed
	}
}

// run refreshes until ctx ends.
func (r *Refresher) run(ctx context.Context) {
	defer close(r.done)
	for {
		began := time.Now()
		r.begun.Add(1)
		end := r.probe.Begin()
		err := r.refresh(ctx)
		r.last.Store(&err)
		end()
		r.rest(ctx, began)
		if ctx.Err() != nil {
			return
		}
	}
}

// rest waits until the next refresh is due.
func (r *Refresher) rest(ctx context.Context, began time.Time) {
	least, interval := r.config.Least, r.config.Interval
	switch {
	case r.failed > 0:
		least = min(least/4<<min(r.failed-1, 16), mostPause*least)
		least -= rand.N(least/4 + 1)
		interval = least
	case interval < 0:
		interval = 1 << 62
	default:
		interval -= rand.N(interval/10 + 1)
	}
	inForce := r.Topology()
	switch {
	case r.config.Urgent != nil && inForce != nil && r.config.Urgent(inForce):
		least = min(least, r.config.Least/urgency)
	case r.awaited.Swap(false): // a caller waits, so the pause does not grow
	case r.failed == 0 && r.useless > 1:
		least = min(least<<min(r.useless-1, 16), mostUseless*least)
	}
	r.probe.Rest(ctx, began, least, interval)
	if quiet := time.Since(began); quiet > least+least/2 {
		r.useless = 0
		if quiet < interval {
			pause(ctx, rand.N(r.spread()))
		}
	}
}

// spread returns the longest delay of a refresh after a quiet time.
func (r *Refresher) spread() time.Duration {
	nodes := 0
	if t := r.Topology(); t != nil {
		nodes = len(t.Nodes)
	}
	return min(50*time.Millisecond+time.Duration(nodes)*time.Millisecond, time.Second)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// refresh queries nodes until one view wins, and makes it the current topology.
func (r *Refresher) refresh(ctx context.Context) error {
	var asked Round
	if r.config.Begin != nil {
		asked = r.config.Begin()
	}
	b := ballot{inForce: r.Topology(), olds: r.olds}
	r.noShards = max(r.noShards-1, 0)
	err := r.collect(ctx, &b)
	var t *Topology
	switch {
	case ctx.Err() != nil:
		err = ctx.Err() // nodes may have answered
	case len(b.answers) > 0:
		t, err = b.winner()
		r.olds++
		if err != ErrOldView {
			r.olds = 0
		}
	}
	if err != nil {
		r.failed++
		return err
	}
	r.failed, r.useless = 0, r.useless+1
	if b.inForce == nil || !t.same(b.inForce) {
		r.useless = 0
	}
	r.topology.Store(t)
	if r.config.Apply != nil {
		r.config.Apply(t, asked)
	}
	return nil
}
