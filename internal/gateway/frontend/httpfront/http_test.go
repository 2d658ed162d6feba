package httpfront

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/memory"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit/cachekit"
)

// originFunc loads documents one by one.
type originFunc = cachekit.Origin

// echo answers with the ID that arrived; id "0" and "missing" do not exist.
func echo(_ context.Context, _ cache.ResourceID, id string) ([]byte, error) {
	if id == "0" || id == "missing" {
		return nil, nil
	}
	return json.Marshal(map[string]string{"id": id})
}

type fixture struct {
	cache   *cache.Cache
	service *Service
	ask     func(method, target string, fields ...string) *http.Response // if nil, the handler itself
}

// newFixture serves depts/{integer}, orders/{text}/{integer}, blobs/{bytes}, and
// late, whose key is not known yet.
func newFixture(t testing.TB, load originFunc) *fixture {
	t.Helper()
	return newConfigured(t, load, ServiceConfig{}, nil)
}

// newConfigured is newFixture with a configuration; change, if not nil, may change
// the resources.
func newConfigured(t testing.TB, load originFunc, config ServiceConfig, change func([]frontend.Resource)) *fixture {
	t.Helper()
	tier, err := memory.New(16 << 20)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"depts", "orders", "blobs", "late"}
	var resources []cache.Resource
	var served []frontend.Resource
	for _, n := range names {
		resources = append(resources, cache.Resource{Name: n})
		served = append(served, frontend.Resource{Name: n})
	}
	if change != nil {
		change(served)
	}
	c := cachekit.New(t, load, tier, resources...)
	service, err := NewService(c, served, config)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{cache: c, service: service}
	for i, columns := range [][]resource.KeyColumn{
		{{Name: "deptno", Kind: resource.Integer}},
		{{Name: "region", Kind: resource.Text}, {Name: "order_no", Kind: resource.Integer}},
		{{Name: "hash", Kind: resource.Bytes}},
	} {
		if err := f.service.SetColumns(cache.ResourceID(i), columns); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *fixture) handler() http.Handler {
	h := &handler{timeout: patience, bodyTimeout: time.Second, large: loop.NewLargeBudget(64 << 20)}
	h.live.Store(f.service)
	return h
}

// ctx shortens the signatures of origins.
type ctx = context.Context

func (f *fixture) do(method, target string, fields ...string) *http.Response {
	if f.ask != nil {
		return f.ask(method, target, fields...)
	}
	return f.serve(f.handler(), method, target, fields...)
}

func (f *fixture) serve(h http.Handler, method, target string, fields ...string) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, f.request(method, target, fields...))
	return w.Result()
}

