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
	// Ask sends the commands to the node at addr in one round trip, and returns the reply to each: a
	// frame of the protocol of Redis, which the asker does not use any more. It returns soon after ctx
	// has ended.
	Ask(ctx context.Context, addr string, commands []Command) (frames [][]byte, err error)
}

// Config is what a [Refresher] needs. Zero durations are the defaults.
type Config struct {
	// Addresses says how to read addresses. Its seeds are asked as long as there is no topology, and
	// after its nodes.
	Addresses *Addresses
	// Asker asks nodes. It is used by several goroutines.
	Asker Asker
	// Begin, if set, is called when a refresh begins, and Apply when it has brought a topology, with
	// what Begin returned. Both are called by one goroutine: see [Map.Begin] and [Map.Apply].
	Begin func() Round
	Apply func(t *Topology, asked Round)
	// Interval is the time between two refreshes that nobody asked for, of which up to a tenth is left
	// out at random. Default 60 s. If negative, there are none.
	Interval time.Duration
	// Least is the time between the beginnings of two refreshes of which the first succeeded. Default
	// 1 s.
	Least time.Duration
	// Urgent, if set, reports whether slots of the topology in force cannot be reached, so that
	// refreshes that are requested begin four times as often: calls wait for the failover.
	Urgent func(inForce *Topology) bool
	// Patience is how long one node is waited for before another one is asked as well. Default 300 ms.
	Patience time.Duration
	// Timeout is how long a node has to answer. Default 5 s.
	Timeout time.Duration
}

// Bounds of a refresh.
const (
	mostAsked   = 16 // nodes asked, and as many seeds
	mostAtOnce  = 4  // nodes that are asked at the same time
	urgency     = 4  // times as many refreshes while slots cannot be reached
	mostPause   = 8  // times Least: the longest pause after failures
	mostUseless = 4  // times Least: the longest pause between refreshes that change nothing
)

// A Refresher keeps the topology of a cluster up to date. All methods are safe for concurrent use.
//
// It asks for the topology once per [Config.Interval], and soon after [Refresher.Request], which the
// client calls when it has learned that the topology is not what it was: after a MOVED, a refused
// connection, READONLY, CLUSTERDOWN, or when the server has ended subscriptions to shard channels.
// Any number of requests is one refresh, and refreshes begin at most once per [Config.Least]. While
// refreshes that were requested change nothing, the pause doubles up to 4 times that; after those
// that failed it grows from a quarter of it to 8 times. A request that comes after a quiet time is
// answered after a random delay of up to 50 ms and 1 ms more for each node, at most 1 s, so that
// the clients of a cluster do not ask at the same moment.
//
// A refresh asks one node that was selected at random, preferably one that is well, and the next
// when the answer does not suffice (see the package comment), when it is an error, or when it takes
// longer than [Config.Patience].
type Refresher struct {
	// Immutable.
	config Config
	probe  *fleet.Probe
	cancel context.CancelFunc
	first  <-chan struct{} // closed when the first refresh has ended
	done   chan struct{}   // closed when run has ended

	asks sync.WaitGroup // goroutines that ask

	// Owned by run.
	olds     int // refreshes in a row that brought only older views
	failed   int // refreshes in a row that failed
	useless  int // refreshes that changed nothing since there was a quiet time
	noShards int // refreshes in which CLUSTER SHARDS is not asked for

	// Atomics.
	topology atomic.Pointer[Topology] // written by run
	awaited  atomic.Bool              // somebody waits for the next refresh; written by Await
	last     atomic.Pointer[error]    // of the latest refresh; written by run
	begun    atomic.Uint64            // refreshes; written by run
	asked    atomic.Uint64            // nodes; written by run
}

// NewRefresher returns a refresher that begins the first refresh at once.
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

// Close ends the refresher and everything that waits for it.
func (r *Refresher) Close() {
	r.cancel()
	<-r.done
	r.asks.Wait()
}

// Topology returns the topology in force, or nil before there is one.
func (r *Refresher) Topology() *Topology { return r.topology.Load() }

// Refreshes returns how many refreshes have begun, and how many nodes they have asked.
func (r *Refresher) Refreshes() (begun, asked uint64) { return r.begun.Load(), r.asked.Load() }

// Request makes a refresh begin soon.
func (r *Refresher) Request() { r.probe.Wake() }

// Ready waits for the first refresh if it has not ended. It returns nil if there is a topology, else
// the error of the latest refresh, or that of ctx.
func (r *Refresher) Ready(ctx context.Context) error {
	if err := r.wait(ctx, r.first); err != nil {
		return err
	}
	if r.Topology() != nil {
		return nil
	}
	return *r.last.Load()
}

// Await waits for the end of a refresh that begins after the call, and returns its error, or that of
// ctx. The topology in force stays if there is an error.
func (r *Refresher) Await(ctx context.Context) error {
	next := r.probe.Next()
	r.awaited.Store(true)
	r.Request()
	if err := r.wait(ctx, next); err != nil {
		return err
	}
	return *r.last.Load()
}

// Verify reports whether a node of the cluster has the address, which a server has redirected a
// command to; the client makes no connection before. If the node is not listed, Verify waits for a
// refresh that begins after the call. The error is that of the refresh, or that of ctx.
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

// rest waits for the time of the next refresh.
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
	case r.awaited.Swap(false): // somebody waits, so the pause does not grow
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

// spread is the longest delay of a refresh after a quiet time.
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

// refresh asks nodes until one view wins, and puts it in force.
func (r *Refresher) refresh(ctx context.Context) error {
	var asked Round
	if r.config.Begin != nil {
		asked = r.config.Begin()
	}
	b := ballot{inForce: r.Topology(), olds: r.olds}
	r.noShards = max(r.noShards-1, 0)
	err := r.collect(ctx, &b)
	var t *Topology
	if len(b.answers) > 0 && ctx.Err() == nil {
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
