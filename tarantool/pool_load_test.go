//go:build unix

package tarantool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
)

// poolLoad writes and reads through a pool and records the results of all writes.
type poolLoad struct {
	t     testing.TB
	pool  *tarantool.Pool
	users *tarantool.PoolSpace[user]
	stop  atomic.Bool
	wg    sync.WaitGroup

	acks  []atomic.Int64 // for each writer
	reads atomic.Int64

	mu       sync.Mutex
	outcomes map[uint64]slipstream.Outcome // for every key that was written; Executed means acknowledged
	failures []error                       // of writes
}

const (
	poolWriters = 6
	poolReaders = 4
	firstKey    = 1 << 20 // of the writers; lower keys exist from the start
)

func startPoolLoad(t testing.TB, p *tarantool.Pool) *poolLoad {
	l := &poolLoad{
		t: t, pool: p, users: tarantool.PoolSpaceOf[user](p, "users", tarantool.PreferReadOnly),
		acks: make([]atomic.Int64, poolWriters), outcomes: make(map[uint64]slipstream.Outcome),
	}
	seed := testkit.Seed(t)
	for w := range poolWriters {
		l.wg.Go(func() { l.write(w, testkit.Fork(seed, uint64(w))) })
	}
	for r := range poolReaders {
		l.wg.Go(func() { l.read(testkit.Fork(seed, uint64(100+r))) })
	}
	t.Cleanup(l.end)
	return l
}

func (l *poolLoad) end() {
	l.stop.Store(true)
	l.wg.Wait()
}

func (l *poolLoad) write(w int, rng *rand.Rand) {
	ctx := context.Background()
	for n := uint64(0); !l.stop.Load(); n++ {
		key := firstKey*uint64(w+1) + n
		tuple := user{key, fmt.Sprintf("name%d", key), 1}
		insert := tarantool.Insert("users", &tuple)
		var err error
		var came []user
		switch rng.IntN(3) {
		case 0:
			err = l.pool.Do(ctx, &came, insert, tarantool.ReadWrite)
		case 1:
			err = l.pool.Start(ctx, insert, tarantool.ReadWrite).Wait(&came)
		default:
			err = l.users.Insert(ctx, &tuple)
			came = []user{tuple}
		}
		if err == nil && (len(came) != 1 || came[0] != tuple) {
			l.t.Errorf("the insert of %d was answered with %v", key, came)
		}
		l.mu.Lock()
		l.outcomes[key] = slipstream.OutcomeOf(err)
		if err != nil {
			l.failures = append(l.failures, err)
		}
		l.mu.Unlock()
		if err == nil {
			l.acks[w].Add(1)
		}
	}
}

// read reads tuples that exist from the start; no read may fail as long as one instance is alive.
func (l *poolLoad) read(rng *rand.Rand) {
	ctx := context.Background()
	for !l.stop.Load() {
		key := rng.IntN(100) + 1
		req := tarantool.Select("users").Key(tarantool.Int(key))
		var u user
		var err error
		switch rng.IntN(3) {
		case 0:
			var all []user
			if err = l.pool.Do(ctx, &all, req, tarantool.PreferReadOnly); len(all) == 1 {
				u = all[0]
			}
		case 1:
			var all []user
			if err = l.pool.Start(ctx, req, tarantool.AnyInstance).Wait(&all); len(all) == 1 {
				u = all[0]
			}
		default:
			_, err = l.users.Get(ctx, &u, tarantool.Int(key))
		}
		if err != nil || u.ID != uint64(key) || u.Name != fmt.Sprintf("name%d", key%10) {
			l.t.Errorf("key %d: %v, %v", key, u, err)
			return
		}
		l.reads.Add(1)
	}
}

// more waits until every writer has n more acknowledgments, and the readers some.
func (l *poolLoad) more(n int64) {
	l.t.Helper()
	var before [poolWriters]int64
	for w := range before {
		before[w] = l.acks[w].Load()
	}
	reads := l.reads.Load()
	testkit.Eventually(l.t, 30*time.Second, func() error {
		for w := range before {
			if got := l.acks[w].Load() - before[w]; got < n {
				return fmt.Errorf("writer %d: %d acknowledged of %d; %v", w, got, n, l.pool.Instances())
			}
		}
		if got := l.reads.Load() - reads; got < n {
			return fmt.Errorf("%d reads", got)
		}
		return nil
	})
}

