package httpfront

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/wire/http1"
)

// everything is a service with every setting configured.
func everything(t testing.TB, by way) *Server {
	t.Helper()
	failures := map[string]error{
		"901": fmt.Errorf("no such table"), "902": cache.ErrUnavailable, "903": cache.ErrTooLarge, "904": context.DeadlineExceeded,
	}
	f := newConfigured(t, func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		switch {
		case r == 0 && failures[id] != nil:
			return nil, failures[id]
		case r == 0:
			return jsonOrigin(ctx, r, id)
		}
		return echo(ctx, r, id)
	}, ServiceConfig{
		RequestConfig: frontend.RequestConfig{Gate: newGate(t), ClientLimit: limit.New(limit.Config{Rate: 0.001, Burst: 2000}), CallerLimit: limit.New(limit.Config{Rate: 0.001, Burst: 12})},
		Compression:   []string{"zstd", "gzip"},
		MaxBatch:      200,
		CORS:          CORS{Origins: []string{"https://app.example"}, Credentials: true},
		OpenAPI:       func(func(int) bool) []byte { return []byte(`{"openapi":"3.1.0"}`) },
		Spans:         &recorder{},
	}, func(r []frontend.Resource) {
		r[1].Fields = []frontend.Field{{Name: "Cache-Control", Value: "max-age=5"}, {Name: "Surrogate-Control", Value: "max-age=9"}}
		r[2].Access = &access.Rule{Keys: []string{"web"}, JWT: true}
	})
	return listen(t, f, by.config(Config{ConnConfig: frontend.ConnConfig{TrustedProxies: prefixes("127.0.0.0/8")}}))
}

