package clients

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/demo"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// Third-party clients read the same resources from every kind of listener, and each gets what its
// credentials permit.

// listenerRules are the rules of the resources r0 to r9.
var listenerRules = []string{
	"", `certificates: ["*"]`, `certificates: ["spiffe://prod/web"]`, `certificates: [Billing.internal]`, `certificates: ["ops@example.com"]`,
	`certificates: ["spiffe://prod/batch"]`, `keys: [web]`, `keys: [web], certificates: ["spiffe://prod/batch"]`, `keys: [nobody]`,
	`keys: [nobody], certificates: [billing.internal]`,
}

// The HTTP statuses that the callers get for r0 to r9.
var (
	byCertificate = [10]int{200, 200, 200, 200, 200, 403, 401, 401, 401, 200}
	byKey         = [10]int{200, 403, 403, 403, 403, 403, 200, 200, 403, 403}
	byBoth        = [10]int{200, 200, 200, 200, 200, 403, 200, 200, 403, 200}
)

// everyListener is a gateway with listeners of each kind, and the files and addresses that its
// clients need.
type everyListener struct {
	authority, cert, key, apiKey string // files, and an API key
	trust                        *tls.Config

	clear, secure, mutual, socket                     string // addresses of HTTP
	redisClear, redisSecure, redisMutual, redisSocket string // ports of Redis
}

func startListening(t *testing.T) *everyListener {
	t.Helper()
	dir := t.TempDir()
	database := filepath.Join(dir, blackbox.DemoFile)
	if err := demo.Create(database, 1); err != nil {
		t.Fatal(err)
	}
	authority := testkit.NewAuthority(t)
	u, err := url.Parse("spiffe://prod/web")
	if err != nil {
		t.Fatal(err)
	}
	own := authority.Issue(t, &x509.Certificate{URIs: []*url.URL{u}, DNSNames: []string{"billing.internal"}, EmailAddresses: []string{"ops@example.com"}})
	authority.Issue(t, &x509.Certificate{DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}).Write(t, dir, "server")
	l := &everyListener{authority: authority.Write(t, dir, "authority"), apiKey: access.NewKey(), trust: &tls.Config{RootCAs: authority.Pool}}
	l.cert, l.key = own.Write(t, dir, "web")
	l.trust.Certificates = []tls.Certificate{own.Certificate}
	line, err := access.KeyLine("web", l.apiKey)
	if err != nil {
		t.Fatal(err)
	}
	blackbox.Write(t, filepath.Join(dir, "keys.txt"), line+"\n")
	port := func() string { return strconv.Itoa(testkit.FreePort(t)) }
	const at = "127.0.0.1:"
	l.clear, l.secure, l.mutual, l.socket = at+port(), at+port(), at+port(), filepath.Join(dir, "http.sock")
	l.redisClear, l.redisSecure, l.redisMutual, l.redisSocket = port(), port(), port(), filepath.Join(dir, "redis.sock")
	admin := at + port()
	listeners := func(clear, secure, mutual, socket string) string {
		return fmt.Sprintf(`[%q, { address: %q, tls: { cert: server.pem, key: server.key } }, `+
			`{ address: %q, tls: { cert: server.pem, key: server.key, clients: authority.pem } }, "unix:%s"]`, clear, secure, mutual, filepath.Base(socket))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "origin: { url: \"sqlite:%s\" }\nadmin: %q\nauth: { keys: keys.txt }\nfrontends:\n  http: %s\n  redis: %s\nresources:\n", blackbox.DemoFile, admin,
		listeners(l.clear, l.secure, l.mutual, l.socket), listeners(at+l.redisClear, at+l.redisSecure, at+l.redisMutual, l.redisSocket))
	for i, rule := range listenerRules {
		if rule != "" {
			rule = ", access: { " + rule + " }"
		}
		fmt.Fprintf(&b, "  r%d: { table: dept, key: [deptno]%s }\n", i, rule)
	}
	file := filepath.Join(dir, "slipstream.yaml")
	blackbox.Write(t, file, b.String())
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", file)
	testkit.Start(t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", file}, Ready: func(ctx context.Context) error {
		status, _, body, err := blackbox.Get(ctx, "http://"+admin+"/ready")
		if err == nil && status != 200 {
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	}})
	return l
}

