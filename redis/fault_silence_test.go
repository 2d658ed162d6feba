//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/redis"
)

// A silent link is given up after the stall timeout and within 1.2 times that, whichever goroutine
// reads and however many callers wait. Afterwards the client works.
func TestFaultSilence(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	for _, c := range []silenceTest{
		{name: "one caller", callers: 1},
		{name: "one caller that reads", callers: 1, lone: true},
		{name: "many callers", callers: 64},
		{name: "within a reply", callers: 1, within: true},
		{name: "within a reply, many callers", callers: 16, within: true},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, server) })
	}
}

// silenceTest is one way in which a link becomes silent.
type silenceTest struct {
	name    string
	callers int
	lone    bool // the caller reads its own replies
	within  bool // the silence starts within a reply of 1 MiB
}

func (c silenceTest) run(t *testing.T, server *testkit.Redis) {
	const stall = 300 * time.Millisecond
	proxy := faultproxy.Start(t, server.Addr, faultproxy.Options{})
	gone := make(chan redis.Event, 64)
	client := connect(t, redis.Options{
		Addr: proxy.Addr(), StallTimeout: stall, Retries: -1, Backoff: time.Millisecond,
		FailFast: true, // otherwise calls that were held back would wait for another connection
		OnEvent: func(e redis.Event) {
			if e.Kind == redis.Disconnected {
				gone <- e
			}
		},
	})
	c.silence(t, client, proxy, gone)
	late := lateness()
	began := time.Now()
	var callers sync.WaitGroup
	for range c.callers {
		callers.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, _, err := client.Get(ctx, "large")
			// Requests held back by the flush rule were not sent.
			if o := slipstream.OutcomeOf(err); !errors.Is(err, pipe.ErrStalled) || o != slipstream.MaybeExecuted && (o != slipstream.NotSent || c.callers == 1) {
				t.Errorf("%v, expected a stall with the outcome MaybeExecuted", err)
			}
		})
	}
	if c.within { // the silence starts with the last byte
		testkit.Eventually(t, 5*time.Second, func() error {
			before := proxy.Stats().DownBytes
			time.Sleep(5 * time.Millisecond)
			if n := proxy.Stats().DownBytes; n < 300_000 || n != before {
				return fmt.Errorf("%d bytes have arrived", n)
			}
			began = time.Now().Add(-5 * time.Millisecond)
			return nil
		})
	}
	e := <-gone
	took := e.At.Sub(began)
	callers.Wait()
	slack := late().at(1)
	t.Logf("noticed after %v, %.2f times the stall timeout; goroutines run up to %v late", took, float64(took)/float64(stall), slack)
	if took < stall-10*time.Millisecond || took > stall*12/10+slack+10*time.Millisecond {
		t.Errorf("noticed after %v, expected %v to %v", took, stall, stall*12/10)
	}
	if s := client.Stats(); !e.Stalled || s.Stalls != 1 {
		t.Errorf("%+v, %d stalls", e, s.Stalls)
	}
	proxy.SetPlan(nil)
	proxy.Resume()
	testkit.Eventually(t, 10*time.Second, func() error { return client.Ping(t.Context()) })
}

// silence makes the link silent now or later.
func (c silenceTest) silence(t *testing.T, client *redis.Client, proxy *faultproxy.Proxy, gone <-chan redis.Event) {
	must(t, client.Set(t.Context(), "large", text("large", 0, 1<<20)))
	if c.lone {
		for range 200 {
			must(t, client.Ping(t.Context()))
		}
		if client.Stats().SoloReplies == 0 {
			t.Error("no caller has read its own reply")
		}
	}
	if c.within {
		proxy.Cut() // the next connection is the slow one
		<-gone
		proxy.SetPlan(faultproxy.Always(faultproxy.Plan{Down: faultproxy.Link{
			Faults: []faultproxy.Fault{{After: 300_000, Do: faultproxy.Stall}},
		}}))
		testkit.Eventually(t, 10*time.Second, func() error { return client.Ping(t.Context()) })
	} else {
		proxy.Stall()
	}
}