func (f *fixture) request(method, target string, fields ...string) *http.Request {
	r := &http.Request{Method: method, RequestURI: target, URL: &url.URL{Path: target}, Header: http.Header{}, Host: "h", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: "192.0.2.1:1234"}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTargets(t *testing.T) { eachWay(t, testTargets) }

func testTargets(t *testing.T, by way) {
	f := newFixture(t, echo).over(t, by)
	long := strings.Repeat("x", 1024)
	for _, test := range []struct {
		target string
		status int
		id     string // that reached the origin
	}{
		{"/depts/42", 200, "42"},
		{"/depts/-7", 200, "-7"},
		{"/depts/%34%32", 200, "42"}, // the same resource (RFC 3986, section 6.2.2.2), the same entry
		{"/depts/42?x=1", 200, "42"},
		{"/depts/9223372036854775807", 200, "9223372036854775807"},
		{"/depts/0", 404, ""},
		{"/depts/9223372036854775808", 400, ""},
		{"/depts/042", 400, ""},
		{"/depts/+42", 400, ""},
		{"/depts/-0", 400, ""},
		{"/depts/4e1", 400, ""},
		{"/depts/42%20", 400, ""},
		{"/depts/42/", 400, ""},
		{"/depts//42", 400, ""},
		{"/depts/", 400, ""},
		{"/depts", 400, ""},
		{"/depts?", 400, ""},
		{"/", 404, ""},
		{"/nobody/1", 404, ""},
		{"/DEPTS/1", 404, ""},
		{"/%64epts/1", 200, "1"},
		{"/depts/1;drop table dept", 400, ""},
		{"/depts/1'--", 400, ""},
		{"/depts/1%00", 400, ""},
		{"/depts/%zz", 400, ""},
		{"/depts/%", 400, ""},
		{"/late/1", 503, ""},
		{"/orders/EU/17", 200, "2:EU17"},
		{"/orders/E%2FU/17", 200, "3:E/U17"},
		{"/orders/%E2%82%AC/17", 200, "3:€17"},
		{"/orders/'%20or%201=1/17", 200, "8:' or 1=117"},
		{"/orders/EU", 400, ""},
		{"/orders/EU/17/1", 400, ""},
		{"/orders//17", 400, ""},
		{"/orders/%ff/17", 400, ""},
		{"/orders/a%00b/17", 400, ""},
		{"/orders/" + long + "/1", 200, "1024:" + long + "1"},
		{"/orders/" + long + "x/1", 400, ""},
		{"/blobs/00ff", 200, "00ff"},
		{"/blobs/00FF", 400, ""},
		{"/blobs/0", 400, ""},
		{"/depts/" + strings.Repeat("1/", 5000), 414, ""},
		{"/" + strings.Repeat("x", 9000), 404, ""},
		{"/" + strings.Repeat("x", 60_000), 414, ""},
		{"*", 404, ""},
	} {
		r := f.do("GET", test.target)
		text := body(t, r)
		if r.StatusCode != test.status {
			t.Errorf("GET %.60s = %d %s, want %d", test.target, r.StatusCode, text, test.status)
			continue
		}
		if test.status == 200 {
			var got struct{ ID string }
			if err := json.Unmarshal([]byte(text), &got); err != nil || got.ID != test.id {
				t.Errorf("GET %.60s loaded %q, want %q", test.target, got.ID, test.id)
			}
			continue
		}
		if !by.handler && !isPath(test.target) {
			continue // net/http answers, in its own words
		}
		checkProblem(t, r, text)
	}
}

// isPath reports whether net/http takes the target for one.
func isPath(target string) bool {
	_, err := url.ParseRequestURI(target)
	return err == nil && !strings.Contains(target, " ")
}

func checkProblem(t *testing.T, r *http.Response, text string) {
	t.Helper()
	var p struct {
		Title, Detail string
		Status        int
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil || p.Status != r.StatusCode || p.Title == "" || p.Detail == "" {
		t.Errorf("problem of a %d: %s (%v)", r.StatusCode, text, err)
	}
	if ct := r.Header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("Content-Type of a %d: %s", r.StatusCode, ct)
	}
}

func TestConditional(t *testing.T) { eachWay(t, testConditional) }

func testConditional(t *testing.T, by way) {
	f := newFixture(t, echo).over(t, by)
	first := f.do("GET", "/depts/42")
	tag := first.Header.Get("Etag")
	if len(tag) != tagLength || tag[0] != '"' {
		t.Fatalf("entity tag %s", tag)
	}
	for _, test := range []struct {
		name, value string
		status      int
	}{
		{"If-None-Match", tag, 304},
		{"If-None-Match", "W/" + tag, 304},
		{"If-None-Match", `"x", ` + tag, 304},
		{"If-None-Match", `"x",` + tag + ` , "y"`, 304},
		{"If-None-Match", "*", 304},
		{"If-None-Match", `"x"`, 200},
		{"If-None-Match", strings.Trim(tag, `"`), 200}, // not a tag
		{"If-None-Match", `"unterminated`, 200},
		{"If-Match", tag, 200},
		{"If-Match", "*", 200},
		{"If-Match", "W/" + tag, 412}, // strong comparison
		{"If-Match", `"x"`, 412},
		{"If-Modified-Since", "Sat, 21 Nov 2026 00:00:00 GMT", 200}, // there is no date to compare
	} {
		r := f.do("GET", "/depts/42", test.name, test.value)
		text := body(t, r)
		if r.StatusCode != test.status {
			t.Errorf("%s: %s = %d, want %d", test.name, test.value, r.StatusCode, test.status)
		}
		if test.status == 304 && (text != "" || r.Header.Get("Etag") != tag || r.Header.Get("Cache-Control") == "") {
			t.Errorf("304 with body %q and fields %v", text, r.Header)
		}
	}
	if r := f.do("GET", "/depts/0", "If-None-Match", "*"); r.StatusCode != 404 {
		t.Errorf("a missing row matches *: %d", r.StatusCode)
	}
	f.cache.Purge(cache.Key{ID: "42"})
	if again := f.do("GET", "/depts/42").Header.Get("Etag"); again != tag {
		t.Errorf("the tag of the same body changed from %s to %s", tag, again)
	}
}

// TestMissingIsCacheable: a cache that may not reuse "not found" without
// revalidation has nothing to revalidate with, and need not store it.
func TestMissingIsCacheable(t *testing.T) { eachWay(t, testMissingIsCacheable) }

func testMissingIsCacheable(t *testing.T, by way) {
	for given, want := range map[string]string{"": "no-store", "private, no-cache": "no-store", "max-age=5": "max-age=5"} {
		f := newConfigured(t, echo, ServiceConfig{}, func(r []frontend.Resource) {
			if given != "" {
				r[0].Fields = []frontend.Field{{Name: "Cache-Control", Value: given}}
			}
		}).over(t, by)
		r := f.do("GET", "/depts/0")
		if r.StatusCode != 404 || r.Header.Get("Cache-Control") != want {
			t.Errorf("cache_control %q: status %d, Cache-Control %q, want 404 and %q", given, r.StatusCode, r.Header.Get("Cache-Control"), want)
		}
	}
}

// TestOwnFields: a field that the configuration sets for a resource is sent with each of its
// documents, whatever its source, and with nothing else.
func TestOwnFields(t *testing.T) { eachWay(t, testOwnFields) }

func testOwnFields(t *testing.T, by way) {
	const name, value = "Surrogate-Control", "max-age=9"
	f := newConfigured(t, func(ctx ctx, r cache.ResourceID, id string) ([]byte, error) {
		if r > 0 {
			return echo(ctx, r, id)
		}
		return jsonOrigin(ctx, r, id)
	}, ServiceConfig{Compression: []string{"gzip"}, CORS: CORS{Origins: []string{"*"}}}, func(r []frontend.Resource) {
		r[0].Fields = []frontend.Field{{Name: name, Value: value}}
	}).over(t, by)
	tag := f.do("GET", "/depts/1").Header.Get("ETag")
	for _, test := range []struct {
		method, target string
		fields         []string
		status         int
		want           string
	}{
		{"GET", "/depts/2", nil, 200, value}, // a miss
		{"GET", "/depts/2", nil, 200, value},
		{"GET", "/depts/2", nil, 200, value},
		{"HEAD", "/depts/2", nil, 200, value},
		{"GET", "/depts/2", []string{"Accept-Encoding", "gzip"}, 200, value},
		{"GET", "/depts/1", []string{"If-None-Match", tag}, 304, value},
		{"GET", "/depts?key=1&key=3", nil, 200, value},
		{"GET", "/depts?key=1&key=3", nil, 200, value},
		{"GET", "/depts/1", []string{"If-Match", `"x"`}, 412, ""},
		{"GET", "/depts/x", nil, 400, ""},
		{"GET", "/depts/0", nil, 404, ""},
		{"GET", "/orders/a/1", nil, 200, ""},
	} {
		r := f.do(test.method, test.target, test.fields...)
		if got := r.Header.Get(name); r.StatusCode != test.status || got != test.want || r.Header.Get("Cache-Control") == "" {
			t.Errorf("%s %s %q: status %d, %s %q, Cache-Control %q; want %d and %q", test.method, test.target, test.fields,
				r.StatusCode, name, got, r.Header.Get("Cache-Control"), test.status, test.want)
		}
		if got := r.Header.Get("Access-Control-Expose-Headers"); !strings.HasSuffix(got, "WWW-Authenticate, "+name) {
			t.Errorf("pages may read %q, want %s among it", got, name)
		}
	}
}

// Ranges are not supported, and a client that requests one is told so.
func TestRange(t *testing.T) { eachWay(t, testRange) }

func testRange(t *testing.T, by way) {
	f := newFixture(t, echo).over(t, by)
	whole := body(t, f.do("GET", "/depts/42"))
	for _, ranges := range []string{"bytes=0-1", "bytes=-5,3-", "junk"} {
		for _, fields := range [][]string{{"Range", ranges}, {"Range", ranges, "If-Range", `"x"`}} {
			r := f.do("GET", "/depts/42", fields...)
			if got := body(t, r); r.StatusCode != 200 || got != whole || r.Header.Get("Accept-Ranges") != "none" || r.Header.Get("Content-Range") != "" {
				t.Errorf("%q: status %d, %d of %d bytes, fields %v", fields, r.StatusCode, len(got), len(whole), r.Header)
			}
		}
	}
}

func TestMethodsAndFields(t *testing.T) { eachWay(t, testMethodsAndFields) }

func testMethodsAndFields(t *testing.T, by way) {
	f := newFixture(t, echo).over(t, by)
	miss, hit := f.do("GET", "/depts/42"), f.do("GET", "/depts/42")
	want := body(t, miss)
	for r, status := range map[*http.Response]string{miss: "slipstream; fwd=uri-miss; stored", hit: "slipstream; hit"} {
		if got := r.Header.Get("Cache-Status"); got != status {
			t.Errorf("Cache-Status %q, want %q", got, status)
		}
		if r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("fields %v", r.Header)
		}
		if got := r.Header.Get("Content-Length"); got != fmt.Sprint(len(want)) {
			t.Errorf("Content-Length %s of %d bytes", got, len(want))
		}
	}
	head := f.do("HEAD", "/depts/42")
	if text := body(t, head); text != "" || head.StatusCode != 200 || head.Header.Get("Content-Length") != fmt.Sprint(len(want)) ||
		head.Header.Get("Etag") != hit.Header.Get("Etag") {
		t.Errorf("HEAD: %d %v %q", head.StatusCode, head.Header, text)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "TRACE", "get", "BREW"} {
		r := f.do(method, "/depts/42")
		checkProblem(t, r, body(t, r))
		if r.StatusCode != 405 || r.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("%s: %d %v", method, r.StatusCode, r.Header)
		}
	}
	if r := f.do("OPTIONS", "/depts/42"); r.StatusCode != 204 || r.Header.Get("Allow") == "" {
		t.Errorf("OPTIONS: %d %v", r.StatusCode, r.Header)
	}
	seen := map[string]int64{}
	f.service.EachStatus(func(status string, n int64) { seen[status] = n })
	if seen["200"] != 3 || seen["405"] != 7 || seen["204"] != 1 {
		t.Errorf("counted %v", seen)
	}
}

