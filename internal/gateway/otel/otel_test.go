package otel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/trace"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

func TestSpan(t *testing.T) {
	testkit.NoLeaks(t)
	began := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	parent := [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
	ctx := trace.Context{}.Child().WithSampled(true)
	for _, test := range []struct {
		name       string
		span       trace.Span
		spanName   string
		failed     bool
		attributes map[string]string
	}{
		{
			"a document",
			trace.Span{
				Context: ctx, Parent: parent, RequestID: "abc", Method: "GET", Route: "/depts/{deptno}", Resource: "depts",
				Caller: "key:web", Source: "hit", Status: 200, Start: began, Duration: 1500 * time.Microsecond, Bytes: 321, Keys: 1,
			},
			"GET /depts/{deptno}", false,
			map[string]string{
				"http.request.method": "GET", "http.route": "/depts/{deptno}", "http.response.status_code": "200", "http.response.body.size": "321",
				"slipstream.request_id": "abc", "slipstream.resource": "depts", "slipstream.source": "hit", "slipstream.caller": "key:web", "slipstream.keys": "1",
			},
		},
		{
			"a client's mistake",
			trace.Span{Context: ctx, RequestID: "abc", Method: "HEAD", Status: 404, Start: began, Duration: 1},
			"HEAD", false,
			map[string]string{
				"http.request.method": "HEAD", "http.response.status_code": "404", "http.response.body.size": "0", "slipstream.request_id": "abc",
			},
		},
		{
			"a failure",
			trace.Span{Context: ctx, Parent: parent, RequestID: "abc", Method: "POST", Route: "/depts", Resource: "depts", Source: "load", Status: 503, Start: began, Duration: time.Hour, Keys: 1000},
			"POST /depts", true,
			map[string]string{
				"http.request.method": "POST", "http.route": "/depts", "http.response.status_code": "503", "http.response.body.size": "0", "error.type": "503",
				"slipstream.request_id": "abc", "slipstream.resource": "depts", "slipstream.source": "load", "slipstream.keys": "1000",
			},
		},
		{
			"a method of the client's making",
			trace.Span{Context: ctx, RequestID: "abc", Method: "GETT\n", Route: "/depts/{deptno}", Status: 405, Start: began},
			"HTTP /depts/{deptno}", false,
			map[string]string{
				"http.request.method": "_OTHER", "http.route": "/depts/{deptno}", "http.response.status_code": "405", "http.response.body.size": "0", "slipstream.request_id": "abc",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCollector(t)
			e, _ := start(t, c.URL, quick)
			e.Request(test.span)
			got := c.await(t, 1)[0]
			if got.traceID != string(test.span.Context.TraceID[:]) || got.id != string(test.span.Context.SpanID[:]) {
				t.Errorf("ids: got %x %x, want %x %x", got.traceID, got.id, test.span.Context.TraceID, test.span.Context.SpanID)
			}
			wantParent, wantFlags := "", uint64(0x101) // sampled, not remote
			if test.span.Parent != [8]byte{} {
				wantParent, wantFlags = string(test.span.Parent[:]), 0x301
			}
			if got.parent != wantParent || got.flags != wantFlags {
				t.Errorf("parent: got %x, flags %x; want %x, %x", got.parent, got.flags, wantParent, wantFlags)
			}
			if got.name != test.spanName || got.kind != 2 {
				t.Errorf("got %q, kind %d; want %q, a server's (2)", got.name, got.kind, test.spanName)
			}
			if start, took := int64(got.start), int64(got.end-got.start); start != began.UnixNano() || took != int64(test.span.Duration) {
				t.Errorf("time: got %d and %d, want %d and %d", start, took, began.UnixNano(), test.span.Duration)
			}
			if got := got.status == 2; got != test.failed {
				t.Errorf("status: failed %v, want %v", got, test.failed)
			}
			if !maps.Equal(got.attributes, test.attributes) {
				t.Errorf("attributes:\ngot  %v\nwant %v", got.attributes, test.attributes)
			}
		})
	}
}

func TestResource(t *testing.T) {
	testkit.NoLeaks(t)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", " deployment.environment.name=test%20env, service.name=other,=x")
	c := newCollector(t)
	e, err := New(t.Context(), Config{Endpoint: c.URL + "/", Service: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	e.Request(someSpan(1))
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.spans()) != 1 {
		t.Fatalf("got %d spans, want 1", len(c.spans()))
	}
	r := c.requests[0]
	want := map[string]string{
		"service.name": "shop", "deployment.environment.name": "test env", "telemetry.sdk.language": "go", "telemetry.sdk.name": "slipstream",
		"telemetry.sdk.version": r.resource["telemetry.sdk.version"],
	}
	if !maps.Equal(r.resource, want) || want["telemetry.sdk.version"] == "" {
		t.Errorf("resource: got %v, want %v", r.resource, want)
	}
	if r.scope != "github.com/slipstream-go/slipstream" || r.schema != schemaURL || r.resourceSchema != schemaURL {
		t.Errorf("scope %q, schemas %q and %q", r.scope, r.schema, r.resourceSchema)
	}
}

func TestConfig(t *testing.T) {
	testkit.NoLeaks(t)
	for _, endpoint := range []string{"", "localhost:4318", "ftp://host:1", "http://", "http://user:secret@host:1", "http://host/?a=b", "http://host/#a", "http://host:port", "\x00"} {
		_, err := New(t.Context(), Config{Endpoint: endpoint})
		if err == nil || !strings.Contains(err.Error(), "endpoint") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got error %v, want one about the endpoint", endpoint, err)
		}
	}
}

func TestSample(t *testing.T) {
	testkit.NoLeaks(t)
	c := newCollector(t)
	for ratio, want := range map[float64]float64{0: 0, -1: 0, 1: 1, 2: 1, 0.5: 0.5, 0.01: 0.01, math.NaN(): 0} {
		e, err := New(t.Context(), Config{Endpoint: c.URL, Ratio: ratio})
		if err != nil {
			t.Fatal(err)
		}
		const n = 100_000
		sampled, unnamed := 0, 0
		for range n {
			ctx := trace.Context{}.Child()
			if e.Sample(ctx, false) {
				sampled++
			}
			if e.Sample(trace.Context{}, false) {
				unnamed++
			}
			if !e.Sample(ctx.WithSampled(true), true) || e.Sample(ctx, true) {
				t.Fatalf("ratio %v: the parent did not decide", ratio)
			}
		}
		if got := float64(sampled) / n; math.Abs(got-want) > 0.01 {
			t.Errorf("ratio %v: got %v, want %v", ratio, got, want)
		}
		if got := float64(unnamed) / n; math.Abs(got-want) > 0.01 {
			t.Errorf("ratio %v, without an id: got %v, want %v", ratio, got, want)
		}
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The SDKs of other services decide alike: TraceIDRatioBased compares the second
// half of the trace id, halved, with the ratio of 2^63.
func TestSampleAgrees(t *testing.T) {
	testkit.NoLeaks(t)
	e, err := New(t.Context(), Config{Endpoint: "http://127.0.0.1:1", Ratio: 0.25})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Shutdown(t.Context())
	for half, want := range map[uint64]bool{1: true, 1<<62 - 1: true, 1 << 62: false, 1 << 63: false} {
		ctx := trace.Context{}.Child()
		binary.BigEndian.PutUint64(ctx.TraceID[8:], half)
		if got := e.Sample(ctx, false); got != want {
			t.Errorf("second half %x: got %v, want %v", half, got, want)
		}
	}
}

// A string that is not UTF-8 would make a collector refuse the batch.
func TestSpanIsUTF8(t *testing.T) {
	testkit.NoLeaks(t)
	c := newCollector(t)
	e, _ := start(t, c.URL, quick)
	s := someSpan(1)
	s.RequestID = "a\xffb"
	e.Request(s)
	if got := c.await(t, 1)[0].attributes["slipstream.request_id"]; got != "a\uFFFDb" {
		t.Errorf("got %q", got)
	}
}

func TestShutdownDelivers(t *testing.T) {
	testkit.NoLeaks(t)
	c := newCollector(t)
	times := quick
	times.gather = time.Hour // only full batches are sent automatically
	e, log := start(t, c.URL, times)
	const n = 3*maxBatch + 7
	seen := make(map[string]bool)
	for i := range n {
		e.Request(someSpan(i))
	}
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.await(t, n) {
		seen[s.attributes["slipstream.request_id"]] = true
	}
	if len(seen) != n || e.Dropped() != 0 {
		t.Errorf("%d different spans, %d dropped; want %d and 0", len(seen), e.Dropped(), n)
	}
	for _, r := range c.requests {
		if got := len(r.spans); got > maxBatch {
			t.Errorf("a batch of %d", got)
		}
	}
	e.Request(someSpan(0))
	if e.Dropped() != 1 {
		t.Errorf("after the end: %d dropped, want 1", e.Dropped())
	}
	if err := e.Shutdown(t.Context()); err != nil {
		t.Errorf("again: %v", err)
	}
	if got := log.list(); got[0] != "" {
		t.Errorf("logged %q, want nothing", got)
	}
}

// Whatever is wrong with the collector for a while, the spans of that time arrive
// when it works again, and no request waits.
func TestOutage(t *testing.T) {
	testkit.NoLeaks(t)
	patient := quick
	patient.give = time.Minute
	hang := make(chan struct{})
	for name, trouble := range map[string]http.HandlerFunc{
		"503":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"429":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"hang": func(_ http.ResponseWriter, r *http.Request) { <-hang },
		"reset": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
		},
		"no HTTP": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				fmt.Fprint(conn, strings.Repeat("\x00\xff nonsense\r\n", 100))
				conn.Close()
			}
		},
		"half a body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, "half")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCollector(t)
			e, _ := start(t, c.URL, patient)
			c.answer(trouble)
			for i := range 100 {
				e.Request(someSpan(i))
			}
			time.Sleep(50 * time.Millisecond)
			c.answer(nil)
			if name == "hang" {
				// The attempt ends by its own limit, not by an answer.
				testkit.Eventually(t, 10*time.Second, func() error {
					if len(c.spans()) == 0 {
						return errors.New("nothing came")
					}
					return nil
				})
				close(hang)
			}
			c.await(t, 100)
			if e.Dropped() != 0 {
				t.Errorf("%d dropped, want 0", e.Dropped())
			}
		})
	}
}

