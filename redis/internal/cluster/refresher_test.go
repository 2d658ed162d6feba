package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// fakeCluster returns the replies of a test, and records the requests to each node with their
// times.
type fakeCluster struct {
	mu     sync.Mutex
	answer func(ctx context.Context, addr string, c Command) ([]byte, error) // immutable
	asked  []string                                                          // guarded by mu
	times  []time.Time                                                       // guarded by mu
}

func (f *fakeCluster) Ask(ctx context.Context, addr string, commands []Command) (frames [][]byte, err error) {
	f.mu.Lock()
	f.asked = append(f.asked, addr+fmt.Sprint(commands))
	f.times = append(f.times, time.Now())
	f.mu.Unlock()
	for _, c := range commands {
		frame, err := f.answer(ctx, addr, c)
		if err != nil {
			return nil, err
		}
		frames = append(frames, frame)
	}
	return frames, nil
}

func (f *fakeCluster) asks() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// gaps returns the times between consecutive queries.
func (f *fakeCluster) gaps() (gaps []time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.times[1:] {
		gaps = append(gaps, f.times[i+1].Sub(f.times[i]))
	}
	return gaps
}

var errRefused = errors.New("connection refused")

// shardsAt returns a cluster with one shard for each address 10.0.0.1:port.
func shardsAt(ports ...int) []any {
	var shards []any
	for i, port := range ports {
		first, last := i*slot.Count/len(ports), (i+1)*slot.Count/len(ports)-1
		shards = append(shards, shard([]any{first, last}, shardNode(fmt.Sprint("n", port), port, "master")))
	}
	return shards
}

// well answers CLUSTER SHARDS and CLUSTER INFO.
func well(epoch int, ports ...int) func(context.Context, string, Command) ([]byte, error) {
	return func(_ context.Context, _ string, c Command) ([]byte, error) {
		if c == Info {
			return encode(nil, 3, info("ok", epoch)), nil
		}
		return encode(nil, 3, shardsAt(ports...)), nil
	}
}

// inBubble runs a test of a refresher in virtual time, and closes the refresher at its end.
func inBubble(t *testing.T, f *fakeCluster, config Config, test func(t *testing.T, r *Refresher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		config.Asker = f
		if config.Addresses == nil {
			config.Addresses = &Addresses{Seeds: []string{"10.0.0.1:1"}}
		}
		r := NewRefresher(config)
		defer r.Close()
		test(t, r)
	})
}

func TestFirstRefresh(t *testing.T) {
	f := &fakeCluster{answer: well(1, 1, 2)}
	m := newTestMap()
	config := Config{Begin: m.Begin, Apply: func(topology *Topology, asked Round) { m.Apply(topology, asked) }}
	inBubble(t, f, config, func(t *testing.T, r *Refresher) {
		if r.Topology() != nil {
			t.Error("there is a topology before the first refresh")
		}
		if err := r.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ownerOf(m, 0) != "10.0.0.1:1" || ownerOf(m, slot.Count-1) != "10.0.0.1:2" {
			t.Error("the topology is not the current one")
		}
		if err := r.Ready(t.Context()); err != nil || len(f.asks()) != 1 {
			t.Errorf("%v, %d asked", err, len(f.asks()))
		}
	})
}

func TestPeriodicRefreshes(t *testing.T) {
	f := &fakeCluster{answer: well(1, 1, 2)}
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		time.Sleep(time.Hour)
		if n := len(f.asks()); n < 60 || n > 68 {
			t.Errorf("%d refreshes in an hour", n)
		}
		gaps := f.gaps()
		slices.Sort(gaps)
		if gaps[0] < 54*time.Second || gaps[len(gaps)-1] > time.Minute || len(slices.Compact(gaps)) < 10 {
			t.Errorf("refreshes after %v", gaps)
		}
	})
	f = &fakeCluster{answer: well(1, 1, 2)}
	inBubble(t, f, Config{Interval: -1}, func(t *testing.T, r *Refresher) {
		time.Sleep(time.Hour)
		if n := len(f.asks()); n != 1 {
			t.Errorf("%d unsolicited refreshes", n)
		}
	})
}

