package pipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// several returns one call that requests replies to all the bodies.
func (s *toyServer) several(e *Engine, bodies ...string) *Call {
	c := e.Acquire()
	c.Frame = c.Frame[:0]
	for _, b := range bodies {
		c.Frame = appendToy(c.Frame, b)
	}
	c.Replies = int32(len(bodies))
	return c
}

// checkReplies checks that the call has an echoing server's replies to bodies.
func checkReplies(t *testing.T, c *Call, bodies []string) {
	t.Helper()
	if c.Received() != len(bodies) {
		t.Errorf("%d replies, want %d", c.Received(), len(bodies))
		return
	}
	for i, want := range bodies {
		if got := (toyScanner{}).body(c.ReplyAt(i)); got != want {
			t.Errorf("reply %d is %q, want %q", i, got, want)
		}
	}
}

// lines returns n different bodies, some of them long.
func lines(name string, n int) (bodies []string) {
	for i := range n {
		bodies = append(bodies, fmt.Sprintf("r%s %d %s", name, i, strings.Repeat("x", i%7*30)))
	}
	return bodies
}

// A call with several replies gets all of them, in order, among other calls.
func TestSeveralReplies(t *testing.T) {
	testkit.NoLeaks(t)
	for _, network := range []string{"", "tcp", "unix"} {
		for _, solo := range []int{-1, 1} {
			s := startToy(t, &toyServer{network: network, faults: func(int) faults { return faults{chunk: 97} }})
			e := s.engine(func(c *Config) { c.choices.SoloAfter = solo })
			for _, n := range []int{1, 2, 3, 1000, 2000} {
				for range 3 {
					bodies := lines("all", n)
					c := s.several(e, bodies...)
					if err := e.Do(t.Context(), c); err != nil {
						t.Fatal(err)
					}
					checkReplies(t, c, bodies)
					c.Release()
				}
				if err := s.echo(t.Context(), e, "rsingle"); err != nil {
					t.Error(err)
				}
			}
			// DoAll with multi-reply calls, and single-reply calls between them.
			cs := []*Call{s.several(e, lines("a", 700)...), s.newCall(e, "rone"), s.several(e, lines("b", 2)...), s.newCall(e, "rtwo")}
			if err := e.DoAll(t.Context(), cs); err != nil {
				t.Error(err)
			}
			checkReplies(t, cs[0], lines("a", 700))
			checkReplies(t, cs[2], lines("b", 2))
			if s.replyOf(cs[1]) != "rone" || s.replyOf(cs[3]) != "rtwo" {
				t.Errorf("single replies %q and %q", s.replyOf(cs[1]), s.replyOf(cs[3]))
			}
			for _, c := range cs {
				c.Release()
			}
			checkBalanced(t, e)
			e.Close()
		}
	}
}

// A call that is given up after some of its replies keeps these, its other replies are dropped, and the calls
// after it get theirs.
func TestCancelBetweenReplies(t *testing.T) {
	testkit.NoLeaks(t)
	for _, network := range []string{"", "tcp"} {
		k := startHolding(t, network, false)
		e := k.engine(func(c *Config) { c.choices.SoloAfter = 1 })
		ctx, cancel := context.WithCancel(t.Context())
		bodies := lines("gone", 5)
		c := k.several(e, bodies...)
		done := make(chan error, 1)
		go func() { done <- e.Do(ctx, c) }()
		k.arrived(5)
		k.mu.Lock()
		for _, r := range k.seen[:2] {
			r.reply(r.body)
		}
		k.seen = k.seen[2:]
		k.mu.Unlock()
		testkit.Eventually(t, 5*time.Second, func() error {
			if v := e.Snapshot(); v.Replies != 2 {
				return fmt.Errorf("%d replies", v.Replies)
			}
			return nil
		})
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || !c.Spent() {
			t.Errorf("the canceled call: %v, spent %v", err, c.Spent())
		}
		if c.Written() != len(c.Frame) {
			t.Errorf("%d of %d bytes count as written", c.Written(), len(c.Frame))
		}
		checkReplies(t, c, bodies[:2])
		next := k.start(t.Context(), e, "rnext")
		if network == "" { // half while the caller has the call, the rest after Release
			k.mu.Lock()
			k.seen[0].reply(k.seen[0].body)
			k.seen = k.seen[1:]
			k.mu.Unlock()
			testkit.Eventually(t, 5*time.Second, func() error {
				if v := e.Snapshot(); v.Replies != 3 {
					return fmt.Errorf("%d replies", v.Replies)
				}
				return nil
			})
		}
		checkReplies(t, c, bodies[:2])
		c.Release()
		testkit.Eventually(t, 5*time.Second, func() error {
			k.answer()
			if v := e.Snapshot(); v.Queued+v.Outstanding > 0 {
				return fmt.Errorf("snapshot: %+v", v)
			}
			return nil
		})
		k.finish(next[0])
		checkBalanced(t, e)
		e.Close()
	}
}

