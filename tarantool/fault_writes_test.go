package tarantool_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/tarantool"
)

// writeRow is a tuple of the space "writes": it says how often the write with that ID was executed.
type writeRow struct{ ID, Times uint64 }

// A journal checks writes, each with a unique ID, against the final data of the server.
type journal struct {
	client *tarantool.Client
	writes *tarantool.Space[writeRow]
	last   atomic.Uint64 // the newest ID; written by workers

	mu sync.Mutex
	// Guarded by mu.
	ends     map[uint64]slipstream.Outcome // Executed means that it succeeded, or is in failed
	failed   map[uint64]bool               // calls of functions that failed at an unknown point
	problems []string
}

func newJournal(c *tarantool.Client) *journal {
	return &journal{
		client: c, writes: tarantool.SpaceOf[writeRow](c, "writes"),
		ends: make(map[uint64]slipstream.Outcome), failed: make(map[uint64]bool),
	}
}

// note records the end of a write.
func (j *journal) note(id uint64, isCall bool, err error) {
	outcome := slipstream.OutcomeOf(err)
	if outcome == slipstream.NotSent {
		time.Sleep(time.Millisecond) // so that it does not fail a hundred thousand times per second
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, twice := j.ends[id]; twice {
		j.problems = append(j.problems, fmt.Sprintf("write %d ended twice", id))
	}
	if err != nil && outcome == slipstream.Executed {
		if !isCall {
			j.problems = append(j.problems, fmt.Sprintf("write %d: %v", id, err))
		}
		j.failed[id] = true
	}
	j.ends[id] = outcome
}

// step makes up to eight writes in one of several ways.
func (j *journal) step(ctx context.Context, r *rand.Rand) {
	if r.IntN(3) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.Int64N(int64(10*time.Millisecond))))
		defer cancel()
	}
	id := j.last.Add(1)
	switch r.IntN(4) {
	case 0:
		j.note(id, false, j.writes.Insert(ctx, &writeRow{id, 1}))
	case 1:
		var got []uint64
		err := j.client.Do(ctx, &got, tarantool.Call("bump", id))
		j.note(id, true, err)
		if err == nil && (len(got) != 1 || got[0] != id) {
			j.note(id, true, fmt.Errorf("the call of %d returned %v", id, got))
		}
	case 2:
		j.note(id, false, j.client.Do(ctx, nil, tarantool.Insert("writes", &writeRow{id, 1})))
	default:
		fs := make([]tarantool.Future, 8)
		ids := make([]uint64, len(fs))
		for i := range fs {
			ids[i] = j.last.Add(1)
			if i%2 == 0 {
				fs[i] = j.client.Start(ctx, tarantool.Insert("writes", []any{ids[i], 1}))
			} else {
				fs[i] = j.client.Start(ctx, tarantool.Upsert("writes", []any{ids[i], 1}, tarantool.Add(1, 1)))
			}
		}
		for i, f := range fs {
			j.note(ids[i], false, f.Wait(nil))
		}
	}
}

// run writes with several workers as long as chaos is running, closes the client, ends its
// remaining connections in the proxy, if there is one, and checks the data through another client.
func (j *journal) run(t *testing.T, seed uint64, direct string, proxy *faultproxy.Proxy, chaos func()) map[slipstream.Outcome]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var over atomic.Bool
	var workers sync.WaitGroup
	for i := range 10 {
		r := testkit.Fork(seed, uint64(i)+1)
		workers.Go(func() {
			for !over.Load() && ctx.Err() == nil {
				j.step(ctx, r)
			}
		})
	}
	chaos()
	over.Store(true)
	workers.Wait()
	if ctx.Err() != nil {
		t.Error("the test did not finish in time")
	}
	j.client.Close()
	if proxy != nil {
		proxy.Reset()
	}
	c := connect(t, tarantool.Options{Addr: direct})
	// Requests that the client's last connections left in the server's buffers
	// count, too.
	testkit.Eventually(t, 10*time.Second, func() error {
		var n []int
		must(t, c.Do(t.Context(), &n, tarantool.Eval("return sessions")))
		if n[0] != 1 {
			return fmt.Errorf("%d connections", n[0])
		}
		return nil
	})
	must(t, c.Do(t.Context(), nil, tarantool.Replace("writes", []any{1 << 40, 1}))) // the last entry in the log
	var rows []writeRow
	must(t, c.Do(t.Context(), &rows, tarantool.Select("writes")))
	return j.judge(t, rows)
}

// judge compares rows with the outcomes of writes.
func (j *journal) judge(t *testing.T, rows []writeRow) map[slipstream.Outcome]int {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	times := make(map[uint64]uint64, len(rows))
	for _, row := range rows {
		times[row.ID] = row.Times
	}
	ends, wrong := make(map[slipstream.Outcome]int), 0
	for id, outcome := range j.ends {
		ends[outcome]++
		n := times[id]
		bad := n > 1
		switch {
		case j.failed[id] || outcome == slipstream.MaybeExecuted:
		case outcome == slipstream.Executed:
			bad = n != 1
		default:
			bad = n != 0
		}
		if bad {
			if wrong++; wrong < 20 {
				t.Errorf("write %d ended as %v, but was executed %d times", id, outcome, n)
			}
		}
	}
	for _, p := range j.problems {
		t.Error(p)
	}
	t.Logf("%d writes, %d rows; ends %v", len(j.ends), len(rows), ends)
	if ends[slipstream.Executed] == 0 {
		t.Error("no write succeeded")
	}
	return ends
}

