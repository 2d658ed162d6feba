package httpfront

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/gateway/trace"
)

const (
	webKey    = "slk_web"
	mobileKey = "slk_mobile"
	secret    = "0123456789abcdef0123456789abcdef"
)

// newGate knows two API keys and an issuer of tokens.
func newGate(t testing.TB) *access.Gate {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	hash := func(key string) string { h := sha256.Sum256([]byte(key)); return hex.EncodeToString(h[:]) }
	g, err := access.Open(access.Config{
		KeysFile: write("keys", "web sha256:"+hash(webKey)+"\nmobile sha256:"+hash(mobileKey)+"\n"),
		JWKSFile: write("jwks", fmt.Sprintf(`{"keys":[{"kty":"oct","alg":"HS256","kid":"a","k":%q}]}`, base64.RawURLEncoding.EncodeToString([]byte(secret)))),
		Reload:   -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// token signs claims by hand.
func token(claims string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"a"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func TestAccess(t *testing.T) { eachWay(t, testAccess) }

func testAccess(t *testing.T, by way) {
	gate := newGate(t)
	f := newConfigured(t, echo, ServiceConfig{RequestConfig: frontend.RequestConfig{Gate: gate}}, func(r []frontend.Resource) {
		r[0].Access = &access.Rule{Keys: []string{"web"}, Claims: map[string][]string{"scope": {"depts:read"}}}
		r[2].Access = &access.Rule{JWT: true}
	}).over(t, by)
	exp := time.Now().Add(time.Hour).Unix()
	reader := token(fmt.Sprintf(`{"sub":"alice","scope":"a depts:read b","exp":%d}`, exp))
	writer := token(fmt.Sprintf(`{"sub":"bob","scope":"depts:write","exp":%d}`, exp))
	expired := token(fmt.Sprintf(`{"sub":"eve","scope":"depts:read","exp":%d}`, exp-7200))
	forged := reader[:len(reader)-4] + "AAAA"
	for _, test := range []struct {
		name, target string
		fields       []string
		status       int
		challenge    string
	}{
		{"public", "/orders/EU/1", nil, 200, ""},
		{"public with bad credentials", "/orders/EU/1", []string{"X-Api-Key", "wrong"}, 200, ""},
		{"nobody", "/depts/1", nil, 401, "Bearer"},
		{"nobody, a batch", "/depts?key=1", nil, 401, "Bearer"},
		{"nobody, a bad key of a document", "/depts/x", nil, 401, "Bearer"},
		{"the right key", "/depts/1", []string{"X-Api-Key", webKey}, 200, ""},
		{"the right key, a batch", "/depts?key=1&key=2", []string{"X-Api-Key", webKey}, 200, ""},
		{"another key", "/depts/1", []string{"X-Api-Key", mobileKey}, 403, ""},
		{"no key", "/depts/1", []string{"X-Api-Key", "wrong"}, 401, "ApiKey"},
		{"two keys", "/depts/1", []string{"X-Api-Key", webKey, "X-Api-Key", webKey}, 400, ""},
		{"a huge key", "/depts/1", []string{"X-Api-Key", strings.Repeat("x", 10_000)}, 401, "ApiKey"},
		{"the right token", "/depts/1", []string{"Authorization", "Bearer " + reader}, 200, ""},
		{"bearer in small letters", "/depts/1", []string{"Authorization", "bearer " + reader}, 200, ""},
		{"a token without the scope", "/depts/1", []string{"Authorization", "Bearer " + writer}, 403, "insufficient_scope"},
		{"any token", "/blobs/00", []string{"Authorization", "Bearer " + writer}, 200, ""},
		{"a key where tokens are taken", "/blobs/00", []string{"X-Api-Key", webKey}, 403, ""},
		{"an expired token", "/depts/1", []string{"Authorization", "Bearer " + expired}, 401, "invalid_token"},
		{"a forged token", "/depts/1", []string{"Authorization", "Bearer " + forged}, 401, "invalid_token"},
		{"a huge token", "/depts/1", []string{"Authorization", "Bearer " + strings.Repeat("x", 20_000)}, 401, "invalid_token"},
		{"two tokens", "/depts/1", []string{"Authorization", "Bearer " + reader, "Authorization", "Bearer " + writer}, 400, ""},
		{"another scheme", "/depts/1", []string{"Authorization", "Basic d2ViOndlYg=="}, 401, "Bearer"},
		{"a good key and a bad token", "/depts/1", []string{"X-Api-Key", webKey, "Authorization", "Bearer " + forged}, 401, "invalid_token"},
	} {
		for range 2 { // checked, and remembered
			r := f.do("GET", test.target, test.fields...)
			text := body(t, r)
			challenge := r.Header.Get("Www-Authenticate")
			if r.StatusCode != test.status || !strings.Contains(challenge, test.challenge) || test.challenge == "" && r.StatusCode == 401 {
				t.Errorf("%s: status %d, challenge %q, %s; want %d and %q", test.name, r.StatusCode, challenge, text, test.status, test.challenge)
			}
			if r.StatusCode >= 400 {
				checkProblem(t, r, text)
				if r.Header.Get("Cache-Control") != "no-store" {
					t.Errorf("%s: Cache-Control %q", test.name, r.Header.Get("Cache-Control"))
				}
			}
			if r.StatusCode == 200 && strings.HasPrefix(test.target, "/depts") && r.Header.Get("Cache-Control") != "private, no-cache" {
				t.Errorf("%s: Cache-Control %q for a document that requires credentials", test.name, r.Header.Get("Cache-Control"))
			}
		}
	}
}

// A document that was loaded counts once more for the limits of address and caller, and
// so do ten of a batch. The request that loaded is not refused, but the next one is.
func TestLoadsCountForLimits(t *testing.T) {
	for _, by := range []string{"client", "caller"} {
		config := ServiceConfig{RequestConfig: frontend.RequestConfig{Gate: newGate(t)}}
		if by == "client" {
			config.ClientLimit = limit.New(limit.Config{Rate: 0.01, Burst: 6})
		} else {
			config.CallerLimit = limit.New(limit.Config{Rate: 0.01, Burst: 6})
		}
		f := newConfigured(t, echo, config, nil)
		for i, step := range []struct {
			target string
			status int
		}{
			{"/depts/1", 200}, {"/depts/1", 200}, // 3
			{"/depts?key=1&key=2&key=3&key=4&key=5&key=6&key=7&key=8&key=9&key=10&key=11&key=12", 200}, // 2 and 2 for 11 loads: 7 of 6
			{"/depts/1", 429},
		} {
			if r := f.serve(f.handler(), "GET", step.target, "X-Api-Key", webKey); r.StatusCode != step.status {
				t.Errorf("%s, step %d: %d, want %d", by, i, r.StatusCode, step.status)
			}
		}
	}
}

// Wrong signatures of an address are not checked without limit, and are charged to it. Known
// callers and other addresses are not affected.
func TestForgedTokensOfAnAddress(t *testing.T) {
	f := newConfigured(t, echo, ServiceConfig{RequestConfig: frontend.RequestConfig{Gate: newGate(t), ClientLimit: limit.New(limit.Config{Rate: 1e6, Burst: 1e6})}},
		func(r []frontend.Resource) { r[0].Access = &access.Rule{JWT: true} })
	exp := time.Now().Add(time.Hour).Unix()
	good := func(name string) string { return token(fmt.Sprintf(`{"sub":%q,"exp":%d}`, name, exp)) }
	forged := good("mallory")
	forged = forged[:strings.LastIndexByte(forged, '.')+1]
	from := func(address, token string) int {
		r := f.request("GET", "/depts/1", "Authorization", "Bearer "+token)
		r.RemoteAddr = address
		w := httptest.NewRecorder()
		f.handler().ServeHTTP(w, r)
		return w.Result().StatusCode
	}
	if got := from("192.0.2.1:1", good("alice")); got != 200 {
		t.Fatalf("a good token: %d", got)
	}
	refused, wrong := 0, 2*wrongBurst
	for i := range wrong {
		switch got := from("192.0.2.1:1", forged+base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%032d", i))); got {
		case 401:
		case 429:
			refused++
		default:
			t.Fatalf("forged token %d: %d", i, got)
		}
	}
	if refused == 0 {
		t.Errorf("none of %d forged tokens was refused without a check", wrong)
	}
	for _, row := range []struct {
		name, address, token string
		status               int
	}{
		{"who is known", "192.0.2.1:1", good("alice"), 200},
		{"another address", "192.0.2.2:1", good("bob"), 200},
		{"who is not known", "192.0.2.1:1", good("carol"), 429},
	} {
		if got := from(row.address, row.token); got != row.status {
			t.Errorf("%s: %d, want %d", row.name, got, row.status)
		}
	}
	for _, address := range []string{"10.0.0.1:1", "@"} { // they may act for many clients; the second is a unix socket
		for i := range wrong {
			if got := from(address, forged+base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s%032d", address, i))); got != 401 {
				t.Fatalf("forged token %d of %s: %d, want 401", i, address, got)
			}
		}
	}
	f.service.EachThrottled(func(rule string, n int64) {
		if want := map[string]int64{"signature": int64(refused) + 1}[rule]; n != want {
			t.Errorf("%d refusals are counted by the rule %s, want %d", n, rule, want)
		}
	})
}

func TestLimits(t *testing.T) {
	f := newConfigured(t, echo, ServiceConfig{
		RequestConfig: frontend.RequestConfig{Gate: newGate(t), ClientLimit: limit.New(limit.Config{Rate: 0.01, Burst: 4}), CallerLimit: limit.New(limit.Config{Rate: 0.01, Burst: 2})},
	}, nil)
	if _, err := f.cache.Get(t.Context(), cache.Key{ID: "1"}, f.cache.Now()); err != nil { // a load would count as well
		t.Fatal(err)
	}
	from := func(address string, fields ...string) int {
		r := f.request("GET", "/depts/1", fields...)
		r.RemoteAddr = address
		w := &heldWriter{discard{make(http.Header)}, closedChannel, nil, 0}
		f.handler().ServeHTTP(w, r)
		if w.status == 429 && w.fields.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
		return w.status
	}
	for i, want := range []int{200, 200, 200, 200, 429, 429} {
		if got := from("192.0.2.1:1"); got != want {
			t.Errorf("request %d of an address: %d, want %d", i+1, got, want)
		}
	}
	if got := from("192.0.2.2:1"); got != 200 {
		t.Errorf("another address: %d, want 200", got)
	}
	for i, want := range []int{200, 200, 429} { // from anywhere
		if got := from(fmt.Sprintf("192.0.2.%d:1", 10+i), "X-Api-Key", webKey); got != want {
			t.Errorf("request %d of a caller: %d, want %d", i+1, got, want)
		}
	}
	if got := from("192.0.2.20:1", "X-Api-Key", mobileKey); got != 200 {
		t.Errorf("another caller: %d, want 200", got)
	}
}

// recorder is a sink of spans.
type recorder struct {
	mu    sync.Mutex
	spans []trace.Span
}

func (r *recorder) Sample(c trace.Context, sent bool) bool { return !sent || c.Sampled() }

func (r *recorder) Request(s trace.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, s)
}

// all returns what was recorded so far.
func (r *recorder) all() []trace.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

// forget drops the recorded spans.
func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = nil
}

func TestIDs(t *testing.T) { eachWay(t, testIDs) }

func testIDs(t *testing.T, by way) {
	var log logBuffer
	spans := &recorder{}
	f := newConfigured(t, echo, ServiceConfig{
		RequestConfig: frontend.RequestConfig{SlowerThan: 1},
		Spans:         spans,
		Log:           slog.New(slog.NewTextHandler(&log, nil)),
	}, nil).over(t, by)
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	r := f.do("GET", "/depts/1", "X-Request-Id", "job-17", "Traceparent", parent)
	if got := r.Header.Get("X-Request-Id"); got != "job-17" {
		t.Errorf("X-Request-Id %q, want the one that was sent", got)
	}
	answered := r.Header.Get("Traceresponse")
	if !strings.HasPrefix(answered, "00-4bf92f3577b34da6a3ce929d0e0e4736-") || strings.Contains(answered, "00f067aa0ba902b7") || !strings.HasSuffix(answered, "-01") {
		t.Errorf("Traceresponse %q, want another span of the same trace", answered)
	}
	if len(spans.all()) != 1 {
		t.Fatalf("%d spans, want 1", len(spans.all()))
	}
	s := spans.all()[0]
	if s.RequestID != "job-17" || s.Route != "/depts/{key}" || s.Status != 200 || s.Source != "load" || s.Keys != 1 ||
		hex.EncodeToString(s.Parent[:]) != "00f067aa0ba902b7" || hex.EncodeToString(s.Context.TraceID[:]) != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("span %+v", s)
	}
	if text := log.String(); !strings.Contains(text, "request_id=job-17") || !strings.Contains(text, "trace_id=4bf92f3577b34da6a3ce929d0e0e4736") || !strings.Contains(text, "slow request") {
		t.Errorf("log: %s", text)
	}
	fresh := regexp.MustCompile(`^[A-Za-z0-9._-]{16,64}$`)
	seen := make(map[string]bool)
	for _, sent := range [][]string{nil, {"X-Request-Id", "a b"}, {"X-Request-Id", strings.Repeat("x", 65)}, {"X-Request-Id", "one", "X-Request-Id", "two"}, {"X-Request-Id", "\"\n"}} {
		id := f.do("GET", "/nobody", sent...).Header.Get("X-Request-Id")
		if !fresh.MatchString(id) || seen[id] {
			t.Errorf("sent %q: X-Request-Id %q, want a new one", sent, id)
		}
		seen[id] = true
	}
	spans.forget()
	for _, sent := range []string{strings.Replace(parent, "-01", "-00", 1), "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", "junk"} {
		r := f.do("GET", "/depts/1", "Traceparent", sent)
		if valid := strings.HasPrefix(sent, "00-4"); valid != (r.Header.Get("Traceresponse") != "") {
			t.Errorf("sent %q: Traceresponse %q", sent, r.Header.Get("Traceresponse"))
		}
	}
	if len(spans.all()) != 2 { // not the one whose client declined to be traced
		t.Errorf("%d spans, want 2", len(spans.all()))
	}
}

func TestFigures(t *testing.T) { eachWay(t, testFigures) }

func testFigures(t *testing.T, by way) {
	f := newFixture(t, echo).over(t, by)
	f.do("GET", "/depts/1")
	sent := int64(len(body(t, f.do("GET", "/depts/1"))))
	f.do("HEAD", "/depts/1")
	f.do("GET", "/depts/x")
	want := map[frontend.Source]uint64{frontend.SourceLoad: 1, frontend.SourceHit: 2, frontend.SourceOther: 1}
	for _, source := range frontend.Sources {
		d := f.service.Answers().Latency(source).Snapshot()
		if got := d.Count(); got != want[source] {
			t.Errorf("%s: %d answers, want %d", source, got, want[source])
		}
	}
	problem := f.service.Answers().Bytes() - 2*sent
	if problem <= 0 || problem > 300 {
		t.Errorf("%d bytes of bodies, want twice %d and a problem", f.service.Answers().Bytes(), sent)
	}
	statuses := make(map[string]int64)
	f.service.EachStatus(func(status string, n int64) { statuses[status] = n })
	if statuses["200"] != 3 || statuses["400"] != 1 || len(statuses) != 2 {
		t.Errorf("statuses %v", statuses)
	}
}

func TestDescription(t *testing.T) { eachWay(t, testDescription) }

func testDescription(t *testing.T, by way) {
	var described atomic.Pointer[[]byte]
	f := newConfigured(t, echo, ServiceConfig{OpenAPI: func(func(int) bool) []byte {
		if text := described.Load(); text != nil {
			return *text
		}
		return nil
	}}, nil).over(t, by)
	if r := f.do("GET", "/openapi.json"); r.StatusCode != 503 {
		t.Errorf("before there is one: status %d, want 503", r.StatusCode)
	}
	text := []byte(`{"openapi":"3.1.0"}`)
	described.Store(&text)
	r := f.do("GET", "/openapi.json")
	if got := body(t, r); r.StatusCode != 200 || got != string(text) {
		t.Errorf("status %d, %s", r.StatusCode, got)
	}
	if again := f.do("GET", "/openapi.json", "If-None-Match", r.Header.Get("Etag")); again.StatusCode != 304 {
		t.Errorf("unchanged: status %d, want 304", again.StatusCode)
	}
	if r := f.do("GET", "/openapi.json/x"); r.StatusCode != 404 {
		t.Errorf("a path below it: status %d, want 404", r.StatusCode)
	}
	none := newFixture(t, echo).over(t, by)
	if r := none.do("GET", "/openapi.json"); r.StatusCode != 404 {
		t.Errorf("switched off: status %d, want 404", r.StatusCode)
	}
}

// A description is of what the client may read, and no shared cache may store it; a token that
// was not seen before is checked off the event loop.
func TestDescriptionOfCallers(t *testing.T) { eachWay(t, testDescriptionOfCallers) }

func testDescriptionOfCallers(t *testing.T, by way) {
	texts := make(map[string][]byte) // the same bytes for the same rights, like the real one
	var mu sync.Mutex
	names := []string{"depts", "orders", "blobs", "late"}
	f := newConfigured(t, echo, ServiceConfig{
		RequestConfig: frontend.RequestConfig{Gate: newGate(t)},
		OpenAPI: func(may func(int) bool) []byte {
			mu.Lock()
			defer mu.Unlock()
			var seen []string
			for i, n := range names {
				if may(i) {
					seen = append(seen, n)
				}
			}
			text := strings.Join(seen, " ")
			if texts[text] == nil {
				texts[text] = []byte(text)
			}
			return texts[text]
		},
	}, func(r []frontend.Resource) {
		r[0].Access = &access.Rule{Keys: []string{"web"}, Claims: map[string][]string{"scope": {"depts:read"}}}
		r[2].Access = &access.Rule{JWT: true}
	}).over(t, by)
	exp := time.Now().Add(time.Hour).Unix()
	reader := token(fmt.Sprintf(`{"sub":"alice","scope":"a depts:read b","exp":%d}`, exp))
	writer := token(fmt.Sprintf(`{"sub":"bob","scope":"depts:write","exp":%d}`, exp))
	tags := make(map[string]string)
	for _, test := range []struct {
		name, want string
		fields     []string
	}{
		{"nobody", "orders late", nil},
		{"a key that is not known", "orders late", []string{"X-Api-Key", "wrong"}},
		{"a forged token", "orders late", []string{"Authorization", "Bearer " + reader[:len(reader)-4] + "AAAA"}},
		{"a key", "depts orders late", []string{"X-Api-Key", webKey}},
		{"another key", "orders late", []string{"X-Api-Key", mobileKey}},
		{"a token", "depts orders blobs late", []string{"Authorization", "Bearer " + reader}},
		{"a token without the scope", "orders blobs late", []string{"Authorization", "Bearer " + writer}},
	} {
		for range 2 { // checked, and remembered
			r := f.do("GET", "/openapi.json", test.fields...)
			if got := body(t, r); r.StatusCode != 200 || got != test.want || r.Header.Get("Cache-Control") != "private, no-cache" {
				t.Errorf("%s: status %d, %q, Cache-Control %q; want %q", test.name, r.StatusCode, got, r.Header.Get("Cache-Control"), test.want)
			}
			tag := r.Header.Get("Etag")
			if before := tags[test.want]; before != "" && before != tag {
				t.Errorf("%s: the tag %s is not that of the same text, %s", test.name, tag, before)
			}
			tags[test.want] = tag
			if r := f.do("GET", "/openapi.json", append(test.fields, "If-None-Match", tag)...); r.StatusCode != 304 {
				t.Errorf("%s, unchanged: status %d, want 304", test.name, r.StatusCode)
			}
		}
	}
	if len(tags) != 4 {
		t.Errorf("%d tags for 4 texts", len(tags))
	}
	open := newConfigured(t, echo, ServiceConfig{RequestConfig: frontend.RequestConfig{Gate: newGate(t)}, OpenAPI: func(func(int) bool) []byte { return []byte("{}") }}, nil).over(t, by)
	if r := open.do("GET", "/openapi.json", "Authorization", "Bearer "+reader); r.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("where all clients may read everything: Cache-Control %q", r.Header.Get("Cache-Control"))
	}
}

// A client learns the ids of its request from errors too, and nothing it sends is
// written into fields unchecked.
func TestFieldsOfErrors(t *testing.T) { eachWay(t, testFieldsOfErrors) }

func testFieldsOfErrors(t *testing.T, by way) {
	f := newConfigured(t, func(ctx, cache.ResourceID, string) ([]byte, error) { return nil, cache.ErrUnavailable }, ServiceConfig{Compression: []string{"gzip"}}, nil).over(t, by)
	for _, target := range []string{"/depts/1", "/depts?key=1", "/depts/x", "/x", "/depts/" + url.PathEscape("a\r\nSet-Cookie: b")} {
		r := f.do("GET", target)
		if r.Header.Get("X-Request-Id") == "" || r.Header.Get("Vary") != "Accept-Encoding" || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: fields %v", target, r.Header)
		}
		if text := body(t, r); strings.ContainsAny(text, "\r\n") {
			t.Errorf("%s: %q", target, text)
		}
	}
}
