//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/redis"
)

// counter checks INCR. Half of the calls share a key. Its value says how often they were executed,
// and must be at least the number of calls that succeeded, and at most that number plus the number
// of calls that may have been executed. Each of the other calls has its own key, whose value must
// never exceed 1.
type counter struct {
	client *redis.Client

	// Atomics, written by workers.
	successes, maybes, never, refused atomic.Int64 // of the shared key
	keys                              atomic.Int64

	mu       sync.Mutex
	returned map[int64]bool                // guarded by mu; values returned by calls for the shared key
	own      map[string]slipstream.Outcome // guarded by mu; outcomes of calls with their own keys
	problems []string                      // guarded by mu
}

const counterKey = "counter"

// key returns the key that the next call increments.
func (k *counter) key(r *rand.Rand) string {
	if r.IntN(2) == 0 {
		return counterKey
	}
	return fmt.Sprintf("own:%d", k.keys.Add(1))
}

func (k *counter) problem(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problems = append(k.problems, fmt.Sprintf(format, args...))
}

// note records the result of one INCR.
func (k *counter) note(key string, n int64, err error) {
	if key != counterKey {
		k.noteOwn(key, n, err)
		return
	}
	switch outcome := slipstream.OutcomeOf(err); {
	case err == nil:
		k.successes.Add(1)
		k.mu.Lock()
		twice := k.returned[n]
		k.returned[n] = true
		k.mu.Unlock()
		if twice {
			k.problem("two calls got %d", n)
		}
	case outcome == slipstream.MaybeExecuted:
		k.maybes.Add(1)
	case outcome == slipstream.NotSent:
		k.never.Add(1)
	case outcome == slipstream.Refused:
		k.refused.Add(1)
	default:
		k.problem("%v", err)
	}
}

func (k *counter) noteOwn(key string, n int64, err error) {
	outcome := slipstream.Executed
	if err != nil {
		outcome = slipstream.OutcomeOf(err)
	}
	if err == nil && n != 1 || err != nil && outcome == slipstream.Executed {
		k.problem("INCR %s returned %d, %v", key, n, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.own[key] = outcome
}

// judgeOwn compares the keys of single calls with the outcomes of these calls.
func (k *counter) judgeOwn(t testing.TB, c *redis.Client) {
	var keys []string
	for key := range k.own {
		keys = append(keys, key)
	}
	executed, doubtful := 0, 0
	for some := range slices.Chunk(keys, 1000) {
		items, err := c.MGet(t.Context(), some...)
		must(t, err)
		for i, item := range items {
			outcome := k.own[some[i]]
			switch {
			case item.Found && item.Value != "1":
				t.Errorf("a call that ended as %v was executed %s times", outcome, item.Value)
			case item.Found != (outcome == slipstream.Executed) && outcome != slipstream.MaybeExecuted:
				t.Errorf("a call ended as %v; executed: %v", outcome, item.Found)
			case outcome == slipstream.MaybeExecuted:
				doubtful++
			}
			if item.Found {
				executed++
			}
		}
	}
	t.Logf("of %d calls with their own keys, %d were executed and %d may have been", len(keys), executed, doubtful)
}

// step makes an INCR call in one of several ways.
func (k *counter) step(ctx context.Context, r *rand.Rand) {
	var keys [3]string
	var cmds [3]redis.Command
	for i := range keys {
		keys[i] = k.key(r)
		cmds[i] = redis.Cmd("INCR", keys[i])
	}
	if r.IntN(4) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.Int64N(int64(20*time.Millisecond))))
		defer cancel()
	}
	var n [3]int64
	switch r.IntN(5) {
	case 0:
		n, err := k.client.Incr(ctx, keys[0])
		k.note(keys[0], n, err)
	case 1:
		err := k.client.Do(ctx, &n[0], cmds[0])
		k.note(keys[0], n[0], err)
	case 2:
		var futures [3]redis.Future
		for i := range futures {
			futures[i] = k.client.Start(ctx, cmds[i])
		}
		for i, f := range futures {
			err := f.Wait(&n[i])
			k.note(keys[i], n[i], err)
		}
	case 3:
		var b redis.Batch
		for i := range n {
			b.Add(&n[i], cmds[i])
		}
		k.client.DoBatch(ctx, &b)
		for i := range n {
			k.note(keys[i], n[i], b.Err(i))
		}
	case 4:
		done := make(chan struct{})
		err := k.client.DoFunc(ctx, cmds[0], completerFunc(func(reply redis.Reply, err error) {
			defer close(done)
			if err == nil {
				n[0], err = reply.Int()
			}
			k.note(keys[0], n[0], err)
		}))
		if err != nil {
			k.note(keys[0], 0, err)
			return
		}
		<-done
	}
}

