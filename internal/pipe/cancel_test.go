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

// cancelBound is what a cancel may take on a machine that does other things too;
// the aim is 10 ms.
const cancelBound = 50 * time.Millisecond

// keepingServer keeps requests until it is told to answer.
type keepingServer struct {
	*toyServer
	mu   sync.Mutex
	seen []toyRequest
}

func startKeeping(t *testing.T, network string, tickets bool) *keepingServer {
	k := &keepingServer{}
	k.toyServer = startToy(t, &toyServer{network: network, tickets: tickets, handle: func(r toyRequest) {
		k.mu.Lock()
		k.seen = append(k.seen, r)
		k.mu.Unlock()
	}})
	return k
}

// bodies returns what has arrived and was not answered.
func (k *keepingServer) bodies() (all []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.seen {
		all = append(all, r.body)
	}
	return all
}

// arrived waits until n requests are there.
func (k *keepingServer) arrived(n int) {
	k.t.Helper()
	testkit.Eventually(k.t, 5*time.Second, func() error {
		if got := k.bodies(); len(got) != n {
			return fmt.Errorf("%d requests arrived: %q", len(got), got)
		}
		return nil
	})
}

// answer answers everything that has arrived.
func (k *keepingServer) answer() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.seen {
		r.reply(r.body)
	}
	k.seen = nil
}

// start starts calls with these bodies at once, so that they are outstanding.
func (k *keepingServer) start(ctx context.Context, e *Engine, bodies ...string) (calls []*Call) {
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

// eachWay runs f over connections in memory and of the system, in order and with
// tickets.
func eachWay(t *testing.T, f func(t *testing.T, network string, tickets bool)) {
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

// A queued call that is given up is never written: its bytes are cut out between
// its neighbours'.
func TestCancelOfAQueuedCall(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		k := startKeeping(t, network, tickets)
		e := k.engine(oneFactor)
		setRoundTrip(e, time.Second) // so that no ticket counts as slow
		held := k.outstanding(e, 8)
		ctx, cancel := context.WithCancel(t.Context())
		a := k.start(t.Context(), e, "rqueued a")
		gone := k.start(ctx, e, "rgone 1", "rgone 2")
		b := k.start(t.Context(), e, "rqueued b")
		if v := e.Snapshot(); v.Queued != 4 {
			t.Fatalf("%d are queued", v.Queued)
		}
		cancel()
		for _, c := range gone {
			if err := c.Wait(); !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.NotSent || !c.Spent() {
				t.Errorf("a queued call: %v, spent %v", err, c.Spent())
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
			t.Errorf("%+v", v)
		}
		balanced(t, e)
	})
}

// outstanding makes n calls that leave in one write and that the server keeps. The
// function it returns waits for them.
func (k *keepingServer) outstanding(e *Engine, n int) (wait func()) {
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
				k.t.Errorf("asked %q, got %q", want, got)
			}
			c.Release()
		}
	}
}

// finish waits for an echo.
func (k *keepingServer) finish(c *Call) {
	k.t.Helper()
	if err := c.Wait(); err != nil {
		k.t.Error(err)
	} else if got := k.replyOf(c); string(c.Frame[len(c.Frame)-len(got):]) != got {
		k.t.Errorf("asked %q, got %q", c.Frame, got)
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

// A written call leaves a tombstone that swallows its late reply.
func TestCancelOfAWrittenCall(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		k := startKeeping(t, network, tickets)
		e := k.engine(oneFactor)
		ctx, cancel := context.WithCancel(t.Context())
		gone := k.start(ctx, e, "rgone")
		k.arrived(1)
		cancel()
		err := gone[0].Wait()
		if !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || slipstream.SafeToRetry(err) {
			t.Errorf("a written call: %v", err)
		}
		generation := gone[0].Generation()
		gone[0].Release() // the reader may find it only later
		if gone[0].Generation() == generation {
			t.Error("the generation is the same after Release")
		}
		next := k.start(t.Context(), e, "rnext")
		k.arrived(2)
		k.answer()
		k.finish(next[0])
		v := e.Snapshot()
		if v.Replies != 2 || v.Outstanding != 0 || v.HeldBytes != 0 || v.Reconnects != 0 {
			t.Errorf("%+v", v)
		}
		balanced(t, e)
	})
}

// A call is given up while its large reply arrives; what comes after it is still
// found.
func TestCancelWithinAReply(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		k := startKeeping(t, network, tickets)
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
				t.Errorf("cancelled within the reply: %v", err)
			}
			large.Release()
			next := k.start(t.Context(), e, "rnext")
			r.peer.send(reply[70_000:])
			k.arrived(1)
			k.answer()
			k.finish(next[0])
		}
		if v := e.Snapshot(); v.Reconnects != 0 || v.Outstanding != 0 {
			t.Errorf("%+v", v)
		}
		balanced(t, e)
	})
}

// lateness watches by how much this process is kept from running, which no engine
// can help. The function it returns ends that and tells the most.
func lateness() (most func() time.Duration) {
	stop, told := make(chan struct{}), make(chan time.Duration)
	go func() {
		worst := time.Duration(0)
		for {
			at := time.Now().Add(time.Millisecond)
			select {
			case <-stop:
				told <- worst
				return
			case <-time.After(time.Millisecond):
				worst = max(worst, time.Since(at))
			}
		}
	}()
	return func() time.Duration { close(stop); return <-told }
}