// A call with several replies that is given up while it is queued is cut from the queue as a whole.
func TestCancelOfQueuedReplies(t *testing.T) {
	testkit.NoLeaks(t)
	k := startHolding(t, "tcp", false)
	e := k.engine(oneFactor)
	held := k.outstanding(e, 100)
	ctx, cancel := context.WithCancel(t.Context())
	before := k.several(e, "rbefore 1", "rbefore 2")
	canceled := k.several(e, lines("gone", 40)...)
	after := k.several(e, "rafter 1", "rafter 2")
	for i, c := range []*Call{before, canceled, after} {
		if err := e.Start([]context.Context{t.Context(), ctx, t.Context()}[i], c); err != nil {
			t.Fatal(err)
		}
	}
	if v := e.Snapshot(); v.Queued != 44 {
		t.Fatalf("%d calls are queued", v.Queued)
	}
	cancel()
	if err := canceled.Wait(); slipstream.OutcomeOf(err) != slipstream.NotSent || canceled.Written() != 0 || canceled.Received() != 0 {
		t.Errorf("the canceled call: %v, %d written, %d received", err, canceled.Written(), canceled.Received())
	}
	canceled.Release()
	k.answer()
	held()
	k.arrived(4)
	k.answer()
	for c, bodies := range map[*Call][]string{before: {"rbefore 1", "rbefore 2"}, after: {"rafter 1", "rafter 2"}} {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		checkReplies(t, c, bodies)
		c.Release()
	}
	if v := e.Snapshot(); v.NeverWritten != 40 || v.Cancelled != 1 || v.HeldBytes != 0 {
		t.Errorf("snapshot: %+v", v)
	}
	checkBalanced(t, e)
}

// The connection is reset at every offset of either direction: the call knows the replies that arrived and, to
// the byte, what the server cannot have received.
func TestResetBetweenReplies(t *testing.T) {
	testkit.NoLeaks(t)
	bodies := []string{"rone", "rtwo is longer " + strings.Repeat("x", 70), "r3"}
	frame := []byte{}
	ends := []int{}
	for _, b := range bodies {
		frame = appendToy(frame, b)
		ends = append(ends, len(frame))
	}
	for _, up := range []bool{true, false} {
		greeting := len("hello")
		if !up {
			greeting = len("ok")
		}
		for offset := 1; offset < len(frame); offset++ {
			s := startToy(t, &toyServer{faults: func(dial int) faults {
				f := faults{chunk: 1 + offset%7}
				switch {
				case dial > 0:
				case up:
					f.resetUp = greeting + offset
				default:
					f.resetDown = greeting + offset
				}
				return f
			}})
			e := s.engine(nil)
			c := s.several(e, bodies...)
			err := e.Do(t.Context(), c)
			if slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
				t.Fatalf("up %v, offset %d: %v", up, offset, err)
			}
			whole := 0
			for _, end := range ends {
				if end <= offset {
					whole++
				}
			}
			switch {
			case up && c.Written() != offset:
				t.Errorf("offset %d: %d bytes written", offset, c.Written())
			case up && c.Received() > whole:
				t.Errorf("offset %d: %d replies", offset, c.Received())
			case !up && c.Written() != len(frame):
				t.Errorf("down, offset %d: %d bytes written", offset, c.Written())
			case c.Received() > whole:
				t.Errorf("down, offset %d: %d replies", offset, c.Received())
			}
			checkReplies(t, c, bodies[:c.Received()])
			c.Release()
			if err := s.echo(t.Context(), e, "rnext"); err != nil {
				t.Errorf("the next call: %v", err)
			}
			checkBalanced(t, e)
			e.Close()
			if t.Failed() {
				return
			}
		}
	}
}