// lacks returns an error if no write has ended with one of the outcomes yet: then the faults had no
// effect so far, as on a slow machine.
func (j *journal) lacks(outcomes ...slipstream.Outcome) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := make(map[slipstream.Outcome]bool)
	for _, o := range j.ends {
		seen[o] = true
	}
	for _, o := range append(outcomes, slipstream.Executed) {
		if !seen[o] {
			return fmt.Errorf("no write ended as %v", o)
		}
	}
	return nil
}

// expect fails the test if no write ended with one of the outcomes, because then the faults had no
// effect.
func expect(t *testing.T, ends map[slipstream.Outcome]int, outcomes ...slipstream.Outcome) {
	t.Helper()
	for _, o := range outcomes {
		if ends[o] == 0 {
			t.Errorf("no write ended as %v", o)
		}
	}
}

// No write is executed twice, none that was not sent or was refused is executed, and all that
// succeeded are there, whatever happens to connections.
func TestFaultWritesAreExecutedOnce(t *testing.T) {
	testkit.NoLeaks(t)
	for _, retries := range []int{-1, 10} {
		t.Run(fmt.Sprintf("retries %d", retries), func(t *testing.T) {
			seed := testkit.Seed(t)
			server := startInstance(t, "none", faultSetup)
			proxy := faultproxy.Start(t, server.addr, faultproxy.Options{Seed: seed, Plan: func(_ int, r *rand.Rand) faultproxy.Plan {
				action := []faultproxy.Action{faultproxy.Reset, faultproxy.Cut, faultproxy.HalfClose, faultproxy.Blackhole}[r.IntN(4)]
				link := faultproxy.Link{Faults: []faultproxy.Fault{{After: 4000 + r.Int64N(9000), Do: action}}}
				if r.IntN(3) == 0 {
					return faultproxy.Plan{Up: link}
				}
				return faultproxy.Plan{Down: link}
			}})
			control := connect(t, tarantool.Options{Addr: server.addr})
			j := newJournal(connect(t, tarantool.Options{
				Addr: proxy.Addr(), Retries: retries, Backoff: time.Microsecond, MaxBackoff: time.Millisecond, StallTimeout: 50 * time.Millisecond,
			}))
			bites := []slipstream.Outcome{slipstream.MaybeExecuted, slipstream.NotSent, slipstream.Refused}
			ends := j.run(t, seed, server.addr, proxy, func() {
				for i := 0; i < 8 || i < 1000 && j.lacks(bites...) != nil; i++ {
					time.Sleep(60 * time.Millisecond)
					// Sometimes the server refuses writes.
					must(t, control.Do(t.Context(), nil, tarantool.Eval("box.cfg{read_only = ...}", i%2 == 0)))
				}
				must(t, control.Do(t.Context(), nil, tarantool.Eval("box.cfg{read_only = false}")))
				control.Close()
			})
			expect(t, ends, bites...)
		})
	}
}

// The same test while the server is killed and restarted.
func TestFaultWritesAndKilledServer(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	server := startInstance(t, "write", faultSetup)
	j := newJournal(connect(t, tarantool.Options{Addr: server.addr, Backoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond, Retries: 10}))
	ends := j.run(t, seed, server.addr, nil, func() {
		r := testkit.Fork(seed, 0)
		for i := 0; i < 4 || i < 100 && j.lacks(slipstream.MaybeExecuted) != nil; i++ {
			time.Sleep(20*time.Millisecond + time.Duration(r.Int64N(int64(100*time.Millisecond))))
			server.restart(t)
		}
		time.Sleep(50 * time.Millisecond)
	})
	expect(t, ends, slipstream.MaybeExecuted)
}

// Requests that do not fit are rejected and never executed, even if connections end in the
// meantime.
func TestFaultOverloadedWrites(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	server := startInstance(t, "none", faultSetup)
	proxy := faultproxy.Start(t, server.addr, faultproxy.Options{Seed: seed})
	j := newJournal(connect(t, tarantool.Options{Addr: proxy.Addr(), MaxCalls: 20, Backoff: time.Microsecond, MaxBackoff: time.Millisecond}))
	ends := j.run(t, seed, server.addr, proxy, func() {
		for i := 0; i < 6 || i < 1000 && j.lacks(slipstream.Overloaded, slipstream.MaybeExecuted) != nil; i++ {
			time.Sleep(20 * time.Millisecond)
			proxy.Stall()
			time.Sleep(20 * time.Millisecond)
			proxy.Resume()
			proxy.Reset()
		}
	})
	expect(t, ends, slipstream.Overloaded, slipstream.MaybeExecuted)
}