// TestEachListenerToForeignClients: third-party programs and libraries read ten resources from
// listeners of each kind, and are refused those that they may not read.
func TestEachListenerToForeignClients(t *testing.T) {
	l := startListening(t)
	_, _, want, err := blackbox.Get(t.Context(), "http://"+l.clear+"/r0/42")
	if err != nil || !strings.HasPrefix(want, "{") {
		t.Fatalf("%s, %v", want, err)
	}
	var paths strings.Builder
	for i := range listenerRules {
		fmt.Fprintf(&paths, "/r%d/42\n", i)
	}
	program := func(name string, args ...string) func(t *testing.T, protocol, address, ca, cert, key, apiKey string) string {
		return func(t *testing.T, protocol, address, ca, cert, key, apiKey string) string {
			return runForeign(t, paths.String(), name, append(args, protocol, address, ca, cert, key, apiKey)...)
		}
	}
	for _, c := range []struct {
		name   string
		h2, h1 bool // protocols over TLS
		unix   bool
		ask    func(t *testing.T, protocol, address, ca, cert, key, apiKey string) string
	}{
		{"go", true, true, true, l.askGo},
		{"curl", true, true, true, askCurl},
		{"python", false, true, true, program("python3", "testdata/listeners/client.py")},
		{"node", true, true, true, program("node", "testdata/listeners/client.mjs")},
		{"java", true, false, false, program("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "testdata/listeners/Client.java")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			judge := func(what, text string, statuses [10]int) {
				t.Helper()
				lines := strings.Split(strings.TrimSpace(text), "\n")
				for i, status := range statuses {
					expected := strconv.Itoa(status) + " "
					if status == 200 {
						expected += want
					}
					if len(lines) != len(statuses) || !strings.HasPrefix(lines[i], expected) {
						t.Errorf("%s: the response for r%d is %q of %d, want %q", what, i, lines[min(i, len(lines)-1)], len(lines), expected)
					}
				}
			}
			for protocol, has := range map[string]bool{"h2": c.h2, "h1": c.h1} {
				if has {
					judge(protocol+" with a certificate", c.ask(t, protocol, l.mutual, l.authority, l.cert, l.key, "-"), byCertificate)
				}
			}
			protocol := map[bool]string{true: "h2", false: "h1"}[c.h2]
			judge("TLS with both", c.ask(t, protocol, l.mutual, l.authority, l.cert, l.key, l.apiKey), byBoth)
			judge("TLS with a key", c.ask(t, protocol, l.secure, l.authority, "-", "-", l.apiKey), byKey)
			judge("clear text", c.ask(t, "h1", l.clear, "-", "-", "-", l.apiKey), byKey)
			if c.unix {
				judge("unix socket", c.ask(t, "h1", l.socket, "-", "-", "-", l.apiKey), byKey)
			}
		})
	}
	t.Run("renegotiation", func(t *testing.T) {
		t.Parallel()
		got := runForeign(t, "", "node", "testdata/listeners/renegotiate.mjs", l.secure, l.authority)
		if got != "answered in TLSv1.2\nrefused\n" {
			t.Errorf("renegotiation: %q, want it refused", got)
		}
	})
	t.Run("redis-cli", func(t *testing.T) {
		t.Parallel()
		l.redisCLI(t, want)
	})
}

