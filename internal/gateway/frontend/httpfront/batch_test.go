package httpfront

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/flate"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/loop"
)

func TestBatch(t *testing.T) { eachWay(t, testBatch) }

func testBatch(t *testing.T, by way) {
	f := newFixture(t, echo).over(t, by)
	doc := func(id string) string { return fmt.Sprintf(`{"id":%q}`, id) }
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "&key=%d", i+1)
		}
		return b.String()[1:]
	}
	for _, test := range []struct {
		target string
		status int
		want   string // the whole body, or a part of the problem's detail
	}{
		{"/depts?key=2&key=1", 200, "[" + doc("2") + "," + doc("1") + "]"},
		{"/depts?key=1", 200, "[" + doc("1") + "]"},
		{"/depts?key=0", 200, "[null]"},
		{"/depts?key=0&key=3&key=0", 200, "[null," + doc("3") + ",null]"},
		{"/depts?key=7&key=7", 200, "[" + doc("7") + "," + doc("7") + "]"},
		{"/depts?key=%37", 200, "[" + doc("7") + "]"},
		{"/%64epts?key=7", 200, "[" + doc("7") + "]"},
		{"/orders?key=EU/17", 200, "[" + doc("2:EU17") + "]"},
		{"/orders?key=EU%2F17", 200, "[" + doc("2:EU17") + "]"},
		{"/orders?key=E%252FU/17", 200, "[" + doc("3:E/U17") + "]"},
		{"/orders?key=a+b/17", 200, "[" + doc("3:a b17") + "]"},
		{"/blobs?key=00ff&key=01", 200, "[" + doc("00ff") + "," + doc("01") + "]"},
		{"/depts?" + many(1000), 200, ""},

		{"/depts?" + many(1001), 400, "1001 keys; expected at most 1000"},
		{"/depts?key=1&key=x", 400, "key 2 of the query: key column deptno: expected a decimal integer"},
		{"/depts?key=1&", 400, "parameter 2 of the query is not key="},
		{"/depts?&key=1", 400, "parameter 1 of the query is not key="},
		{"/depts?key=1&x=2", 400, "parameter 2 of the query is not key="},
		{"/depts?keys=1", 400, "parameter 1 of the query is not key="},
		{"/depts?key", 400, "parameter 1 of the query is not key="},
		{"/depts?key=", 400, "key 1 of the query: key column deptno"},
		{"/depts?key=1;key=2", 400, "key 1 of the query"},
		{"/depts?key=%zz", 400, "percent signs followed by two hexadecimal digits"},
		{"/depts?key=1/2", 400, "key 1 of the query"},
		{"/orders?key=EU", 400, "key 1 of the query"},
		{"/orders?key=EU/17/1", 400, "too many segments"},
		{"/depts?key=" + strings.Repeat("1", 60_000), 414, "longer than 57344 bytes"},
		{"/nobody?key=1", 404, "no such resource"},
		{"/late?key=1", 503, "not been reached"},
	} {
		r := f.do("GET", test.target)
		text := body(t, r)
		if r.StatusCode != test.status {
			t.Errorf("GET %.60s = %d %.200s, want %d", test.target, r.StatusCode, text, test.status)
			continue
		}
		if test.status == 200 {
			if test.want != "" && text != test.want {
				t.Errorf("GET %.60s = %s, want %s", test.target, text, test.want)
			}
			if !json.Valid([]byte(text)) || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("GET %.60s: not JSON", test.target)
			}
			continue
		}
		checkProblem(t, r, text)
		if !strings.Contains(text, test.want) {
			t.Errorf("GET %.60s: %s, want it to say %q", test.target, text, test.want)
		}
	}
}

func TestBatchConditional(t *testing.T) { eachWay(t, testBatchConditional) }