// equalRequests are the requests by which the ways are compared, in this order.
func equalRequests() (all []string) {
	add := func(method, target string, fields ...string) {
		all = append(all, requestText(method, target, fields...))
	}
	tag := func(id, suffix string) string {
		body, _ := jsonOrigin(context.Background(), 0, id)
		whole := EntityTag(body)
		return whole[:len(whole)-1] + suffix + `"`
	}
	for _, target := range []string{
		"/depts/1", "/depts/300", "/depts/70000", "/depts/-2000", "/depts/0", "/depts/x", "/depts/042", "/depts/", "/depts",
		"/depts/%33%30%30", "/depts/300?x=%zz", "/depts/9223372036854775808", "/orders/EU/17", "/orders/E%2FU/17", "/orders/EU", "/nobody/1", "/", "//", "/late/1",
		"/depts?key=1&key=300&key=0", "/depts?key=2000&key=70000", "/depts?key=", "/depts?key=1&key=x", "/late?key=1", "/orders?key=EU/17&key=a+b/1",
		"/depts?key=1" + strings.Repeat("&key=1", 200), "/depts?key=" + strings.Repeat("1", 57<<10), "/depts/" + strings.Repeat("1", 9000),
		"/depts/901", "/depts/902", "/depts/903", "/depts/904", "/depts?key=1&key=901", "/openapi.json", "/openapi.json/x", "/openapi.json?x",
	} {
		add("GET", target)
		add("HEAD", target)
	}
	for _, accept := range []string{"", "gzip", "zstd", "gzip;q=0.5, zstd;q=0.1", "identity", "br", "*", "identity;q=0, gzip", "*;q=0", "gzip;q=2"} {
		for _, target := range []string{"/depts/2000", "/depts?key=2000&key=0", "/depts/140000"} {
			add("GET", target, "Accept-Encoding", accept)
		}
	}
	for _, value := range []string{tag("300", ""), "W/" + tag("300", ""), `"x", ` + tag("300", ""), "*", `"x"`, "x", ""} {
		add("GET", "/depts/300", "If-None-Match", value)
		add("HEAD", "/depts/300", "If-None-Match", value)
		add("GET", "/depts/300", "If-Match", value)
	}
	add("GET", "/depts/300", "Accept-Encoding", "gzip", "If-None-Match", tag("300", "-gzip"))
	add("GET", "/depts/300", "Accept-Encoding", "gzip", "If-None-Match", tag("300", ""))
	add("GET", "/depts/300", "If-None-Match", `"x"`, "If-None-Match", tag("300", ""))
	add("GET", "/openapi.json", "If-None-Match", EntityTag([]byte(`{"openapi":"3.1.0"}`)))
	for _, origin := range []string{"https://app.example", "https://APP.example", "https://evil.example", "null", ""} {
		add("GET", "/depts/300", "Origin", origin)
		add("GET", "/depts/x", "Origin", origin)
		add("OPTIONS", "/depts/300", "Origin", origin, "Access-Control-Request-Method", "GET")
	}
	expires := time.Now().Add(time.Hour).Unix()
	good := "Bearer " + token(fmt.Sprintf(`{"sub":"alice","exp":%d}`, expires))
	old := "Bearer " + token(fmt.Sprintf(`{"sub":"alice","exp":%d}`, expires-7200))
	for _, fields := range [][]string{
		nil, {"X-API-Key", webKey}, {"x-api-key", mobileKey}, {"X-API-Key", "wrong"}, {"X-API-Key", webKey, "X-API-Key", webKey},
		{"Authorization", good}, {"Authorization", old}, {"Authorization", good[:len(good)-4] + "AAAA"}, {"Authorization", "Basic eDp5"},
		{"Authorization", good, "Authorization", old}, {"X-API-Key", webKey, "Authorization", old}, {"Authorization", ""},
	} {
		add("GET", "/blobs/00ff", fields...)
		add("GET", "/blobs?key=00ff", fields...)
	}
	for range 14 { // more than the caller's limit
		add("GET", "/depts/300", "X-API-Key", webKey)
	}
	for range 3 { // batches count for 20 requests each
		for range 20 {
			add("HEAD", "/depts?key=1"+strings.Repeat("&key=1", 199), "X-Forwarded-For", "203.0.113.9")
		}
	}
	for _, fields := range [][]string{
		{"X-Request-Id", "job-17"}, {"X-Request-Id", "a b"}, {"X-Request-Id", ""}, {"X-Request-Id", "one", "X-Request-Id", "two"},
		{"Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}, {"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"},
		{"Traceparent", "junk"}, {"Range", "bytes=0-1"}, {"Range", "x", "If-Range", `"x"`}, {"Connection", "close"}, {"Connection", "keep-alive"},
		{"Connection", "keep-alive, X-Y"}, {"Content-Length", "0"}, {"User-Agent", "a\tb", "Cookie", "x=y"}, {"If-Modified-Since", "x"}, {"Accept", "text/html"},
	} {
		add("GET", "/depts/300", fields...)
	}
	for _, method := range []string{"PUT", "DELETE", "PATCH", "TRACE", "get", "OPTIONS"} {
		add(method, "/depts/300")
	}
	add("POST", "/depts/300", "Content-Length", "0")
	return append(all,
		"GET /depts/300 HTTP/1.0\r\n\r\n", "HEAD /depts/300 HTTP/1.0\r\nHost: h\r\n\r\n", "GET /depts/x HTTP/1.0\r\nConnection: close\r\n\r\n",
		"GET /depts/300 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET /depts/300 HTTP/1.0\r\nConnection: keep-alive\r\nIf-None-Match: *\r\n\r\n",
		"GET http://h/depts/300 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /depts/300 HTTP/1.1\r\n\r\n", "GET /depts/300 HTTP/1.1\r\nHost: a b\r\n\r\n",
	)
}

// told is what a client reads from an answer.
type told struct {
	status string
	close  bool
	fields map[string]string
	body   string
}

var (
	newID   = regexp.MustCompile(`^[A-Za-z0-9._-]{16,64}$`)
	newSpan = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$`)
)

// tell reduces an answer to what must be equal. The form of parts that differ each time
// is checked.
func tell(t *testing.T, request string, answer *http.Response) told {
	t.Helper()
	got := told{status: answer.Proto + " " + answer.Status, close: answer.Close, fields: make(map[string]string), body: body(t, answer)}
	for name, values := range answer.Header {
		value := strings.Join(values, "|")
		switch {
		case name == "Date":
			if at, err := http.ParseTime(value); err != nil || time.Since(at) > time.Minute || time.Since(at) < -time.Second {
				t.Errorf("%.80q: Date %q", request, value)
			}
			value = "(now)"
		case name == "X-Request-Id" && !strings.Contains(request, value+"\r\n"):
			if !newID.MatchString(value) {
				t.Errorf("%.80q: X-Request-Id %q", request, value)
			}
			value = "(new)"
		case name == "Traceresponse":
			if !newSpan.MatchString(value) {
				t.Errorf("%.80q: Traceresponse %q", request, value)
			}
			value = value[:36] + "(span)" + value[52:]
		case name == "Retry-After" && value != "1":
			if n, err := strconv.Atoi(value); err != nil || n < 1 {
				t.Errorf("%.80q: Retry-After %q", request, value)
			}
			value = "(later)" // it depends on the elapsed microseconds
		}
		got.fields[name] = value
	}
	return got
}

// TestEqualAnswers: whatever serves a request, the answer is the same: for a load, for a
// hit, and after other requests on a connection.
func TestEqualAnswers(t *testing.T) {
	requests := equalRequests()
	var plain []string // those that keep the connection and are not handed over
	for _, request := range requests {
		var head http1.Head
		if _, verdict, _ := new(http1.Scanner).Scan([]byte(request), 64<<10, &head); verdict == http1.Done && head.KeepAlive {
			plain = append(plain, request)
		}
	}
	if len(plain) < 150 {
		t.Fatalf("%d plain requests of %d, want at least 150", len(plain), len(requests))
	}
	asked := slices.Concat(requests, requests, plain)
	answers := make(map[string][]told)
	seen := make(map[string]int)
	eachServer(t, func(t *testing.T, by way) {
		s := everything(t, by)
		for _, request := range slices.Concat(requests, requests) {
			answers[by.name] = append(answers[by.name], exchange(t, s, request)...)
		}
		answers[by.name] = append(answers[by.name], exchange(t, s, plain...)...)
		if by.name == "nethttp" {
			for _, a := range answers[by.name] {
				seen[a.status[len("HTTP/1.1 "):][:3]]++
			}
			return
		}
		want := answers["nethttp"]
		for i, got := range answers[by.name] {
			if got.status != want[i].status || got.close != want[i].close || got.body != want[i].body || !maps.Equal(got.fields, want[i].fields) {
				t.Errorf("request %d, %.200q:\n got %.400q\nwant %.400q", i, asked[i], fmt.Sprint(got), fmt.Sprint(want[i]))
			}
		}
	})
	for _, status := range []string{"200", "204", "304", "400", "401", "403", "404", "405", "406", "412", "414", "429", "502", "503", "504"} {
		if seen[status] == 0 {
			t.Errorf("no answer has status %s", status)
		}
	}
}

// exchange sends requests together and reads an answer to each.
func exchange(t *testing.T, s *Server, requests ...string) (all []told) {
	t.Helper()
	c := dial(t, s)
	defer c.Close()
	sent := make(chan struct{})
	go func() { // ends when all is sent, or c closed; exchange waits for it
		defer close(sent)
		io.WriteString(c, strings.Join(requests, ""))
	}()
	r := bufio.NewReader(c)
	for _, request := range requests {
		method, _, _ := strings.Cut(request, " ")
		answer, err := readAnswer(r, method)
		if err != nil {
			t.Fatalf("%.80q: %v", request, err)
		}
		all = append(all, tell(t, request, answer))
	}
	<-sent
	return all
}
