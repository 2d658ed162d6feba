package httpload

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// run makes n requests over 3 connections.
func run(t *testing.T, o Options, n int64) (*load.Result, Tally) {
	t.Helper()
	target, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	cfg := load.Config{Callers: 3, Duration: time.Minute, Total: n, Counters: target.Counters()}
	r, err := load.Run(t.Context(), cfg, target)
	if err != nil {
		t.Fatal(err)
	}
	return r, target.Tally()
}

// A server may frame a body in any way, and may close the connection after any
// response: each request gets its response, and all bytes are counted.
//
// mutant: httpload-forgets-close
func TestResponsesOfAnyFraming(t *testing.T) {
	body := func(size int) string { return strings.Repeat("x", size) }
	for name, handler := range map[string]func(w http.ResponseWriter, size int){
		"length": func(w http.ResponseWriter, size int) {
			w.Header().Set("Content-Length", fmt.Sprint(size))
			_, _ = io.WriteString(w, body(size))
		},
		"chunks": func(w http.ResponseWriter, size int) {
			for range 3 {
				_, _ = io.WriteString(w, body(size/3))
				w.(http.Flusher).Flush()
			}
			_, _ = io.WriteString(w, body(size-size/3*3))
		},
		"length and close": func(w http.ResponseWriter, size int) {
			w.Header().Set("Connection", "close")
			w.Header().Set("Content-Length", fmt.Sprint(size))
			_, _ = io.WriteString(w, body(size))
		},
		"interim": func(w http.ResponseWriter, size int) {
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set("Content-Length", fmt.Sprint(size))
			_, _ = io.WriteString(w, body(size))
		},
		"until the end": func(w http.ResponseWriter, size int) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\n\r\n"+body(size))
			_ = conn.Close()
		},
	} {
		for _, size := range []int{0, 1, 5000, 300_000} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { handler(w, size) }))
				defer server.Close()
				r, tally := run(t, Options{URL: server.URL, Method: "POST"}, 30) // requests with POST are never sent twice
				if r.Completed != 30 || r.Errors != 0 || tally.Bytes != uint64(30*size) || tally.Statuses[200] != 30 {
					t.Errorf("%d completed, %d failed, %s; %+v, want 30 of %d bytes", r.Completed, r.Errors, r.ErrorSample, tally, size)
				}
			})
		}
	}
}

func TestRequestsAsTheyArrive(t *testing.T) {
	type seen struct{ method, host, uri, body, accept, user, connection string }
	got := make(chan seen, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		connection := "kept"
		if r.Close {
			connection = "closed"
		}
		got <- seen{r.Method, r.Host, r.RequestURI, string(text), r.Header.Get("Accept"), user + "/" + password, connection}
	}))
	defer server.Close()
	address := server.Listener.Addr().String()
	for name, tc := range map[string]struct {
		o    Options
		want seen
	}{
		"plain":     {Options{URL: server.URL + "/a?b=c#d"}, seen{"GET", address, "/a?b=c", "", "", "/", "kept"}},
		"no scheme": {Options{URL: address}, seen{"GET", address, "/", "", "", "/", "kept"}},
		"post": {Options{URL: server.URL, Method: "POST", Body: []byte("hello"), Fields: []string{"Accept: x", "Host: a.example"}},
			seen{"POST", "a.example", "/", "hello", "x", "/", "kept"}},
		"empty put": {Options{URL: server.URL, Method: "PUT"}, seen{"PUT", address, "/", "", "", "/", "kept"}},
		"user":      {Options{URL: server.URL, User: "me:open:sesame"}, seen{"GET", address, "/", "", "", "me/open:sesame", "kept"}},
		"user of the URL": {Options{URL: strings.Replace(server.URL, "://", "://me:s%40@", 1)},
			seen{"GET", address, "/", "", "", "me/s@", "kept"}},
		"fresh":      {Options{URL: server.URL, Fresh: true}, seen{"GET", address, "/", "", "", "/", "closed"}},
		"connect to": {Options{URL: "http://a.example:81/x", ConnectTo: address}, seen{"GET", "a.example:81", "/x", "", "", "/", "kept"}},
		"connect to, as curl": {Options{URL: "http://a.example/x", ConnectTo: "a.example:80:" + address},
			seen{"GET", "a.example", "/x", "", "", "/", "kept"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := run(t, tc.o, 1)
			if r.Completed != 1 {
				t.Fatalf("%s", r.ErrorSample)
			}
			if s := <-got; s != tc.want {
				t.Errorf("%+v, want\n%+v", s, tc.want)
			}
		})
	}
}

