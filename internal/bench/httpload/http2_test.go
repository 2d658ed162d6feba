package httpload

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/clientload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A server2 speaks HTTP/2 over TLS or with prior knowledge.
type server2 struct {
	o      Options // options with which it can be reached
	opened atomic.Int64
}

func startHTTP2(t *testing.T, secure bool, handler http.HandlerFunc) *server2 {
	t.Helper()
	s := new(server2)
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.opened.Add(1)
		}
	}
	if secure {
		server.EnableHTTP2 = true
		server.StartTLS()
		s.o = Options{HTTP2: true, TLS: &tls.Config{InsecureSkipVerify: true}}
	} else {
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Start()
		s.o.PriorKnowledge = true
	}
	t.Cleanup(server.Close)
	s.o.URL = server.URL
	return s
}

// both runs a test with and without TLS.
func both(t *testing.T, test func(t *testing.T, secure bool)) {
	t.Run("TLS", func(t *testing.T) { test(t, true) })
	t.Run("prior knowledge", func(t *testing.T) { test(t, false) })
}

// runStreams makes n requests over HTTP/2 connections.
func runStreams(t *testing.T, o Options, n int64) (*load.Result, *Target) {
	t.Helper()
	target, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	cfg := load.Config{Callers: max(o.Connections, 1) * max(o.Streams, 1), Duration: time.Minute, Total: n, Counters: target.Counters()}
	r, err := load.Run(t.Context(), cfg, target)
	if err != nil {
		t.Fatal(err)
	}
	return r, target
}

// Callers share connections, on which their requests are in flight concurrently.
func TestStreamsShareConnections(t *testing.T) {
	both(t, func(t *testing.T, secure bool) {
		const connections, streams = 2, 4
		var mu sync.Mutex
		atOnce := map[string]int{} // guarded by mu: by connection
		var all sync.WaitGroup     // ends when all requests are in flight
		all.Add(connections * streams)
		s := startHTTP2(t, secure, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			atOnce[r.RemoteAddr]++
			mu.Unlock()
			all.Done()
			all.Wait()
			_, _ = io.WriteString(w, r.Proto)
		})
		s.o.Connections, s.o.Streams = connections, streams
		r, target := runStreams(t, s.o, connections*streams)
		tally := target.Tally()
		if r.Completed != connections*streams || tally.Bytes != 8*uint64(len("HTTP/2.0")) || tally.Statuses[200] != 8 || tally.Opened != 0 {
			t.Errorf("%d completed, %s, %+v", r.Completed, r.ErrorSample, tally)
		}
		for address, n := range atOnce {
			if n != streams {
				t.Errorf("%d requests on connection %s, want %d", n, address, streams)
			}
		}
		phases := phasesOf(target)
		if n := s.opened.Load(); n != connections || phases["connect"] != connections || phases[FirstByte] != 8 || (phases["TLS"] == connections) != secure {
			t.Errorf("%d connections, phases %v", n, phases)
		}
		if want := " over HTTP/2, 4 streams on a connection"; !strings.HasSuffix(target.Name(), want) {
			t.Errorf("%s", target.Name())
		}
	})
}

// Requests are the same as over HTTP/1.1 in method, path, header, body and right statuses: single
// ones, those of a mix, those with keys, and those of a file.
//
// mutant: httpload-http2-without-keys
func TestRequestsOverHTTP2(t *testing.T) {
	both(t, func(t *testing.T, secure bool) {
		var mu sync.Mutex
		var got []string // guarded by mu
		s := startHTTP2(t, secure, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			user, _, _ := r.BasicAuth()
			mu.Lock()
			got = append(got, strings.Join([]string{r.Method, r.RequestURI, r.Host, user, r.UserAgent() + r.Header.Get("Accept-Encoding"), r.Header.Get("A"), string(body)}, " "))
			mu.Unlock()
			if r.URL.Path == "/none" {
				w.WriteHeader(http.StatusNotFound)
			}
		})
		for name, tc := range map[string]struct {
			o    Options
			want []string
		}{
			"one": {Options{Method: "PUT", Body: []byte("hello"), User: "me:x", Fields: []string{"A: b", "Host: a.example"}},
				[]string{"PUT /base?q a.example me  b hello", "PUT /base?q a.example me  b hello", "PUT /base?q a.example me  b hello"}},
			"mix": {Options{Fields: []string{"Host: h"}, Mix: []mix.Operation{{Weight: 1, Method: "POST", Path: "/none", Body: "x", Status: "404"}}},
				[]string{"POST /none h    x", "POST /none h    x", "POST /none h    x"}},
			"keys": {Options{Fields: []string{"Host: h", "A: __key__"}, Method: "POST", Body: []byte("<__key__>"), Keys: clientload.Keys{Count: 3, Distribution: clientload.Sequential}},
				[]string{"POST /base?q h   0 <0>", "POST /base?q h   1 <1>", "POST /base?q h   2 <2>"}},
			"file": {Options{Fields: []string{"Host: h"}, Replay: fileOf(t, `a [22/Nov/2026:07:08:10 +0100] "GET //a%20b?c HTTP/1.1" 200 1`+"\n"+`a [22/Nov/2026:07:08:10 +0100] "HEAD /none HTTP/1.1" 404 1`+"\n")},
				[]string{"GET //a%20b?c h    ", "HEAD /none h    ", "GET //a%20b?c h    "}},
		} {
			o := tc.o
			o.URL, o.TLS, o.HTTP2, o.PriorKnowledge = s.o.URL+"/base?q", s.o.TLS, s.o.HTTP2, s.o.PriorKnowledge
			r, _ := runStreams(t, o, 3)
			mu.Lock()
			if r.Completed != 3 || !slices.Equal(got, tc.want) {
				t.Errorf("%s: %d completed, %s; %q, want %q", name, r.Completed, r.ErrorSample, got, tc.want)
			}
			got = nil
			mu.Unlock()
		}
	})
}

