package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// purges remembers what was purged.
type purges struct{ got []string }

func (p *purges) Purge(_ context.Context, resource string, key []string) (pending string, err error) {
	switch {
	case resource != "depts" && resource != "orders":
		return "", ErrUnknownResource
	case slices.Contains(key, "bad"):
		return "", errors.New("key column deptno: expected an integer")
	case slices.Contains(key, "early"):
		return "", fmt.Errorf("%w: expected it later", ErrNotNow)
	case slices.Contains(key, "slow"):
		pending = "the disk is slow"
	}
	p.got = append(p.got, resource+" "+strings.Join(key, "|"))
	return pending, nil
}

func newServer() (*Server, *purges, *atomic.Pointer[[]string]) {
	p, reasons := &purges{}, &atomic.Pointer[[]string]{}
	reasons.Store(&[]string{})
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "slipstream_test"}, func() float64 { return 7 }))
	return New(Config{
		Ready:     func() []string { return *reasons.Load() },
		Metrics:   metrics,
		Effective: func() []byte { return []byte("origin: {}\n") },
		Purger:    p,
		Hosts:     []string{"Gateway.example.com"},
	}), p, reasons
}

// ask sends one request from this machine to the handler. target is a path or a URL.
func ask(s http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	return askFrom(s, "127.0.0.1:40000", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9100}, method, target, header...)
}