// A server that is slow but sends bytes, or that owes no reply, is not given up.
func TestFaultSlowIsNotSilent(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t, "--enable-debug-command", "yes")
	var pauses []faultproxy.Fault
	for i := range int64(8) {
		pauses = append(pauses, faultproxy.Fault{After: 3000 + 100*i, Do: faultproxy.Stall, For: 200 * time.Millisecond})
	}
	proxy := faultproxy.Start(t, server.Addr, faultproxy.Options{Plan: faultproxy.Always(faultproxy.Plan{Down: faultproxy.Link{Faults: pauses}})})
	c := connect(t, redis.Options{Addr: proxy.Addr(), StallTimeout: time.Second, Retries: -1})
	must(t, c.Set(t.Context(), "k", text("k", 0, 5000)))
	if v, _, err := c.Get(t.Context(), "k"); v != text("k", 0, 5000) || err != nil {
		t.Errorf("a reply that took 1.6 s and never paused for 1 s: %d bytes, %v", len(v), err)
	}
	time.Sleep(1200 * time.Millisecond) // nothing is in flight
	must(t, c.Ping(t.Context()))
	if s := c.Stats(); s.Stalls != 0 || s.Reconnects != 0 {
		t.Errorf("%d stalls, %d connections ended", s.Stalls, s.Reconnects)
	}
	// A command that is known to be slow may take longer than the stall timeout.
	must(t, c.Do(t.Context(), nil, redis.Cmd("DEBUG", "SLEEP", "1.2")))
}

// A stopped server reads nothing: the send buffer is full and no reply comes. Callers that give up
// return within 10 ms anyway, and when the server continues, every remaining call succeeds.
func TestFaultStoppedServerDelaysNoCancel(t *testing.T) {
	testkit.NoLeaks(t)
	t.Run("TCP", func(t *testing.T) { stoppedServer(t, redis.Options{}) })
	t.Run("as with TLS", func(t *testing.T) { stoppedServer(t, redis.Options{Dialer: opaque}) })
}