func TestFailures(t *testing.T) { eachWay(t, testFailures) }

func testFailures(t *testing.T, by way) {
	secret := "no such table: salaries"
	for _, test := range []struct {
		err    error
		status int
		retry  bool
	}{
		{errors.New(secret), 502, false},
		{fmt.Errorf("%s: %w", secret, cache.ErrTooLarge), 502, false},
		{fmt.Errorf("%s: %w", secret, cache.ErrUnavailable), 503, true},
		{context.DeadlineExceeded, 504, false},
	} {
		f := newFixture(t, func(context.Context, cache.ResourceID, string) ([]byte, error) { return nil, test.err }).over(t, by)
		r := f.do("GET", "/depts/1")
		text := body(t, r)
		if r.StatusCode != test.status || (r.Header.Get("Retry-After") != "") != test.retry {
			t.Errorf("%v: %d %v", test.err, r.StatusCode, r.Header)
		}
		if strings.Contains(text, "salaries") {
			t.Errorf("the answer reveals details of the database: %s", text)
		}
		if r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("a failure may be cached: %v", r.Header)
		}
		checkProblem(t, r, text)
	}
}

func TestStaleIsMarked(t *testing.T) { eachWay(t, testStaleIsMarked) }

func testStaleIsMarked(t *testing.T, by way) {
	clock := new(stopwatch)
	f := newStale(t, clock, ServiceConfig{}).over(t, by)
	f.do("GET", "/depts/1")
	clock.set(5 * time.Second)
	if got := f.do("GET", "/depts/1").Header.Get("Cache-Status"); got != "slipstream; hit; ttl=-5; detail=unverified" {
		t.Errorf("Cache-Status %q", got)
	}
	if got := f.do("GET", "/depts/2").Header.Get("Cache-Status"); got != "slipstream; fwd=uri-miss; stored" {
		t.Errorf("Cache-Status of a document that was not there: %q", got)
	}
}

// discard is a ResponseWriter that allocates nothing itself.
type discard struct{ fields http.Header }

func (d *discard) Header() http.Header         { return d.fields }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

func TestHitAllocations(t *testing.T) {
	f := newFixture(t, echo)
	h := f.handler()
	for target, most := range map[string]float64{"/depts/42": 1, "/orders/EU/17": 2, "/orders/E%2FU/17": 3} { // one is the request id with its field
		f.do("GET", target)
		r := &http.Request{Method: "GET", RequestURI: target, Header: http.Header{}, RemoteAddr: "192.0.2.1:1234"}
		w := &discard{make(http.Header)}
		if n := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); n > most {
			t.Errorf("a hit on %s allocates %v times, want at most %v", target, n, most)
		}
	}
}

func BenchmarkHit(b *testing.B) {
	f := newFixture(b, echo)
	f.do("GET", "/depts/42")
	h := f.handler()
	r := &http.Request{Method: "GET", RequestURI: "/depts/42", Header: http.Header{}, RemoteAddr: "192.0.2.1:1234"}
	w := &discard{make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}

func BenchmarkNewHead(b *testing.B) {
	body := make([]byte, 1700)
	b.ReportAllocs()
	for b.Loop() {
		newHead(body, nil)
	}
}