// While slots are migrated, thousands of redirects arrive, and every refresh finds something new.
func TestRedirectsByTheThousandAreOneRefreshASecond(t *testing.T) {
	f := &fakeCluster{}
	n := 0
	f.answer = func(ctx context.Context, addr string, c Command) ([]byte, error) {
		n++
		return well(1, 1, 2, 3+n)(ctx, addr, c)
	}
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		for range 10_000 {
			r.Request()
			time.Sleep(time.Millisecond)
		}
		if n := len(f.asks()); n < 9 || n > 11 {
			t.Errorf("%d refreshes in 10 s", n)
		}
		for _, gap := range f.gaps() {
			if gap < time.Second {
				t.Errorf("a refresh %v after the previous one", gap)
			}
		}
	})
}

func TestRefreshesThatChangeNothingSlowDown(t *testing.T) {
	f := &fakeCluster{answer: well(1, 1, 2)}
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		time.Sleep(30 * time.Second)
		for range 30_000 {
			r.Request()
			time.Sleep(time.Millisecond)
		}
		gaps := f.gaps()
		if gaps[0] < 30*time.Second || gaps[0] > 30*time.Second+r.spread() {
			t.Errorf("the first request is answered after %v, expected an immediate answer", gaps[0])
		}
		want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second}
		for i, gap := range gaps[1:5] {
			if gap != want[i] {
				t.Errorf("refreshes after %v, expected %v", gaps[1:5], want)
				break
			}
		}
		time.Sleep(30 * time.Second)
		before := len(f.asks())
		r.Request()
		time.Sleep(r.spread() + time.Second + time.Millisecond)
		r.Request()
		time.Sleep(time.Millisecond)
		if n := len(f.asks()) - before; n != 2 {
			t.Errorf("%d refreshes for two requests after a quiet time", n)
		}
	})
}

// A refresh that was in progress when Await was called may have read an older state.
func TestAwaitWaitsForARefreshThatBeginsAfterTheCall(t *testing.T) {
	release := make(chan struct{})
	f := &fakeCluster{}
	f.answer = func(ctx context.Context, addr string, c Command) ([]byte, error) {
		if len(f.asks()) == 1 {
			<-release
		}
		return well(len(f.asks()), 1, 2)(ctx, addr, c)
	}
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{})
		r := NewRefresher(Config{Addresses: &Addresses{Seeds: []string{"10.0.0.1:1"}}, Asker: f})
		defer r.Close()
		synctest.Wait()
		var waiters sync.WaitGroup
		for range 100 {
			// Ended by the refresh; awaited below.
			waiters.Go(func() {
				if err := r.Await(t.Context()); err != nil {
					t.Error(err)
				}
				if e := r.Topology().CurrentEpoch; e != 2 {
					t.Errorf("woken with the topology of epoch %d", e)
				}
			})
		}
		synctest.Wait()
		close(release)
		waiters.Wait()
		if begun, _ := r.Refreshes(); begun != 2 {
			t.Errorf("%d refreshes for 100 callers", begun)
		}
	})
}

func TestAwaitEndsWithItsContextAndWithClose(t *testing.T) {
	f := &fakeCluster{}
	f.answer = func(ctx context.Context, _ string, _ Command) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		r := NewRefresher(Config{Addresses: &Addresses{Seeds: []string{"10.0.0.1:1"}}, Asker: f})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := r.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		var waiters sync.WaitGroup
		// Both end with Close; awaited below.
		waiters.Go(func() {
			if err := r.Await(t.Context()); err != ErrClosed {
				t.Error(err)
			}
		})
		waiters.Go(func() {
			if _, ok, err := r.Verify(t.Context(), "10.0.0.1:9"); ok || err != ErrClosed {
				t.Error(ok, err)
			}
		})
		synctest.Wait()
		r.Close()
		waiters.Wait()
		r.Close()
	})
}

