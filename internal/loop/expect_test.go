package loop_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Received implements [loop.Receiver].
func (s *toySession) Received(c *loop.Conn, p *loop.Payload) {
	defer s.enter()()
	if s.closed || !s.expects || c.Full() {
		s.toy.t.Errorf("Received %d bytes, closed %v, expected %v, Full %v", p.Len(), s.closed, s.expects, c.Full())
	}
	s.expects = false
	text := putAnswer(p.Parts()...)
	if got := putAnswer(p.Bytes()); got != text {
		s.toy.t.Errorf("in one piece %q, in parts %q", got, text)
	}
	p.Release()
	if s.later {
		s.deferred(c, text, false).finish()
		return
	}
	o := c.Output()
	o.B = append(o.B, text...)
}

// putAnswer returns the answer to a put of p.
func putAnswer(parts ...[]byte) string {
	sum, n := fnv.New64a(), 0
	for _, p := range parts {
		_, _ = sum.Write(p) // never fails
		n += len(p)
	}
	return fmt.Sprintf("put %d %x\n", n, sum.Sum64())
}

// put returns a put request with n bytes of pattern, repeated as necessary, and its answer.
func put(word string, n int) (request, answer string) {
	text := strings.Repeat(string(pattern), n/len(pattern)+1)[:n]
	return fmt.Sprintf("%s %d\n%s", word, n, text), putAnswer([]byte(text))
}

// Inputs of every size arrive complete between other requests, and all answers keep their order.
func TestExpectedInputs(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		c := y.dial()
		var requests, answers strings.Builder
		for _, n := range []int{0, 1, 5, 4095, 4096, 4097, 65_000, 65_536, 300_000, 1 << 20, 10 << 20, 7} {
			for _, word := range []string{"put", "putlater"} {
				request, answer := put(word, n)
				requests.WriteString("before\nlater 1 owed\n" + request + "after\n")
				answers.WriteString("before\nowed\n" + answer + "after\n")
			}
		}
		go func() { _, _ = io.WriteString(c, requests.String()) }() // ends when all is sent, or with the test
		c.want(answers.String())
		for _, n := range []int{0, 1, 100, 5000} { // byte by byte
			request, answer := put("put", n)
			for i := range len(request) {
				c.send(request[i : i+1])
			}
			c.send("after\n")
			c.want(answer + "after\n")
		}
	})
}

// Data does not receive the bytes of an input repeatedly while they arrive, and they take no more
// memory than necessary.
func TestExpectedInputIsReadOnce(t *testing.T) {
	const size = 10 << 20
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		c := y.dial()
		request, answer := put("put", size)
		go func() { _, _ = io.WriteString(c, request) }() // ends when all is sent, or with the test
		c.want(answer)
		if n := y.delivered.Load(); n > 128<<10 {
			t.Errorf("Data received %d bytes in total, want no more than two reads return", n)
		}
	})
}

// An announced length takes no memory: memory grows with the bytes that arrive.
func TestExpectedInputGrowsWithArrival(t *testing.T) {
	const conns, sent = 20, 50_000
	eachMode(t, func(t *testing.T, m mode) {
		budget := loop.NewBudget(16 << 20)
		y := startToy(t, m, func(c *loop.Config) { c.Budget, c.Loops = budget, 1 })
		var clients []*client
		request, answer := put("put", 10<<20)
		for range conns {
			c := y.dial()
			c.send(request[:sent])
			clients = append(clients, c)
		}
		testkit.Eventually(t, patience, func() error {
			if n := budget.Stats().Used; n < conns*(sent-1000) {
				return fmt.Errorf("%d bytes are counted, want the memory of %d inputs of %d bytes", n, conns, sent)
			}
			return nil
		})
		if n := budget.Stats().Used; n > conns*2*65_536 {
			t.Errorf("%d bytes are counted for %d inputs, of each of which %d bytes have arrived, want at most twice that", n, conns, sent)
		}
		for _, c := range clients[1:] {
			c.Close()
			y.ended()
		}
		go func() { _, _ = io.WriteString(clients[0], request[sent:]) }() // ends when all is sent, or with the test
		clients[0].want(answer)
		testkit.Eventually(t, patience, func() error {
			if n := budget.Stats().Used; n > 16<<20/64 {
				return fmt.Errorf("%d bytes are counted after all inputs have ended, want less than a step", n)
			}
			return nil
		})
	})
}

// A peer that sends almost nothing of an input is disconnected; one that makes progress may take
// longer than PartialTimeout.
func TestSlowInputs(t *testing.T) {
	const limit = time.Second
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.PartialTimeout = limit })
		request, answer := put("put", 1<<20)
		honest := y.dial()
		start := time.Now()
		for rest := request; len(rest) > 0; {
			n := min(len(rest), 1<<20/12)
			honest.send(rest[:n])
			rest = rest[n:]
			time.Sleep(limit / 4)
		}
		honest.want(answer)
		if took := time.Since(start); took < 2*limit {
			t.Errorf("the input took %v, want more than %v, or this test shows nothing", took, 2*limit)
		}
		trickle := y.dial()
		start = time.Now()
		trickle.send(request[:100_000])
		for i := 100_000; len(y.closed) == 0 && time.Since(start) < 20*limit; i++ {
			if _, err := trickle.Write([]byte(request[i : i+1])); err != nil {
				break
			}
			time.Sleep(limit / 20)
		}
		if err := y.ended(); !errors.Is(err, loop.ErrPartial) {
			t.Errorf("closed with %v, want %v", err, loop.ErrPartial)
		}
	})
}