// judge compares an instance with the recorded results: it must contain acknowledged writes, and
// must not contain writes that were not executed. It waits for replication from another instance.
func (l *poolLoad) judge(addr string) {
	l.t.Helper()
	c := connect(l.t, tarantool.Options{Addr: addr})
	testkit.Eventually(l.t, 20*time.Second, func() error {
		var all []user
		if err := c.Do(context.Background(), &all, tarantool.Select("users").Iterator(tarantool.Ge).Key(tarantool.Int(firstKey))); err != nil {
			return err
		}
		there := make(map[uint64]bool, len(all))
		for _, u := range all {
			there[u.ID] = true
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		missing, extra := 0, 0
		for key, outcome := range l.outcomes {
			switch {
			case outcome == slipstream.Executed && !there[key]:
				missing++
			case outcome != slipstream.Executed && outcome != slipstream.MaybeExecuted && there[key]:
				extra++
			}
			delete(there, key)
		}
		if missing+extra+len(there) > 0 {
			return fmt.Errorf("%s: of %d writes, %d acknowledged ones are missing, but %d refused ones and %d unsent ones are there",
				addr, len(l.outcomes), missing, extra, len(there))
		}
		return nil
	})
}

// pair starts a replica set and a pool for it.
func pair(t testing.TB, o tarantool.PoolOptions) (p *tarantool.Pool, master, replica *testkit.TarantoolNode) {
	t.Helper()
	testkit.NoLeaks(t)
	master, replica = testkit.StartTarantoolPair(t, setup)
	o.Addrs = []string{master.Addr, replica.Addr}
	o.WaitFor = tarantool.ReadWrite
	return newPool(t, o), master, replica
}

func awaitMode(t testing.TB, p *tarantool.Pool, mode tarantool.Mode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	must(t, p.Wait(ctx, mode))
}

func awaitState(t testing.TB, p *tarantool.Pool, addr string, want tarantool.InstanceState) tarantool.InstanceInfo {
	t.Helper()
	var found tarantool.InstanceInfo
	testkit.Eventually(t, 20*time.Second, func() error {
		for _, i := range p.Instances() {
			if i.Addr == addr && i.State == want {
				found = i
				return nil
			}
		}
		return fmt.Errorf("%v, expected %s to be %v", p.Instances(), addr, want)
	})
	return found
}

func setReadOnly(t testing.TB, c *tarantool.Client, on bool) {
	t.Helper()
	must(t, c.Do(context.Background(), nil, tarantool.Eval("box.cfg{read_only = ...}", on)))
}

// The master is killed while it is written to, the replica takes over, and the old master comes
// back as a replica. No read fails, and no acknowledged write is lost.
func TestPoolKillMaster(t *testing.T) {
	p, master, replica := pair(t, tarantool.PoolOptions{CheckInterval: 100 * time.Millisecond, WaitTimeout: 30 * time.Second})
	awaitMode(t, p, tarantool.ReadOnly)
	l := startPoolLoad(t, p)
	for range 3 {
		l.more(20)
		promoted := connect(t, tarantool.Options{Addr: replica.Addr})
		master.Kill()
		awaitState(t, p, master.Addr, tarantool.InstanceDown)
		setReadOnly(t, promoted, false)
		l.more(20)
		master.Restart(t, true)
		awaitState(t, p, master.Addr, tarantool.InstanceReadOnly)
		master, replica = replica, master
	}
	l.end()
	for _, err := range l.failures {
		if slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
			t.Errorf("a write that could have been made elsewhere: %v", err)
		}
	}
	l.judge(master.Addr)
	l.judge(replica.Addr)
	t.Logf("%d writes, %d in doubt, %d reads, %d retries", len(l.outcomes), len(l.failures), l.reads.Load(), p.Rerouted())
}

// The roles are exchanged while both instances are alive: no request fails.
func TestPoolSwitchRoles(t *testing.T) {
	p, master, replica := pair(t, tarantool.PoolOptions{CheckInterval: time.Hour})
	awaitMode(t, p, tarantool.ReadOnly)
	from, to := connect(t, tarantool.Options{Addr: master.Addr}), connect(t, tarantool.Options{Addr: replica.Addr})
	l := startPoolLoad(t, p)
	rng := testkit.Rand(t)
	for i := 0; i < 10 || i < 200 && p.Rerouted() == 0; i++ {
		l.more(5)
		setReadOnly(t, from, true)
		time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond) // there is no master for a while
		setReadOnly(t, to, false)
		from, to = to, from
	}
	l.more(5)
	l.end()
	for _, err := range l.failures {
		t.Error(err)
	}
	l.judge(master.Addr)
	l.judge(replica.Addr)
	if p.Rerouted() == 0 {
		t.Error("no request was retried, so the change of roles had no effect")
	}
	t.Logf("%d writes, %d reads, %d retries", len(l.outcomes), l.reads.Load(), p.Rerouted())
}