// The client connects only to a node that the cluster lists, and one refresh is enough to find out.
func TestVerify(t *testing.T) {
	f := &fakeCluster{}
	f.answer = func(ctx context.Context, addr string, c Command) ([]byte, error) {
		if len(f.asks()) == 1 {
			return well(1, 1, 2)(ctx, addr, c)
		}
		return well(2, 1, 2, 3)(ctx, addr, c)
	}
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		if err := r.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			addr string
			ok   bool
			asks int
		}{{"10.0.0.1:2", true, 1}, {"10.0.0.1:3", true, 2}, {"10.0.0.9:3", false, 3}} {
			node, ok, err := r.Verify(t.Context(), c.addr)
			if err != nil || ok != c.ok || ok && node.Addr != c.addr || len(f.asks()) != c.asks {
				t.Errorf("%s: %v, %v, %v after %d queries; expected %v after %d", c.addr, node.Addr, ok, err, len(f.asks()), c.ok, c.asks)
			}
		}
	})
}

func TestAllNodesRefuse(t *testing.T) {
	f := &fakeCluster{}
	var up atomic.Bool // the server answers
	f.answer = func(ctx context.Context, addr string, c Command) ([]byte, error) {
		if !up.Load() {
			return nil, errRefused
		}
		return well(1, 1, 2)(ctx, addr, c)
	}
	config := Config{Addresses: &Addresses{Seeds: []string{"10.0.0.1:1", "10.0.0.1:2"}}}
	inBubble(t, f, config, func(t *testing.T, r *Refresher) {
		if err := r.Ready(t.Context()); !errors.Is(err, errRefused) {
			t.Fatal(err)
		}
		for range 60_000 {
			r.Request()
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		begun, asked := r.Refreshes()
		if begun < 8 || begun > 20 || asked != 2*begun {
			t.Errorf("%d refreshes of %d nodes in a minute without answers", begun, asked)
		}
		if err := r.Await(t.Context()); !errors.Is(err, errRefused) {
			t.Error(err)
		}
		up.Store(true)
		began := time.Now()
		for r.Topology() == nil {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(began); took > 8*time.Second+time.Millisecond {
			t.Errorf("found again after %v", took)
		}
		if err := r.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWithoutSeedsThereIsNobodyToAsk(t *testing.T) {
	inBubble(t, &fakeCluster{}, Config{Addresses: &Addresses{}}, func(t *testing.T, r *Refresher) {
		if err := r.Ready(t.Context()); err != ErrNoNodes {
			t.Error(err)
		}
	})
}

// Of six nodes, five hang: each of them costs the patience, not the timeout.
func TestNodesThatHangAreNotWaitedFor(t *testing.T) {
	f := &fakeCluster{}
	hang := false
	f.answer = func(ctx context.Context, addr string, c Command) ([]byte, error) {
		if hang && addr != "10.0.0.1:6" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return well(1, 1, 2, 3, 4, 5, 6)(ctx, addr, c)
	}
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		if err := r.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		hang = true
		began := time.Now()
		if err := r.Await(t.Context()); err != nil {
			t.Error(err)
		}
		// Four at a time are queried, and then one more as each of the first reaches its timeout.
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("found the node that answers after %v", took)
		}
	})
}

func TestFormsOfTheTopology(t *testing.T) {
	unknown := encode(nil, 2, errors.New("ERR Unknown subcommand or wrong number of arguments for 'shards'. Try CLUSTER HELP."))
	forbidden := encode(nil, 2, errors.New("NOPERM this user has no permissions"))
	loading := encode(nil, 2, errors.New("LOADING Redis is loading the dataset in memory"))
	doubtful := shardsAt(1, 2)
	doubtful[1] = shard([]any{}, shardNode("n2", 2, "master"))
	nodes := node("n1", "10.0.0.1:1@9", "master", "-", 1, "0-8191") + node("n2", "10.0.0.1:2@9", "master", "-", 1, "8192-16383")
	for _, c := range []struct {
		name    string
		replies map[Command]any // []byte, or a value for encode
		want    string          // the requests of a node, alternating
		owner   string          // of the last slot, or the error
	}{
		{"CLUSTER SHARDS", map[Command]any{Shards: shardsAt(1, 2)}, "[CLUSTER SHARDS CLUSTER INFO]", "10.0.0.1:2"},
		{"not known", map[Command]any{Shards: unknown, Nodes: nodes}, "[CLUSTER SHARDS CLUSTER INFO][CLUSTER NODES]", "10.0.0.1:2"},
		{"not permitted", map[Command]any{Shards: forbidden, Nodes: forbidden, SlotRanges: []any{[]any{0, 16383, slotNodeOf("n", 9)}}},
			"[CLUSTER SHARDS CLUSTER INFO][CLUSTER NODES][CLUSTER SLOTS]", "10.0.0.1:9"},
		{"in doubt", map[Command]any{Shards: doubtful, Nodes: nodes}, "[CLUSTER SHARDS CLUSTER INFO][CLUSTER NODES]", "10.0.0.1:2"},
		{"in doubt forever", map[Command]any{Shards: doubtful, Nodes: forbidden, SlotRanges: forbidden}, "[CLUSTER SHARDS CLUSTER INFO][CLUSTER NODES][CLUSTER SLOTS]", ""},
		{"not understood", map[Command]any{Shards: []any{1}, Nodes: nodes}, "[CLUSTER SHARDS CLUSTER INFO][CLUSTER NODES]", "10.0.0.1:2"},
		{"a node that loads its data", map[Command]any{Shards: loading}, "[CLUSTER SHARDS CLUSTER INFO]", "CLUSTER SHARDS: LOADING Redis is loading the dataset in memory"},
	} {
		f := &fakeCluster{}
		f.answer = func(_ context.Context, _ string, command Command) ([]byte, error) {
			if frame, ok := c.replies[command].([]byte); ok {
				return frame, nil
			}
			if command == Info {
				return encode(nil, 3, info("ok", 3)), nil
			}
			return encode(nil, 3, c.replies[command]), nil
		}
		inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
			got := ""
			if err := r.Ready(t.Context()); err != nil {
				got = err.Error()
			} else if topology := r.Topology(); topology.Ranges[len(topology.Ranges)-1].Last == slot.Count-1 {
				got = topology.Nodes[topology.Ranges[len(topology.Ranges)-1].Node].Addr
			}
			asks := strings.Join(f.asks(), "")
			asks = strings.ReplaceAll(asks, "10.0.0.1:1", "")
			if got != c.owner || asks != c.want {
				t.Errorf("%s: %q after %s, expected %q after %s", c.name, got, asks, c.owner, c.want)
			}
		})
	}
}

