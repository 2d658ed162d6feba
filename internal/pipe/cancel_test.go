package pipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// cancelBound is the longest time that a cancel may take on a machine with other load. The goal is 10 ms.
const cancelBound = 50 * time.Millisecond

// holdingServer holds requests until the test calls answer.
type holdingServer struct {
	*toyServer
	mu   sync.Mutex
	seen []toyRequest
}

func startHolding(t *testing.T, network string, tickets bool) *holdingServer {
	k := &holdingServer{}
	k.toyServer = startToy(t, &toyServer{network: network, tickets: tickets, handle: func(r toyRequest) {
		k.mu.Lock()
		k.seen = append(k.seen, r)
		k.mu.Unlock()
	}})
	return k
}

// bodies returns the requests that have arrived and were not answered.
func (k *holdingServer) bodies() (all []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.seen {
		all = append(all, r.body)
	}
	return all
}

// arrived waits until n requests have arrived.
func (k *holdingServer) arrived(n int) {
	k.t.Helper()
	testkit.Eventually(k.t, 5*time.Second, func() error {
		if got := k.bodies(); len(got) != n {
			return fmt.Errorf("%d requests have arrived: %q", len(got), got)
		}
		return nil
	})
}

// answer answers all requests that have arrived.
func (k *holdingServer) answer() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.seen {
		r.reply(r.body)
	}
	k.seen = nil
}

// start starts calls with these bodies together, so that they are outstanding.
func (k *holdingServer) start(ctx context.Context, e *Engine, bodies ...string) (calls []*Call) {
	k.t.Helper()
	for _, b := range bodies {
		c := k.newCall(e, b)
		if err := e.Start(ctx, c); err != nil {
			k.t.Fatal(err)
		}
		calls = append(calls, c)
	}
	return calls
}

// eachTransport runs f with connections in memory and of the system, each with replies in order and by ticket.
func eachTransport(t *testing.T, f func(t *testing.T, network string, tickets bool)) {
	for _, network := range []string{"", "unix", "tcp"} {
		for _, tickets := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/tickets=%v", network, tickets), func(t *testing.T) {
				testkit.NoLeaks(t)
				f(t, network, tickets)
			})
		}
	}
}

func oneFactor(c *Config) { c.FlushFactor = 1 }

// A queued call that is given up is never written: its bytes are cut from between those of its neighbors.
func TestCancelOfAQueuedCall(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k := startHolding(t, network, tickets)
		e := k.engine(oneFactor)
		setRoundTrip(e, time.Second) // so that no ticket counts as slow
		held := k.outstanding(e, 8)
		ctx, cancel := context.WithCancel(t.Context())
		a := k.start(t.Context(), e, "rqueued a")
		canceled := k.start(ctx, e, "rgone 1", "rgone 2")
		b := k.start(t.Context(), e, "rqueued b")
		if v := e.Snapshot(); v.Queued != 4 {
			t.Fatalf("%d calls are queued", v.Queued)
		}
		cancel()
		for _, c := range canceled {
			if err := c.Wait(); !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.NotSent || !c.Spent() {
				t.Errorf("the queued call: %v, spent %v", err, c.Spent())
			}
			c.Release()
		}
		k.answer()
		held()
		k.arrived(2)
		if got := k.bodies(); !slices.Equal(got, []string{"rqueued a", "rqueued b"}) {
			t.Errorf("the server got %q", got)
		}
		k.answer()
		k.finish(a[0])
		k.finish(b[0])
		if v := e.Snapshot(); v.NeverWritten != 2 || v.Cancelled != 2 || v.HeldBytes != 0 {
			t.Errorf("snapshot: %+v", v)
		}
		checkBalanced(t, e)
	})
}

// outstanding makes n calls, which are sent in one write and which the server holds. The returned function
// waits for them.
func (k *holdingServer) outstanding(e *Engine, n int) (wait func()) {
	k.t.Helper()
	var cs []*Call
	for i := range n {
		cs = append(cs, k.newCall(e, fmt.Sprint("rheld", i)))
	}
	done := make(chan error, 1)
	go func() { done <- e.DoAll(context.Background(), cs) }()
	k.arrived(n)
	return func() {
		k.t.Helper()
		if err := <-done; err != nil {
			k.t.Error(err)
		}
		for i, c := range cs {
			if got, want := k.replyOf(c), fmt.Sprint("rheld", i); got != want {
				k.t.Errorf("sent %q, got %q", want, got)
			}
			c.Release()
		}
	}
}

