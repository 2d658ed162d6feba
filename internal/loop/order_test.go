package loop_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

func isReason(err error, want *loop.CloseError) bool { return errors.Is(err, want) }

func TestEcho(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		for range 20 {
			c := y.dial()
			c.send("one\nlater 20 two\nthree\nnow four\nfi")
			c.want("one\ntwo\nthree\nfour\n")
			c.send("ve\nend\n")
			c.want("five\n")
			c.wantEnd()
			c.Close()
			if err := y.ended(); err != nil {
				t.Fatalf("closed with %v, want nil", err)
			}
		}
	})
}

// Deferred answers in every position of a pipeline of five, completed in every order: after each
// completion, exactly those answers are sent that have no pending answer before them.
func TestDeferredInEveryPositionAndOrder(t *testing.T) {
	const n = 5
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		c := y.dial()
		for mask := range 1 << n {
			permute(mask, func(order []int) {
				var script strings.Builder
				held := make(map[int]*toyReply)
				for i := range n {
					if mask>>i&1 == 1 {
						fmt.Fprintf(&script, "hold %d\n", i)
					} else {
						fmt.Fprintf(&script, "%d\n", i)
					}
				}
				c.send(script.String())
				for i := range n {
					if mask>>i&1 == 1 {
						held[i] = y.hold()
					}
				}
				sent := 0
				advance := func() {
					for ; sent < n && held[sent] == nil; sent++ {
						c.want(fmt.Sprintf("%d\n", sent))
					}
				}
				advance()
				for _, i := range order {
					held[i].finish()
					delete(held, i)
					advance()
				}
			})
		}
		c.wantSilence(10 * time.Millisecond)
	})
}

// permute calls visit with every order of the bits of mask.
func permute(mask int, visit func(order []int)) {
	var walk func(order []int, left int)
	walk = func(order []int, left int) {
		if left == 0 {
			visit(order)
			return
		}
		for i := range 31 {
			if left>>i&1 == 1 {
				walk(append(order, i), left&^(1<<i))
			}
		}
	}
	walk(nil, mask)
}

func TestAnyOrder(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		c := y.dial()
		c.send("idhold a\nidhold b\nhold c\nidhold d\ne\n")
		a, b, h, d := y.hold(), y.hold(), y.hold(), y.hold()
		d.finish() // overtakes the answers owed in order
		c.want("d\n")
		b.finish()
		c.want("b\n")
		h.finish()
		c.want("c\ne\n")
		a.finish()
		c.want("a\n")
	})
}

// A second Complete does nothing.
func TestCompleteTwice(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		c := y.dial()
		c.send("hold a\n")
		r := y.hold()
		all(8, func(int) { r.finish() })
		c.want("a\n")
		c.send("b\n")
		c.want("b\n")
		r.finish()
		c.send("c\n")
		c.want("c\n")
	})
}

// An answer that completes inside Data, while buffered requests are passed to the session and
// nothing is being written, is not lost.
func TestCompletedWhileHandedOn(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.MaxDeferred = 2 })
		c := y.dial()
		c.send("a\n")
		c.want("a\n")
		start := time.Now()
		for range 20 {
			c.send("now\nnow\nnow x\n") // the output is full with the first, and empty again
			c.want("x\n")
		}
		// If it were lost, only a sweep, every half second, would find it.
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("20 round trips took %v", took)
		}
	})
}

// A short script cut at every byte, and sent byte by byte.
func TestEverySplit(t *testing.T) {
	const script = "one\nnow two\nlater 1 three\nfour\n\nhold five\nsix\n"
	const answers = "one\ntwo\nthree\nfour\n\nfive\nsix\n"
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		c := y.dial()
		for at := range len(script) {
			c.send(script[:at])
			time.Sleep(time.Millisecond)
			c.send(script[at:])
			y.hold().finish()
			c.want(answers)
		}
		for i := range len(script) {
			c.send(script[i : i+1])
			if i%8 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		y.hold().finish()
		c.want(answers)
	})
}

// scripter makes pipelines whose answers are known.
type scripter struct {
	r *rand.Rand
	n int
}

