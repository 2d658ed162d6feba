package pipe

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// echoServer sends every toy message back.
func echoServer(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				var hello [5]byte
				if _, err := io.ReadFull(c, hello[:]); err != nil {
					return
				}
				c.Write([]byte("ok"))
				io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

func testEngine(t testing.TB, p Protocol, addr string, change func(*Config)) *Engine {
	t.Helper()
	_, tickets := p.(toyTickets)
	cfg := Config{Protocol: p, Traits: toyTraits(tickets), Addr: addr, Dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	}}
	if change != nil {
		change(&cfg)
	}
	e := New(cfg)
	t.Cleanup(func() { e.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := e.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	return e
}

// Each of up to 500 callers gets the replies to its own calls.
func TestEveryCallerGetsItsReply(t *testing.T) {
	for _, p := range []Protocol{toyFIFO{}, toyTickets{}} {
		for _, callers := range []int{1, 2, 16, 500} {
			t.Run(fmt.Sprintf("%T/%d", p, callers), func(t *testing.T) {
				testkit.NoLeaks(t)
				e := testEngine(t, p, echoServer(t), nil)
				var wg sync.WaitGroup
				for g := range callers {
					wg.Go(func() { echoMany(t, e, p, g, 20_000/callers) })
				}
				wg.Wait()
				s := e.Snapshot()
				if s.Calls != s.Replies || s.Queued+s.Outstanding != 0 || s.Backstop != 0 {
					t.Errorf("not empty at the end: %+v", s)
				}
				if callers == 1 && s.SoloReplies < 19_000 {
					t.Errorf("callers read only %d replies themselves", s.SoloReplies)
				}
			})
		}
	}
}

func echoMany(t *testing.T, e *Engine, p Protocol, g, n int) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, tickets := p.(toyTickets)
	scanner := toyScanner{tickets: tickets}
	for i := range n {
		c := e.Acquire()
		want := fmt.Sprintf("r%d/%d", g, i)
		if tickets {
			c.Frame = appendToyTicket(c.Frame[:0], want)
		} else {
			c.Frame = appendToy(c.Frame[:0], want)
		}
		err := e.Do(ctx, c)
		if err != nil {
			t.Errorf("%s: %v", want, err)
		} else if got := scanner.body(c.Reply()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		c.Release()
		if err != nil {
			return
		}
	}
}

func BenchmarkDo(b *testing.B) {
	e := testEngine(b, toyFIFO{}, echoServer(b), nil)
	b.ReportAllocs()
	ctx := context.Background()
	for b.Loop() {
		c := e.Acquire()
		c.Frame = appendToy(c.Frame[:0], "r0123456789")
		if err := e.Do(ctx, c); err != nil {
			b.Fatal(err)
		}
		c.Release()
	}
}