// finish waits for a call and checks that the reply equals the request.
func (k *holdingServer) finish(c *Call) {
	k.t.Helper()
	if err := c.Wait(); err != nil {
		k.t.Error(err)
	} else if got := k.replyOf(c); string(c.Frame[len(c.Frame)-len(got):]) != got {
		k.t.Errorf("sent %q, got %q", c.Frame, got)
	}
	c.Release()
}

func setRoundTrip(e *Engine, d time.Duration) {
	s := socketAt(e, 0)
	s.mu.Lock()
	s.pace.trip = roundTrip{current: d}
	s.calls.probing, s.calls.probe, s.pace.probeAt = true, 1<<63, e.now()+time.Hour
	s.mu.Unlock()
}

// A written call that is given up leaves a tombstone that swallows its late reply.
func TestCancelOfAWrittenCall(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k := startHolding(t, network, tickets)
		e := k.engine(oneFactor)
		ctx, cancel := context.WithCancel(t.Context())
		canceled := k.start(ctx, e, "rgone")
		k.arrived(1)
		cancel()
		err := canceled[0].Wait()
		if !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || slipstream.SafeToRetry(err) {
			t.Errorf("the written call: %v", err)
		}
		generation := canceled[0].Generation()
		canceled[0].Release() // the reader may find it later
		if canceled[0].Generation() == generation {
			t.Error("Release did not change the generation")
		}
		next := k.start(t.Context(), e, "rnext")
		k.arrived(2)
		k.answer()
		k.finish(next[0])
		v := e.Snapshot()
		if v.Replies != 2 || v.Outstanding != 0 || v.HeldBytes != 0 || v.Reconnects != 0 {
			t.Errorf("snapshot: %+v", v)
		}
		checkBalanced(t, e)
	})
}

// A call is given up while its large reply arrives. The messages after the reply are still found.
func TestCancelWithinAReply(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k := startHolding(t, network, tickets)
		e := k.engine(func(c *Config) { oneFactor(c); c.choices.SoloAfter = 1 })
		for round := range 6 {
			ctx, cancel := context.WithCancel(t.Context())
			large := k.newCall(e, "rlarge")
			done := make(chan error)
			go func() {
				if round%2 == 0 {
					done <- e.Do(ctx, large)
				} else if err := e.Start(ctx, large); err == nil {
					done <- large.Wait()
				}
			}()
			k.arrived(1)
			k.mu.Lock()
			r := k.seen[0]
			k.seen = nil
			k.mu.Unlock()
			reply := r.frame("r" + strings.Repeat("x", 200_000))
			r.peer.send(reply[:70_000])
			time.Sleep(time.Duration(round) * time.Millisecond)
			cancel()
			if err := <-done; slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || !errors.Is(err, context.Canceled) {
				t.Errorf("call canceled within its reply: %v", err)
			}
			large.Release()
			next := k.start(t.Context(), e, "rnext")
			r.peer.send(reply[70_000:])
			k.arrived(1)
			k.answer()
			k.finish(next[0])
		}
		if v := e.Snapshot(); v.Reconnects != 0 || v.Outstanding != 0 {
			t.Errorf("snapshot: %+v", v)
		}
		checkBalanced(t, e)
	})
}

// lateness measures how late goroutines of this process run, which the engine cannot help. The
// returned function stops the measurement and returns the maximum.
func lateness() (maxLate func() time.Duration) {
	stop, result := make(chan struct{}), make(chan time.Duration)
	go func() {
		worst := time.Duration(0)
		for {
			at := time.Now().Add(time.Millisecond)
			select {
			case <-stop:
				result <- worst
				return
			case <-time.After(time.Millisecond):
				worst = max(worst, time.Since(at))
			}
		}
	}()
	return func() time.Duration { close(stop); return <-result }
}

// latencies is a list of durations, to be logged and bounded.
type latencies []time.Duration

