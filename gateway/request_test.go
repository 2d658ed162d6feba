package gateway_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestBadRequests: for every bad path the answer is a problem with the right
// status, the database is not queried, and the next request is served.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	path := newDatabase(t, writeAhead+company+`
		CREATE TABLE texts (id TEXT PRIMARY KEY, v TEXT);
		INSERT INTO texts VALUES ('a', 'va');
		CREATE TABLE blobs (id BLOB PRIMARY KEY, v TEXT);
		CREATE TABLE pairs (region TEXT, no INTEGER, PRIMARY KEY (region, no));
		INSERT INTO pairs VALUES ('eu', 1);`)
	s := serveReady(t, path, deptResource+`
  texts: { table: texts, key: [id] }
  blobs: { table: blobs, key: [id] }
  pairs: { table: pairs, key: [region, "no"] }
`)
	s.cached("/depts/1")
	before := s.statements()
	for _, test := range []struct {
		target string
		status int
	}{
		// Not a resource, or no key.
		{"/", 404}, {"//", 404}, {"//depts/1", 404}, {"/depts", 400}, {"/nope", 404}, {"/nope/1", 404}, {"/DEPTS/1", 404},
		{"/dept/1", 404}, {"/sqlite_schema/1", 404}, {"/slipstream_change/1", 404}, {"/./depts/1", 404}, {"/../depts/1", 404},
		{"/x/../depts/1", 404}, {"/depts%2F1", 404}, {"/%2Fdepts/1", 404}, {"/depts%00/1", 404}, {"/favicon.ico", 404},
		{"/metrics", 404}, {"/config", 404}, {"/debug/pprof/", 404},
		// Not the canonical form of an integer.
		{"/depts/", 400}, {"/depts/1/", 400}, {"/depts//1", 400}, {"/depts/1/2", 400}, {"/depts/01", 400}, {"/depts/+1", 400}, {"/depts/-0", 400},
		{"/depts/1.0", 400}, {"/depts/1e0", 400}, {"/depts/0x1", 400}, {"/depts/%201", 400}, {"/depts/1%20", 400}, {"/depts/1%00", 400},
		{"/depts/9223372036854775808", 400}, {"/depts/" + strings.Repeat("9", 4000), 400}, {"/depts/NULL", 400}, {"/depts/x'31'", 400},
		{"/depts/%D9%A1", 400}, {"/depts/1%0d%0aX:y", 400},
		// SQL.
		{"/depts/1%20OR%201=1", 400}, {"/depts/1;DROP%20TABLE%20dept", 400}, {"/depts/1--", 400}, {"/depts/?", 400}, {"/depts/:1", 400},
		{"/depts/1)%20UNION%20SELECT%20*%20FROM%20emp--", 400}, {"/depts/'1'", 400}, {"/pairs/eu/1%20OR%201=1", 400},
		// Text and bytes.
		{"/texts/", 400}, {"/texts/%00", 400}, {"/texts/a%00", 400}, {"/texts/%ff", 400}, {"/texts/%c0%af", 400}, {"/texts/%ed%a0%80", 400},
		{"/texts/" + strings.Repeat("x", 1025), 400}, {"/blobs/F0", 400}, {"/blobs/f", 400}, {"/blobs/0x00", 400}, {"/blobs/x'00'", 400},
		{"/blobs/" + strings.Repeat("00", 1025), 400},
		// Composite keys.
		{"/pairs/eu", 400}, {"/pairs/eu%2F1", 400}, {"/pairs/eu/1/1", 400}, {"/pairs//1", 400}, {"/pairs/eu/", 400}, {"/pairs/2:eu1", 400},
		{"/depts/" + strings.Repeat("1/", 3000), 400},
		// Too long: for this key, or for any.
		{"/texts/" + strings.Repeat("x", 8<<10), 414}, {"/" + strings.Repeat("y", 20<<10), 404}, {"/depts/1?" + strings.Repeat("q", 9<<10), 414},
	} {
		a := s.raw("GET " + test.target + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if a.status != test.status || a.problem() != test.status {
			t.Errorf("GET %.60s: %v; expected the problem %d", test.target, a, test.status)
		}
		if cc := a.head.Get("Cache-Control"); cc != "no-store" {
			t.Errorf("GET %.60s: Cache-Control %q; expected no-store", test.target, cc)
		}
		if strings.Contains(a.body, "SELECT \"") || strings.Contains(a.body, path) {
			t.Errorf("GET %.60s reveals internals: %s", test.target, a.body)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW"} {
		if a := s.do(method, s.http+"/depts/1"); a.status != 405 || a.problem() != 405 || a.head.Get("Allow") == "" {
			t.Errorf("%s: %v; expected the problem 405 with Allow", method, a)
		}
	}
	if n := s.statements(); n != before {
		t.Errorf("bad requests cost %v statements; expected none", n-before)
	}
	if a := s.get("/depts/1"); a.status != 200 {
		t.Errorf("after all that: %v", a)
	}
}

// TestHostileTextsAreKeysLikeOthers: in a text column any text is a value, so SQL
// in it finds no row, and every table is still there.
func TestHostileTextsAreKeysLikeOthers(t *testing.T) {
	t.Parallel()
	path := newDatabase(t, writeAhead+"CREATE TABLE texts (id TEXT PRIMARY KEY, v TEXT); INSERT INTO texts VALUES ('a', 'va'), ('b', 'vb')")
	s := serveReady(t, path, "resources: { texts: { table: texts, key: [id] } }")
	for _, key := range []string{
		"'%20OR%20'1'='1", "a'--", "a'%3B%20DROP%20TABLE%20texts%3B--", "%25", "_", "a%25", "*", "%22a%22", "[a]", "a'%20UNION%20SELECT%20*%20FROM%20texts--",
		"%3F1", ":id", "@id", "$id", "x'61'", "char(97)", "a%20", "A", "a%0a", "\\x61",
	} {
		if a := s.raw("GET /texts/" + key + " HTTP/1.1\r\nHost: localhost\r\n\r\n"); a.status != 404 || a.problem() != 404 {
			t.Errorf("%s: %v; expected no such document", key, a)
		}
	}
	for _, key := range []string{"a", "b"} {
		if a := s.get("/texts/" + key); a.body != `{"id":"`+key+`","v":"v`+key+`"}` {
			t.Errorf("%s: %v", key, a)
		}
	}
}

// TestBrokenHTTP: requests that net/http itself refuses never reach a resource, and
// the listener continues to serve.
func TestBrokenHTTP(t *testing.T) {
	t.Parallel()
	s := serveReady(t, newDatabase(t, writeAhead+company), deptResource)
	s.cached("/depts/1")
	before := s.statements()
	for _, text := range []string{
		"GET /depts/% HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /depts/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET depts/2 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /depts/2\r\n\r\n",
		"GET /depts/2 HTTP/3.0\r\nHost: localhost\r\n\r\n",
		"GET /depts/2 HTTP/1.1\r\nHost: localhost\r\nHost: g\r\n\r\n",
		"GET /depts/2 HTTP/1.1\r\nHost: localhost\r\nX y: z\r\n\r\n",
		"GET /depts/2 2 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /depts/\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"* * *\r\n\r\n",
	} {
		if a := s.raw(text); a.status < 400 || a.status == 503 {
			t.Errorf("%.60q: %v; expected a refusal", text, a)
		}
	}
	if n := s.statements(); n != before {
		t.Errorf("broken requests cost %v statements; expected none", n-before)
	}
	if a := s.get("/depts/1"); !a.hit() {
		t.Errorf("after all that: %v", a)
	}
}

// raw sends the bytes unchanged and reads one answer.
func (s *served) raw(request string) answer {
	s.t.Helper()
	c := s.dial()
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		s.t.Fatal(err)
	}
	rsp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		s.t.Fatalf("%.60q: %v", request, err)
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(rsp.Body)
	if err != nil {
		s.t.Fatalf("%.60q: %v", request, err)
	}
	return answer{rsp.StatusCode, rsp.Header, string(body)}
}