// run increments with several workers as long as chaos is running, and checks the results.
func (k *counter) run(t testing.TB, seed uint64, direct string, chaos func()) {
	t.Helper()
	k.returned, k.own = make(map[int64]bool), make(map[string]slipstream.Outcome)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var over atomic.Bool
	var workers sync.WaitGroup
	for i := range 8 {
		r := testkit.Fork(seed, uint64(i)+1)
		workers.Go(func() {
			for !over.Load() {
				k.step(ctx, r)
			}
		})
	}
	chaos()
	over.Store(true)
	workers.Wait()
	repeated := k.client.Stats().Repeated
	k.client.Close()
	c := connect(t, redis.Options{Addr: direct})
	// Data that the client's last connections left in the server's buffers counts, too.
	testkit.Eventually(t, 10*time.Second, func() error {
		var list string
		must(t, c.Do(t.Context(), &list, redis.Cmd("CLIENT", "LIST")))
		if n := strings.Count(list, "\n"); n != 1 {
			return fmt.Errorf("%d connections", n)
		}
		return nil
	})
	var executed int64
	if err := c.Do(t.Context(), &executed, redis.Cmd("GET", counterKey)); err != nil && !errors.Is(err, redis.ErrNull) {
		t.Fatal(err)
	}
	least, most := k.successes.Load(), k.successes.Load()+k.maybes.Load()
	t.Logf("executed %d times; %d calls succeeded, %d may have been executed, %d were not sent, %d refused, %d retried",
		executed, least, k.maybes.Load(), k.never.Load(), k.refused.Load(), repeated)
	if executed < least || executed > most {
		t.Errorf("the server executed INCR %d times, expected %d to %d", executed, least, most)
	}
	if least == 0 || k.maybes.Load() == 0 {
		t.Error("the faults had no effect")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.judgeOwn(t, c)
	for n := range k.returned {
		if n < 1 || n > executed {
			t.Errorf("a call returned %d, but the counter is %d", n, executed)
		}
	}
	for _, p := range k.problems {
		t.Error(p)
	}
}

// No retry executes INCR twice, whatever happens to connections.
func TestFaultIncrIsExecutedOnce(t *testing.T) {
	testkit.NoLeaks(t)
	for _, retries := range []int{-1, 0, 10} {
		t.Run(fmt.Sprintf("retries %d", retries), func(t *testing.T) {
			seed := testkit.Seed(t)
			server := testkit.StartRedis(t)
			// Connections end after some hundred or thousand bytes in either direction, so replies
			// of executed calls are lost.
			proxy := faultproxy.Start(t, server.Addr, faultproxy.Options{Seed: seed, Plan: func(_ int, r *rand.Rand) faultproxy.Plan {
				action := []faultproxy.Action{faultproxy.Reset, faultproxy.Cut, faultproxy.HalfClose}[r.IntN(3)]
				link := faultproxy.Link{Faults: []faultproxy.Fault{{After: 400 + r.Int64N(4000), Do: action}}}
				if r.IntN(3) == 0 {
					return faultproxy.Plan{Up: link}
				}
				return faultproxy.Plan{Down: link}
			}})
			control := connect(t, redis.Options{Addr: server.Addr})
			k := &counter{client: connect(t, redis.Options{
				Addr: proxy.Addr(), Retries: retries, Backoff: time.Microsecond, MaxBackoff: time.Millisecond, StallTimeout: 50 * time.Millisecond,
			})}
			k.run(t, seed, server.Addr, func() {
				// On a slow machine, it takes longer until every kind of outcome has occurred.
				tried := func() bool { return k.refused.Load() > 0 && k.maybes.Load() > 0 && k.successes.Load() > 0 }
				for i := 0; i < 8 || i < 1000 && !tried(); i++ {
					time.Sleep(60 * time.Millisecond)
					// Sometimes the server refuses writes, with NOREPLICAS.
					must(t, control.Do(t.Context(), nil, redis.Cmd("CONFIG", "SET", "min-replicas-to-write", i%2)))
				}
				must(t, control.Do(t.Context(), nil, redis.Cmd("CONFIG", "SET", "min-replicas-to-write", 0)))
				control.Close()
			})
			if k.refused.Load() == 0 {
				t.Error("no call was refused")
			}
		})
	}
}

// The same test while the server is killed and restarted. It writes every INCR to its log before it
// answers.
func TestFaultIncrAndKilledServer(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	server := testkit.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	k := &counter{client: connect(t, redis.Options{Addr: server.Addr, Backoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond, Retries: 10})}
	k.run(t, seed, server.Addr, func() {
		r := testkit.Fork(seed, 0)
		tried := func() bool { return k.maybes.Load() > 0 && k.successes.Load() > 0 }
		for i := 0; i < 5 || i < 100 && !tried(); i++ {
			time.Sleep(time.Duration(r.Int64N(int64(120 * time.Millisecond))))
			server.Kill()
			server.Restart(t)
		}
		time.Sleep(50 * time.Millisecond)
	})
}
