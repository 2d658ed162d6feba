package httpfront

import (
	"net/http"
	"testing"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
)

// Answers to pages of other origins, errors included, have the fields that a
// browser needs.
func TestPagesOfOtherOrigins(t *testing.T) { eachWay(t, testPagesOfOtherOrigins) }

func testPagesOfOtherOrigins(t *testing.T, by way) {
	f := newConfigured(t, echo, ServiceConfig{
		Compression: []string{"gzip"},
		CORS:        CORS{Origins: []string{"https://app.example"}, Headers: []string{"X-Custom"}},
	}, nil).over(t, by)
	for _, test := range []struct {
		method, target, origin string
		fields                 []string
		status                 int
		allow                  string
	}{
		{"GET", "/depts/1", "https://app.example", nil, 200, "https://app.example"},
		{"GET", "/depts?key=1", "https://app.example", nil, 200, "https://app.example"},
		{"GET", "/depts/x", "https://app.example", nil, 400, "https://app.example"},
		{"GET", "/depts/0", "https://app.example", nil, 404, "https://app.example"},
		{"POST", "/depts/1", "https://app.example", nil, 405, "https://app.example"},
		{"GET", "/depts/1", "https://evil.example", nil, 200, ""},
		{"GET", "/depts/1", "", nil, 200, ""},
		{"OPTIONS", "/depts/1", "https://app.example", []string{"Access-Control-Request-Method", "GET"}, 204, "https://app.example"},
		{"OPTIONS", "/depts/1", "https://evil.example", []string{"Access-Control-Request-Method", "GET"}, 204, ""},
	} {
		fields := test.fields
		if test.origin != "" {
			fields = append(fields, "Origin", test.origin)
		}
		r := f.do(test.method, test.target, fields...)
		preflight := len(test.fields) > 0
		if r.StatusCode != test.status || r.Header.Get("Access-Control-Allow-Origin") != test.allow {
			t.Errorf("%s %s from %q: status %d, allowed %q; want %d, %q", test.method, test.target, test.origin,
				r.StatusCode, r.Header.Get("Access-Control-Allow-Origin"), test.status, test.allow)
		}
		if got := r.Header.Get("Access-Control-Allow-Headers") != ""; got != (preflight && test.allow != "") {
			t.Errorf("%s %s from %q: allowed fields %q", test.method, test.target, test.origin, r.Header.Get("Access-Control-Allow-Headers"))
		}
		if got := r.Header.Get("Vary"); got != "Accept-Encoding, Origin" {
			t.Errorf("%s %s from %q: Vary %q", test.method, test.target, test.origin, got)
		}
	}
}

// Behind a trusted proxy, limits apply to the client that it names.
func TestLimitsBehindProxies(t *testing.T) {
	f := newConfigured(t, echo, ServiceConfig{RequestConfig: frontend.RequestConfig{ClientLimit: limit.New(limit.Config{Rate: 0.01, Burst: 1})}}, nil)
	h := f.handler().(*handler)
	h.trusted = networks("192.0.2.0/24")
	for _, test := range []struct {
		peer, forwarded string
		want            int
	}{
		{"192.0.2.1:1", "203.0.113.1", 200},
		{"192.0.2.1:1", "203.0.113.1", 429},
		{"192.0.2.1:1", "203.0.113.2", 200},
		{"192.0.2.2:1", "10.0.0.1, 203.0.113.2", 429}, // the client's own claim does not count
		{"198.51.100.1:1", "203.0.113.3", 200},
		{"198.51.100.1:1", "203.0.113.4", 429}, // not a trusted proxy: it counts as the client
	} {
		r := f.request("GET", "/depts/1", "X-Forwarded-For", test.forwarded)
		r.RemoteAddr = test.peer
		w := &heldWriter{discard{make(http.Header)}, closedChannel, nil, 0}
		if h.ServeHTTP(w, r); w.status != test.want {
			t.Errorf("%s for %s: status %d, want %d", test.peer, test.forwarded, w.status, test.want)
		}
	}
}
