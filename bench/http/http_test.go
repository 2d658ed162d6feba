package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// The load process is another process of the test program.
func TestMain(m *testing.M) {
	loadproc.Child()
	m.Run()
}

// newTestHarness measures for a moment.
func newTestHarness(t *testing.T) *harness {
	t.Helper()
	module, err := proc.BenchModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(&command.Flags{}, command.Place{Module: module, Scratch: t.TempDir()}, io.Discard)
	h.window, h.warmUp = 150*time.Millisecond, 50*time.Millisecond
	return h
}

// Every subject serves the same bytes, with a length, a type and, except for the
// article's, a strong validator; otherwise costs could not be compared.
func TestSubjectsServeTheSameBytes(t *testing.T) {
	h := newTestHarness(t)
	names := h.present(append([]string{load.Ours, onNetHTTP}, rivals...)...)
	for _, name := range append([]string{load.Ours, onNetHTTP}, h.present(tlsRivals...)...) {
		names = append(names, tlsOf(name))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			server, err := h.start(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := server.Stop(); err != nil {
					t.Error(err)
				}
			}()
			for _, n := range []int64{1, 17, depts.Count} {
				rsp, body := get(t, server, n)
				if rsp.StatusCode != http.StatusOK || !bytes.Equal(body, document(n)) {
					t.Fatalf("document %d: %s %.200q, want %.200q", n, rsp.Status, body, document(n))
				}
				if (rsp.TLS != nil) != strings.HasSuffix(name, tlsSuffix) {
					t.Errorf("document %d was sent over TLS: %v", n, rsp.TLS != nil)
				}
				if rsp.ContentLength != int64(len(body)) || !strings.HasPrefix(rsp.Header.Get("Content-Type"), "application/json") {
					t.Errorf("document %d: length %d, type %q", n, rsp.ContentLength, rsp.Header.Get("Content-Type"))
				}
				if etag := rsp.Header.Get("ETag"); name != "article" && (len(etag) < 3 || etag[0] != '"') {
					t.Errorf("document %d: ETag %q, want a strong one", n, etag)
				}
			}
			if rsp, _ := get(t, server, depts.Count+1); rsp.StatusCode != http.StatusNotFound {
				t.Errorf("a document that does not exist: %s", rsp.Status)
			}
			if name == "varnish" {
				rsp, _ := get(t, server, 1)
				if ids := strings.Fields(rsp.Header.Get("X-Varnish")); len(ids) != 2 {
					t.Errorf("X-Varnish %q, want two numbers: a hit", ids)
				}
			}
		})
	}
}

func get(t *testing.T, server *subject.Server, key int64) (*http.Response, []byte) {
	t.Helper()
	rsp, err := server.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rsp, body
}

// One complete round of each kind of scenario, over a few connections.
func TestScenariosMeasure(t *testing.T) {
	h := newTestHarness(t)
	scenarios := []load.Scenario{
		h.hit("hit/8", 8, nil, nil),
		h.hit("pipelined/8", 8, nil, func(s *loadproc.Spec) { s.Batch = depth }),
		h.fullHit(8), h.halfRate("net/http", 8), h.idle(50),
		h.tls("hit-tls/8", 8, nil, nil),
		h.tls("handshake/8", 8, nil, func(s *loadproc.Spec) { s.Fresh = true }),
		h.tls("handshake-resumed/8", 8, nil, func(s *loadproc.Spec) { s.Fresh, s.Resume = true, true }),
		h.tls("hit-h2/8", 8, nil, func(s *loadproc.Spec) { s.HTTP2 = true }),
	}
	if sc, ok := h.foreign(8); ok {
		scenarios = append(scenarios, sc)
	}
	for _, sc := range scenarios {
		for _, s := range sc.Subjects {
			if s.Name == load.Control || !strings.Contains(sc.Name, "full") && !slices.Contains([]string{load.Ours, "net/http", "nginx"}, s.Name) {
				continue
			}
			t.Run(sc.Name+"/"+s.Name, func(t *testing.T) {
				sample, err := s.Run(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				if sample.Errors > 0 {
					t.Errorf("%d errors: %s", sample.Errors, sample.ErrorSample)
				}
				metrics := []load.Metric{load.RPS, load.ClientUS, load.ServerUS, load.P50US, load.P99US}
				if strings.HasPrefix(sc.Name, "idle") {
					metrics = nil // 50 connections may fit into memory that already exists
				}
				for _, m := range metrics {
					if !(sample.Values[m] > 0) {
						t.Errorf("%s is %v", m, sample.Values[m])
					}
				}
			})
		}
	}
}

func TestGrowth(t *testing.T) {
	d := idleDetails{Connections: 1000, Before: memory{Heap: 5e6, Stacks: 1e6}, After: memory{Heap: 5.5e6, Stacks: 1.25e6}}
	if got := d.growth(); got != 750 {
		t.Errorf("%v bytes a connection, want 750", got)
	}
	if _, err := figure(map[string]float64{"a": 1}, "b"); err == nil {
		t.Error("a figure that does not exist was read")
	}
	value := func(v float64) *float64 { return &v }
	for bytesOp, want := range map[float64]string{1024: "1024 bytes a connection, goal <= 1024: met", 1025: "1025 bytes a connection, goal <= 1024: missed"} {
		var out strings.Builder
		checkIdle(&out, []load.Row{{Scenario: "idle-10000/10000", Subject: load.Ours, BytesOp: value(bytesOp)}})
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q, want text that contains %q", &out, want)
		}
	}
}

func TestCheck(t *testing.T) {
	value := func(v float64) *float64 { return &v }
	h := newTestHarness(t)
	h.noteMissing(fmt.Errorf("the program nginx %w: apt-get install nginx", subject.ErrNotInstalled))
	rows := []load.Row{
		{Scenario: "hit/64", Subject: load.Ours, ServerUS: value(10)},
		{Scenario: "hit/64", Subject: floorName, ServerUS: value(9)},
		{Scenario: "hit/16384", Subject: load.Ours, ServerUS: value(14)},
	}
	var out strings.Builder
	if err := h.Check(&out, rows); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"LEFT OUT: the program nginx is not installed", "hit/64: stretch: server_us <= 1.05x of floor-epoll: missed (1.111",
		"hit/16384: no failed request: met (0)", "hit/16384: server_us <= 1.5x of hit/64: met (1.40",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	rows[2].Errors = 3
	if err := h.Check(io.Discard, rows); err == nil || !strings.Contains(err.Error(), "3 requests failed") {
		t.Errorf("error %v", err)
	}
}

// Goals refer to subjects of their scenario, unless these are not installed, and the names of
// scenarios are unique.
func TestScenarios(t *testing.T) {
	h := newTestHarness(t)
	seen := map[string]bool{}
	for _, sc := range h.Scenarios() {
		if seen[sc.Name] {
			t.Errorf("two scenarios are named %q", sc.Name)
		}
		seen[sc.Name] = true
		for _, g := range sc.Goals {
			if !h.absent[g.Rival] && !slices.ContainsFunc(sc.Subjects, func(s load.Subject) bool { return s.Name == g.Rival }) {
				t.Errorf("%s has a goal against %q, which is not a subject", sc.Name, g.Rival)
			}
		}
	}
	for _, name := range []string{"hit/64", "hit/1024", "hit/16384", "pipelined-16/64", "hit-full/64", "idle-10000/10000", "half-rate-fasthttp/64",
		"hit-tls/64", "hit-tls/1024", "handshake/64", "handshake-resumed/64", "hit-h2/64"} {
		if !seen[name] {
			t.Errorf("no scenario %s", name)
		}
	}
}