// next returns a request and its answer.
func (s *scripter) next() (request, answer string) {
	s.n++
	text := fmt.Sprintf("%d-%s\n", s.n, strings.Repeat("x", s.r.IntN(1<<s.r.IntN(10))))
	switch s.r.IntN(8) {
	case 0, 1:
		return fmt.Sprintf("later %d %s", s.r.IntN(4), text), text
	case 2:
		return "now " + text, text
	case 3:
		if s.r.IntN(4) == 0 {
			n := s.r.IntN(1 << s.r.IntN(19))
			return fmt.Sprintf("%s %d\n", []string{"big", "owned"}[s.r.IntN(2)], n), string(pattern[:n])
		}
	case 4:
		if s.r.IntN(4) == 0 {
			p := pattern[:s.r.IntN(1<<s.r.IntN(19))]
			return fmt.Sprintf("%s %d\n%s", []string{"put", "putlater"}[s.r.IntN(2)], len(p), p), putAnswer(p)
		}
	}
	return text, text
}

// Pipelines of random requests, sent in random pieces over several connections: every answer
// arrives once, in order, and at the right peer.
func TestPipelinesAgainstAModel(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.MaxOutput, c.MaxDeferred = 20<<10, 5 })
		seed := testkit.Seed(t)
		all(8, func(i int) {
			r := testkit.Fork(seed, uint64(i))
			for range 5 {
				c := y.dial()
				pipeline(c, r, 200)
				c.Close()
			}
		})
	})
}

// pipeline sends n random requests and checks their answers.
func pipeline(c *client, r *rand.Rand, n int) {
	s := &scripter{r: r}
	var requests, answers strings.Builder
	for range n {
		q, a := s.next()
		requests.WriteString(q)
		answers.WriteString(a)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		text := requests.String()
		pieces := testkit.Fork(uint64(len(text)), uint64(n))
		for len(text) > 0 {
			k := min(1+pieces.IntN(1<<pieces.IntN(14)), len(text))
			if _, err := c.Write([]byte(text[:k])); err != nil {
				c.t.Errorf("sending: %v", err)
				return
			}
			text = text[k:]
			if pieces.IntN(4) == 0 {
				time.Sleep(time.Duration(pieces.IntN(300)) * time.Microsecond)
			}
		}
	}()
	got := make([]byte, answers.Len())
	read, err := readSlowly(c, got, r)
	if err != nil || string(got) != answers.String() {
		at := 0
		for at < read && got[at] == answers.String()[at] {
			at++
		}
		c.t.Errorf("%d answers: read %d of %d bytes, %v, equal up to %d", n, read, len(got), err, at)
	}
	<-sent
}

// readSlowly fills p and pauses from time to time.
func readSlowly(c *client, p []byte, r *rand.Rand) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = c.r.Read(p[n:min(n+1+r.IntN(64<<10), len(p))])
		n += k
		if r.IntN(16) == 0 {
			time.Sleep(time.Duration(r.IntN(500)) * time.Microsecond)
		}
	}
	return n, err
}

// Answers complete on many goroutines while connections end: each answer is written or dropped once
// (startToy checks this), whichever happens first.
func TestCompletionsRaceWithClose(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		seed := testkit.Seed(t)
		var completed atomic.Int64
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case r := <-y.held:
					go r.finish()
					completed.Add(1)
				case <-stop:
					return
				}
			}
		}()
		all(8, func(i int) {
			r := testkit.Fork(seed, uint64(i))
			for range 40 {
				c := y.dial()
				for range r.IntN(20) {
					c.send([]string{"hold a\n", "idhold b\n", "c\n", "later 1 d\n", "now e\n"}[r.IntN(5)])
				}
				switch r.IntN(4) {
				case 0:
					c.send("abort\n")
				case 1:
					c.send("end\n")
				case 2:
					c.send("panic\n")
				}
				c.Close()
			}
		})
		for range 8 * 40 {
			y.ended()
		}
		close(stop)
		<-done
		t.Logf("%d completed by the test", completed.Load())
	})
}

// An answer that completes after its connection has gone is dropped.
func TestCompleteAfterTheEnd(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		c := y.dial()
		c.send("hold a\nidhold b\nhold c\nabort\n")
		replies := []*toyReply{y.hold(), y.hold(), y.hold()}
		y.ended()
		for _, r := range replies {
			r.finish()
		}
		testkit.Eventually(t, patience, func() error {
			if n := y.replies.dropped.Load(); n != 3 {
				return fmt.Errorf("%d answers dropped, want 3", n)
			}
			return nil
		})
		// The middle one is complete before the end, the others after.
		c = y.dial()
		c.send("hold a\nhold b\nhold c\n")
		replies = []*toyReply{y.hold(), y.hold(), y.hold()}
		replies[1].finish()
		time.Sleep(20 * time.Millisecond)
		c.send("abort\n")
		y.ended()
		if n := y.replies.dropped.Load(); n != 4 {
			t.Errorf("%d answers dropped at the end, want 4", n)
		}
		replies[0].finish()
		replies[2].finish()
	})
}