// A call with more replies than the bound is refused, and one that fits is charged for each reply.
func TestBoundOfReplies(t *testing.T) {
	testkit.NoLeaks(t)
	k := startHolding(t, "tcp", false)
	e := k.engine(func(c *Config) { c.MaxCalls = 100 })
	for _, n := range []int{101, 1 << 22, 1 << 30, 1<<31 - 1} {
		c := k.several(e, "rx")
		c.Replies = int32(n)
		if err := e.Do(t.Context(), c); slipstream.OutcomeOf(err) != slipstream.Overloaded {
			t.Errorf("%d replies: %v", n, err)
		}
		c.Release()
	}
	full := k.several(e, lines("full", 100)...)
	if err := e.Start(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	one := k.newCall(e, "rone")
	if err := e.Do(t.Context(), one); slipstream.OutcomeOf(err) != slipstream.Overloaded {
		t.Errorf("one more reply: %v, want overloaded", err)
	}
	one.Release()
	k.arrived(100)
	k.answer()
	if err := full.Wait(); err != nil {
		t.Error(err)
	}
	full.Release()
	if v := e.Snapshot(); v.HeldBytes != 0 || v.Outstanding != 0 {
		t.Errorf("snapshot: %+v", v)
	}
	checkBalanced(t, e)
}

// After a surplus reply, any reply of the same read may be the wrong one, so none of them is delivered.
func TestSurplusReplyToACallWithSeveral(t *testing.T) {
	testkit.NoLeaks(t)
	k := startHolding(t, "tcp", false)
	e := k.engine(nil)
	bodies := lines("few", 3)
	c := k.several(e, bodies...)
	if err := e.Start(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	k.arrived(3)
	k.mu.Lock()
	first := k.seen[0]
	k.mu.Unlock()
	first.reply(bodies[0])
	testkit.Eventually(t, 5*time.Second, func() error {
		if v := e.Snapshot(); v.Replies != 1 {
			return fmt.Errorf("%d replies", v.Replies)
		}
		return nil
	})
	var rest []byte
	for _, b := range []string{bodies[1], bodies[2], "rtoo many"} {
		rest = append(rest, first.frame(b)...)
	}
	first.peer.send(rest)
	if err := c.Wait(); !errors.Is(err, ErrUnsolicited) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Error(err)
	}
	checkReplies(t, c, bodies[:1])
	c.Release()
	checkBalanced(t, e)
}

// Many callers make requests with one and with several replies over connections that are reset, and some give
// up: each gets only its own replies.
func TestSeveralRepliesUnderFaults(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	var drawing sync.Mutex
	draw := testkit.Fork(seed, 0)
	s := startToy(t, &toyServer{faults: func(int) faults {
		drawing.Lock()
		defer drawing.Unlock()
		return faults{chunk: 1 + draw.IntN(5000), resetUp: 6 + draw.IntN(200_000), resetDown: 3 + draw.IntN(200_000)}
	}})
	e := s.engine(func(c *Config) { c.choices.SweepEvery = 200 * time.Microsecond })
	var all sync.WaitGroup
	for caller := range 16 {
		all.Go(func() {
			rng := testkit.Fork(seed, uint64(caller+1))
			for i := range 300 {
				severalOnce(t, s, e, rng, fmt.Sprintf("%d/%d", caller, i))
			}
		})
	}
	all.Wait()
	checkBalanced(t, e)
	if v := e.Snapshot(); v.Replies == 0 || v.Reconnects == 0 || v.Cancelled == 0 {
		t.Errorf("the test had no effect: %+v", v)
	}
}

func severalOnce(t *testing.T, s *toyServer, e *Engine, rng *rand.Rand, name string) {
	ctx := context.Background()
	cancel := func() {}
	if rng.IntN(4) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(1000))*time.Microsecond)
	}
	defer cancel()
	bodies := lines(name, 1+rng.IntN(60))
	c := s.several(e, bodies...)
	err := e.Do(ctx, c)
	switch n := c.Received(); {
	case err == nil:
		checkReplies(t, c, bodies)
	case slipstream.OutcomeOf(err) == slipstream.NotSent && (n > 0 || c.Written() > 0):
		t.Errorf("%v after %d replies and %d bytes", err, n, c.Written())
	case errors.Is(err, io.EOF):
		t.Errorf("%v", err)
	default:
		checkReplies(t, c, bodies[:n])
	}
	c.Release()
}

// A socket fails while the reader delivers a reply to a multi-reply call that was given up. The caller may have
// released the call, but the reader owns it until it has finished.
func TestGivenUpCallStaysWhileItsReplyIsDelivered(t *testing.T) {
	w := newModelWorld(t, modelLimits{k: 1, big: 1 << 20}, nil)
	s := w.socket
	s.raw = hookedRaw{func() { s.out.wrote = s.out.outgoing.Len() }}
	c := w.engine.Acquire()
	reply := appendToy(nil, "r1")
	c.Frame, c.Replies = append(append(reply[:len(reply):len(reply)], reply...), reply...), 3
	c.prepare(t.Context(), w.engine)
	if _, err := s.submit([]*Call{c}, false); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	c.giveUp(slipstream.MaybeExecuted, context.Canceled)
	s.mu.Unlock()
	s.in.begin, s.in.end = 0, copy(s.in.buf, reply)
	if _, err := s.cutFrames(new(int)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.takeOut(); err != nil {
		t.Fatal(err)
	}
	s.fail(ErrHungUp)
	if s.life.finished {
		t.Error("the call was recycled while the reader used it")
	}
	s.endGathering()
	if !s.life.finished || c.state.Load() != stateSwept {
		t.Errorf("finished: %v, state of the call %d", s.life.finished, c.state.Load())
	}
}