func stoppedServer(t *testing.T, o redis.Options) {
	server := testkit.StartRedis(t)
	o.Addr, o.StallTimeout = server.Addr, -1
	c := connect(t, o)
	must(t, c.Set(t.Context(), "k", "v"))
	must(t, server.Signal(syscall.SIGSTOP))
	large := redis.Cmd("SET", "large", text("large", 0, 256<<10))
	var kept sync.WaitGroup
	kept.Add(80)
	done := completerFunc(func(_ redis.Reply, err error) {
		defer kept.Done()
		if err != nil {
			t.Errorf("a call that was not canceled: %v", err)
		}
	})
	for range 80 { // 20 MiB, more than all buffers in between
		must(t, c.DoFunc(t.Context(), large, done))
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		s := c.Stats()
		// A single write, which cannot end, may contain all calls.
		if s.ShortWrites == 0 && (o.Dialer == nil || s.Queued == 0 && s.Outstanding < 80) {
			return fmt.Errorf("the send buffer is not full: %d bytes sent", s.BytesOut)
		}
		return nil
	})
	late := lateness()
	var mu sync.Mutex
	var took delays
	var callers sync.WaitGroup
	for i := range 24 {
		callers.Go(func() {
			for round := range 12 {
				d, err := cancelled(t, c, (i+round)%3, time.Duration(i*round%17)*500*time.Microsecond)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%v, expected that the context was canceled", err)
				}
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	slack := late().at(1)
	took.log(t, "cancel with a full send buffer")
	if got, most := took.at(0.99), cancelLimit(15*time.Millisecond, slack); got > most {
		t.Errorf("a cancel took %v (p99; goroutines run %v late), expected at most %v", got, slack, most)
	}
	must(t, server.Signal(syscall.SIGCONT))
	kept.Wait()
	if v, _, err := c.Get(t.Context(), "k"); v != "v" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if s := c.Stats(); s.Reconnects != 0 || s.HeldBytes != 0 {
		t.Errorf("%d connections ended, %d bytes held", s.Reconnects, s.HeldBytes)
	}
}

// cancelLimit returns how long a cancel may take if it takes at most d when goroutines are not
// late. Slack is how late they were. A cancel needs several goroutines in turn: the caller, and
// those that read, write and sweep. If the machine was so busy that each of them was late by more
// than d, the limit only distinguishes a cancel that waits for the server from one that does not.
func cancelLimit(d, slack time.Duration) time.Duration {
	if slack > d {
		return 2*time.Second + 10*slack
	}
	return d + 4*slack
}

// completerFunc is a function that implements Completer.
type completerFunc func(redis.Reply, error)

// Complete implements redis.Completer.
func (f completerFunc) Complete(r redis.Reply, err error) { f(r, err) }

// cancelled makes a call in one of three ways, cancels it, and returns how long the call then took
// to return.
func cancelled(t testing.TB, c *redis.Client, style int, after time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	switch style {
	case 0:
		go func() { // ends with the call
			_, _, err := c.Get(ctx, "k")
			ended <- err
		}()
	case 1:
		f := c.Start(ctx, redis.Cmd("GET", "k"))
		go func() { ended <- f.Wait(nil) }() // ends with the call
	default:
		if err := c.DoFunc(ctx, redis.Cmd("GET", "k"), completerFunc(func(_ redis.Reply, err error) { ended <- err })); err != nil {
			return 0, err
		}
	}
	time.Sleep(2*time.Millisecond + after)
	began := time.Now()
	cancel()
	err := <-ended
	return time.Since(began), err
}

// A lone caller that reads its own replies can give up, too: while it writes more than the server
// reads, and while it waits.
func TestFaultStoppedServerAndLoneCaller(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	c := connect(t, redis.Options{Addr: server.Addr, StallTimeout: -1})
	var took delays
	late := lateness()
	for round := range 8 {
		before := c.Stats().SoloReplies
		for range 200 {
			must(t, c.Ping(t.Context()))
		}
		if c.Stats().SoloReplies == before {
			t.Fatal("no caller has read its own reply")
		}
		must(t, server.Signal(syscall.SIGSTOP))
		ctx, cancel := context.WithCancel(t.Context())
		var at atomic.Int64
		large := text("large", round, 8<<20)
		began := time.Now()
		timer := time.AfterFunc(40*time.Millisecond, func() {
			at.Store(int64(time.Since(began)))
			cancel()
		})
		var err error
		if round%2 == 0 {
			err = c.Set(ctx, "large", large)
		} else {
			_, _, err = c.Get(ctx, "k")
		}
		took = append(took, time.Since(began)-time.Duration(at.Load()))
		timer.Stop()
		outcome := slipstream.OutcomeOf(err)
		if !errors.Is(err, context.Canceled) || outcome != slipstream.MaybeExecuted && outcome != slipstream.NotSent {
			t.Errorf("%v", err)
		}
		must(t, server.Signal(syscall.SIGCONT))
		must(t, c.Ping(t.Context()))
		if outcome == slipstream.NotSent { // 8 MiB were not encoded in time
			var begin string
			must(t, c.Do(t.Context(), &begin, redis.Cmd("GETRANGE", "large", 0, 20)))
			if strings.HasPrefix(large, begin) && begin != "" {
				t.Errorf("%v, but the call was executed", err)
			}
		}
		cancel()
	}
	slack := late().at(1)
	took.log(t, "cancel of a lone caller")
	// The sweeper competes for the CPU with everything else that runs. So the median cancel must be
	// within the bound, and the slowest of a dozen within five times the bound.
	if usual, worst := took.at(0.5), took.at(1); usual > cancelLimit(10*time.Millisecond, slack) || worst > cancelLimit(50*time.Millisecond, slack) {
		t.Errorf("cancels took %v (p50) and %v (max; goroutines run %v late), expected at most 10 ms", usual, worst, slack)
	}
	if s := c.Stats(); s.Reconnects != 0 {
		t.Errorf("%d connections ended", s.Reconnects)
	}
}

// The server is stopped, killed and restarted under load.
func TestFaultServerComesAndGoes(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	server := testkit.StartRedis(t)
	c := connect(t, redis.Options{Addr: server.Addr, Backoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond, StallTimeout: 150 * time.Millisecond})
	l := newLedger(t, server.Addr, c, 1, 30, 100, 700, 40_000)
	l.volatile, l.cancels = true, 100*time.Millisecond
	var over atomic.Bool
	wait := l.start(t, seed, 8, over.Load)
	r := testkit.Fork(seed, 1)
	for range 4 {
		time.Sleep(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
		if r.IntN(2) == 0 {
			must(t, server.Signal(syscall.SIGSTOP))
			time.Sleep(time.Duration(r.Int64N(int64(300 * time.Millisecond))))
			must(t, server.Signal(syscall.SIGCONT))
			continue
		}
		server.Kill()
		time.Sleep(time.Duration(r.Int64N(int64(50 * time.Millisecond))))
		server.Restart(t)
	}
	over.Store(true)
	wait()
}