// A server that does not know CLUSTER SHARDS counts an error each time, so that command is not sent
// again for an hour.
func TestUnknownCommandsAreNotRepeated(t *testing.T) {
	f := &fakeCluster{}
	nodes := node("n1", "10.0.0.1:1@9", "master", "-", 1, "0-16383")
	f.answer = func(_ context.Context, _ string, c Command) ([]byte, error) {
		switch c {
		case Nodes:
			return encode(nil, 2, nodes), nil
		case Info:
			return encode(nil, 2, info("ok", 1)), nil
		}
		return encode(nil, 2, errors.New("ERR unknown command")), nil
	}
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		time.Sleep(3 * time.Hour)
		asks := strings.Join(f.asks(), "\n")
		refreshes, _ := r.Refreshes()
		if n := strings.Count(asks, "SHARDS"); n < 2 || n > 4 || strings.Count(asks, "INFO") != int(refreshes) {
			t.Errorf("CLUSTER SHARDS was sent %d times in 3 hours, and CLUSTER INFO %d times in %d refreshes", n, strings.Count(asks, "INFO"), refreshes)
		}
	})
}

// One of four nodes is cut off and has not learned of a failover: it still reports that node 2 is
// the master of its shard.
func TestSplitViews(t *testing.T) {
	f := &fakeCluster{}
	var failedOver atomic.Bool // a replica has taken over
	f.answer = func(ctx context.Context, addr string, c Command) ([]byte, error) {
		if failedOver.Load() && addr != "10.0.0.1:4" {
			return well(6, 1, 3, 4)(ctx, addr, c)
		}
		return well(5, 1, 2, 4)(ctx, addr, c)
	}
	inBubble(t, f, Config{Addresses: &Addresses{Seeds: []string{"10.0.0.1:1", "10.0.0.1:4"}}}, func(t *testing.T, r *Refresher) {
		if err := r.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		failedOver.Store(true)
		learned := false
		for range 300 {
			time.Sleep(20 * time.Second)
			if err := r.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
			now := r.Topology().Find("10.0.0.1:3") >= 0
			if learned && !now {
				t.Fatal("an old view became the current topology")
			}
			learned = learned || now
		}
		if asked := strings.Count(strings.Join(f.asks(), " "), "10.0.0.1:4["); !learned || asked < 10 {
			t.Errorf("learned of the failover: %v; the node that is cut off was queried %d times", learned, asked)
		}
	})
}

