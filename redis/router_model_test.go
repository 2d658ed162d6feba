package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis/internal/cluster"
	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// The model test lets a router decide, in virtual time, what happens to calls to a cluster that
// migrates slots and fails over, and some of whose nodes have outdated views or lie. The model
// makes the attempts of calls instead of an engine, whose calls are pooled across bubbles.

const (
	modelShards = 3
	modelNodes  = 2 * modelShards // the indexes of a node and its replica differ by modelShards
)

// A modelView is one node's view of the cluster. It is immutable.
type modelView struct {
	shard  [slot.Count]uint8 // by slot
	master [modelShards]int
	epoch  int
}

// owner returns the node that owns a slot.
func (v *modelView) owner(s int) int { return v.master[v.shard[s]] }

// A modelMove is a slot that is moving from one node to another.
type modelMove struct {
	from, to int
	moved    bool // the key is at its target
}

// A modelSight is a view that a node has from a point in time on.
type modelSight struct {
	since time.Time
	view  *modelView
}

// A modelCluster is the actual state of a cluster.
type modelCluster struct {
	t     *testing.T
	slots []int // slots of the calls

	mu sync.Mutex
	// Guarded by mu.
	rand     *rand.Rand
	truth    *modelView
	sights   [modelNodes][]modelSight
	down     [modelNodes]bool
	moving   map[int]*modelMove // by slot
	executed map[int]int        // by call
	attempts int
	honest   bool // no node lies
}

func newModelCluster(t *testing.T, seed uint64) *modelCluster {
	w := &modelCluster{t: t, rand: rand.New(rand.NewPCG(seed, 1)), moving: make(map[int]*modelMove), executed: make(map[int]int)}
	v := &modelView{epoch: 1}
	for s := range v.shard {
		v.shard[s] = uint8(s * modelShards / slot.Count)
	}
	for i := range v.master {
		v.master[i] = i
	}
	w.truth = v
	for i := range w.sights {
		w.sights[i] = []modelSight{{view: v}}
	}
	for i := range 6 {
		w.slots = append(w.slots, i*slot.Count/6)
	}
	return w
}

func modelAddr(node int) string { return fmt.Sprintf("10.0.0.%d:6379", node+1) }

// seen returns the view of a node. The caller holds mu.
func (w *modelCluster) seen(node int) *modelView {
	sights := w.sights[node]
	for i := len(sights) - 1; i > 0; i-- {
		if !sights[i].since.After(time.Now()) {
			return sights[i].view
		}
	}
	return sights[0].view
}

// change changes the actual state. Some nodes learn of the change immediately, others later. The
// caller holds mu.
func (w *modelCluster) change(f func(v *modelView), knowing ...int) {
	v := *w.truth
	v.epoch++
	f(&v)
	w.truth = &v
	for i := range w.sights {
		since := time.Now()
		if !slices.Contains(knowing, i) {
			since = since.Add(time.Duration(w.rand.IntN(500)) * time.Millisecond)
		}
		w.sights[i] = append(w.sights[i], modelSight{since, &v})
	}
}

// ms returns a random duration in milliseconds. The caller holds mu.
func (w *modelCluster) ms(most int) time.Duration {
	return time.Duration(w.rand.IntN(most)) * time.Millisecond
}

// locked calls f with mu held.
func (w *modelCluster) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// migrate moves a slot to another shard.
func (w *modelCluster) migrate() {
	m, at, to := new(modelMove), 0, 0
	w.locked(func() {
		at, to = w.slots[w.rand.IntN(len(w.slots))], w.rand.IntN(modelShards)
		m.from, m.to = w.truth.owner(at), w.truth.master[to]
		if m.from != m.to {
			w.moving[at] = m
		}
	})
	if m.from == m.to {
		return
	}
	for _, step := range []func(){
		func() { m.moved = true },
		func() {
			delete(w.moving, at)
			w.change(func(v *modelView) { v.shard[at] = uint8(to) }, m.from, m.to)
		},
	} {
		var pause time.Duration
		w.locked(func() { pause = w.ms(300) })
		time.Sleep(pause)
		w.locked(step)
	}
}

// failover lets a master die and its replica take over. Then the old master returns, and learns
// late that it is a replica.
func (w *modelCluster) failover() {
	shard, old := 0, 0
	var pause time.Duration
	w.locked(func() {
		shard, pause = w.rand.IntN(modelShards), time.Second+w.ms(1500)
		old = w.truth.master[shard]
		w.down[old] = true
	})
	time.Sleep(pause)
	next := (old + modelShards) % modelNodes
	w.locked(func() { w.change(func(v *modelView) { v.master[shard] = next }, next) })
	time.Sleep(300 * time.Millisecond)
	w.locked(func() { w.down[old] = false })
	time.Sleep(time.Second)
}

