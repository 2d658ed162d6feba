package pipe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// slack is how much longer a measured time may be on a loaded machine.
const slack = 50 * time.Millisecond

// A silent server is noticed within 1.2 times the stall timeout, whatever the socket did before.
func TestStallIsNoticedInTime(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		const stall = 200 * time.Millisecond
		silent := make(chan struct{})
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: func(r toyRequest) {
			select {
			case <-silent:
			default:
				r.reply(r.body)
			}
		}})
		var stalled events
		e := s.engine(func(c *Config) {
			c.StallTimeout, c.OnEvent, c.choices.SoloAfter = stall, stalled.add, 5
		})
		for i := range 20 {
			if err := s.echo(t.Context(), e, fmt.Sprint("r", i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(70 * time.Millisecond) // not a multiple of the sweeper's interval
		close(silent)
		maxLate := lateness()
		began := time.Now()
		err := s.echo(t.Context(), e, "rx")
		took := time.Since(began)
		late := maxLate()
		t.Logf("noticed after %.3f of the timeout", float64(took)/float64(stall))
		if !errors.Is(err, ErrStalled) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
			t.Errorf("the stalled call: %v", err)
		}
		if took < stall-5*time.Millisecond || took > stall*12/10+slack+late {
			t.Errorf("noticed after %v, want %v to 1.2 times that", took, stall)
		}
		testkit.Eventually(t, 5*time.Second, func() error {
			if !strings.Contains(stalled.kinds(), "disconnected") {
				return errors.New("no event yet")
			}
			return nil
		})
		stalled.mu.Lock()
		defer stalled.mu.Unlock()
		for _, ev := range stalled.all {
			if ev.Stalled != (ev.Kind == slipstream.Disconnected) {
				t.Errorf("%+v", ev)
			}
		}
		if v := e.Snapshot(); v.Stalls != 1 || tickets != (v.Pings > 0) {
			t.Errorf("%d stalls, %d pings", v.Stalls, v.Pings)
		}
	})
}

// Silence of a server is reported long before the stall timeout, until data arrives from it.
func TestSilenceIsToldOf(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		speak := make(chan struct{})
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: func(r toyRequest) {
			<-speak
			r.reply(r.body)
		}})
		reported := make(chan struct{}, 1000)
		e := s.engine(func(c *Config) {
			c.StallTimeout, c.OnSilence = time.Minute, func() { reported <- struct{}{} }
		})
		began := time.Now()
		var call sync.WaitGroup
		// Ends with the reply; waited for below.
		call.Go(func() {
			if err := s.echo(t.Context(), e, "rx"); err != nil {
				t.Error(err)
			}
		})
		<-reported
		if took := time.Since(began); took < noticedAfter-5*time.Millisecond || took > 30*time.Second {
			t.Errorf("silence was reported after %v", took)
		}
		if !e.Silent() {
			t.Error("the engine does not report that the server is silent")
		}
		if v := e.Snapshot(); v.Stalls != 0 {
			t.Errorf("%d stalls", v.Stalls)
		}
		close(speak)
		call.Wait()
		testkit.Eventually(t, 20*time.Second, func() error {
			if e.Silent() {
				return errors.New("the engine reports that the server is silent after a reply")
			}
			return nil
		})
	})
}

// If the driver calls GiveUp, a silent server is given up before the stall timeout, and one that answers is
// not.
func TestGiveUp(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: func(r toyRequest) {
			if r.body != "rx" {
				r.reply(r.body)
			}
		}})
		reported := make(chan struct{}, 1000)
		e := s.engine(func(c *Config) {
			c.StallTimeout, c.OnSilence = time.Minute, func() { reported <- struct{}{} }
		})
		if err := s.echo(t.Context(), e, "ry"); err != nil {
			t.Fatal(err)
		}
		e.GiveUp()
		if v := e.Snapshot(); v.Stalls != 0 || v.Reconnects != 0 {
			t.Errorf("%d stalls, %d reconnects", v.Stalls, v.Reconnects)
		}
		var call sync.WaitGroup
		// Ends when the server is given up; waited for below.
		call.Go(func() {
			if err := s.echo(t.Context(), e, "rx"); !errors.Is(err, ErrStalled) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
				t.Errorf("the call that was sent to the silent server: %v", err)
			}
		})
		<-reported
		e.GiveUp()
		call.Wait()
		if v := e.Snapshot(); v.Stalls != 1 {
			t.Errorf("%d stalls", v.Stalls)
		}
	})
}

// Silence counts from the last byte received: a server that answers slowly but steadily is not stalled, nor is
// one that sends a long reply in small parts.
func TestSlowIsNotStalled(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		const stall = 640 * time.Millisecond
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: func(r toyRequest) {
			for _, b := range r.frame(r.body) {
				time.Sleep(stall / 8)
				r.peer.send([]byte{b})
			}
		}})
		e := s.engine(func(c *Config) { c.StallTimeout = stall })
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				if err := s.echo(context.Background(), e, fmt.Sprint("r", i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if v := e.Snapshot(); v.Stalls+v.Reconnects != 0 {
			t.Errorf("snapshot: %+v", v)
		}
	})
}