// askFrom sends one request as it would come from a peer to a listener at an address.
func askFrom(s http.Handler, peer string, at net.Addr, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = peer
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
	if strings.HasPrefix(target, "/") {
		r.Host = "127.0.0.1:9100"
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestPages(t *testing.T) {
	s, _, reasons := newServer()
	for _, test := range []struct {
		method, path string
		status       int
		contentType  string
		body         string
	}{
		{"GET", "/live", 200, "application/json", `{"live":true}`},
		{"HEAD", "/live", 200, "application/json", ""},
		{"POST", "/live", 405, "application/problem+json", `"status":405`},
		{"GET", "/ready", 200, "application/json", `{"ready":true}`},
		{"GET", "/metrics", 200, "text/plain", "slipstream_test 7"},
		{"PUT", "/metrics", 405, "application/problem+json", ""},
		{"GET", "/config", 200, "application/yaml", "origin: {}"},
		{"GET", "/purge", 405, "application/problem+json", "expected POST"},
		{"GET", "/", 404, "application/problem+json", "/debug/pprof/"},
		{"GET", "/live/", 404, "application/problem+json", ""},
		{"GET", "/depts/1", 404, "application/problem+json", ""},
		{"GET", "/debug/pprof/", 200, "text/html", "goroutine"},
		{"GET", "/debug/pprof/heap?debug=1", 200, "text/plain", "heap profile"},
		{"GET", "/debug/pprof/goroutine?debug=2", 200, "text/plain", "goroutine "},
		{"GET", "/debug/pprof/cmdline", 200, "text/plain", "test"},
		{"GET", "/debug/pprof/symbol?0x1", 200, "text/plain", "num_symbols"},
		{"GET", "/debug/pprof/zebra", 404, "text/plain", ""},
		{"GET", "/debug/pprof/a/b", 404, "application/problem+json", ""},
		{"POST", "/debug/pprof/profile", 405, "application/problem+json", ""},
		{"GET", "/debug/pprof/profile?seconds=61", 400, "application/problem+json", "up to 60"},
		{"GET", "/debug/pprof/profile?seconds=-1", 400, "application/problem+json", ""},
		{"GET", "/debug/pprof/trace?seconds=NaN", 400, "application/problem+json", ""},
		{"GET", "/debug/pprof/heap?seconds=1e9", 400, "application/problem+json", ""},
	} {
		w := ask(s, test.method, test.path)
		if w.Code != test.status || !strings.HasPrefix(w.Header().Get("Content-Type"), test.contentType) || !strings.Contains(w.Body.String(), test.body) {
			t.Errorf("%s %s: %d %s %.200s; expected %d %s %s", test.method, test.path,
				w.Code, w.Header().Get("Content-Type"), w.Body, test.status, test.contentType, test.body)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: headers %v", test.method, test.path, w.Header())
		}
		if w.Code == 405 && w.Header().Get("Allow") == "" {
			t.Errorf("%s %s: 405 without Allow", test.method, test.path)
		}
	}

	reasons.Store(&[]string{"depts: triggers are missing"})
	if w := ask(s, "GET", "/ready"); w.Code != 503 || !strings.Contains(w.Body.String(), `{"ready":false,"reasons":["depts: triggers are missing"]}`) {
		t.Errorf("not ready: %d %s", w.Code, w.Body)
	}
	if w := ask(s, "GET", "/live"); w.Code != 200 {
		t.Errorf("not ready, but alive: %d", w.Code)
	}
}

func TestPurge(t *testing.T) {
	s, p, _ := newServer()
	for _, test := range []struct {
		query  string
		status int
		purged string
		body   string
	}{
		{"resource=depts&key=42", 200, "depts 42", `{"purged":"document","resource":"depts","key":["42"]}`},
		{"key=EU/17&resource=orders", 200, "orders EU|17", `"key":["EU","17"]`},
		{"resource=orders&key=EU%2F17", 200, "orders EU|17", ""},
		{"resource=orders&key=a%252Fb/1", 200, "orders a/b|1", ""},
		{"resource=depts", 200, "depts ", `{"purged":"resource","resource":"depts"}`},
		{"resource=depts&key=", 400, "", "is empty"},
		{"resource=", 400, "", "is empty"},
		{"", 400, "", "missing"},
		{"key=42", 400, "", "missing"},
		{"resource=depts&key=1&key=2", 400, "", "twice"},
		{"resource=depts&kye=1", 400, "", "unknown parameter"},
		{"resource=depts;key=1", 400, "", "cannot be read"},
		{"resource=depts&key=%25zz", 400, "", "hexadecimal"},
		{"resource=depts&key=bad", 400, "", "key column deptno"},
		{"resource=emps&key=1", 404, "", "unknown resource"},
		{"resource=depts&key=early", 503, "", "expected it later"},
		{"resource=depts&key=slow", 202, "depts slow", `{"purged":"document","resource":"depts","key":["slow"],"pending":"the disk is slow"}`},
	} {
		p.got = nil
		w := ask(s, "POST", "/purge?"+test.query)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.body) {
			t.Errorf("%s: %d %s; expected %d %s", test.query, w.Code, w.Body, test.status, test.body)
		}
		if got := strings.Join(p.got, ","); got != test.purged {
			t.Errorf("%s: purged %q; expected %q", test.query, got, test.purged)
		}
		if w.Code >= 300 {
			var problem struct {
				Title, Detail string
				Status        int
			}
			if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || problem.Status != w.Code || problem.Detail == "" || problem.Title == "" {
				t.Errorf("%s: not a problem: %v %s", test.query, err, w.Body)
			}
		}
	}
}

// TestWebPages: what a browser sends on behalf of a foreign page is refused.
func TestWebPages(t *testing.T) {
	s, p, _ := newServer()
	for _, test := range []struct {
		method, url string
		header      []string
		status      int
	}{
		{"GET", "http://127.0.0.1:9100/live", nil, 200},
		{"GET", "http://127.0.0.1/live", nil, 200},
		{"GET", "http://[::1]:9100/live", nil, 200},
		{"GET", "http://[::1]/live", nil, 200},
		{"GET", "http://LocalHost:9100/live", nil, 200},
		{"GET", "http://gateway.example.com:9100/live", nil, 200},
		{"GET", "http://evil.example.com:9100/live", nil, 421},
		{"GET", "http://localhost.evil.example.com/live", nil, 421},
		{"GET", "http://127.0.0.1.evil.example.com/live", nil, 421},
		{"POST", "http://evil.example.com/purge?resource=depts", nil, 421},
		{"POST", "http://localhost:9100/purge?resource=depts", nil, 200},
		{"POST", "http://localhost:9100/purge?resource=depts", []string{"Origin", "http://localhost:9100"}, 200},
		{"POST", "http://localhost:9100/purge?resource=depts", []string{"Origin", "http://localhost:9100", "Sec-Fetch-Site", "same-origin"}, 200},
		{"POST", "http://localhost:9100/purge?resource=depts", []string{"Origin", "https://evil.example.com"}, 403},
		{"POST", "http://localhost:9100/purge?resource=depts", []string{"Origin", "null"}, 403},
		{"POST", "http://localhost:9100/purge?resource=depts", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"POST", "http://localhost:9100/purge?resource=depts", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"GET", "http://localhost:9100/debug/pprof/profile", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"GET", "http://localhost:9100/live", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		{"GET", "http://localhost:9100/live", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"GET", "http://localhost:9100/live", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"GET", "http://localhost:9100/debug/pprof/profile?seconds=60", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"GET", "http://localhost:9100/debug/pprof/trace", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"GET", "http://localhost:9100/debug/pprof/cmdline", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"GET", "http://localhost:9100/debug/pprof/cmdline", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"GET", "http://localhost:9100/debug/pprof/cmdline", nil, 200},
	} {
		p.got = nil
		if w := ask(s, test.method, test.url, test.header...); w.Code != test.status {
			t.Errorf("%s %s %v: %d %s; expected %d", test.method, test.url, test.header, w.Code, w.Body, test.status)
		}
		if (test.method == "POST" && test.status == 200) != (len(p.got) == 1) {
			t.Errorf("%s %s %v: purged %v", test.method, test.url, test.header, p.got)
		}
	}
	r := httptest.NewRequest("GET", "/live", nil)
	r.Host = ""
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != 421 {
		t.Errorf("without Host: %d", w.Code)
	}
}

// start serves on a free port and shuts down with the test.
func start(t *testing.T, s *Server) (base string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }() // stopped and awaited by the Cleanup
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

// TestProfilesOneAtATime: the second is refused while the first runs, and the
// first ends when the server shuts down.
func TestProfilesOneAtATime(t *testing.T) {
	s, _, _ := newServer()
	base := start(t, s)
	ended := make(chan time.Duration, 1)
	begun := time.Now()
	go func() { // ends with the profile, awaited below
		for {
			response, err := http.Get(base + "/debug/pprof/trace?seconds=50")
			if err != nil {
				break
			}
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
			if response.StatusCode != http.StatusTooManyRequests { // the heap profile below was first
				break
			}
		}
		ended <- time.Since(begun)
	}()
	for {
		response, err := http.Get(base + "/debug/pprof/heap?seconds=0.01")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode == http.StatusTooManyRequests {
			break
		}
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("status %d; expected 429 while a trace runs", response.StatusCode)
		}
		time.Sleep(10 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if d := <-ended; d > 20*time.Second {
		t.Errorf("the trace ran on for %v", d)
	}
}

// TestAbsentPages: a page without its source is absent, nothing panics.
func TestAbsentPages(t *testing.T) {
	s := New(Config{})
	for path, status := range map[string]int{"/live": 200, "/ready": 200, "/metrics": 404, "/config": 404, "/purge": 404} {
		if w := ask(s, "GET", path); w.Code != status {
			t.Errorf("%s: %d; expected %d", path, w.Code, status)
		}
	}
}

// TestSlowHeader: a client that never ends its header is cut off.
func TestSlowHeader(t *testing.T) {
	s, _, _ := newServer()
	s.http.ReadHeaderTimeout = 50 * time.Millisecond
	base := start(t, s)
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET /live HTTP/1.1\r\n")); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the connection stayed open: %v", err)
	}
}
