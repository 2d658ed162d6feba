//go:build linux

package clients

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/demo"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// Third-party programs request documents in the simplest way. The event loop answers all of the
// requests, whatever headers the programs send.

// plainGateway serves the demo's database. Departments need a key, orders do not.
type plainGateway struct {
	surface // its key is "reader"
	admin   string
	process *testkit.Process
}

// startPlain starts a gateway with the given http settings, each one line of YAML.
func startPlain(t *testing.T, settings ...string) *plainGateway {
	t.Helper()
	return startEdited(t, "", func(config string) string {
		return strings.Replace(config, "resources:\n", "http:\n  engine: loop\n  "+strings.Join(settings, "\n  ")+"\nresources:\n", 1)
	})
}

// startEdited starts a gateway with the demo's database, in which sql was run, and with the demo's
// configuration as modified by edit.
func startEdited(t *testing.T, sql string, edit func(config string) string) *plainGateway {
	t.Helper()
	dir := t.TempDir()
	database := filepath.Join(dir, blackbox.DemoFile)
	if err := demo.Create(database, 1); err != nil {
		t.Fatal(err)
	}
	if sql != "" {
		blackbox.Execute(t, database, sql)
	}
	g := &plainGateway{}
	g.keys = map[string]string{"reference": access.NewKey()}
	line, err := access.KeyLine("reference", g.keys["reference"])
	if err != nil {
		t.Fatal(err)
	}
	blackbox.Write(t, filepath.Join(dir, "keys.txt"), line+"\n")
	g.address = fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	admin := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	g.url, g.admin = "http://"+g.address, "http://"+admin
	config := demo.Config(blackbox.DemoFile, g.address, admin)
	config = strings.Replace(config, "resources:\n", "auth: { keys: keys.txt }\nresources:\n", 1)
	config = strings.Replace(config, "    key: [deptno]\n", "    key: [deptno]\n    access: { keys: [reference] }\n", 1)
	file := filepath.Join(dir, "slipstream.yaml")
	blackbox.Write(t, file, edit(config))
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", file)
	g.process = testkit.Start(t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", file}, Ready: func(ctx context.Context) error {
		status, _, body, err := blackbox.Get(ctx, g.admin+"/ready")
		if err == nil && status != 200 {
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	}})
	return g
}