func TestHeadHasNoBody(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
	}))
	defer server.Close()
	if r, tally := run(t, Options{URL: server.URL, Method: "HEAD"}, 20); r.Completed != 20 || tally.Bytes != 0 || tally.Opened != 0 {
		t.Errorf("%d completed, %s; %+v", r.Completed, r.ErrorSample, tally)
	}
}

// mutant: httpload-any-status-is-right
func TestStatuses(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	for statuses, wrong := range map[string]uint64{"": 10, "2xx, 404": 0, "404": 10, "500": 20} {
		r, tally := run(t, Options{URL: server.URL, Statuses: statuses}, 20)
		if r.Errors != wrong || tally.Statuses[200] != 10 || tally.Statuses[404] != 10 {
			t.Errorf("%q: %d failed %v, %+v, want %d", statuses, r.Errors, r.ErrorKinds, tally, wrong)
		}
		if statuses == "" && r.ErrorKinds["status 404"] != 10 {
			t.Errorf("kinds %v", r.ErrorKinds)
		}
	}
}

func TestFreshConnections(t *testing.T) {
	var opened atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	if r, tally := run(t, Options{URL: server.URL, Fresh: true}, 25); r.Completed != 25 || opened.Load() != 25 || tally.Opened != 25 {
		t.Errorf("%d completed over %d connections, %+v, want 25: %s", r.Completed, opened.Load(), tally, r.ErrorSample)
	}
}

func TestUnixSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Skipf("no unix sockets: %v", err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	defer server.Close()
	if r, _ := run(t, Options{URL: "http://far.example/", UnixSocket: path}, 10); r.Completed != 10 {
		t.Errorf("%d completed: %s", r.Completed, r.ErrorSample)
	}
}

func TestTLSOptions(t *testing.T) {
	authority := testkit.NewAuthority(t)
	issued := authority.Issue(t, &x509.Certificate{DNSNames: []string{"a.example"}})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS, _ = issued.Configs()
	trusting := func(name string) *tls.Config { return &tls.Config{RootCAs: authority.Pool, ServerName: name} }
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // for handshakes that fail
	server.StartTLS()
	defer server.Close()
	for name, tc := range map[string]struct {
		o    Options
		kind string
	}{
		"trusted":           {Options{TLS: trusting("a.example")}, ""},
		"any certificate":   {Options{TLS: &tls.Config{InsecureSkipVerify: true}}, ""},
		"another name":      {Options{TLS: trusting("b.example")}, "connect: TLS handshake"},
		"unknown authority": {Options{}, "connect: TLS handshake"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.URL = server.URL
			target, err := New(tc.o)
			if err != nil {
				t.Fatal(err)
			}
			c, err := target.NewCaller(t.Context(), 0)
			if err == nil {
				err = c.Do(t.Context())
				_ = c.Close()
			}
			if (tc.kind == "") != (err == nil) || err != nil && load.ErrorKind(err) != tc.kind {
				t.Errorf("%v, want %q", err, tc.kind)
			}
		})
	}
}