// A newly created cluster starts with small epochs.
func TestClustersAreReset(t *testing.T) {
	f := &fakeCluster{}
	epoch := 9
	f.answer = func(ctx context.Context, addr string, c Command) ([]byte, error) {
		return well(epoch, 1, 2, epoch)(ctx, addr, c)
	}
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		if err := r.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		epoch = 3
		for i := range 3 {
			err := r.Await(t.Context())
			if want := []error{ErrOldView, ErrOldView, nil}[i]; err != want {
				t.Errorf("refresh %d: %v, expected %v", i, err, want)
			}
		}
		if r.Topology().Find("10.0.0.1:3") < 0 || r.Topology().CurrentEpoch != 3 {
			t.Error("the view of the new cluster is not the current topology")
		}
	})
}

// Many clients learn of a failover at the same moment.
func TestClientsDoNotAskAtTheSameMoment(t *testing.T) {
	ports := make([]int, 200)
	for i := range ports {
		ports[i] = i + 1
	}
	synctest.Test(t, func(t *testing.T) {
		f := &fakeCluster{answer: well(1, ports...)}
		var clients []*Refresher
		for range 50 {
			r := NewRefresher(Config{Addresses: &Addresses{Seeds: []string{"10.0.0.1:1"}}, Asker: f})
			defer r.Close()
			if err := r.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			clients = append(clients, r)
		}
		time.Sleep(10 * time.Second)
		before := len(f.asks())
		began := time.Now()
		for _, r := range clients {
			r.Request()
		}
		time.Sleep(time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		var first, last time.Duration = time.Hour, 0
		for _, at := range f.times[before:] {
			first, last = min(first, at.Sub(began)), max(last, at.Sub(began))
		}
		if n := len(f.times) - before; n != 50 || last > 250*time.Millisecond || last-first < 100*time.Millisecond {
			t.Errorf("%d queries from %v to %v", n, first, last)
		}
	})
}

// endedContext has ended, but nothing that waits for its end has noticed.
type endedContext struct{ context.Context }

func (endedContext) Err() error { return context.Canceled }

// A refresh whose context ends after a node has answered fails, and leaves the topology as it is.
// mutant: cluster-refresh-that-ended-has-a-topology
func TestRefreshThatEndsAfterAnAnswer(t *testing.T) {
	applied := 0
	config := Config{Apply: func(*Topology, Round) { applied++ }}
	inBubble(t, &fakeCluster{answer: well(1, 1, 2)}, config, func(t *testing.T, r *Refresher) {
		if err := r.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.Close() // only its goroutine may refresh
		before := r.Topology()
		if err := r.refresh(endedContext{context.Background()}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v; want context.Canceled", err)
		}
		if r.Topology() != before || applied != 1 {
			t.Errorf("the topology changed, and was applied %d times; want 1", applied)
		}
	})
}