// figure returns the sum of the samples of a metric in /metrics whose labels match.
func (g *plainGateway) figure(t *testing.T, name, labels string) float64 {
	t.Helper()
	_, _, page, err := blackbox.Get(t.Context(), g.admin+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	sum, found := 0.0, false
	for _, m := range regexp.MustCompile(`(?m)^`+name+labels+` ([0-9.e+]+)$`).FindAllStringSubmatch(page, -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum, found = sum+n, true
	}
	if !found {
		t.Fatalf("/metrics has no %s%s", name, labels)
	}
	return sum
}

func (g *plainGateway) answers(t *testing.T) int {
	t.Helper()
	return int(g.figure(t, "slipstream_http_answers_total", `\{[^}]*\}`))
}

// onLoop calls do, which sends n requests. None of them may be passed to net/http, which would also
// keep the rest of the connection, and the gateway must count n responses, or up to underWay more.
func (g *plainGateway) onLoop(t *testing.T, underWay int, do func() (n int)) {
	t.Helper()
	handed := func() int { return int(g.figure(t, "slipstream_http_handed_over_total", `\{[^}]*\}`)) }
	before, answers := handed(), g.answers(t)
	n := do()
	over, counted := handed()-before, g.answers(t)-answers
	t.Logf("%d of %d requests were passed to net/http: %.3f %%", over, counted, 100*float64(over)/float64(max(counted, 1)))
	if over > 0 {
		_, _, page, err := blackbox.Get(t.Context(), g.admin+"/metrics")
		t.Errorf("%d requests were passed to net/http, want none: %v %q", over, err,
			regexp.MustCompile(`slipstream_http_handed_over_total\{.*\} [1-9].*`).FindAllString(page, -1))
	}
	if counted < n || counted > n+underWay {
		t.Errorf("the gateway has counted %d responses to %d requests", counted, n)
	}
}

// plainSteps returns ordinary requests: documents with and without the key, compressed and not,
// unchanged, missing and refused, and a batch.
func (g *plainGateway) plainSteps(t *testing.T) []step {
	t.Helper()
	key := "X-API-Key: " + g.keys["reference"]
	const identity = "Accept-Encoding: identity"
	var steps []step
	for n := 1; n <= 40; n++ {
		path := fmt.Sprint("/depts/", n)
		document, head := g.reference(t, path)
		s := step{name: path, method: "GET", path: path, fields: []string{key}, status: 200, same: document}
		switch n % 4 {
		case 0:
			s.fields = append(s.fields, "Accept-Encoding: gzip")
		case 1:
			s.method, s.same, s.fields = "HEAD", []byte{}, append(s.fields, identity)
			s.answer = map[string]string{"content-length": strconv.Itoa(len(document)), "etag": head.Get("Etag")}
		case 2:
			s.status, s.same, s.fields = 304, []byte{}, append(s.fields, "If-None-Match: "+head.Get("Etag"), identity)
		}
		steps = append(steps, s)
	}
	open, _ := g.reference(t, order)
	batch, _ := g.reference(t, "/orders?key=emea%2F17&key=apac%2F18")
	return append(steps,
		step{name: "open", method: "GET", path: order, status: 200, same: open},
		step{name: "batch", method: "GET", path: "/orders?key=emea%2F17&key=apac%2F18", status: 200, same: batch},
		step{name: "page", method: "GET", path: order, fields: []string{"Origin: https://app.example"}, status: 200, same: open},
		step{name: "leave for a page", method: "OPTIONS", path: "/depts/42", status: 204, same: []byte{},
			fields: []string{"Origin: https://app.example", "Access-Control-Request-Method: GET", "Access-Control-Request-Headers: x-api-key"}},
		step{name: "query of a cache buster", method: "GET", path: order + "?_=1", status: 200, same: open},
		step{name: "no key", method: "GET", path: "/depts/42", status: 401},
		step{name: "HEAD without a key", method: "HEAD", path: "/depts/42", status: 401, same: []byte{}},
		step{name: "missing", method: "GET", path: "/orders/emea/99999", status: 404},
		step{name: "no such resource", method: "GET", path: "/favicon.ico", status: 404},
	)
}

// installed returns the path of a program that make prepare installs, possibly in a directory that
// only root has in PATH.
func installed(t *testing.T, name string) string {
	t.Helper()
	for _, candidate := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	t.Fatalf("there is no %s (run: make prepare)", name)
	return ""
}

// TestPlainClients: simple requests of third-party clients are answered correctly.
func TestPlainClients(t *testing.T) {
	g := startPlain(t, "trusted_proxies: [127.0.0.1]", `cors: { origins: ["https://app.example"] }`)
	steps := g.plainSteps(t)
	for _, c := range []struct {
		name string
		send func(t *testing.T, base string, steps []step) []answered
	}{
		{"go", sendGo},
		{"curl", sendCurl},
		{"python-http.client", script("python3", "testdata/clients/client.py", "http.client")},
		{"python-urllib", script("python3", "testdata/clients/client.py", "urllib")},
		{"node-http", script("node", "testdata/clients/client.mjs", "http")},
		{"node-fetch", script("node", "testdata/clients/client.mjs", "fetch")},
		// It offers HTTP/2 with every request, and declares a body of 0 bytes for each.
		{"java", script("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "testdata/clients/Client.java")},
	} {
		t.Run(c.name, func(t *testing.T) {
			g.onLoop(t, 0, func() int {
				got := c.send(t, g.url, steps)
				if len(got) != len(steps) {
					t.Fatalf("%d answers to %d requests", len(got), len(steps))
				}
				for i := range steps {
					steps[i].judge(t, got[i])
				}
				return len(steps)
			})
		})
	}
	t.Run("curl-modes", func(t *testing.T) { g.onLoop(t, 0, func() int { return curlModes(t, g) }) })
}

// curlModes runs curl as people do in a shell, and returns the number of requests it has sent.
func curlModes(t *testing.T, g *plainGateway) (sent int) {
	sent = 1
	document, head := g.reference(t, order)
	urls := func(n int) (all []string) {
		for range n {
			all = append(all, g.url+order)
		}
		return all
	}
	const said = "\n%{http_code} %{http_version} %{size_download} %{num_connects}\n"
	for _, c := range []struct {
		name        string
		args        []string
		n           int
		line        string // expected for the first request; later ones open no connection
		later, body string
	}{
		{"several", nil, 20, fmt.Sprintf("200 1.1 %d 1", len(document)), fmt.Sprintf("200 1.1 %d 0", len(document)), string(document)},
		{"HTTP/1.0", []string{"--http1.0"}, 3, fmt.Sprintf("200 1 %d 1", len(document)), fmt.Sprintf("200 1 %d 1", len(document)), string(document)},
		{"HTTP/1.0 keep-alive", []string{"--http1.0", "-H", "Connection: keep-alive"}, 3,
			fmt.Sprintf("200 1 %d 1", len(document)), fmt.Sprintf("200 1 %d 0", len(document)), string(document)},
		{"head", []string{"-I"}, 3, "200 1.1 0 1", "200 1.1 0 0", "ETag: " + head.Get("Etag")},
		{"compressed", []string{"--compressed"}, 3, "", "", string(document)},
		{"closing", []string{"-H", "Connection: close"}, 2, fmt.Sprintf("200 1.1 %d 1", len(document)), fmt.Sprintf("200 1.1 %d 1", len(document)), string(document)},
	} {
		args := append([]string{"--disable", "-sS", "--max-time", "20", "-w", said}, c.args...)
		out := runForeign(t, "", "curl", append(args, urls(c.n)...)...)
		sent += c.n
		if got := strings.Count(strings.ToLower(out), strings.ToLower(c.body)); got != c.n {
			t.Errorf("%s: the document or its ETag appears %d times, want %d:\n%.2000s", c.name, got, c.n, out)
		}
		if got := strings.Count(out, "\n200 1"); got != c.n {
			t.Errorf("%s: %d answers of status 200, want %d:\n%.2000s", c.name, got, c.n, out)
		}
		if c.line != "" && (strings.Count(out, "\n"+c.line+"\n") < 1 || strings.Count(out, "\n"+c.later+"\n") < c.n-1) {
			t.Errorf("%s: want %q, then %q:\n%.2000s", c.name, c.line, c.later, out)
		}
	}
	return sent
}