// A request without a response ends after the timeout, and so does its connection.
//
// mutant: httpload-no-deadline
func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	target, err := New(Options{URL: server.URL, Timeout: 30 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r, err := load.Run(t.Context(), load.Config{Callers: 3, Duration: 15 * time.Second, DrainLimit: time.Second, Total: 3}, target)
	if err != nil {
		t.Fatal(err)
	}
	if r.ErrorKinds["timeout"] != 3 {
		t.Errorf("%v, want 3 timeouts", r.ErrorKinds)
	}
}

// serve answers each request with the result of answer; "" closes the connection.
func serve(t *testing.T, answer func(n int) string) string {
	t.Helper()
	var n atomic.Int64
	return testkit.Serve(t, func(conn net.Conn, _ int) {
		in := bufio.NewReader(conn)
		for {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			text := answer(int(n.Add(1)))
			if text == "" {
				return
			}
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
		}
	}).Addr
}

// A violation of the protocol is an error of its own kind, and never counts as a response.
//
// mutant: httpload-duplicate-unseen
func TestServersThatBreakTheProtocol(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	for name, tc := range map[string]struct{ answer, kind string }{
		"another protocol": {"-ERR unknown command 'GET'\r\n", "protocol"},
		"two lengths":      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", "protocol"},
		"a bad chunk":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "protocol"},
		"an endless head":  {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxHead), "protocol"},
		"another one":      {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "protocol"},
		"nothing":          {"", "connection closed"},
		"two for one":      {ok + ok, "duplicate answer"},
		"a longer body":    {ok + "ay", "duplicate answer"},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, func(int) string { return tc.answer })
			target, err := New(Options{URL: address, Method: "POST"})
			if err != nil {
				t.Fatal(err)
			}
			c, err := target.NewCaller(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			err = errors.Join(c.Do(t.Context()), c.Do(t.Context()))
			if err == nil || load.ErrorKind(err) != tc.kind {
				t.Errorf("%v of kind %q, want %q", err, load.ErrorKind(err), tc.kind)
			}
		})
	}
}

// A server may close a connection while it waits for a request. A GET request is sent again; a POST
// request is not, because it may have been executed.
//
// mutant: httpload-post-twice
func TestKeptConnectionsThatWereClosed(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	for method, failures := range map[string]int{"GET": 0, "POST": 1} {
		var requests atomic.Int64
		address := serve(t, func(n int) string {
			requests.Store(int64(n))
			if n == 2 {
				return ""
			}
			return ok
		})
		target, err := New(Options{URL: address, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		c, err := target.NewCaller(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for range 3 {
			if err := c.Do(t.Context()); err != nil {
				failed++
			}
		}
		_ = c.Close()
		if sent := int(requests.Load()); failed != failures || sent != 4-failures {
			t.Errorf("%s: %d failed and %d were sent, want %d and %d", method, failed, sent, failures, 4-failures)
		}
	}
}

// A truncated response is an error even if the request may be executed twice, because part of the
// response has arrived.
//
// mutant: httpload-hides-cut-responses
func TestResponsesThatAreCutOff(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	var requests atomic.Int64
	address := testkit.Serve(t, func(conn net.Conn, _ int) {
		in := bufio.NewReader(conn)
		for {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			if requests.Add(1) == 2 {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n"+strings.Repeat("x", 20_000))
				return
			}
			if _, err := io.WriteString(conn, ok); err != nil {
				return
			}
		}
	}).Addr
	target, err := New(Options{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	c, err := target.NewCaller(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, want := range []string{"", "connection closed", ""} {
		if err := c.Do(t.Context()); (err == nil) != (want == "") || err != nil && load.ErrorKind(err) != want {
			t.Errorf("request %d: %v, want %q", i+1, err, want)
		}
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("%d requests arrived, want 3", n)
	}
}

func TestDoDoesNotAllocate(t *testing.T) {
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
	address := testkit.Serve(t, func(conn net.Conn, _ int) {
		buf := make([]byte, 1024)
		for {
			if _, err := conn.Read(buf); err != nil {
				return
			}
			if _, err := conn.Write(answer); err != nil {
				return
			}
		}
	}).Addr
	target, err := New(Options{URL: address, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	c, err := target.NewCaller(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	if n := testing.AllocsPerRun(500, func() { err = errors.Join(err, c.Do(ctx)) }); n != 0 || err != nil {
		t.Errorf("%v allocations a request, %v", n, err)
	}
}

func TestManyConnectionsHaveManySources(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system has only one loopback address")
	}
	for _, tc := range []struct {
		o    Options
		want int
	}{
		{Options{URL: "http://127.0.0.1:1/", Connections: 4096}, 0},
		{Options{URL: "http://127.0.0.1:1/", Connections: 10_000}, 3},
		{Options{URL: "http://[::1]:1/", Connections: 10_000}, 0},
		{Options{URL: "http://192.0.2.1:1/", Connections: 10_000}, 0},
		{Options{URL: "http://127.0.0.1:1/", Fresh: true}, freshSources},
	} {
		target, err := New(tc.o)
		if err != nil {
			t.Fatal(err)
		}
		if n := target.endpoint.Sources; n != tc.want {
			t.Errorf("%s with %d connections: %d sources, want %d", tc.o.URL, tc.o.Connections, n, tc.want)
		}
	}
}
