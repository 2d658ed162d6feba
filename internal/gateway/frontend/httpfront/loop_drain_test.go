package httpfront

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// slowly is jsonOrigin with loads that take 5 ms and more.
func slowly(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
	time.Sleep(time.Duration(5+len(id)) * time.Millisecond)
	return jsonOrigin(ctx, r, id)
}

// TestDrainUnderLoad: clients that keep their connections busy are each told once that
// their connection ends, and lose no request; idle connections are closed in order.
func TestDrainUnderLoad(t *testing.T) { eachLoop(t, testDrainUnderLoad) }

func testDrainUnderLoad(t *testing.T, by way) {
	testkit.NoLeaks(t)
	const grace = 400 * time.Millisecond
	f := newConfigured(t, slowly, ServiceConfig{Compression: []string{"gzip"}}, nil)
	s := listen(t, f, by.config(Config{DrainGrace: grace}))
	var clients sync.WaitGroup
	var calls, drained atomic.Int64
	var made [24]atomic.Int64 // of the calls, by each client
	next := func(client int) func(int) string {
		return func(i int) string {
			made[client].Add(1)
			n := int(calls.Add(1))
			if i%4 == 0 {
				return "300" // always a hit
			}
			return fmt.Sprint(i%3*10_000 + n%1000 + 1)
		}
	}
	for i := range len(made) / 2 {
		clients.Go(func() { drainClient(t, s, next(2*i), i, &drained) })
		clients.Go(func() { drainRaw(t, s, next(2*i+1), i, &drained) })
	}
	var idle []net.Conn
	for i := range 4 {
		c := dial(t, s)
		defer c.Close()
		if i > 0 { // else it has sent no request
			method := []string{"", "GET", "GET", "OPTIONS"}[i] // the last is net/http's
			io.WriteString(c, requestText(method, "/depts/300"))
			if _, err := readAnswer(bufio.NewReader(c), method); err != nil {
				t.Fatal(err)
			}
		}
		idle = append(idle, c)
	}
	time.Sleep(100 * time.Millisecond)
	testkit.Eventually(t, patience, func() error {
		for i := range made {
			if n := made[i].Load(); n < 2 {
				return fmt.Errorf("client %d has made %d calls", i, n)
			}
		}
		return nil
	})
	began := time.Now()
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	for i, c := range idle {
		if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			t.Errorf("idle connection %d: %d bytes, %v, want it to end in order", i, n, err)
		}
		if took := time.Since(began); took < grace/2 {
			t.Errorf("idle connection %d ended after %v, want %v", i, took, grace)
		}
		c.Close()
	}
	clients.Wait()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := drained.Load(); n != 24 {
		t.Errorf("%d of 24 clients were told that their connection ends", n)
	}
	if took := time.Since(began); took > grace+5*time.Second {
		t.Errorf("Shutdown took %v", took)
	}
	checkNothingWaits(t, s)
}