func (l latencies) check(t *testing.T, what string, late time.Duration) {
	t.Helper()
	slices.Sort(l)
	p := func(q float64) time.Duration { return l[int(q*float64(len(l)-1))] }
	t.Logf("%s, %d times: p50 %v, p90 %v, p99 %v, max %v; goroutines ran up to %v late", what, len(l), p(0.5), p(0.9), p(0.99), p(1), late)
	if p(0.9) > cancelBound+late {
		t.Errorf("%s took %v", what, p(0.9))
	}
}

// A call ends soon after its context, whether its caller reads, others are in flight, or its deadline passes.
func TestCancelIsHonouredSoon(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k := startHolding(t, network, tickets)
		e := k.engine(func(c *Config) { c.choices.SoloAfter = 1 })
		r := testkit.Rand(t)
		var lone, crowd, deadline latencies
		maxLate := lateness()
		for range 25 {
			// With one call at a time on system sockets, the callers read from the second call on.
			for range 2 {
				quick := k.newCall(e, "rquick")
				go func() { k.arrived(1); k.answer() }()
				if err := e.Do(t.Context(), quick); err != nil {
					t.Fatal(err)
				}
				quick.Release()
			}
			took, sent := k.cancelOne(e, time.Duration(r.Int64N(int64(8*time.Millisecond))))
			lone = append(lone, took)
			if sent { // otherwise it may have been canceled immediately
				k.arrived(1)
			}
			k.answer()
			testkit.Eventually(t, 5*time.Second, func() error {
				if e.Snapshot().Outstanding != 0 {
					return errors.New("a tombstone remains")
				}
				return nil
			})
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range 40 {
			d := time.Duration(r.Int64N(int64(20 * time.Millisecond)))
			wg.Go(func() {
				took, _ := k.cancelOne(e, d)
				ctx, cancel := context.WithTimeout(context.Background(), d)
				defer cancel()
				at := time.Now().Add(d)
				c := k.newCall(e, "rdeadline")
				err := e.Do(ctx, c)
				late := time.Since(at)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("call with an expired deadline: %v", err)
				}
				c.Release()
				mu.Lock()
				crowd, deadline = append(crowd, took), append(deadline, late)
				mu.Unlock()
			})
		}
		wg.Wait()
		late := maxLate()
		lone.check(t, "cancel of a lone call", late)
		crowd.check(t, "cancel of a call among others", late)
		deadline.check(t, "end after a deadline", late)
		if v := e.Snapshot(); (network != "") != (v.SoloReplies > 0) {
			t.Errorf("callers read %d replies on %q", v.SoloReplies, network)
		}
		checkBalanced(t, e)
	})
}

// cancelOne makes a call that is not answered and cancels it. It returns how long the call takes to end after
// that, and whether the request may have been sent.
func (k *holdingServer) cancelOne(e *Engine, after time.Duration) (took time.Duration, sent bool) {
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var at time.Time
	time.AfterFunc(after, func() {
		mu.Lock()
		at = time.Now()
		mu.Unlock()
		cancel()
	})
	c := k.newCall(e, "rcancelled")
	err := e.Do(ctx, c)
	end := time.Now()
	if !errors.Is(err, context.Canceled) {
		k.t.Errorf("the canceled call: %v", err)
	}
	c.Release()
	mu.Lock()
	defer mu.Unlock()
	return end.Sub(at), slipstream.OutcomeOf(err) != slipstream.NotSent
}