func testBatchConditional(t *testing.T, by way) {
	var version atomic.Int64
	version.Store(1)
	f := newFixture(t, func(_ ctx, _ cache.ResourceID, id string) ([]byte, error) {
		if id == "0" {
			return nil, nil
		}
		return fmt.Appendf(nil, `{"id":%s,"version":%d}`, id, version.Load()), nil
	}).over(t, by)
	first := f.do("GET", "/depts?key=1&key=0&key=2")
	tag := first.Header.Get("Etag")
	if got := first.Header.Get("Cache-Status"); got != "slipstream; fwd=uri-miss" {
		t.Errorf("Cache-Status of a batch that was loaded: %q", got)
	}
	again := f.do("GET", "/depts?key=1&key=0&key=2", "If-None-Match", tag)
	if again.StatusCode != 304 || again.Header.Get("Etag") != tag || again.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("unchanged: status %d, fields %v", again.StatusCode, again.Header)
	}
	if got := again.Header.Get("Cache-Status"); got != "slipstream; hit" {
		t.Errorf("Cache-Status of a batch that was cached: %q", got)
	}
	if got := f.do("GET", "/depts?key=1&key=9").Header.Get("Cache-Status"); got != "slipstream; fwd=partial" {
		t.Errorf("Cache-Status of a batch of which a part was cached: %q", got)
	}
	for _, other := range []string{"/depts?key=2&key=0&key=1", "/depts?key=1&key=2", "/depts?key=1&key=0&key=2&key=0"} {
		if got := f.do("GET", other).Header.Get("Etag"); got == tag {
			t.Errorf("%s has the tag of another array", other)
		}
	}
	version.Store(2)
	f.cache.Purge(cache.Key{Resource: 0, ID: "2"})
	changed := f.do("GET", "/depts?key=1&key=0&key=2", "If-None-Match", tag)
	if changed.StatusCode != 200 || changed.Header.Get("Etag") == tag {
		t.Errorf("one document of three changed: status %d, tag %q", changed.StatusCode, changed.Header.Get("Etag"))
	}
	head := f.do("HEAD", "/depts?key=1&key=0&key=2")
	if head.StatusCode != 200 || head.Header.Get("Content-Length") != changed.Header.Get("Content-Length") || body(t, head) != "" {
		t.Errorf("HEAD: status %d, fields %v", head.StatusCode, head.Header)
	}
	if r := f.do("GET", "/depts?key=1", "If-Match", `"other"`); r.StatusCode != 412 {
		t.Errorf("If-Match of another tag: status %d, want 412", r.StatusCode)
	}
}

// A batch whose answer would hold too much memory is refused.
func TestBatchTooLarge(t *testing.T) { eachWay(t, testBatchTooLarge) }

func testBatchTooLarge(t *testing.T, by way) {
	large := make([]byte, 8<<20)
	for i := range large {
		large[i] = '1'
	}
	f := newFixture(t, func(ctx, cache.ResourceID, string) ([]byte, error) { return large, nil }).over(t, by)
	r := f.do("GET", "/depts?key=1&key=2&key=3&key=4&key=5&key=6&key=7&key=8")
	text := body(t, r)
	if r.StatusCode != 400 || !strings.Contains(text, "request fewer keys") {
		t.Errorf("64 MiB and a few commas: status %d, %s", r.StatusCode, text)
	}
	if r := f.do("GET", "/depts?key=1&key=2&key=3&key=4&key=5&key=6&key=7"); r.StatusCode != 200 {
		t.Errorf("56 MiB: status %d, want 200", r.StatusCode)
	}
}

// Large answers that clients do not read hold a bounded amount of memory, and the
// next ones are refused; small ones are not.
func TestPendingIsBounded(t *testing.T) {
	large := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	f := newFixture(t, func(_ ctx, _ cache.ResourceID, id string) ([]byte, error) {
		if id == "1" {
			return []byte("1"), nil
		}
		return large, nil
	})
	h := f.handler().(*handler)
	h.large = loop.NewLargeBudget(2<<20 + 200<<10) // half of it more is allowed
	reading := make(chan struct{})
	done := make(chan int, 4)
	for range 3 {
		writing := make(chan struct{})
		w := &heldWriter{discard{make(http.Header)}, reading, writing, 0}
		go func() { // ends when reading is closed; done is read below
			h.ServeHTTP(w, f.request("GET", "/depts/5"))
			done <- w.status
		}()
		<-writing
	}
	for target, want := range map[string]int{"/depts/5": 503, "/depts/1": 200} {
		w := &heldWriter{discard{make(http.Header)}, closedChannel, make(chan struct{}), 0}
		h.ServeHTTP(w, f.request("GET", target))
		if w.status != want {
			t.Errorf("%s next to three clients that do not read: status %d, want %d", target, w.status, want)
		}
	}
	close(reading)
	for range 3 {
		if status := <-done; status != 200 {
			t.Errorf("a client that read at last got status %d", status)
		}
	}
	w := &heldWriter{discard{make(http.Header)}, closedChannel, make(chan struct{}), 0}
	if h.ServeHTTP(w, f.request("GET", "/depts/5")); w.status != 200 {
		t.Errorf("after all have read: status %d, want 200", w.status)
	}
}