// A call with SlowFor gives the server that time and no more. The next call does not.
func TestSlowFor(t *testing.T) {
	testkit.NoLeaks(t)
	const stall, slow = 100 * time.Millisecond, 200 * time.Millisecond
	s := startToy(t, &toyServer{handle: func(r toyRequest) {
		if r.body == "rslow" {
			time.Sleep(slow)
			r.reply(r.body)
		}
	}})
	e := s.engine(func(c *Config) { c.StallTimeout = stall })
	try := func(body string, slowFor time.Duration) (took, late time.Duration, err error) {
		c := s.newCall(e, body)
		defer c.Release()
		c.SlowFor = slowFor
		maxLate := lateness()
		began := time.Now()
		err = e.Do(t.Context(), c)
		took = time.Since(began)
		return took, maxLate(), err
	}
	if _, _, err := try("rslow", slow); err != nil {
		t.Errorf("call with SlowFor: %v", err)
	}
	if took, late, err := try("rnever", slow); !errors.Is(err, ErrStalled) || took < stall+slow-5*time.Millisecond || took > (stall+slow)*12/10+slack+late {
		t.Errorf("call with SlowFor, without a reply: %v after %v", err, took)
	}
	if took, late, err := try("rnever", 0); !errors.Is(err, ErrStalled) || took > stall*12/10+slack+late {
		t.Errorf("the next call, without a reply: %v after %v", err, took)
	}
	never := s.engine(func(c *Config) { c.StallTimeout, c.Timeout = -1, 250*time.Millisecond })
	if err := s.echo(t.Context(), never, "rnever"); errors.Is(err, ErrStalled) {
		t.Errorf("call without a stall timeout: %v", err)
	}
}

// A slow call that is dropped before it is written does not extend the time of the others.
func TestSlowForOfADroppedCall(t *testing.T) {
	testkit.NoLeaks(t)
	k := startHolding(t, "", false)
	e := k.engine(func(c *Config) { oneFactor(c); c.StallTimeout = 100 * time.Millisecond })
	held := k.outstanding(e, 4)
	ctx, cancel := context.WithCancel(t.Context())
	gone := k.newCall(e, "rgone")
	gone.SlowFor = time.Hour
	if err := e.Start(ctx, gone); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := gone.Wait(); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("the slow call: %v", err)
	}
	gone.Release()
	k.answer()
	held()
	maxLate := lateness()
	began := time.Now()
	err := k.echo(t.Context(), e, "rnever")
	took := time.Since(began)
	if late := maxLate(); !errors.Is(err, ErrStalled) || took > 120*time.Millisecond+slack+late {
		t.Errorf("%v after %v; goroutines ran up to %v late", err, took, late)
	}
}

// With tickets, a slow call may take any time if pings are answered.
func TestPingsKeepASlowTicketAlive(t *testing.T) {
	testkit.NoLeaks(t)
	const stall = 60 * time.Millisecond
	var mu sync.Mutex
	var slow toyRequest
	pings, mute := 0, false
	s := startToy(t, &toyServer{tickets: true, handle: func(r toyRequest) {
		mu.Lock()
		defer mu.Unlock()
		if r.body != "r!ping" {
			slow = r
		} else if pings++; !mute {
			r.reply(r.body)
		}
	}})
	// The bound is reached, and a ping is sent anyway.
	e := s.engine(func(c *Config) { c.StallTimeout, c.MaxCalls = stall, 1 })
	ended := make(chan error, 1)
	go func() { ended <- s.echo(context.Background(), e, "rslow") }()
	sent := time.Now()
	testkit.Eventually(t, 30*time.Second, func() error {
		select {
		case err := <-ended:
			t.Fatalf("the slow call ended: %v", err)
		default:
		}
		mu.Lock()
		defer mu.Unlock()
		if took := time.Since(sent); took < 6*stall || pings < 4 {
			return fmt.Errorf("%d pings after %v", pings, took)
		}
		return nil
	})
	mu.Lock()
	slow.reply("rslow")
	mu.Unlock()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	testkit.Eventually(t, 5*time.Second, func() error { // the last ping uses the only slot
		if n := e.Outstanding(); n > 0 {
			return fmt.Errorf("%d calls are outstanding", n)
		}
		return nil
	})
	mu.Lock()
	mute = true
	mu.Unlock()
	maxLate := lateness()
	began := time.Now()
	err := s.echo(t.Context(), e, "rslow")
	took := time.Since(began)
	if late := maxLate(); !errors.Is(err, ErrStalled) || took > stall*12/10+slack+late {
		t.Errorf("%v after %v; goroutines ran up to %v late", err, took, late)
	}
	if v := e.Snapshot(); v.Stalls != 1 {
		t.Errorf("%d stalls", v.Stalls)
	}
	checkBalanced(t, e)
}

