package loop_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// published makes a toy server publish its connections.
func published(conns chan<- *loop.Conn) func(*loop.Config) {
	return func(config *loop.Config) {
		inner := config.New
		config.New = func(c *loop.Conn) loop.Session {
			conns <- c
			return inner(c)
		}
	}
}

// toyTask is a task that appends text, or calls a function of the test.
type toyTask struct {
	text         string
	do           func(c *loop.Conn)
	ran, dropped atomic.Int32
}

func (k *toyTask) Run(c *loop.Conn) {
	if s, ok := c.Session().(*toySession); ok {
		defer s.enter()()
		if s.closed {
			s.toy.t.Error("a task ran after Closed")
		}
	}
	k.ran.Add(1)
	if k.do != nil {
		k.do(c)
		return
	}
	o := c.Output()
	o.B = append(o.B, k.text...)
}

func (k *toyTask) Drop() { k.dropped.Add(1) }

// Tasks posted by many goroutines run in the turn of their connection, once each, and those of one
// goroutine in order, interleaved with requests and deferred answers.
func TestPost(t *testing.T) {
	const posters, each = 8, 300
	eachMode(t, func(t *testing.T, m mode) {
		conns := make(chan *loop.Conn, 1)
		y := startToy(t, m, published(conns))
		c := y.dial()
		c.send("a\n") // over TLS there is no turn before the handshake
		c.want("a\n")
		conn := <-conns
		tasks := make([][each]toyTask, posters)
		var wg sync.WaitGroup
		for p := range posters {
			wg.Go(func() {
				for i := range each {
					k := &tasks[p][i]
					k.text = fmt.Sprintf("post %d %d\n", p, i)
					for errors.Is(post(t, conn, k, 10), loop.ErrPostsFull) {
						time.Sleep(50 * time.Microsecond)
					}
				}
			})
		}
		wg.Go(func() {
			for range each {
				c.send("now x\nlater 1 x\n")
			}
		})
		next := make([]int, posters)
		for range posters*each + 2*each {
			line, err := c.r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			var p, i int
			if line == "x\n" {
				continue
			}
			if _, err := fmt.Sscanf(line, "post %d %d\n", &p, &i); err != nil || i != next[p] {
				t.Fatalf("%q, %v, want number %d", line, err, next[p])
			}
			next[p]++
		}
		wg.Wait()
		for p := range tasks {
			for i := range tasks[p] {
				if k := &tasks[p][i]; k.ran.Load() != 1 || k.dropped.Load() != 0 {
					t.Errorf("task %d of %d ran %d times, was dropped %d times", i, p, k.ran.Load(), k.dropped.Load())
				}
			}
		}
		// What a task appends follows the answers that are owed.
		c.send("hold h\n")
		h := y.hold()
		if err := conn.Post(&toyTask{text: "behind\n"}, 0); err != nil {
			t.Fatal(err)
		}
		c.wantSilence(20 * time.Millisecond)
		h.finish()
		c.want("h\nbehind\n")
		// A task may do what a session may.
		if err := conn.Post(&toyTask{do: func(c *loop.Conn) {
			o := c.Output()
			o.B = append(o.B, "bye\n"...)
			c.End()
		}}, 0); err != nil {
			t.Fatal(err)
		}
		c.want("bye\n")
		c.wantEnd()
	})
}

func post(t *testing.T, conn *loop.Conn, k *toyTask, weight int) error {
	err := conn.Post(k, weight)
	if err != nil && !errors.Is(err, loop.ErrPostsFull) {
		t.Errorf("Post: %v", err)
	}
	return err
}

// Connections end while other goroutines post to them: each accepted task is run or dropped once,
// and no other task is.
func TestPostToConnectionsThatEnd(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		conns := make(chan *loop.Conn, 100)
		y := startToy(t, m, published(conns))
		ends := []string{"end\n", "abort\n", "panic\n", "detach\n", ""}
		for round := range 40 {
			c := y.dial()
			c.send("a\n")
			c.want("a\n")
			conn := <-conns
			var accepted, refused [4][]*toyTask
			var wg sync.WaitGroup
			for p := range accepted {
				wg.Go(func() {
					for {
						k := &toyTask{text: "x\n"}
						err := conn.Post(k, 100)
						switch {
						case err == nil:
							accepted[p] = append(accepted[p], k)
						case errors.Is(err, loop.ErrPostsFull):
							refused[p] = append(refused[p], k)
							time.Sleep(10 * time.Microsecond)
						case errors.Is(err, loop.ErrGone):
							refused[p] = append(refused[p], k)
							return
						}
					}
				})
			}
			go func() { _, _ = io.Copy(io.Discard, c.raw) }() // ends with the connection
			if end := ends[round%len(ends)]; end == "" {
				c.Close()
			} else {
				c.send(end)
			}
			wg.Wait()
			y.ended()
			c.Close()
			for p := range accepted {
				for _, k := range accepted[p] {
					testkit.Eventually(t, patience, func() error {
						if n := k.ran.Load() + k.dropped.Load(); n != 1 {
							return fmt.Errorf("a task that was accepted ran %d times, was dropped %d times", k.ran.Load(), k.dropped.Load())
						}
						return nil
					})
				}
				for _, k := range refused[p] {
					if k.ran.Load()+k.dropped.Load() != 0 {
						t.Error("a task that was refused was run or dropped")
					}
				}
			}
		}
	})
}

