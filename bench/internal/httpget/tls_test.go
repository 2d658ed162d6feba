package httpget_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/httpget"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A secureServer counts its connections and those that resumed a session.
type secureServer struct {
	*httptest.Server
	target  *httpget.Target
	opened  atomic.Int64
	resumed atomic.Int64
	http2   atomic.Int64 // requests
}

// serveTLS starts a server of 20 documents with a configuration modified by change.
func serveTLS(t *testing.T, change func(*tls.Config), handler http.HandlerFunc) *secureServer {
	t.Helper()
	certificate, err := subject.NewCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(certificate.Cert, certificate.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := &secureServer{}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}, VerifyConnection: func(state tls.ConnectionState) error {
		if state.DidResume {
			s.resumed.Add(1)
		}
		return nil
	}}
	if change != nil {
		change(config)
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 {
			s.http2.Add(1)
		}
		handler(w, r)
	}))
	s.TLS, s.EnableHTTP2 = config, true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // some tests make handshakes fail
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.opened.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	s.target = &httpget.Target{
		Address: s.Listener.Addr().String(), Path: "/depts/", Member: `{"deptno":`, Keys: 20, Seed: 5, Certificate: certificate.PEM,
	}
	return s
}

// answer sends the requested document, of at least size bytes.
func answer(size int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := fmt.Sprintf(`{"deptno":%s,"pad":"%s"}`, strings.TrimPrefix(r.URL.Path, "/depts/"), strings.Repeat("x", size))
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write([]byte(body))
	}
}

// ask makes requests over callers connections.
func ask(t *testing.T, target *httpget.Target, callers, requests int) *load.Result {
	t.Helper()
	r, err := load.Run(t.Context(), load.Config{Callers: callers, Duration: 20 * time.Second, Requests: requests}, target)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every variant of TLS gets right answers, with the expected numbers of connections and of resumed
// sessions.
func TestTLS(t *testing.T) {
	const callers, requests = 3, 130
	for name, tc := range map[string]struct {
		change          func(*httpget.Target)
		opened, resumed int64
		http2           int64
	}{
		"kept":    {func(*httpget.Target) {}, callers, 0, 0},
		"fresh":   {func(t *httpget.Target) { t.Fresh, t.Sources = true, 2 }, callers * requests, 0, 0},
		"resumed": {func(t *httpget.Target) { t.Fresh, t.Resume = true, true }, callers * requests, callers * (requests - 1), 0},
		"http2":   {func(t *httpget.Target) { t.HTTP2 = true }, callers, 0, callers * requests},
	} {
		for _, size := range []int{0, 1700, 100_000} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				s := serveTLS(t, nil, answer(size))
				tc.change(s.target)
				if err := s.target.Learn(t.Context()); err != nil {
					t.Fatal(err)
				}
				opened, http2 := s.opened.Load(), s.http2.Load()
				r := ask(t, s.target, callers, requests)
				if r.Errors != 0 || r.Completed != callers*requests {
					t.Fatalf("completed %d, errors %d: %s", r.Completed, r.Errors, r.ErrorSample)
				}
				if n := s.opened.Load() - opened; n != tc.opened {
					t.Errorf("%d connections, want %d", n, tc.opened)
				}
				if n := s.resumed.Load(); n != tc.resumed {
					t.Errorf("%d sessions resumed, want %d", n, tc.resumed)
				}
				if n := s.http2.Load() - http2; n != tc.http2 {
					t.Errorf("%d requests over HTTP/2, want %d", n, tc.http2)
				}
			})
		}
	}
}

// A server that does less work than the others is not measured.
func TestOtherTLSIsAnError(t *testing.T) {
	another, err := subject.NewCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		server  func(*tls.Config)
		target  func(*httpget.Target)
		problem string
	}{
		"TLS 1.2":            {func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, nil, "protocol version"},
		"P-256 to agree":     {func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.CurveP256} }, nil, "handshake failure"},
		"no HTTP/2":          {func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }, func(t *httpget.Target) { t.HTTP2 = true }, "protocol"},
		"nothing to resume":  {func(c *tls.Config) { c.SessionTicketsDisabled = true }, func(t *httpget.Target) { t.Fresh, t.Resume = true, true }, "resumed a session: false"},
		"another's":          {nil, func(t *httpget.Target) { t.Certificate = another.PEM }, "certificate"},
		"no certificate":     {nil, func(t *httpget.Target) { t.Certificate = []byte("-----") }, "PEM"},
		"HTTP/2 with Fields": {nil, func(t *httpget.Target) { t.HTTP2, t.Fields = true, []string{"X: y\r\n"} }, "plain requests"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveTLS(t, tc.server, answer(100))
			if tc.target != nil {
				tc.target(s.target)
			}
			err := firstError(t.Context(), s.target)
			if err == nil || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("error %v, want one that contains %q", err, tc.problem)
			}
		})
	}
}

// firstError makes two requests and returns what went wrong.
func firstError(ctx context.Context, target *httpget.Target) error {
	c, err := target.NewCaller(ctx, 0)
	if err != nil {
		return err
	}
	defer c.Close()
	return errors.Join(c.Do(ctx), c.Do(ctx))
}

// The rules for right answers also apply to HTTP/2.
func TestWrongAnswersOverHTTP2(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		problem string
	}{
		"another key": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "13")
			_, _ = w.Write([]byte(`{"deptno":21}`))
		}, "not that of the requested key"},
		"not found": {http.NotFound, "status"},
		"no length": {func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }, "no field Content-Length"},
		"in gzip": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			answer(10)(w, r)
		}, "content coding"},
		"cut off": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "reset stream"},
		"too short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"deptno":1}`))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveTLS(t, nil, tc.handler)
			s.target.HTTP2 = true
			r := ask(t, s.target, 1, 3)
			if r.Completed != 0 || r.Errors != 3 || !strings.Contains(r.ErrorSample, tc.problem) {
				t.Errorf("completed %d, errors %d: %s, want %q", r.Completed, r.Errors, r.ErrorSample, tc.problem)
			}
		})
	}
}

// Close ends a waiting Do, whichever connection it uses.
func TestCloseEndsAFreshDo(t *testing.T) {
	waiting, goOn := make(chan struct{}), make(chan struct{})
	s := serveTLS(t, nil, func(http.ResponseWriter, *http.Request) {
		waiting <- struct{}{}
		<-goOn
	})
	defer close(goOn)
	s.target.Fresh = true
	c, err := s.target.NewCaller(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Do(t.Context()) }() // ends with Close; received below
	select {
	case <-waiting:
	case err := <-done:
		t.Fatalf("before the request: %v", err)
	}
	_ = c.Close()
	if err := <-done; err == nil {
		t.Error("a request without an answer succeeded")
	}
	if err := c.Do(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v, want %v", err, net.ErrClosed)
	}
}
