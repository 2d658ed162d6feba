package clients

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/demo"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// Third-party clients read the gateway's answers: each one sends the same requests
// and reports what it received, and how its decoder read it.

// foreignKeys are keys of orders that need percent-encoding, as SQL and as a path.
var foreignKeys = map[string]string{
	`north/east ü%+`: "north%2Feast%20%C3%BC%25%2B",
	`a"b'c;?#&=`:     "a%22b%27c%3B%3F%23%26%3D",
	"日本":             "%E6%97%A5%E6%9C%AC",
}

// order is a document that all clients may read.
const order = "/orders/emea/17"

// clientBurst is how many requests a caller may send without delay; the next one is admitted only
// after the test has ended.
const clientBurst = 12

// surface is a gateway with all HTTP features enabled.
type surface struct {
	url     string
	address string
	keys    map[string]string // API keys by caller
	dept    []byte            // /depts/42, uncompressed
}

// startSurface serves the demo's database. Each of the callers has a key for the departments, and a
// second one for the flood of requests; "stranger" may not read them.
func startSurface(t *testing.T, callers []string) *surface {
	t.Helper()
	dir := t.TempDir()
	database := filepath.Join(dir, blackbox.DemoFile)
	if err := demo.Create(database, 1); err != nil {
		t.Fatal(err)
	}
	for key := range foreignKeys {
		blackbox.Execute(t, database, fmt.Sprintf("INSERT INTO orders VALUES ('%s', 7, 'Acme', '2024-02-29 12:30:00', 'open', 'EUR')", strings.ReplaceAll(key, "'", "''")))
	}
	s := &surface{keys: map[string]string{}}
	var lines strings.Builder
	allowed := []string{"reference"}
	for _, c := range callers {
		allowed = append(allowed, c, c+"-flood")
	}
	for _, name := range append(allowed, "stranger") {
		s.keys[name] = access.NewKey()
		line, err := access.KeyLine(name, s.keys[name])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&lines, line)
	}
	blackbox.Write(t, filepath.Join(dir, "keys.txt"), lines.String())
	s.address = fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	s.url = "http://" + s.address
	admin := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	config := demo.Config(blackbox.DemoFile, s.address, admin)
	config = strings.Replace(config, "resources:\n", fmt.Sprintf(`auth: { keys: keys.txt }
http:
  cors: { origins: ["https://app.example"], headers: [X-Custom] }
  limits: { client: { rate: 100000, burst: 100000 }, caller: { rate: 0.001, burst: %d } }
resources:
`, clientBurst), 1)
	config = strings.Replace(config, "    key: [deptno]\n", "    key: [deptno]\n    access: { keys: ["+strings.Join(allowed, ", ")+"] }\n", 1)
	file := filepath.Join(dir, "slipstream.yaml")
	blackbox.Write(t, file, config)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", file)
	testkit.Start(t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", file}, Ready: func(ctx context.Context) error {
		status, _, body, err := blackbox.Get(ctx, s.url+"/orders/emea/17")
		if err == nil && status != 200 {
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	}})
	s.dept, _ = s.reference(t, "/depts/42")
	// While all processors are compressing, responses are sent uncompressed. So the compressed
	// forms that the steps expect are created now.
	for _, path := range []string{order, "/depts/42"} {
		for _, coding := range []string{"gzip", "zstd"} {
			testkit.Eventually(t, 10*time.Second, func() error {
				_, head := s.reference(t, path, "Accept-Encoding: "+coding)
				if got := head.Get("Content-Encoding"); got != coding {
					return fmt.Errorf("%s has the content coding %q, want %q", path, got, coding)
				}
				return nil
			})
		}
	}
	return s
}

// step is a request and what every client must report about the response.
type step struct {
	name, method, path string
	fields             []string // "Name: value"
	status             int
	answer             map[string]string // fields of the response; "*" means any non-empty value
	// same is the expected decoded body; if nil, it is not checked.
	same []byte
	// coding is the content coding of the response; if empty, it is not checked.
	coding string
}

// answered is what a client reported about a response.
type answered struct {
	status, length int
	hash           string
	fields         map[string]string
}

// reference makes a request with a client that decodes nothing.
func (s *surface) reference(t *testing.T, path string, fields ...string) (body []byte, head http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "identity")
	if strings.HasPrefix(path, "/depts/") {
		r.Header.Set("X-API-Key", s.keys["reference"])
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Set(name, value)
	}
	rsp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	body, err = io.ReadAll(rsp.Body)
	if err != nil || rsp.StatusCode != 200 {
		t.Fatalf("%.100s: %d %.200s %v", path, rsp.StatusCode, body, err)
	}
	return body, rsp.Header
}

// manyKeys is a batch of 1,000 keys: every order of two regions, including the unusual keys, and
// missing ones.
func manyKeys() string {
	var b strings.Builder
	b.WriteString("/orders?")
	n := 0
	add := func(key string) { fmt.Fprintf(&b, "key=%s&", key); n++ }
	for _, name := range slices.Sorted(maps.Keys(foreignKeys)) {
		add(strings.ReplaceAll(foreignKeys[name], "%", "%25") + "%2F7")
	}
	for i := 1; n < 1000; i++ {
		add(fmt.Sprintf("%s%%2F%d", []string{"emea", "apac"}[i%2], i))
	}
	return strings.TrimSuffix(b.String(), "&")
}