// strangers are addresses that no node lists.
var strangers = []string{"10.9.9.9:6379", "192.0.2.1:80"}

// attempt executes a call at the node of r, or returns why it was not executed.
func (w *modelCluster) attempt(r *request, call int) *slipstream.Error {
	at := -1
	for i := range modelNodes {
		if modelAddr(i) == r.node.fail.Addr {
			at = i
		}
	}
	if at < 0 {
		w.t.Errorf("a call went to %s, which no node lists", r.node.fail.Addr)
		return &slipstream.Error{Outcome: slipstream.Executed, Err: errors.New("a stranger")}
	}
	var down bool
	var takes time.Duration
	w.locked(func() { down, takes = w.down[at], w.ms(20) })
	if down {
		return &slipstream.Error{Outcome: slipstream.NotSent, Err: errors.New("connection refused")}
	}
	time.Sleep(takes)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts++
	s := int(r.route.slot)
	v, m := w.seen(at), w.moving[s]
	refused := func(code string, words ...any) *slipstream.Error {
		return &slipstream.Error{Outcome: slipstream.Refused, Err: &ServerError{Code: code, Message: fmt.Sprint(words...)}}
	}
	leaves := m != nil && m.from == at
	switch {
	case w.down[at]: // the node died during the call
		w.executed[call] += w.rand.IntN(2)
		return &slipstream.Error{Outcome: slipstream.MaybeExecuted, Err: errors.New("connection lost")}
	case !w.honest && w.rand.IntN(100) == 0:
		return refused([]string{"MOVED", "ASK"}[w.rand.IntN(2)], s, " "+strangers[w.rand.IntN(len(strangers))])
	case v.owner(s) == at && leaves && w.rand.IntN(5) == 0:
		return refused("TRYAGAIN", "Multiple keys request during rehashing of slot")
	case v.owner(s) == at && leaves && m.moved:
		return refused("ASK", s, " "+modelAddr(m.to))
	case v.owner(s) == at, r.route.asking && m != nil && m.to == at && m.moved:
		w.executed[call]++
		return nil
	}
	return refused("MOVED", s, " "+modelAddr(v.owner(s)))
}