// askCurl requests all resources with a single curl process.
func askCurl(t *testing.T, protocol, address, ca, cert, key, apiKey string) string {
	t.Helper()
	scheme, host := "http://", address
	args := []string{"--disable", "--silent", "--show-error", "--max-time", "20", "--write-out", "\n%{http_code} %{http_version}\n"}
	if ca != "-" {
		scheme = "https://"
		args = append(args, "--cacert", ca, map[string]string{"h1": "--http1.1", "h2": "--http2"}[protocol])
	}
	if cert != "-" {
		args = append(args, "--cert", cert, "--key", key)
	}
	if apiKey != "-" {
		args = append(args, "--header", "X-API-Key: "+apiKey)
	}
	if strings.HasPrefix(address, "/") {
		host = "localhost"
		args = append(args, "--unix-socket", address)
	}
	for i := range listenerRules {
		args = append(args, fmt.Sprintf("%s%s/r%d/42", scheme, host, i))
	}
	lines := strings.Split(strings.TrimSpace(runForeign(t, "", "curl", args...)), "\n")
	var b strings.Builder
	for i := 0; i+1 < len(lines); i += 2 {
		status, version, _ := strings.Cut(lines[i+1], " ")
		if protocol == "h2" && version != "2" {
			t.Errorf("curl got a response in HTTP/%s, want HTTP/2", version)
		}
		fmt.Fprintln(&b, status, lines[i])
	}
	return b.String()
}

// askGo requests all resources with net/http.
func (l *everyListener) askGo(t *testing.T, protocol, address, ca, cert, _, apiKey string) string {
	t.Helper()
	trust := l.trust.Clone()
	if cert == "-" {
		trust.Certificates = nil
	}
	transport := &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: protocol == "h2"}
	defer transport.CloseIdleConnections()
	base := "http://" + address
	switch {
	case ca != "-":
		base = "https://" + address
	case strings.HasPrefix(address, "/"):
		base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", address)
		}
	}
	var b strings.Builder
	for i := range listenerRules {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/r%d/42", base, i), nil)
		if err != nil {
			t.Fatal(err)
		}
		if apiKey != "-" {
			r.Header.Set("X-API-Key", apiKey)
		}
		answer, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || (answer.ProtoMajor == 2) != (protocol == "h2") {
			t.Errorf("%s, %v", answer.Proto, err)
		}
		fmt.Fprintf(&b, "%d %s\n", answer.StatusCode, body)
	}
	return b.String()
}

// redisCLI requests all resources from each Redis listener.
func (l *everyListener) redisCLI(t *testing.T, want string) {
	var commands strings.Builder
	for i := range listenerRules {
		fmt.Fprintf(&commands, "GET r%d:42\n", i)
	}
	secure := []string{"--tls", "--cacert", l.authority, "-h", "127.0.0.1"}
	for _, test := range []struct {
		name     string
		args     []string
		statuses [10]int
		key      bool
	}{
		{"certificate", append([]string{"-p", l.redisMutual, "--cert", l.cert, "--key", l.key}, secure...), byCertificate, false},
		{"both", append([]string{"-p", l.redisMutual, "--cert", l.cert, "--key", l.key}, secure...), byBoth, true},
		{"TLS", append([]string{"-p", l.redisSecure}, secure...), byKey, true},
		{"clear text", []string{"-p", l.redisClear}, byKey, true},
		{"unix socket", []string{"-s", l.redisSocket}, byKey, true},
	} {
		if test.key {
			test.args = append(test.args, "--no-auth-warning", "-a", l.apiKey)
		}
		var lines []string
		for line := range strings.Lines(runForeign(t, commands.String(), "redis-cli", test.args...)) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		for i, status := range test.statuses {
			expected := want
			if status != 200 {
				expected = "NOPERM "
			}
			if len(lines) != len(test.statuses) || !strings.HasPrefix(lines[i], expected) {
				t.Errorf("%s: the response for r%d is %q of %d, want %q", test.name, i, lines[min(i, len(lines)-1)], len(lines), expected)
			}
		}
	}
}