// drainClient sends requests with the client of package net/http until it is told to stop.
// A call that fails, for any reason, cannot be retried: the server no longer listens.
func drainClient(t *testing.T, s *Server, next func(int) string, i int, drained *atomic.Int64) {
	transport := &http.Transport{MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	for n := 0; ; n++ {
		method := http.MethodGet
		if i%4 == 3 && n == 3 {
			method = http.MethodPost // from here on net/http serves the connection
		}
		request, err := http.NewRequest(method, "http://"+s.Addr().String()+"/depts/"+next(i), nil)
		if err != nil {
			t.Error(err)
			return
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Errorf("client %d, call %d: %v", i, n, err)
			return
		}
		_, err = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != 200 && answer.StatusCode != 405 {
			t.Errorf("client %d, call %d: %s, %v", i, n, answer.Status, err)
		}
		if answer.Close {
			drained.Add(1)
			return
		}
	}
}

// drainRaw sends raw requests, and checks how the connection ends.
func drainRaw(t *testing.T, s *Server, next func(int) string, i int, drained *atomic.Int64) {
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	r := bufio.NewReader(c)
	for n := 0; ; n++ {
		method := "GET"
		if i%4 == 3 && n == 3 {
			method = "OPTIONS"
		}
		io.WriteString(c, requestText(method, "/depts/"+next(i)))
		answer, err := readAnswer(r, method)
		if err != nil || answer.StatusCode != 200 && answer.StatusCode != 204 {
			t.Errorf("raw client %d, call %d: %v, %v", i, n, answer, err)
			return
		}
		if answer.Close {
			drained.Add(1)
			break
		}
		if i%4 == 2 {
			time.Sleep(50 * time.Millisecond) // idle in between, but within the grace
		}
	}
	if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil {
		t.Errorf("raw client %d: %q, %v after the last answer, want the end in order", i, rest, err)
	}
}

// TestDrainAnswersMisses: requests that were sent before Shutdown are answered, also after
// others and by net/http; so are those sent during the grace.
func TestDrainAnswersMisses(t *testing.T) {
	eachLoop(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		open := make(chan struct{})
		f := newConfigured(t, gated(open), ServiceConfig{}, nil)
		f.do("GET", "/depts/300")
		s := listen(t, f, by.config(Config{DrainGrace: 200 * time.Millisecond}))
		one, many, handed := dial(t, s), dial(t, s), dial(t, s)
		for _, c := range []net.Conn{one, many, handed} {
			defer c.Close()
		}
		key := fmt.Sprint(gatedFrom)
		list := []ask{asking("GET", "300", "hit"), asking("GET", key, "miss"), asking("HEAD", key, "head"), asking("GET", "300", "behind")}
		io.WriteString(one, asking("GET", key, "one").text)
		io.WriteString(many, texts(list))
		io.WriteString(handed, texts(list)+requestText("GET", "/depts/"+key, "Content-Length", "5", "X-Request-Id", "body")+"hello")
		testkit.Eventually(t, patience, func() error {
			if n := s.front.waiting.Load(); n != 5 {
				return fmt.Errorf("%d requests wait, want 5", n)
			}
			return nil
		})
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(context.Background()) }()
		testkit.Eventually(t, patience, func() error {
			c, err := net.Dial("tcp", s.Addr().String())
			if err != nil {
				return nil
			}
			c.Close()
			return errors.New("accepted while draining")
		})
		time.Sleep(300 * time.Millisecond) // past the grace: they are not idle
		close(open)
		r := bufio.NewReader(one)
		answer, err := readAnswer(r, "GET")
		if err != nil || !answer.Close || answer.Header.Get("X-Request-Id") != "one" {
			t.Errorf("a miss with nothing after it: %v, %v, want the connection's last answer", answer, err)
		}
		checkEnd(t, r)
		r = bufio.NewReader(many)
		check(t, r, list)
		r = bufio.NewReader(handed)
		check(t, r, list)
		answer, err = readAnswer(r, "GET")
		if err != nil || answer.StatusCode != 200 || !answer.Close || answer.Header.Get("X-Request-Id") != "body" {
			t.Errorf("handed over: %v, %v", answer, err)
		}
		checkEnd(t, r)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestDrainIsCut: at the end of its context Shutdown cuts off the rest.
func TestDrainIsCut(t *testing.T) {
	eachLoop(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		open := make(chan struct{})
		defer close(open)
		s := listen(t, newConfigured(t, gated(open), ServiceConfig{}, nil), by.config(Config{}))
		c := dial(t, s)
		defer c.Close()
		io.WriteString(c, requestText("GET", fmt.Sprint("/depts/", gatedFrom)))
		testkit.Eventually(t, patience, func() error {
			if s.front.waiting.Load() != 1 {
				return errors.New("nothing waits")
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if n := s.front.waiting.Load(); n != 0 {
			t.Errorf("%d requests wait", n)
		}
	})
}

// TestHandedOverBeforeTheDrainIsAnswered: Shutdown waits for a connection that was handed over until
// its request has been read, even after the grace: net/http would drop the request.
//
// mutant: http-handed-over-request-dropped
func TestHandedOverBeforeTheDrainIsAnswered(t *testing.T) {
	eachLoop(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		s := listen(t, newFixture(t, jsonOrigin), by.config(Config{DrainGrace: time.Millisecond}))
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		client, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		ours, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		request := requestText("GET", "/depts/300", "X-Request-Id", "handed")
		s.handed.http1.take(ours, nil, []byte(request[:20]))
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(context.Background()) }() // ends after the answer
		testkit.Eventually(t, patience, func() error {
			c, err := net.Dial("tcp", s.Addr().String())
			if err != nil {
				return nil
			}
			c.Close()
			return errors.New("accepted while draining")
		})
		time.Sleep(100 * time.Millisecond) // if Shutdown does not wait, it is past that by now
		io.WriteString(client, request[20:])
		client.SetReadDeadline(time.Now().Add(patience))
		answer, err := readAnswer(bufio.NewReader(client), "GET")
		if err != nil || answer.StatusCode != 200 || !answer.Close || answer.Header.Get("X-Request-Id") != "handed" {
			t.Errorf("%v, %v", answer, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestHandedOverPartHoldsNoDrain: a client whose request never becomes complete does not delay the
// drain for longer than a head may take.
func TestHandedOverPartHoldsNoDrain(t *testing.T) {
	testkit.NoLeaks(t)
	s := listen(t, newFixture(t, jsonOrigin), Config{DrainGrace: time.Millisecond, HeaderTimeout: 200 * time.Millisecond})
	ours, theirs := net.Pipe()
	defer theirs.Close()
	s.handed.http1.take(ours, nil, []byte("GET /depts/300 HTT"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("the drain ended with %v", err)
	}
}

// TestHandedListenerForgetsNobody: a connection that was handed over before the listener
// closed is served.
func TestHandedListenerForgetsNobody(t *testing.T) {
	testkit.NoLeaks(t)
	conns := newConns(Config{}.withDefaults())
	defer conns.stop()
	l := newHandedListener(conns, false)
	give := func(unread string) net.Conn {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { theirs.Close() })
		l.take(ours, nil, []byte(unread))
		return theirs
	}
	give("one")
	give("two")
	l.Close()
	late := give("three")
	late.SetDeadline(time.Now().Add(patience))
	if _, err := late.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("handed over to a closed listener: %v, want it to be closed", err)
	}
	for _, want := range []string{"one", "two"} {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 3)
		if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		c.Close()
	}
	if c, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, %v, want net.ErrClosed", c, err)
	}
	if n := conns.open.Load(); n != 0 {
		t.Errorf("%d connections are open, want none", n)
	}
}