var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// heldWriter is a client that reads when the test lets it.
type heldWriter struct {
	discard
	read    chan struct{}
	writing chan struct{} // closed when the first body byte is written
	status  int
}

func (w *heldWriter) WriteHeader(status int) { w.status = status }

func (w *heldWriter) Write(b []byte) (int, error) {
	if w.writing != nil {
		close(w.writing)
		w.writing = nil
	}
	<-w.read
	return len(b), nil
}

// A batch that finds no room to load in waits as long as its request may.
func TestBatchWaitsForRoom(t *testing.T) {
	f := newFixture(t, echo)
	if err := f.service.loading.Acquire(t.Context(), maxLoading); err != nil {
		t.Fatal(err)
	}
	h := f.handler().(*handler)
	h.timeout = 20 * time.Millisecond
	w := &heldWriter{discard{make(http.Header)}, closedChannel, nil, 0}
	if h.ServeHTTP(w, f.request("GET", "/depts?key=1&key=2")); w.status != http.StatusGatewayTimeout {
		t.Errorf("without room: status %d, want 504", w.status)
	}
	if r := f.do("GET", "/depts/1"); r.StatusCode != 200 {
		t.Errorf("one document while it waits: status %d, want 200", r.StatusCode)
	}
	f.service.loading.Release(maxLoading)
	if r := f.do("GET", "/depts?key=1&key=2"); r.StatusCode != 200 {
		t.Errorf("with room again: status %d, want 200", r.StatusCode)
	}
}

// TestLoadingBatchesShareABound: what batches are expected to load counts until they are answered, at
// one MiB per document while no size is known. A batch that does not fit waits.
//
// mutant: http-batches-load-without-bound
func TestLoadingBatchesShareABound(t *testing.T) {
	began, release := make(chan struct{}, 100), make(chan struct{})
	f := newFixture(t, func(ctx ctx, id cache.ResourceID, key string) ([]byte, error) {
		began <- struct{}{}
		<-release
		return echo(ctx, id, key)
	})
	target := func(first, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "&key=%d", first+i)
		}
		return "/depts?" + b.String()[1:]
	}
	done := make(chan int, 1)
	go func() { done <- f.do("GET", target(100, 40)).StatusCode }() // ends with the release below
	<-began
	if got := f.service.loading.taken.Load(); got != 40<<20 {
		t.Errorf("a batch of 40 documents counts as %d bytes, want 40 MiB", got)
	}
	h := f.handler().(*handler)
	h.timeout = 20 * time.Millisecond
	w := &heldWriter{discard{make(http.Header)}, closedChannel, nil, 0}
	if h.ServeHTTP(w, f.request("GET", target(200, 25))); w.status != http.StatusGatewayTimeout {
		t.Errorf("25 documents in addition to 40: status %d, want 504", w.status)
	}
	close(release)
	if status := <-done; status != 200 {
		t.Errorf("the first batch: status %d", status)
	}
	if r := f.do("GET", target(200, 25)); r.StatusCode != 200 {
		t.Errorf("after it: status %d", r.StatusCode)
	}
	if got := f.service.loading.taken.Load(); got != 0 {
		t.Errorf("%d bytes still count", got)
	}
}

func TestBatchCountsForLimits(t *testing.T) { eachWay(t, testBatchCountsForLimits) }

func testBatchCountsForLimits(t *testing.T, by way) {
	f := newConfigured(t, echo, ServiceConfig{RequestConfig: frontend.RequestConfig{ClientLimit: limit.New(limit.Config{Rate: 0.001, Burst: 12})}}, nil).over(t, by)
	keys := "key=1" + strings.Repeat("&key=1", 99) // counts as ten requests
	if r := f.do("GET", "/depts?"+keys); r.StatusCode != 200 {
		t.Errorf("the first batch: status %d", r.StatusCode)
	}
	if r := f.do("GET", "/depts?"+keys); r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
		t.Errorf("the second batch: status %d, fields %v; want 429", r.StatusCode, r.Header)
	}
	// A batch above the burst would be refused however long its client waited.
	if r := f.do("GET", "/depts?"+keys+"&"+keys); r.StatusCode != 429 && r.StatusCode != 400 {
		t.Errorf("a batch above the burst: status %d", r.StatusCode)
	}
	g := newConfigured(t, echo, ServiceConfig{RequestConfig: frontend.RequestConfig{ClientLimit: limit.New(limit.Config{Rate: 1, Burst: 5})}}, nil).over(t, by)
	if r := g.do("GET", "/depts?"+keys); r.StatusCode != 400 || r.Header.Get("Retry-After") != "" {
		t.Errorf("a batch above the burst: status %d, fields %v; want 400", r.StatusCode, r.Header)
	}
}

