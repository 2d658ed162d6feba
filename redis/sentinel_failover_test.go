//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// burden contains the results of calls that are made in every way.
type burden struct {
	calls, failed atomic.Int64
	first         atomic.Pointer[error]
	acknowledged  atomic.Int64 // successful INCR calls
	uncertain     atomic.Int64
	tokens        sync.Map // pushed token: outcome
	longest       atomic.Int64
	list, counter string // immutable; keys
}

// note records the result of a call that must succeed.
func (b *burden) note(style string, err error) {
	b.calls.Add(1)
	if err != nil {
		b.failed.Add(1)
		err = fmt.Errorf("%s: %w", style, err)
		b.first.CompareAndSwap(nil, &err)
	}
}

// noteOnce records the result of a call that must not be executed twice: it may fail if its
// connection was lost, or if the server was no longer a master.
func (b *burden) noteOnce(style string, err error) {
	switch slipstream.OutcomeOf(err) {
	case slipstream.MaybeExecuted, slipstream.Refused:
		err = nil
	}
	b.note(style, err)
}

// carry makes calls in every way until the returned function is called. It checks that all calls
// that may be retried have succeeded, and that no other call was executed twice.
func carry(t *testing.T, c *redis.Client) (b *burden, stop func()) {
	b = &burden{list: fmt.Sprint("tokens:", time.Now().UnixNano()), counter: fmt.Sprint("counter:", time.Now().UnixNano())}
	var callers sync.WaitGroup
	ended := make(chan struct{})
	ctx := context.Background()
	keys := []string{"a", "b", "c", "d", "e"}
	set := func(i int) redis.Command { return redis.Cmd("SET", keys[i%len(keys)], i).Idempotent() }
	styles := []func(i int){
		func(i int) {
			_, _, err := c.Get(ctx, keys[i%len(keys)])
			b.note("typed", err)
		},
		func(i int) { b.note("do", c.Do(ctx, nil, set(i))) },
		func(i int) { b.note("future", c.Start(ctx, set(i)).Wait(nil)) },
		func(i int) {
			done := make(chan error, 1)
			err := c.DoFunc(ctx, set(i), completerOf(done))
			if err == nil {
				err = <-done
			}
			b.note("completer", err)
		},
		func(i int) {
			var batch redis.Batch
			for j := range keys {
				batch.Add(nil, set(j))
				batch.AddStrings(nil, "GET", keys[j])
			}
			b.note("batch", c.DoBatch(ctx, &batch))
		},
		func(int) {
			_, err := c.MGet(ctx, keys...)
			b.note("many", err)
		},
		func(i int) {
			var batch redis.Batch
			batch.Add(nil, set(i))
			batch.AddStrings(nil, "INCR", "transactions")
			b.noteOnce("transaction", c.DoTransaction(ctx, &batch))
		},
		func(int) {
			_, _, _, err := c.BLPop(ctx, 20*time.Millisecond, "empty")
			b.noteOnce("blocking", err)
		},
		func(int) {
			_, err := c.Incr(ctx, b.counter)
			switch slipstream.OutcomeOf(err) {
			case slipstream.Executed:
				b.acknowledged.Add(1)
			case slipstream.MaybeExecuted:
				b.uncertain.Add(1)
			}
			b.noteOnce("incr", err)
		},
		func(i int) {
			token := strconv.Itoa(i)
			_, err := c.RPush(ctx, b.list, token)
			b.tokens.Store(token, slipstream.OutcomeOf(err))
			b.noteOnce("push", err)
		},
	}
	for _, style := range styles {
		// Ends with ended; stop waits for it.
		callers.Go(func() {
			for i := 0; ; i++ {
				began := time.Now()
				style(i)
				if d := int64(time.Since(began)); d > b.longest.Load() {
					b.longest.Store(d) // approximately
				}
				select {
				case <-ended:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	return b, func() {
		t.Helper()
		close(ended)
		callers.Wait()
		if n := b.failed.Load(); n > 0 {
			t.Errorf("%d of %d calls failed; first: %v", n, b.calls.Load(), *b.first.Load())
		}
		b.check(t, c)
	}
}

type completerOf chan error

func (c completerOf) Complete(_ redis.Reply, err error) { c <- err }

// check compares the data of the master with the results of the calls. Writes that were
// acknowledged but not replicated may be lost; no write may be there twice.
func (b *burden) check(t *testing.T, c *redis.Client) {
	t.Helper()
	var text *string
	must(t, c.Do(t.Context(), &text, redis.Cmd("GET", b.counter)))
	n := int64(0)
	if text != nil {
		n, _ = strconv.ParseInt(*text, 10, 64) // written by INCR
	}
	if most := b.acknowledged.Load() + b.uncertain.Load(); n > most {
		t.Errorf("the counter is %d; %d increments were acknowledged and %d may have been executed", n, b.acknowledged.Load(), b.uncertain.Load())
	}
	tokens, err := c.LRange(t.Context(), b.list, 0, -1)
	must(t, err)
	times := make(map[string]int)
	for _, token := range tokens {
		times[token]++
		if times[token] == 2 {
			t.Errorf("%s was pushed twice", token)
		}
	}
	lost := 0
	b.tokens.Range(func(token, outcome any) bool {
		there := times[token.(string)] > 0
		switch outcome.(slipstream.Outcome) {
		case slipstream.Executed:
			if !there {
				lost++
			}
		case slipstream.NotSent, slipstream.Refused:
			if there {
				t.Errorf("%v was pushed, but its outcome is %v", token, outcome)
			}
		}
		return true
	})
	t.Logf("%d calls; %d increments acknowledged, %d uncertain, the counter is %d; %d tokens, %d acknowledged ones not replicated; the longest call took %v",
		b.calls.Load(), b.acknowledged.Load(), b.uncertain.Load(), n, len(tokens), lost, time.Duration(b.longest.Load()).Round(time.Millisecond))
}

// Calls made in every way survive a failover that was requested from a Sentinel, and the death of a
// master together with a Sentinel.
func TestSentinelFailoverUnderLoad(t *testing.T) {
	testkit.NoLeaks(t)
	s := rediscluster.StartSentinels(t, rediscluster.SentinelOptions{})
	o := sentinelOptions(s)
	o.DialTimeout = 30 * time.Second
	c := connectSentinel(t, o)
	sub, err := c.Subscribe(t.Context(), redis.Topics{Channels: []string{"news"}})
	must(t, err)
	defer sub.Close()

	_, stop := carry(t, c)
	master := s.Failover(t)
	stop()
	atMaster(t, c, master)
	hears(t, c, sub)

	s.Sentinels()[0].Kill()
	b, stop := carry(t, c)
	master.Kill()
	killed := time.Now()
	switched := firstSwitch(t, s, master)
	recovered := recovery(t, c)
	t.Logf("the Sentinels took %v, the client %v more", switched.Sub(killed).Round(time.Millisecond), recovered.Sub(switched).Round(time.Millisecond))
	if d := recovered.Sub(switched); d > 5*time.Second {
		t.Errorf("the client took %v longer than the Sentinels", d)
	}
	next := s.AwaitSwitch(t, master)
	stop()
	atMaster(t, c, next)
	hears(t, c, sub)
	if b.calls.Load() == 0 {
		t.Error("no calls")
	}

	// The old master returns as a master without data, until a Sentinel reconfigures it.
	_, stop = carry(t, c)
	s.Restart(t, master)
	stop()
	atMaster(t, c, next)
	must(t, c.Close())
}

// A frozen master closes no connection: the client leaves it.
//
// mutant: sentinel-hub-stays, sentinel-exclusive-stays
func TestSentinelClientLeavesAFrozenMaster(t *testing.T) {
	testkit.NoLeaks(t)
	s := rediscluster.StartSentinels(t, rediscluster.SentinelOptions{Replicas: 1})
	o := sentinelOptions(s)
	o.StallTimeout, o.DialTimeout, o.FailFast, o.Cache = -1, 2*time.Second, true, &redis.CacheOptions{}
	frozen := s.Master(t).Addr()
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr != frozen {
			time.Sleep(100 * time.Millisecond) // longer than it takes to give up the calls at the frozen master
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	c := connectSentinel(t, o)
	sub, err := c.Subscribe(t.Context(), redis.Topics{Channels: []string{"news"}})
	must(t, err)
	defer sub.Close()
	session, err := c.Session(t.Context())
	must(t, err)
	for i := range 100 {
		must(t, c.Set(t.Context(), strconv.Itoa(i), "v"))
	}
	if value, _, err := c.GetCached(t.Context(), "7"); err != nil || value != "v" {
		t.Errorf("%q, %v", value, err)
	}
	next, stop := iter.Pull2(c.Scan(context.Background(), redis.ScanOptions{Count: 5}))
	defer stop()
	if _, err, ok := next(); !ok || err != nil {
		t.Fatal(err)
	}
	popped, read := make(chan error, 1), make(chan error, 1)
	go func() { // received below
		_, _, _, err := c.BLPop(context.Background(), 0, "none")
		popped <- err
	}()
	old := s.Master(t)
	testkit.Eventually(t, 10*time.Second, func() error {
		if v, err := old.Ask("INFO", "clients"); err != nil || !strings.Contains(string(v.Str), "blocked_clients:1") {
			return fmt.Errorf("no client is blocked: %v", err)
		}
		return nil
	})
	old.Stop(t)
	go func() { // received below
		_, _, err := c.Get(context.Background(), "k")
		read <- err
	}()
	master := s.AwaitSwitch(t, old)
	hears(t, c, sub)
	must(t, <-read)
	select {
	case err := <-popped:
		if slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
			t.Errorf("BLPOP at the old master: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("BLPOP waits at the old master")
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if err := session.Do(t.Context(), nil, redis.Cmd("WATCH", "k")); slipstream.OutcomeOf(err) != slipstream.NotSent {
			return fmt.Errorf("the session has not ended: %v", err)
		}
		return nil
	})
	session.Close()
	atMaster(t, c, master)
	master.Do(t, "SET", "7", "new")
	if value, _, err := c.GetCached(t.Context(), "7"); err != nil || value != "new" {
		t.Errorf("the cache has %q, %v", value, err)
	}
	ok := true
	for err = nil; ok && err == nil; {
		_, err, ok = next()
	}
	if !ok || errors.Is(err, redis.ErrClosed) {
		t.Errorf("a scan that started at the old master: %v", err)
	}
	must(t, c.Close())
	old.Cont(t)
}

// hears waits until a subscription receives a message published by the master.
func hears(t *testing.T, c *redis.Client, sub *redis.Subscription) {
	t.Helper()
	word := strconv.FormatInt(time.Now().UnixNano(), 10)
	testkit.Eventually(t, 20*time.Second, func() error {
		if n, err := c.Publish(t.Context(), "news", word); err != nil || n == 0 {
			return fmt.Errorf("%d subscribers at the master, %w", n, err)
		}
		return nil
	})
	for {
		m, err := sub.Receive(t.Context())
		must(t, err)
		if m.Payload == word {
			return
		}
	}
}

// firstSwitch waits until a Sentinel names a master other than old, and returns the time at which
// it did.
func firstSwitch(t *testing.T, s *rediscluster.Sentinels, old *rediscluster.Node) time.Time {
	t.Helper()
	deadline := time.Now().Add(rediscluster.Patience)
	for time.Now().Before(deadline) {
		for _, n := range s.Sentinels() {
			if !n.Running() {
				continue
			}
			v, err := n.Ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Name)
			if err == nil && len(v.Elems) == 2 && string(v.Elems[1].Str) != strconv.Itoa(old.Port()) {
				return time.Now()
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatalf("no failover\n%s", s.State())
	return time.Time{}
}

// recovery waits until a write succeeds, and returns the time at which it did.
func recovery(t *testing.T, c *redis.Client) time.Time {
	t.Helper()
	must(t, c.Do(t.Context(), nil, redis.Cmd("SET", "recovered", "1").Idempotent()))
	return time.Now()
}
