package loop_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// pooler has sessions that answer lines later, each in objects that are reused.
type pooler struct {
	work chan *pooledRequest // requests to be completed
	// Guarded by mu.
	mu   sync.Mutex
	free []*pooledRequest
	made int
}

// pooledRequest is a line that is answered later.
type pooledRequest struct {
	pool   *pooler
	place  loop.Deferred
	ticket loop.Ticket
	text   []byte
}

func newPooler() *pooler { return &pooler{work: make(chan *pooledRequest, 10_000)} }

func (p *pooler) get() *pooledRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		r := p.free[n-1]
		p.free = p.free[:n-1]
		return r
	}
	p.made++
	return &pooledRequest{pool: p}
}

// objects returns how many request objects were allocated.
func (p *pooler) objects() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made
}

// put returns a request to the pool, where any connection may reuse it immediately.
func (r *pooledRequest) put() {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	r.pool.free = append(r.pool.free, r)
}

func (r *pooledRequest) Write(c *loop.Conn) {
	o := c.Output()
	o.B = append(o.B, r.text...)
	r.put()
}

func (r *pooledRequest) Drop() { r.put() }

// pooledSession answers lines that begin with a space immediately, others later.
type pooledSession struct{ *pooler }

func (s pooledSession) Data(c *loop.Conn, in []byte) (consumed int) {
	for !c.Full() {
		n := bytes.IndexByte(in[consumed:], '\n') + 1
		if n == 0 {
			break
		}
		line := in[consumed : consumed+n]
		consumed += n
		if line[0] == ' ' {
			o := c.Output()
			o.B = append(o.B, line...)
			continue
		}
		r := s.get()
		r.text = append(r.text[:0], line...)
		if line[0] == '?' {
			r.ticket = c.DeferAnyOrderInto(&r.place, r)
		} else {
			r.ticket = c.DeferInto(&r.place, r)
		}
		r.place.Weigh(100)
		s.work <- r
	}
	return consumed
}

func (pooledSession) Closed(*loop.Conn, error) {}

// startPooler starts a server with sessions of a pooler, whose workers complete the answers.
func startPooler(t *testing.T, m mode, workers int) (*toy, *pooler) {
	p := newPooler()
	y := startToy(t, m, func(c *loop.Config) {
		c.New = func(*loop.Conn) loop.Session { return pooledSession{p} }
		c.MaxDeferred = 8
	})
	for range workers {
		go func() { // ends when work is closed, at the end of the test
			for r := range p.work {
				r.ticket.Complete()
			}
		}()
	}
	t.Cleanup(func() { close(p.work) })
	return y, p
}

// All requests are answered in order by objects that are reused for one answer after the other.
func TestDeferIntoReuses(t *testing.T) {
	const conns, lines = 4, 3000
	eachMode(t, func(t *testing.T, m mode) {
		y, p := startPooler(t, m, 3)
		all(conns, func(i int) {
			c := y.dial()
			var text strings.Builder
			for n := range lines {
				fmt.Fprintf(&text, "%s%d of %d\n", []string{"", " "}[n%3/2], n, i)
			}
			go func() { _, _ = io.WriteString(c, text.String()) }() // ends when all is sent, or with the test
			got := make([]byte, text.Len())
			if _, err := io.ReadFull(c.r, got); err != nil || string(got) != text.String() {
				t.Errorf("%v, or the answers differ from the requests", err)
			}
			for range 100 {
				c.send("?a\n")
				if line, err := c.r.ReadString('\n'); err != nil || line != "?a\n" {
					t.Errorf("got %q, %v, want ?a", line, err)
				}
			}
		})
		if n, most := p.objects(), conns*8; n > most {
			t.Errorf("%d objects were made for %d answers, want at most %d", n, conns*lines, most)
		}
	})
}

// A late Complete from an earlier use does not complete the answer for which the object is now
// used.
func TestTicketOfAnEarlierUse(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y, p := startPooler(t, m, 0)
		c := y.dial()
		var old []loop.Ticket
		for i := range 50 {
			text := fmt.Sprintf("%d\n", i)
			c.send(text)
			r := <-p.work
			ticket := r.ticket // r may be reused as soon as this one is complete
			if n := p.objects(); n != 1 {
				t.Fatalf("%d objects were made, want 1, or this test shows nothing", n)
			}
			var late sync.WaitGroup
			for _, earlier := range old {
				late.Go(earlier.Complete)
			}
			late.Wait()
			if i%10 == 1 {
				c.wantSilence(20 * time.Millisecond)
			}
			old = append(old, ticket)
			ticket.Complete()
			ticket.Complete() // a second call does nothing, either
			c.want(text)
		}
	})
}

// Misuse of a Deferred ends its connection with a message that says what is wrong.
func TestDeferredInUse(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		for want, do := range map[string]func(c *loop.Conn, r *pooledRequest){
			"in use":       func(c *loop.Conn, r *pooledRequest) { c.DeferInto(&r.place, r) },
			"has a Ticket": func(_ *loop.Conn, r *pooledRequest) { r.place.Complete() },
		} {
			conns := make(chan *loop.Conn, 1)
			p := newPooler()
			y := startToy(t, m, func(c *loop.Config) {
				c.New = func(c *loop.Conn) loop.Session {
					conns <- c
					return pooledSession{p}
				}
			})
			c := y.dial()
			c.send("a\n")
			r := <-p.work
			if err := (<-conns).Post(&toyTask{do: func(c *loop.Conn) { do(c, r) }}, 0); err != nil {
				t.Fatal(err)
			}
			if err := y.ended(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("closed with %v, want an error that contains %q", err, want)
			}
			r.ticket.Complete() // and it is dropped
			c.Close()
		}
	})
}

// A deferred answer allocates nothing if its object is reused.
func TestDeferIntoAllocatesNothing(t *testing.T) {
	if raceEnabled { // its own allocations are counted
		return
	}
	eachPlain(t, func(t *testing.T, m mode) {
		y, _ := startPooler(t, m, 1)
		c := y.dial()
		request := []byte("a line that is answered later\n")
		answer := make([]byte, len(request))
		once := func() {
			if _, err := c.Write(request); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c.Conn, answer); err != nil {
				t.Fatal(err)
			}
		}
		for range 200 {
			once()
		}
		if n := testing.AllocsPerRun(2000, once); n != 0 {
			t.Errorf("%v allocations an answer, want 0", n)
		}
	})
}

// chain is an answer that is reused for the next one while it is being written.
type chain struct {
	place loop.Deferred
	left  int
}

func (r *chain) Write(c *loop.Conn) {
	o := c.Output()
	o.B = fmt.Appendln(o.B, r.left)
	if r.left--; r.left > 0 {
		c.DeferInto(&r.place, r).Complete()
	}
}

func (r *chain) Drop() {}

// chained is a session that answers each input with a chain.
type chained struct{}

func (chained) Data(c *loop.Conn, in []byte) int {
	r := &chain{left: 3}
	c.DeferInto(&r.place, r).Complete()
	return len(in)
}

func (chained) Closed(*loop.Conn, error) {}

// An object may be reused inside Write.
func TestDeferIntoInsideOfWrite(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(config *loop.Config) {
			config.New = func(*loop.Conn) loop.Session { return chained{} }
		})
		c := y.dial()
		c.send("a\n")
		c.SetReadDeadline(time.Now().Add(30 * time.Second))
		c.want("3\n2\n1\n")
	})
}