// An idle connection is pinged, and closed if the server does not answer.
func TestIdlePing(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		var mu sync.Mutex
		pings, mute := 0, false
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: func(r toyRequest) {
			mu.Lock()
			defer mu.Unlock()
			if r.body == "r!ping" {
				pings++
			}
			if !mute {
				r.reply(r.body)
			}
		}})
		e := s.engine(func(c *Config) {
			c.IdlePing, c.StallTimeout, c.choices.SoloAfter = 20*time.Millisecond, 40*time.Millisecond, 2
		})
		for range 5 {
			if err := s.echo(t.Context(), e, "rx"); err != nil {
				t.Fatal(err)
			}
		}
		testkit.Eventually(t, 5*time.Second, func() error {
			mu.Lock()
			defer mu.Unlock()
			if pings < 3 {
				return fmt.Errorf("%d pings", pings)
			}
			return nil
		})
		if v := e.Snapshot(); v.Stalls+v.Reconnects != 0 || v.Pings < 3 {
			t.Errorf("snapshot: %+v", v)
		}
		mu.Lock()
		mute = true
		mu.Unlock()
		testkit.Eventually(t, 5*time.Second, func() error {
			if v := e.Snapshot(); v.Stalls == 0 {
				return errors.New("a server that answers no ping was not noticed")
			}
			return nil
		})
	})
}

// An idle engine rests: it wakes at most twice a second.
func TestIdleEngineRests(t *testing.T) {
	e := &Engine{cfg: Config{}.withDefaults()}
	if got := e.rest(true); got < 500*time.Millisecond {
		t.Errorf("an idle engine wakes every %v", got)
	}
	if got := e.rest(false); got > 5*time.Second/12 {
		t.Errorf("the engine checks for stalls every %v", got)
	}
}

// TestQuickCallsAmongSlowOnes makes 800 slow calls with tickets, and many fast ones one after
// another: no fast call waits for a slow one.
func TestQuickCallsAmongSlowOnes(t *testing.T) {
	testkit.NoLeaks(t)
	for _, network := range []string{"", "tcp"} {
		var mu sync.Mutex
		var slow []toyRequest
		s := startToy(t, &toyServer{tickets: true, network: network, handle: func(r toyRequest) {
			if !strings.HasPrefix(r.body, "rslow") {
				r.reply(r.body)
				return
			}
			mu.Lock()
			slow = append(slow, r)
			mu.Unlock()
		}})
		e := s.engine(nil)
		var wg sync.WaitGroup
		for i := range 800 {
			wg.Go(func() {
				if err := s.echo(context.Background(), e, fmt.Sprint("rslow", i)); err != nil {
					t.Error(err)
				}
			})
		}
		testkit.Eventually(t, 10*time.Second, func() error {
			mu.Lock()
			defer mu.Unlock()
			if len(slow) < 800 {
				return fmt.Errorf("%d slow calls have arrived", len(slow))
			}
			return nil
		})
		var took latencies
		maxLate := lateness()
		for i := range 200 {
			began := time.Now()
			if err := s.echo(t.Context(), e, fmt.Sprint("rquick", i)); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(began))
			if i%50 == 0 {
				time.Sleep(5 * time.Millisecond)
			}
		}
		late := maxLate()
		took.check(t, "quick call among 800 slow ones", late)
		v := e.Snapshot()
		t.Logf("round trip %v, %d writes by the sweeper", v.RoundTrip, v.Aged)
		if limit := 4*v.RoundTrip + 2*time.Millisecond + 10*time.Millisecond + late; took[len(took)*9/10] > limit {
			t.Errorf("the 90th percentile is %v, want at most %v", took[len(took)*9/10], limit)
		}
		mu.Lock()
		for _, r := range slow {
			r.reply(r.body)
		}
		mu.Unlock()
		wg.Wait()
		checkBalanced(t, e)
	}
}

// A slow call that is dropped does not permit the server to be silent for the calls after it.
func TestPatienceEndsWithADroppedCall(t *testing.T) {
	for _, slowFirst := range []bool{true, false} {
		var o order
		slow, quick := &Call{SlowFor: time.Hour}, &Call{}
		if slowFirst {
			o.add(slow)
			o.add(quick)
		} else {
			o.add(quick)
			o.add(slow)
		}
		o.dropQueued(func(c *Call) bool { return c == slow })
		if o.slowUntil > o.head {
			t.Errorf("slow call first: %v: patience until position %d, the first call in flight is at %d", slowFirst, o.slowUntil, o.head)
		}
		o.add(slow)
		o.dropQueued(func(c *Call) bool { return c == quick })
		if o.slowUntil != o.tail {
			t.Errorf("slow call first: %v: patience until position %d, the slow call is at %d", slowFirst, o.slowUntil, o.tail-1)
		}
	}
}