// latencies is a list of durations that is logged and bounded.
type latencies []time.Duration

func (l latencies) judge(t *testing.T, what string, late time.Duration) {
	t.Helper()
	slices.Sort(l)
	p := func(q float64) time.Duration { return l[int(q*float64(len(l)-1))] }
	t.Logf("%s, %d times: p50 %v, p90 %v, p99 %v, max %v; goroutines run up to %v late", what, len(l), p(0.5), p(0.9), p(0.99), p(1), late)
	if p(0.9) > cancelBound+late {
		t.Errorf("%s took %v", what, p(0.9))
	}
}

func TestCancelIsHonouredSoon(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		k := startKeeping(t, network, tickets)
		e := k.engine(func(c *Config) { c.choices.SoloAfter = 1 })
		r := testkit.Rand(t)
		var lone, crowd, deadline latencies
		most := lateness()
		for range 25 {
			// Alone: on systems sockets the caller reads itself from the second
			// call on.
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
			if sent { // it may have been cancelled at once
				k.arrived(1)
			}
			k.answer()
			testkit.Eventually(t, 5*time.Second, func() error {
				if e.Snapshot().Outstanding != 0 {
					return errors.New("a tombstone is left")
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
					t.Errorf("past its deadline: %v", err)
				}
				c.Release()
				mu.Lock()
				crowd, deadline = append(crowd, took), append(deadline, late)
				mu.Unlock()
			})
		}
		wg.Wait()
		late := most()
		lone.judge(t, "a cancel alone", late)
		crowd.judge(t, "a cancel among others", late)
		deadline.judge(t, "a deadline", late)
		if v := e.Snapshot(); (network != "") != (v.SoloReplies > 0) {
			t.Errorf("%d replies were read by their caller on %q", v.SoloReplies, network)
		}
		balanced(t, e)
	})
}

// cancelOne makes a call that is not answered, cancels it, and returns how long
// it takes to come back and whether it may have been sent.
func (k *keepingServer) cancelOne(e *Engine, after time.Duration) (took time.Duration, sent bool) {
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
		k.t.Errorf("a cancelled call: %v", err)
	}
	c.Release()
	mu.Lock()
	defer mu.Unlock()
	return end.Sub(at), slipstream.OutcomeOf(err) != slipstream.NotSent
}

func TestCancelOfDoAll(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		for _, n := range []int{1, 3, 3*sweepChunk + 7, 3*sweepShare + 5} {
			for _, timeout := range []time.Duration{0, 10 * time.Millisecond} {
				k := startKeeping(t, network, tickets)
				e := k.engine(func(c *Config) { c.choices.SoloAfter, c.Timeout = 1, timeout })
				ctx, cancel := context.WithCancel(t.Context())
				if timeout == 0 {
					time.AfterFunc(10*time.Millisecond, cancel)
				}
				var cs []*Call
				for i := range n {
					cs = append(cs, k.newCall(e, fmt.Sprint("r", i)))
				}
				most := lateness()
				began := time.Now()
				if err := e.DoAll(ctx, cs); err == nil {
					t.Error("no error")
				}
				took := time.Since(began)
				if late := most(); took > time.Second+2*late { // of thousands of goroutines, under -race; the bound itself is held in virtual time
					t.Errorf("%d calls came back after %v; goroutines run up to %v late", n, took, late)
				}
				sent := 0 // a machine that is late may not have written them
				for _, c := range cs {
					if c.Err() == nil {
						t.Error("a call without a reply has no error")
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
					t.Errorf("%+v", v)
				}
				balanced(t, e)
				e.Close()
			}
		}
	})
}

// A peer that does not read delays no cancel, not even of calls without replies
// in the write that waits.
func TestCancelBehindAFullSendBuffer(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		stop := make(chan struct{})
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: func(toyRequest) { <-stop }})
		defer close(stop)
		e := s.engine(nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var took latencies
		most := lateness()
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
		late := most()
		if raceEnabled {
			late += 200 * time.Millisecond // 12 MB are cut out under the detector
		}
		took.judge(t, "a cancel behind a full send buffer", late)
		balanced(t, e)
	})
}

// Calls that make sense only together are written although they were given up: a part of them
// may have been. Others beside them are cut out as ever.
func TestCancelOfWholeCalls(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		k := startKeeping(t, network, tickets)
		e := k.engine(oneFactor)
		setRoundTrip(e, time.Second)
		held := k.outstanding(e, 8)
		ctx, cancel := context.WithCancel(t.Context())
		a := k.start(t.Context(), e, "rqueued a")
		var gone []*Call
		for i, body := range []string{"rwhole 1", "rplain", "rwhole 2"} {
			c := k.newCall(e, body)
			c.Whole = i != 1
			if err := e.Start(ctx, c); err != nil {
				t.Fatal(err)
			}
			gone = append(gone, c)
		}
		b := k.start(t.Context(), e, "rqueued b")
		cancel()
		for i, want := range []slipstream.Outcome{slipstream.MaybeExecuted, slipstream.NotSent, slipstream.MaybeExecuted} {
			if err := gone[i].Wait(); slipstream.OutcomeOf(err) != want {
				t.Errorf("call %d: %v, want %v", i, err, want)
			}
			gone[i].Release()
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
			t.Errorf("%+v", v)
		}
		balanced(t, e)
	})
}