// A connection that the server closes (GOAWAY) is reopened, and no request fails.
//
// mutant: httpload-http2-stays-on-a-closed-connection
func TestConnectionsOfHTTP2ThatEnd(t *testing.T) {
	both(t, func(t *testing.T, secure bool) {
		var n atomic.Int64
		s := startHTTP2(t, secure, func(w http.ResponseWriter, _ *http.Request) {
			if n.Add(1)%5 == 0 {
				w.Header().Set("Connection", "close")
			}
		})
		s.o.Streams = 3
		r, target := runStreams(t, s.o, 60)
		if tally := target.Tally(); r.Completed != 60 || tally.Opened < 3 {
			t.Errorf("%d completed, %d failed, %s, %+v", r.Completed, r.Errors, r.ErrorSample, tally)
		}
	})
}

// Each failure has its kind, and a request ends with the timeout or with Close.
func TestFailuresOverHTTP2(t *testing.T) {
	both(t, func(t *testing.T, secure bool) {
		release := make(chan struct{})
		entered := make(chan struct{}, 10)
		s := startHTTP2(t, secure, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/hang":
				entered <- struct{}{}
				<-release
			case "/abort":
				panic(http.ErrAbortHandler)
			case "/error":
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		defer close(release)
		url := s.o.URL
		for path, kind := range map[string]string{"/abort": "protocol", "/error": "status 503", "/hang": "timeout"} {
			s.o.URL, s.o.Timeout = url+path, 100*time.Millisecond
			if path != "/hang" {
				s.o.Timeout = time.Minute
			}
			if r, _ := runStreams(t, s.o, 2); r.ErrorKinds[kind] != 2 {
				t.Errorf("%s: %v, %s", path, r.ErrorKinds, r.ErrorSample)
			}
		}
		for len(entered) > 0 {
			<-entered
		}
		s.o.URL, s.o.Timeout = url+"/hang", 0
		target, err := New(s.o)
		if err != nil {
			t.Fatal(err)
		}
		c, err := target.NewCaller(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Do(context.Background()) }() // ended by Close, received below
		<-entered
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err == nil {
			t.Error("a request succeeded without a response")
		}
		if err := c.Do(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v after Close", err)
		}
	})
}

func TestServersWithoutHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	target, err := New(Options{URL: server.URL, HTTP2: true, TLS: &tls.Config{InsecureSkipVerify: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.NewCaller(t.Context(), 0); err == nil || !strings.HasPrefix(load.ErrorKind(err), "connect: ") {
		t.Errorf("%v", err)
	}
	const secure, plain = "https://127.0.0.1:1/", "http://127.0.0.1:1/"
	for problem, o := range map[string]Options{
		"expected https://, or prior knowledge": {URL: plain, HTTP2: true}, "expected http://": {URL: secure, PriorKnowledge: true}, "2 streams on a connection without HTTP/2": {URL: secure, Streams: 2},
		"a connection for each request": {URL: secure, HTTP2: true, Fresh: true}, "-1 streams": {URL: secure, HTTP2: true, Streams: -1}, "10001 streams": {URL: plain, PriorKnowledge: true, Streams: 10_001},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%+v: %v, want an error that contains %q", o, err, problem)
		}
	}
}