// Others are served while large inputs arrive on their loop.
func TestOthersBesideLargeInputs(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.Loops = 1 })
		var stop atomic.Bool
		var sending sync.WaitGroup
		var received atomic.Int64
		request, answer := put("put", 4<<20)
		for range 4 {
			c := y.dial()
			sending.Go(func() {
				go func() { // ends with stop and with the connection
					for !stop.Load() {
						if _, err := io.WriteString(c, request); err != nil {
							return
						}
					}
					c.closeWrite()
				}()
				for {
					got := make([]byte, len(answer))
					if _, err := io.ReadFull(c.r, got); err != nil {
						return
					}
					if string(got) != answer {
						t.Errorf("got %.80q, want %q", got, answer)
					}
					received.Add(1)
				}
			})
		}
		other := y.dial()
		for i := 0; i < 100 || received.Load() < 4; i++ {
			other.send("x\n")
			other.want("x\n")
		}
		stop.Store(true)
		sending.Wait()
	})
}

// An input is received when the session may answer, not before.
func TestReceivedWaitsForRoom(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		conns := make(chan *loop.Conn, 1)
		y := startToy(t, m, published(conns))
		c := y.dial()
		c.send("a\n")
		c.want("a\n")
		conn := <-conns
		request, answer := put("put", 100_000)
		c.send(request[:50_000])
		paused := make(chan struct{})
		if err := conn.Post(&toyTask{do: func(c *loop.Conn) { c.Pause(true); close(paused) }}, 0); err != nil {
			t.Fatal(err)
		}
		<-paused
		c.send(request[50_000:] + "after\n")
		c.wantSilence(50 * time.Millisecond)
		if err := conn.Post(&toyTask{do: func(c *loop.Conn) { c.Pause(false) }}, 0); err != nil {
			t.Fatal(err)
		}
		c.want(answer + "after\n")
	})
}

// A connection that ends in the middle of an input releases its memory, whichever side ends it.
func TestEndsWhileAnInputArrives(t *testing.T) {
	request, _ := put("put", 1<<20)
	ends := map[string]func(c *client, conn *loop.Conn){
		"the peer closes":      func(c *client, _ *loop.Conn) { c.Close() },
		"the peer half-closes": func(c *client, _ *loop.Conn) { c.closeWrite() },
		"the session ends it": func(_ *client, conn *loop.Conn) {
			_ = conn.Post(&toyTask{do: func(c *loop.Conn) { c.End(); c.Session().(*toySession).behind = true }}, 0)
		},
		"the session aborts it": func(_ *client, conn *loop.Conn) {
			_ = conn.Post(&toyTask{do: func(c *loop.Conn) { c.Abort(errToy) }}, 0)
		},
		"a second input": func(_ *client, conn *loop.Conn) {
			_ = conn.Post(&toyTask{do: func(c *loop.Conn) { _ = c.Expect(1) }}, 0)
		},
		"it is detached": func(_ *client, conn *loop.Conn) {
			_ = conn.Post(&toyTask{do: func(c *loop.Conn) { c.Detach() }}, 0)
		},
	}
	eachMode(t, func(t *testing.T, m mode) {
		for name, end := range ends {
			t.Run(name, func(t *testing.T) {
				budget := loop.NewBudget(8 << 20)
				conns := make(chan *loop.Conn, 1)
				y := startToy(t, m, func(c *loop.Config) { published(conns)(c); c.Budget = budget })
				c := y.dial()
				c.send("hold h\n" + request[:200_000])
				y.hold().finish()
				c.want("h\n")
				go func() { _, _ = io.WriteString(c, request[200_000:400_000]) }() // ends with the connection
				end(c, <-conns)
				y.ended()
				testkit.Eventually(t, patience, func() error {
					if n := budget.Stats().Used; n > 8<<20/64 {
						return fmt.Errorf("%d bytes are counted, want less than a step", n)
					}
					return nil
				})
			})
		}
	})
}

// A server that drains waits for the inputs in flight.
func TestDrainWhileAnInputArrives(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		c := y.dial()
		request, answer := put("put", 1<<20)
		c.send("a\n" + request[:100_000])
		c.want("a\n")
		down := y.shutdown(30 * time.Second)
		time.Sleep(100 * time.Millisecond)
		c.send(request[100_000:])
		c.want(answer)
		c.wantEnd()
		c.Close()
		if err := <-down; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

// An input that is larger than the budget is refused.
func TestExpectIsBounded(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.Budget = loop.NewBudget(1 << 20) })
		c := y.dial()
		c.send(fmt.Sprintf("put %d\n", 1<<20+1))
		c.want(loop.ErrExpectTooLarge.Error() + "\n")
		c.wantEnd()
	})
}
