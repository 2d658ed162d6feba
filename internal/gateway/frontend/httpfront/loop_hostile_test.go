package httpfront

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// attack is a kind of hostile behavior of clients.
type attack struct {
	name  string
	conns int
	// act talks to the server. When it returns, the client reads, one byte per second if it
	// is slow, until the server closes the connection, which it must.
	act  func(c *net.TCPConn, i int)
	slow bool
}

// bytewise sends text in single bytes, until the server ends the connection.
func bytewise(c *net.TCPConn, text string, every time.Duration) {
	for i := range len(text) {
		if _, err := io.WriteString(c, text[i:i+1]); err != nil {
			return
		}
		time.Sleep(every)
	}
}

func attacks() []attack {
	large := "/depts?key=1000000"
	for i := range 7 {
		large += fmt.Sprintf("&key=%d", 1_000_001+i)
	}
	say := func(text string) func(*net.TCPConn, int) {
		return func(c *net.TCPConn, _ int) { io.WriteString(c, text) }
	}
	return []attack{
		{"heads byte by byte", 50, func(c *net.TCPConn, _ int) {
			bytewise(c, "GET /depts/300 HTTP/1.1\r\nHost: h\r\n"+strings.Repeat("X: y\r\n", 50), 20*time.Millisecond)
		}, false},
		{"half a request", 1000, func(c *net.TCPConn, i int) {
			text := requestText("GET", "/depts/300", "X", strings.Repeat("y", i))
			io.WriteString(c, text[:1+i%(len(text)-1)])
		}, false},
		{"a request and a half", 100, say(requestText("GET", "/depts/300") + "GET /depts/300 HTTP/1.1\r\nHo"), false},
		{"nothing", 100, say(""), false},
		{"a head of 64 KiB", 50, say("GET /depts/300 HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"), false},
		{"a head of 64 KiB that does not end", 50, say("GET /depts/300 HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 64<<10-100)), false},
		{"101 fields", 50, say("GET /depts/300 HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("X: y\r\n", 100) + "\r\n"), false},
		{"10,000 requests and no reading", 5, func(c *net.TCPConn, _ int) {
			c.SetReadBuffer(4 << 10)
			io.WriteString(c, strings.Repeat(requestText("GET", "/depts/20000"), 10_000))
		}, true},
		{"slow reading", 20, func(c *net.TCPConn, _ int) {
			c.SetReadBuffer(4 << 10)
			io.WriteString(c, requestText("GET", large))
		}, true},
		{"half-closed", 100, func(c *net.TCPConn, i int) {
			text := requestText("GET", "/depts/300")
			io.WriteString(c, text[:len(text)-i%2*5])
			c.CloseWrite()
		}, false},
		{"reset", 100, func(c *net.TCPConn, i int) {
			io.WriteString(c, strings.Repeat(requestText("GET", fmt.Sprint("/depts/", 20_000+i)), 10))
			c.SetLinger(0)
			c.Close()
		}, false},
		{"HTTP/2", 20, say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"), false},
		{"TLS", 20, say("\x16\x03\x01\x00\x80\x01\x00\x00\x7c\x03\x03" + strings.Repeat("\x00", 117)), false},
		{"a body of 1 GiB", 20, say("GET /depts/300 HTTP/1.1\r\nHost: h\r\nContent-Length: 1073741824\r\n\r\nx"), false},
	}
}

// TestHostileConnections runs all attacks at the same time. Each connection ends, within
// its limit, and what the loop ended is logged; memory is bounded; another client is
// served.
func TestHostileConnections(t *testing.T) { eachLoop(t, testHostileConnections) }

func testHostileConnections(t *testing.T, by way) {
	testkit.NoLeaks(t)
	var log logBuffer
	f := newFixture(t, jsonOrigin)
	s := listen(t, f, by.config(Config{ConnConfig: frontend.ConnConfig{IdleTimeout: 2 * time.Second, StallTimeout: 2 * time.Second, Log: log.logger()}, HeaderTimeout: 500 * time.Millisecond}))
	beside := startBeside(t, s)
	time.Sleep(300 * time.Millisecond)
	before := beside.p99()
	heap := heapNow()
	var clients sync.WaitGroup
	over := make(chan struct{})
	all := 1
	for _, a := range attacks() {
		all += a.conns
		for i := range a.conns {
			c, err := net.Dial("tcp", s.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(2 * patience))
			clients.Go(func() {
				a.act(c.(*net.TCPConn), i)
				endures(c, a.slow, over)
			})
		}
	}
	most := int64(0)
	testkit.Eventually(t, 2*patience, func() error {
		most = max(most, heapNow()-heap)
		if n := s.Connections(); n > 1 {
			return fmt.Errorf("%d connections are still open", n)
		}
		return nil
	})
	during := beside.stop()
	close(over)
	clients.Wait()
	// A partial head has up to 64 KiB, a waiting answer 256 KiB and one more; the rest is
	// the clients' own memory, 25 MiB of it for 10,000 requests, and the cache's.
	if most > 100<<20 {
		t.Errorf("the heap grew by %d MiB, want at most 100", most>>20)
	}
	if during > max(2*before, 500*time.Millisecond) {
		t.Errorf("p99 of another client was %v, and %v before the attack", during, before)
	}
	t.Logf("%d connections; the heap grew by %d MiB; p99 of another client %v, before the attack %v", all, most>>20, during, before)
	stats, _ := s.EngineStats()
	// A client that begins slowly may have sent nothing when its time is up.
	const partial, silent = 50 + 900 + 100, 100
	if n := stats.Closes[loop.ReasonPartial.String()] + stats.Closes[loop.ReasonUnproven.String()]; n < partial+silent {
		t.Errorf("%d connections were closed because they did not complete a request, want at least %d", n, partial+silent)
	}
	for reason, least := range map[loop.CloseReason]uint64{
		loop.ReasonPartial: 100, loop.ReasonStalled: 20, loop.ReasonUnproven: silent, loop.ReasonDetached: 150,
	} {
		if n := stats.Closes[reason.String()]; n < least {
			t.Errorf("%d connections were closed for %v, want at least %d", n, reason, least)
		}
	}
	for _, want := range []string{"reason=partial", "reason=stalled", "client=127.0.0.1:", "left_out="} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s: %.1000s", want, log.String())
		}
	}
	if lines := strings.Count(log.String(), "connection ended"); lines > 20 {
		t.Errorf("%d lines of connections that ended, want one a second at most", lines)
	}
	if answer := askOnce(t, s, "GET", "/depts/300"); answer.StatusCode != 200 {
		t.Errorf("the next client gets %s", answer.Status)
	}
	checkNothingWaits(t, s)
}

// endures reads until the server ends the connection, or slowly until over is closed: reading
// the part of an answer in the kernel would take minutes.
func endures(c net.Conn, slow bool, over <-chan struct{}) {
	for slow {
		select {
		case <-over:
			return
		case <-time.After(time.Second):
			if _, err := c.Read(make([]byte, 1)); err != nil {
				return
			}
		}
	}
	buffer := make([]byte, 4<<10)
	for {
		if _, err := c.Read(buffer); err != nil {
			return
		}
	}
}

func heapNow() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// besideClient is a client that sends requests all the time and records the
// latencies.
type besideClient struct {
	quit, done chan struct{}

	mu    sync.Mutex
	times []time.Duration
}

func startBeside(t *testing.T, s *Server) *besideClient {
	b := &besideClient{quit: make(chan struct{}), done: make(chan struct{})}
	c := dial(t, s)
	go func() { // ends with stop, which waits for it
		defer close(b.done)
		defer c.Close()
		r := bufio.NewReader(c)
		for {
			select {
			case <-b.quit:
				return
			case <-time.After(2 * time.Millisecond):
			}
			c.SetDeadline(time.Now().Add(patience))
			began := time.Now()
			io.WriteString(c, requestText("GET", "/depts/300"))
			if answer, err := readAnswer(r, "GET"); err != nil || answer.StatusCode != 200 {
				t.Errorf("next to hostile clients: %v, %v", answer, err)
				return
			}
			b.mu.Lock()
			b.times = append(b.times, time.Since(began))
			b.mu.Unlock()
		}
	}()
	return b
}

// p99 returns the 99th percentile of the latencies, and resets them.
func (b *besideClient) p99() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.times) == 0 {
		return 0
	}
	slices.Sort(b.times)
	p := b.times[len(b.times)*99/100]
	b.times = b.times[:0]
	return p
}

func (b *besideClient) stop() time.Duration {
	close(b.quit)
	<-b.done
	return b.p99()
}