// If its context or timeout ends, DoAll returns soon, every call has an error, and the connection continues.
func TestCancelOfDoAll(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		for _, n := range []int{1, 3, 3*sweepChunk + 7, 3*sweepShare + 5} {
			for _, timeout := range []time.Duration{0, 10 * time.Millisecond} {
				k := startHolding(t, network, tickets)
				e := k.engine(func(c *Config) { c.choices.SoloAfter, c.Timeout = 1, timeout })
				ctx, cancel := context.WithCancel(t.Context())
				if timeout == 0 {
					time.AfterFunc(10*time.Millisecond, cancel)
				}
				var cs []*Call
				for i := range n {
					cs = append(cs, k.newCall(e, fmt.Sprint("r", i)))
				}
				maxLate := lateness()
				began := time.Now()
				if err := e.DoAll(ctx, cs); err == nil {
					t.Error("DoAll succeeded, want an error")
				}
				took := time.Since(began)
				// There are thousands of goroutines, perhaps under -race. Another test checks the real bound in virtual
				// time.
				if late := maxLate(); took > time.Second+2*late {
					t.Errorf("%d calls returned after %v; goroutines ran up to %v late", n, took, late)
				}
				sent := 0 // a slow machine may not have written them
				for _, c := range cs {
					if c.Err() == nil {
						t.Error("a call without a reply succeeded")
					}
					if slipstream.OutcomeOf(c.Err()) != slipstream.NotSent {
						sent++
					}
					c.Release()
				}
				cancel()
				k.arrived(sent)
				k.answer()
				next := k.start(context.Background(), e, "rnext")
				if timeout == 0 {
					k.arrived(1)
					k.answer()
					k.finish(next[0])
				} else {
					if err := next[0].Wait(); slipstream.OutcomeOf(err) != slipstream.NotSent {
						k.arrived(1)
					}
					next[0].Release()
					k.answer()
				}
				if v := e.Snapshot(); v.Reconnects != 0 {
					t.Errorf("snapshot: %+v", v)
				}
				checkBalanced(t, e)
				e.Close()
			}
		}
	})
}

// A peer that does not read does not delay a cancel, even of calls without replies in the blocked write.
func TestCancelWithAFullSendBuffer(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		stop := make(chan struct{})
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: func(toyRequest) { <-stop }})
		defer close(stop)
		e := s.engine(nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var took latencies
		maxLate := lateness()
		var mu sync.Mutex
		var wg sync.WaitGroup
		var at time.Time
		for i := range 200 {
			wg.Go(func() {
				c := s.newCall(e, "r"+strings.Repeat("x", 60_000))
				c.OneWay = i%3 == 0
				err := e.Do(ctx, c)
				end := time.Now()
				c.Release()
				mu.Lock()
				defer mu.Unlock()
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				if err != nil {
					took = append(took, end.Sub(at))
				}
			})
		}
		testkit.Eventually(t, 5*time.Second, func() error {
			if v := e.Snapshot(); v.Calls != 200 {
				return fmt.Errorf("%d calls", v.Calls)
			}
			return nil
		})
		time.Sleep(20 * time.Millisecond)
		mu.Lock()
		at = time.Now()
		mu.Unlock()
		cancel()
		wg.Wait()
		if len(took) < 150 {
			t.Errorf("only %d calls were given up", len(took))
		}
		late := maxLate()
		if raceEnabled {
			late += 200 * time.Millisecond // the detector slows down cutting 12 MB
		}
		took.check(t, "cancel with a full send buffer", late)
		checkBalanced(t, e)
	})
}

// Calls that make sense only together are written although they were given up, because some of them may have
// been written already. Other queued calls are cut.
func TestCancelOfWholeCalls(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k := startHolding(t, network, tickets)
		e := k.engine(oneFactor)
		setRoundTrip(e, time.Second)
		held := k.outstanding(e, 8)
		ctx, cancel := context.WithCancel(t.Context())
		a := k.start(t.Context(), e, "rqueued a")
		var canceled []*Call
		for i, body := range []string{"rwhole 1", "rplain", "rwhole 2"} {
			c := k.newCall(e, body)
			c.Whole = i != 1
			if err := e.Start(ctx, c); err != nil {
				t.Fatal(err)
			}
			canceled = append(canceled, c)
		}
		b := k.start(t.Context(), e, "rqueued b")
		cancel()
		for i, want := range []slipstream.Outcome{slipstream.MaybeExecuted, slipstream.NotSent, slipstream.MaybeExecuted} {
			if err := canceled[i].Wait(); slipstream.OutcomeOf(err) != want {
				t.Errorf("call %d: %v, want %v", i, err, want)
			}
			canceled[i].Release()
		}
		k.answer()
		held()
		k.arrived(4)
		if got := k.bodies(); !slices.Equal(got, []string{"rqueued a", "rwhole 1", "rwhole 2", "rqueued b"}) {
			t.Errorf("the server got %q", got)
		}
		k.answer()
		k.finish(a[0])
		k.finish(b[0])
		if v := e.Snapshot(); v.NeverWritten != 1 || v.Cancelled != 3 || v.HeldBytes != 0 {
			t.Errorf("snapshot: %+v", v)
		}
		checkBalanced(t, e)
	})
}