// An instance that does not answer gets no requests after CheckTimeout, long before its
// connection is closed, and gets some again when it continues.
func TestPoolStalled(t *testing.T) {
	p, _, replica := pair(t, tarantool.PoolOptions{
		Options:       tarantool.Options{StallTimeout: -1},
		CheckInterval: 50 * time.Millisecond, CheckTimeout: 500 * time.Millisecond,
	})
	awaitMode(t, p, tarantool.ReadOnly)
	must(t, replica.Signal(syscall.SIGSTOP))
	stalled := awaitState(t, p, replica.Addr, tarantool.InstanceStalled)
	if stalled.Err == nil || stalled.Version != "2.6.0" {
		t.Errorf("%v", stalled)
	}
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		must(t, p.Do(ctx, nil, tarantool.Ping(), tarantool.PreferReadOnly))
		cancel()
	}
	must(t, replica.Signal(syscall.SIGCONT))
	awaitState(t, p, replica.Addr, tarantool.InstanceReadOnly)
	must(t, p.Do(t.Context(), nil, tarantool.Ping(), tarantool.ReadOnly))
}

// Requests in flight at an instance that dies are retried at another one only if they are
// idempotent.
func TestPoolCutOff(t *testing.T) {
	p, master, _ := pair(t, tarantool.PoolOptions{Options: tarantool.Options{DialTimeout: 300 * time.Millisecond}, WaitTimeout: 500 * time.Millisecond})
	awaitMode(t, p, tarantool.ReadOnly)
	ctx := t.Context()
	stays := tarantool.Eval("if not box.cfg.read_only then require('fiber').sleep(60) end return box.cfg.read_only")
	again, never := p.Start(ctx, stays.Idempotent(), tarantool.PreferReadWrite), p.Start(ctx, stays, tarantool.PreferReadWrite)
	apart := p.Start(ctx, stays.Idempotent().Blocking(), tarantool.PreferReadWrite)
	nobody := p.Start(ctx, stays.Idempotent(), tarantool.ReadWrite) // otherwise another could run it
	direct := make(chan error, 1)
	var answer [1]bool
	go func() { direct <- p.Do(ctx, &answer, stays.Idempotent(), tarantool.PreferReadWrite) }()
	awaitOutstanding(t, p, master.Addr, 5)
	master.Kill()
	for _, f := range []tarantool.PoolFuture{again, apart} {
		if data, err := f.Get(); err != nil || fmt.Sprint(data) != "[true]" {
			t.Errorf("%v, %v", data, err)
		}
	}
	if err := <-direct; err != nil || !answer[0] {
		t.Errorf("%v, %v", answer, err)
	}
	if err := never.Wait(nil); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("%v", err)
	}
	// The fact that no instance is left says nothing about what the dead one has executed.
	err, none := nobody.Wait(nil), new(tarantool.NoInstanceError)
	if slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || !errors.As(err, &none) {
		t.Errorf("%v", err)
	}
	if n := p.Rerouted(); n != 3 {
		t.Errorf("%d requests were retried, expected 3", n)
	}
}

func awaitOutstanding(t testing.TB, p *tarantool.Pool, addr string, n int) {
	t.Helper()
	testkit.Eventually(t, 10*time.Second, func() error {
		for _, i := range p.Instances() {
			if i.Addr == addr && i.Outstanding >= n {
				return nil
			}
		}
		return fmt.Errorf("%+v, expected %d requests in flight", p.Instances(), n)
	})
}

// Any requests that were queued for an instance that dies, and never sent, are sent to another one.
func TestPoolNotSent(t *testing.T) {
	p, master, _ := pair(t, tarantool.PoolOptions{Options: tarantool.Options{StallTimeout: -1}, CheckTimeout: time.Minute})
	awaitMode(t, p, tarantool.ReadOnly)
	must(t, master.Signal(syscall.SIGSTOP))
	// More than the sockets can buffer, and less than the client can.
	text := strings.Repeat("x", 1<<20)
	var calls [24]tarantool.PoolFuture
	for n := range calls {
		calls[n] = p.Start(t.Context(), tarantool.Eval("return ...", n, text), tarantool.PreferReadWrite)
	}
	master.Kill()
	moved := uint64(0)
	for n, call := range calls {
		data, err := call.Get()
		switch {
		case err == nil && len(data) == 2 && data[0] == int64(n) && data[1] == text:
			moved++
		case slipstream.OutcomeOf(err) != slipstream.MaybeExecuted:
			t.Errorf("%d: %.100v, %v", n, fmt.Sprint(data), err)
		}
	}
	if moved == 0 || moved != p.Rerouted() {
		t.Errorf("%d were answered, %d retried", moved, p.Rerouted())
	}
}