// steps are the requests that a caller sends.
func (s *surface) steps(t *testing.T, caller string, zstd bool) []step {
	t.Helper()
	key := "X-API-Key: " + s.keys[caller]
	many := manyKeys()
	document, head := s.reference(t, order)
	batch, _ := s.reference(t, many)
	description, _ := s.reference(t, "/openapi.json")
	_, zipped := s.reference(t, order, "Accept-Encoding: gzip")
	const problem = "application/problem+json"
	steps := []step{
		{name: "document", method: "GET", path: order, status: 200, same: document,
			answer: map[string]string{"content-type": "application/json", "etag": "*", "cache-control": "no-cache", "x-request-id": "*"}},
		{name: "HEAD", method: "HEAD", path: order, fields: []string{"Accept-Encoding: identity"}, status: 200, same: []byte{},
			answer: map[string]string{"etag": head.Get("Etag"), "content-length": strconv.Itoa(len(document))}},
		{name: "not modified", method: "GET", path: order, fields: []string{"If-None-Match: " + head.Get("Etag"), "Accept-Encoding: identity"}, status: 304, same: []byte{},
			answer: map[string]string{"etag": head.Get("Etag")}},
		{name: "not modified in gzip", method: "GET", path: order, fields: []string{"If-None-Match: " + zipped.Get("Etag"), "Accept-Encoding: gzip"}, status: 304,
			same: []byte{}, answer: map[string]string{"etag": zipped.Get("Etag")}},
		{name: "older version", method: "GET", path: order, fields: []string{`If-None-Match: "other"`}, status: 200, same: document},
		{name: "gzip", method: "GET", path: "/depts/42", fields: []string{key, "Accept-Encoding: gzip"}, status: 200, same: s.dept, coding: "gzip",
			answer: map[string]string{"cache-control": "private, no-cache"}},
		{name: "batch", method: "GET", path: many, fields: []string{"Accept-Encoding: identity"}, status: 200, same: batch},
		{name: "batch in gzip", method: "GET", path: many, fields: []string{"Accept-Encoding: gzip"}, status: 200, same: batch, coding: "gzip"},
		{name: "description in gzip", method: "GET", path: "/openapi.json", fields: []string{"Accept-Encoding: gzip"}, status: 200, same: description},
		{name: "no credentials", method: "GET", path: "/depts/42", status: 401, answer: map[string]string{"content-type": problem}},
		{name: "HEAD without credentials", method: "HEAD", path: "/depts/42", status: 401, same: []byte{}, answer: map[string]string{"content-type": problem}},
		{name: "wrong key", method: "GET", path: "/depts/42", fields: []string{"X-API-Key: " + access.NewKey()}, status: 401, answer: map[string]string{"content-type": problem}},
		{name: "not allowed", method: "GET", path: "/depts/42", fields: []string{"X-API-Key: " + s.keys["stranger"]}, status: 403, answer: map[string]string{"content-type": problem}},
		{name: "missing", method: "GET", path: "/orders/emea/99999", status: 404, answer: map[string]string{"content-type": problem, "cache-control": "no-store"}},
		{name: "bad key", method: "GET", path: "/orders/emea/x", status: 400, answer: map[string]string{"content-type": problem}},
		{name: "preflight", method: "OPTIONS", path: "/depts/42", status: 204, same: []byte{},
			fields: []string{"Origin: https://app.example", "Access-Control-Request-Method: GET", "Access-Control-Request-Headers: x-api-key,x-custom"},
			answer: map[string]string{"access-control-allow-origin": "https://app.example", "access-control-allow-methods": "*", "access-control-allow-headers": "*", "access-control-max-age": "600"}},
		{name: "for a page", method: "GET", path: order, fields: []string{"Origin: https://app.example"}, status: 200, same: document,
			answer: map[string]string{"access-control-allow-origin": "https://app.example", "vary": "*"}},
	}
	for _, encoded := range foreignKeys {
		text, _ := s.reference(t, "/orders/"+encoded+"/7")
		steps = append(steps, step{name: "key " + encoded, method: "GET", path: "/orders/" + encoded + "/7", status: 200, same: text})
	}
	if zstd {
		steps = append(steps, step{name: "zstd", method: "GET", path: order, fields: []string{"Accept-Encoding: zstd"}, status: 200, same: document, coding: "zstd"},
			step{name: "zstd or gzip", method: "GET", path: "/depts/42", fields: []string{key, "Accept-Encoding: gzip, zstd"}, status: 200, same: s.dept, coding: "zstd"})
	}
	flood := []string{"X-API-Key: " + s.keys[caller+"-flood"]}
	for range clientBurst {
		steps = append(steps, step{name: "flood", method: "GET", path: "/depts/42", fields: flood, status: 200, same: s.dept})
	}
	return append(steps, step{name: "too many", method: "GET", path: "/depts/42", fields: flood, status: 429,
		answer: map[string]string{"content-type": problem, "retry-after": "*"}},
		step{name: "after all", method: "GET", path: order, status: 200, same: document})
}

// judge compares what a client reported with what it must report.
func (want *step) judge(t *testing.T, got answered) {
	t.Helper()
	if got.status != want.status {
		t.Errorf("%s: status %d, want %d", want.name, got.status, want.status)
	}
	if want.same != nil {
		if sum := sha256.Sum256(want.same); got.length != len(want.same) || got.hash != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: a body of %d bytes after decoding, hash %.8s; want %d, %.8x", want.name, got.length, got.hash, len(want.same), sum)
		}
	}
	if want.status >= 400 && want.method == http.MethodGet && got.length == 0 {
		t.Errorf("%s: a problem without a text", want.name)
	}
	if c := got.fields["content-encoding"]; want.coding != "" && c != want.coding {
		t.Errorf("%s: Content-Encoding %q, want %q", want.name, c, want.coding)
	}
	for name, value := range want.answer {
		if is := got.fields[name]; is == "" || value != "*" && is != value {
			t.Errorf("%s: %s %q, want %q", want.name, name, is, value)
		}
	}
}