// A collector that starts after the exporter gets the queued spans.
func TestCollectorComesLate(t *testing.T) {
	testkit.NoLeaks(t)
	patient := quick
	patient.give = time.Minute
	c := newCollector(t)
	address := c.Listener.Addr().String()
	c.Close()
	e, _ := start(t, "http://"+address, patient)
	for i := range 10 {
		e.Request(someSpan(i))
	}
	time.Sleep(50 * time.Millisecond)
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: c}
	done := make(chan struct{})
	go func() { // ended by Close, awaited below
		defer close(done)
		_ = server.Serve(l)
	}()
	c.await(t, 10)
	server.Close()
	<-done
}

// A flood while the collector hangs costs a bounded queue and no time.
func TestFlood(t *testing.T) {
	testkit.NoLeaks(t)
	c := newCollector(t)
	hang := make(chan struct{})
	c.answer(func(http.ResponseWriter, *http.Request) { <-hang })
	defer close(hang)
	endless := quick
	endless.attempt, endless.give = time.Hour, time.Hour
	e, _ := start(t, c.URL, endless)

	// The id is a part of a request's head of 64 KiB, which must not be retained.
	const n = 2 * maxQueue
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var slowest time.Duration
	for i := range n {
		head := strings.Repeat("x", 64<<10)
		s := someSpan(i)
		s.RequestID, s.Method = head[:64], head[:10]
		began := time.Now()
		e.Request(s)
		slowest = max(slowest, time.Since(began))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d bytes held by %d spans waiting, slowest call %v", grown, maxQueue, slowest)
	if grown > 4<<20 {
		t.Errorf("%d bytes held, want 4 MiB at most", grown)
	}
	if slowest > time.Second {
		t.Errorf("a call took %v", slowest)
	}
	if kept := n - e.Dropped(); kept < maxQueue || kept > maxQueue+maxBatch {
		t.Errorf("%d of %d kept, want the queue of %d and a batch", kept, n, maxQueue)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := e.Shutdown(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want the deadline's", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Shutdown took %v, want about 50 ms", took)
	}
	if got := e.Dropped(); got != n {
		t.Errorf("%d dropped, want all %d", got, n)
	}
}

// Without a deadline, Shutdown gives up when the collector does not accept a batch:
// after the current batch and the next one, not after the whole queue.
func TestShutdownGivesUp(t *testing.T) {
	testkit.NoLeaks(t)
	c := newCollector(t)
	var mu sync.Mutex
	seen := make(map[string]bool)
	c.answer(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen[string(body)] = true
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	e, log := start(t, c.URL, quick)
	for i := range maxQueue {
		e.Request(someSpan(i))
	}
	err := e.Shutdown(context.Background())
	if err == nil || !strings.Contains(err.Error(), "spans were not delivered") {
		t.Errorf("got error %v, want the spans that were lost", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) == 0 || len(seen) > 4 {
		t.Errorf("%d batches were tried, want 1 to 4", len(seen))
	}
	if e.Dropped() != maxQueue {
		t.Errorf("%d dropped, want %d", e.Dropped(), maxQueue)
	}
	if got := log.list(); len(got) != 1 || !strings.Contains(got[0], "spans were dropped") {
		t.Errorf("logged %q, want one line", got)
	}
}

// If the collector cannot be reached, Shutdown fails with the reason.
func TestShutdownWithoutCollector(t *testing.T) {
	testkit.NoLeaks(t)
	e, _ := start(t, fmt.Sprint("http://127.0.0.1:", testkit.FreePort(t)), quick)
	e.Request(someSpan(1))
	if err := e.Shutdown(context.Background()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got error %v, want the connection refused", err)
	}
}

func BenchmarkRequest(b *testing.B) {
	e, err := New(b.Context(), Config{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		b.Fatal(err)
	}
	s := someSpan(1)
	b.ReportAllocs()
	for b.Loop() {
		e.Request(s)
	}
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	_ = e.Shutdown(ctx)
}