func FuzzBatch(f *testing.F) {
	for _, s := range []string{"key=1&key=2", "key=a%2Fb/1", "key=%", "key=+", "&", "key=1;key=2"} {
		f.Add("depts", s)
		f.Add("orders", s)
	}
	x := newFixture(f, echo)
	f.Fuzz(func(t *testing.T, name, query string) {
		req := Request{Method: "GET", Target: "/" + url.PathEscape(name) + "?" + query, Start: x.cache.Now()}
		var rsp Response
		if x.service.Peek(&req, &rsp) {
			if rsp.Status < 400 && rsp.Status != 200 {
				t.Errorf("%q: status %d", req.Target, rsp.Status)
			}
			return
		}
		q := &req.question
		if n := strings.Count(query, "&") + 1; q.keys == nil || len(q.keys) != n {
			t.Fatalf("%q: %d keys, want %d", req.Target, len(q.keys), n)
		}
		for _, key := range q.keys {
			if key.Resource != q.of.ID || key.ID == "" {
				t.Errorf("%q: key %v", req.Target, key)
			}
		}
	})
}

// The cost of a batch of cached documents compared with single GETs.
func BenchmarkBatch(b *testing.B) {
	for _, accept := range []string{"identity", "gzip"} {
		b.Run(accept, func(b *testing.B) {
			f := newConfigured(b, jsonOrigin, ServiceConfig{Compression: []string{"gzip"}}, nil)
			var target strings.Builder
			for i := range 100 {
				fmt.Fprintf(&target, "&key=%d", 1700+i)
			}
			r := f.request("GET", "/depts?"+target.String()[1:], "Accept-Encoding", accept)
			h := f.handler()
			w := &discard{make(http.Header)}
			h.ServeHTTP(w, r)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/100, "ns/key")
		})
	}
	// The alternative: see docs/decisions/0007.
	for _, level := range []int{1, gzipLevel} {
		b.Run(fmt.Sprintf("compressed-each-time/level-%d", level), func(b *testing.B) {
			var text []byte
			for i := range 100 {
				doc, _ := jsonOrigin(b.Context(), 0, fmt.Sprint(1700+i))
				text = append(append(text, ','), doc...)
			}
			w, err := flate.NewWriter(io.Discard, level)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				w.Reset(io.Discard)
				w.Write(text)
				w.Close()
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/100, "ns/key")
		})
	}
}

// A batch that waits for its turn to load holds no keys, and is answered like any other.
func TestWaitingBatchesHoldNoKeys(t *testing.T) { eachWay(t, testWaitingBatchesHoldNoKeys) }

func testWaitingBatchesHoldNoKeys(t *testing.T, by way) {
	f := newFixture(t, echo).over(t, by)
	if !f.service.loading.TryAcquire(maxLoading) {
		t.Fatal("something loads already")
	}
	var req Request
	var rsp Response
	req.Method, req.Target, req.AtOnce, req.Start = "GET", "/depts?key=3&key=0&key=4", true, f.cache.Now()
	if f.service.Peek(&req, &rsp) {
		t.Fatal("Peek has answered a batch that must be loaded")
	}
	if texts := req.own(); texts != len(req.Target) || req.question.keys != nil || req.question.answers != nil {
		t.Errorf("it holds %d bytes of texts, %d keys and %d answers, want only its target", texts, len(req.question.keys), len(req.question.answers))
	}
	done := make(chan string)
	go func() { // ends with the answer, which follows the release below
		r := f.do("GET", "/depts?key=7&key=0&key=8")
		text, _ := io.ReadAll(r.Body)
		done <- fmt.Sprint(r.StatusCode, " ", string(text))
	}()
	time.Sleep(20 * time.Millisecond) // usually it waits by now; if not, the test is easier to pass
	f.service.loading.Release(maxLoading)
	if got, want := <-done, `200 [{"id":"7"},null,{"id":"8"}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	f.service.Answer(t.Context(), &req, &rsp)
	if got := string(bytes.Join(rsp.Parts, nil)); got != `[{"id":"3"},null,{"id":"4"}]` || rsp.Keys != 3 {
		t.Errorf("got %d %s of %d keys", rsp.Status, got, rsp.Keys)
	}
}