// A peer that does not read fills only the queue of its own connection. Waiting tasks count toward
// the budget, and all of them run once the peer reads.
func TestPostsAreBounded(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		conns := make(chan *loop.Conn, 1)
		budget := loop.NewBudget(4 << 20) // reported in steps of 64 KiB
		y := startToy(t, m, func(c *loop.Config) {
			published(conns)(c)
			c.MaxPosts, c.Loops, c.Budget = 16, 1, budget
			c.StallTimeout = time.Minute
		})
		c := y.dial()
		c.send("a\n")
		c.want("a\n")
		conn := <-conns
		part := bytes.Repeat([]byte{'x'}, 64<<10)
		var tasks []*toyTask
		for full := 0; full < 100; { // until the kernel's buffers are full, too
			k := &toyTask{do: func(c *loop.Conn) { c.Output().Link(part) }}
			err := post(t, conn, k, len(part))
			if err == nil {
				tasks = append(tasks, k)
				full = 0
				continue
			}
			full++
			time.Sleep(time.Millisecond)
		}
		waiting := 0
		for _, k := range tasks {
			if k.ran.Load() == 0 {
				waiting++
			}
		}
		// 256 KiB of weight, MaxOutput, are four.
		if waiting != 4 {
			t.Errorf("%d tasks wait, want 4", waiting)
		}
		if used := budget.Stats().Used; used < 4*int64(len(part)) {
			t.Errorf("the budget counts %d bytes, want those of 4 tasks", used)
		}
		if n, err := io.CopyN(io.Discard, c.r, int64(len(tasks)*len(part))); err != nil {
			t.Fatalf("%d bytes came: %v", n, err)
		}
		testkit.Eventually(t, patience, func() error {
			if used := budget.Stats().Used; used >= int64(len(part)) {
				return fmt.Errorf("the budget counts %d bytes, want less than a step", used)
			}
			return nil
		})
		// For tasks without weight, their number is limited.
		block := make(chan struct{})
		if err := conn.Post(&toyTask{do: func(*loop.Conn) { <-block }}, 0); err != nil {
			t.Fatal(err)
		}
		accepted := 0
		for post(t, conn, &toyTask{}, 0) == nil {
			accepted++
		}
		close(block)
		if accepted != 15 && accepted != 16 { // the first may still be in the queue
			t.Errorf("%d tasks were accepted, want 16", accepted)
		}
	})
}

// An endless supply of tasks prevents neither other connections of the loop nor requests of the
// same connection from being answered.
func TestPostsAreFair(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		conns := make(chan *loop.Conn, 2)
		y := startToy(t, m, func(c *loop.Config) { published(conns)(c); c.Loops = 1 })
		busy, other := y.dial(), y.dial()
		busy.send("a\n")
		busy.want("a\n")
		conn := <-conns
		other.send("a\n")
		other.want("a\n")
		stop := make(chan struct{})
		ran := make(chan struct{})
		var again *toyTask
		again = &toyTask{do: func(c *loop.Conn) {
			c.Spend(50)
			select {
			case <-stop:
				close(ran)
			default:
				if err := c.Post(again, 0); err != nil {
					t.Error(err)
				}
			}
		}}
		if err := conn.Post(again, 0); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			other.send("b\n")
			other.want("b\n")
			busy.send("later 1 c\n")
			busy.want("c\n")
		}
		close(stop)
		<-ran
	})
}

// A task posted to a connection does not run before the handshake is complete.
func TestPostBeforeTheHandshake(t *testing.T) {
	conns := make(chan *loop.Conn, 2)
	y := startToy(t, mode{"tls", loop.Auto, true}, published(conns))
	c := y.dial()
	conn := <-conns
	if err := conn.Post(&toyTask{text: "first\n"}, 0); err != nil {
		t.Fatal(err)
	}
	c.send("a\n")
	c.want("first\na\n")
	raw, err := net.Dial("tcp", y.addr)
	if err != nil {
		t.Fatal(err)
	}
	conn = <-conns
	k := new(toyTask)
	if err := conn.Post(k, 0); err != nil {
		t.Fatal(err)
	}
	raw.Close()
	y.ended()
	if k.ran.Load() != 0 || k.dropped.Load() != 1 {
		t.Errorf("a connection without a handshake: the task ran %d times, was dropped %d times", k.ran.Load(), k.dropped.Load())
	}
}

// Post allocates nothing once the pool of tasks is filled.
func TestPostAllocatesNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		conns := make(chan *loop.Conn, 1)
		y := startToy(t, m, published(conns))
		c := y.dial()
		c.send("a\n")
		c.want("a\n")
		conn := <-conns
		done := make(chan struct{})
		quiet := &quietTask{done}
		one := func() {
			if err := conn.Post(quiet, 8); err != nil {
				t.Fatal(err)
			}
			<-done
		}
		for range 100 {
			one()
		}
		if n := testing.AllocsPerRun(1000, one); n != 0 && !raceEnabled { // the detector makes pools drop objects
			t.Errorf("%v allocations a post, want 0", n)
		}
	})
}

type quietTask struct{ done chan struct{} }

func (k *quietTask) Run(*loop.Conn) { k.done <- struct{}{} }
func (k *quietTask) Drop()          {}