// Ask implements cluster.Asker.
func (w *modelCluster) Ask(_ context.Context, addr string, commands []cluster.Command) ([][]byte, error) {
	time.Sleep(time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range modelNodes {
		if modelAddr(i) != addr || w.down[i] {
			continue
		}
		var frames [][]byte
		for _, command := range commands {
			switch command {
			case cluster.Shards:
				frames = append(frames, w.shards(w.seen(i)))
			case cluster.Info:
				frames = append(frames, resp.AppendBulkString(nil, fmt.Sprintf("cluster_state:ok\r\ncluster_current_epoch:%d\r\n", w.seen(i).epoch)))
			default:
				frames = append(frames, []byte("-ERR unknown subcommand\r\n"))
			}
		}
		return frames, nil
	}
	return nil, errors.New("connection refused")
}

// shards returns the reply to CLUSTER SHARDS for a view. The caller holds mu.
func (w *modelCluster) shards(v *modelView) []byte {
	b := resp.AppendArrayHeader(nil, modelShards)
	for shard, master := range v.master {
		var ranges []int
		for s, of := range v.shard {
			switch n := len(ranges); {
			case int(of) != shard:
			case n > 0 && ranges[n-1] == s-1:
				ranges[n-1] = s
			default:
				ranges = append(ranges, s, s)
			}
		}
		b = resp.AppendBulkString(resp.AppendArrayHeader(b, 4), "slots")
		b = resp.AppendArrayHeader(b, len(ranges))
		for _, s := range ranges {
			b = resp.AppendInt(b, int64(s))
		}
		b = resp.AppendArrayHeader(resp.AppendBulkString(b, "nodes"), 2)
		for _, node := range []int{master, (master + modelShards) % modelNodes} {
			role, health := "replica", "online"
			if node == master {
				role = "master"
			}
			if w.down[node] {
				health = "fail"
			}
			host := fmt.Sprintf("10.0.0.%d", node+1)
			b = resp.AppendArrayHeader(b, 14)
			for _, word := range []string{"id", fmt.Sprintf("%040d", node), "ip", host, "endpoint", host, "role", role, "health", health, "port"} {
				b = resp.AppendBulkString(b, word)
			}
			b = resp.AppendInt(resp.AppendBulkString(resp.AppendInt(b, 6379), "replication-offset"), 1)
		}
	}
	return b
}

// router returns the router of a client of the model, which must be ended.
func (w *modelCluster) router() (k *router, refresher *cluster.Refresher, end func()) {
	k = makeRouter(newCore(&Options{}), nil, cluster.Addresses{Seeds: []string{modelAddr(0), modelAddr(1)}})
	k.sharded = true
	k.nodes = cluster.NewMap(func(n *cluster.Node) *node { return &node{fail: driver.Errors{Addr: n.Addr}} })
	refresher = cluster.NewRefresher(cluster.Config{
		Addresses: &k.addresses, Asker: w, Begin: k.nodes.Begin,
		Apply: func(t *cluster.Topology, asked cluster.Round) { k.nodes.Apply(t, asked) },
		Urgent: func(t *cluster.Topology) (urgent bool) {
			w.locked(func() {
				for _, r := range t.Ranges {
					for i := range modelNodes {
						urgent = urgent || w.down[i] && modelAddr(i) == t.Nodes[r.Node].Addr
					}
				}
			})
			return urgent
		},
	})
	k.refresher = refresher
	return k, refresher, func() {
		refresher.Close()
		k.cancel()
	}
}

// call makes a call, as Client.settle does, and checks its result.
func (w *modelCluster) call(k *router, call, s int, repeatable bool) error {
	r := &request{node: k.owner(int32(s)), repeatable: repeatable, route: route{slot: int32(s)}}
	began := time.Now()
	var failure *slipstream.Error
	for r.loop.Made = 1; ; r.loop.Made++ {
		if failure = w.attempt(r, call); failure == nil {
			break
		}
		d := k.judge(r, failure)
		if d.how == goEnd || !k.wait(w.t.Context(), r, &d) {
			break
		}
		if d.how == goPause {
			d.node = k.owner(r.route.slot)
		}
		r.node, r.route.asking = d.node, d.asking
	}
	if took := time.Since(began); took > k.core.opts.dialTimeout()+time.Second {
		w.t.Errorf("a call took %v", took)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch n := w.executed[call]; {
	case n > 1 && !repeatable:
		w.t.Errorf("a call was executed %d times", n)
	case failure == nil && n == 0:
		w.t.Error("a call that succeeded was not executed")
	case failure != nil && n > 0 && failure.Outcome != slipstream.MaybeExecuted:
		w.t.Errorf("a call was executed, but failed with %v, outcome %v", failure.Err, failure.Outcome)
	}
	if failure == nil {
		return nil
	}
	return failure
}

// TestRouterModel: whatever happens to slots and masters, no call is executed twice that must not
// be, and none goes to an address that no node lists. Migrations cause no errors; in failovers,
// only calls that were at a node when it died fail. When nothing more happens, each call needs one
// attempt.
//
// mutant: redis-cluster-lost-call-repeated
func TestRouterModel(t *testing.T) {
	for _, failovers := range []bool{false, true} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("failovers %t/%d", failovers, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { runModel(t, seed, failovers) })
			})
		}
	}
}

func runModel(t *testing.T, seed uint64, failovers bool) {
	w := newModelCluster(t, seed)
	k, refresher, end := w.router()
	defer end()
	if err := refresher.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	const callers = 4
	var calling sync.WaitGroup
	stop := make(chan struct{})
	for caller := range callers {
		// Ends with stop; waited for below.
		calling.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(caller)))
			for i := caller; ; i += callers {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(r.IntN(20)) * time.Millisecond):
				}
				repeatable := r.IntN(2) == 0
				err := w.call(k, i, w.slots[r.IntN(len(w.slots))], repeatable)
				if err != nil && (!failovers || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || repeatable) {
					t.Errorf("call %d, which may be repeated: %t: %v", i, repeatable, err)
				}
			}
		})
	}
	for i := range 15 {
		if failovers && i%5 == 0 {
			w.failover()
		} else {
			w.migrate()
		}
	}
	close(stop)
	calling.Wait()
	if n, _ := refresher.Refreshes(); !failovers && float64(n) > 2*time.Since(began).Seconds()+5 {
		t.Errorf("%d refreshes in %v", n, time.Since(began))
	}
	w.locked(func() { w.honest = true })
	time.Sleep(time.Second)
	for round := range 2 {
		before := w.attempts
		for i, s := range w.slots {
			if err := w.call(k, -1-round*len(w.slots)-i, s, false); err != nil {
				t.Error(err)
			}
		}
		if n := w.attempts - before; round == 1 && n != len(w.slots) {
			t.Errorf("%d attempts for %d calls while nothing happens", n, len(w.slots))
		}
	}
}
