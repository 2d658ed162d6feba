package gateway_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// identified is a gateway whose resources name certificates, at listeners that ask for one.
type identified struct {
	*served
	dir         string
	authority   *testkit.Authority
	key         string // of "batch"
	http, redis string // addresses
}

const identityResources = `
auth: { keys: keys.txt }
resources:
  everybody: { table: dept, key: [deptno] }
  any: { table: dept, key: [deptno], access: { certificates: ["*"] } }
  web: { table: dept, key: [deptno], access: { certificates: ["spiffe://prod/web"] } }
  mail: { table: dept, key: [deptno], access: { certificates: ["ops@example.com"] } }
  batch: { table: dept, key: [deptno], access: { keys: [batch] } }
  either: { table: dept, key: [deptno], access: { keys: [shop], certificates: ["WEB.internal"] } }
`

func serveIdentified(t *testing.T, edit func(*config.Config)) *identified {
	t.Helper()
	path := newDatabase(t, writeAhead+company)
	i := &identified{dir: filepath.Dir(path), authority: testkit.NewAuthority(t), key: access.NewKey()}
	line, err := access.KeyLine("batch", i.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(i.dir, "keys.txt"), []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	i.authority.Write(t, i.dir, "authority")
	i.authority.Issue(t, &x509.Certificate{DNSNames: []string{"localhost"}}).Write(t, i.dir, "server")
	listener := `{ address: "127.0.0.1:0", tls: { cert: server.pem, key: server.key, clients: authority.pem } }`
	cfg, err := config.Parse("test.yaml", []byte("origin: { url: \"sqlite:app.db\" }\nadmin: \"127.0.0.1:0\"\nlog: { requests: requests.log }\n"+
		"frontends: { http: ["+listener+`, "127.0.0.1:0"], redis: [`+listener+`, "127.0.0.1:0"] }`+identityResources))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Origin.Dir = i.dir
	if edit != nil {
		edit(cfg)
	}
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	i.served = serve(t, cfg)
	i.awaitReady()
	i.http = i.gateway.Addrs(gateway.ListenHTTP)[0].String()
	i.redis = i.gateway.Addrs(gateway.ListenRedis)[0].String()
	return i
}

// web is the template of a certificate that rules name.
func web(t testing.TB) *x509.Certificate {
	t.Helper()
	u, err := url.Parse("spiffe://prod/web")
	if err != nil {
		t.Fatal(err)
	}
	return &x509.Certificate{URIs: []*url.URL{u}, DNSNames: []string{"web.internal"}}
}

// trusting is the TLS of a client with a certificate.
func (i *identified) trusting(one *testkit.Issued) *tls.Config {
	return &tls.Config{RootCAs: i.authority.Pool, ServerName: "localhost", Certificates: []tls.Certificate{one.Certificate}}
}

// client returns a client of one connection.
func (i *identified) client(trust *tls.Config, http2 bool) *http.Client {
	transport := &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: http2, MaxConnsPerHost: 1}
	i.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 2 * patience}
}

// ask returns the status of a document; handed makes the event loop pass the connection to
// net/http.
func (i *identified) ask(c *http.Client, resource, key string, handed bool) (int, string) {
	i.t.Helper()
	var body io.Reader
	if handed {
		body = strings.NewReader("x")
	}
	r, err := http.NewRequest(http.MethodGet, "https://"+i.http+resource, body)
	if err != nil {
		i.t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("X-API-Key", key)
	}
	answer, err := c.Do(r)
	if err != nil {
		i.t.Fatalf("%s: %v", resource, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		i.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// TestCertificateIdentities: a client with a certificate reads what the rules permit, in every
// way in which a connection is served.
func TestCertificateIdentities(t *testing.T) {
	for _, engine := range []config.Engine{config.Loop, config.NetHTTP} {
		t.Run(string(engine), func(t *testing.T) {
			testkit.NoLeaks(t)
			i := serveIdentified(t, func(c *config.Config) { c.HTTP.Engine = engine })
			named := i.trusting(i.authority.Issue(t, web(t)))
			other := i.trusting(i.authority.Issue(t, &x509.Certificate{DNSNames: []string{"shop.internal"}, EmailAddresses: []string{"OPS@example.com"}}))
			for _, test := range []struct {
				who                                      string
				trust                                    *tls.Config
				key                                      string
				everybody, any, web, mail, batch, either int
			}{
				{"named", named, "", 200, 200, 200, 403, 401, 200},
				{"other", other, "", 200, 200, 403, 403, 401, 401},
				{"named with a key", named, i.key, 200, 200, 200, 403, 200, 200},
				{"other with a key", other, i.key, 200, 200, 403, 403, 200, 403},
				{"named with a wrong key", named, access.NewKey(), 200, 401, 401, 401, 401, 401},
			} {
				for _, way := range []struct {
					name          string
					http2, handed bool
				}{{"HTTP/1.1", false, false}, {"handed over", false, true}, {"HTTP/2", true, false}} {
					c := i.client(test.trust.Clone(), way.http2)
					for resource, want := range map[string]int{"everybody": test.everybody, "any": test.any, "web": test.web, "mail": test.mail, "batch": test.batch, "either": test.either} {
						for range 2 { // a load and a hit
							if got, text := i.ask(c, "/"+resource+"/1", test.key, way.handed); got != want {
								t.Errorf("%s, %s, /%s: %d %s, want %d", test.who, way.name, resource, got, text, want)
							}
						}
					}
					c.CloseIdleConnections()
				}
			}
			i.describes(named, other)
			i.logs("cert:spiffe://prod/web", "cert:web.internal", "key:batch", "cert:shop.internal")
			clear := &http.Client{Transport: &http.Transport{}, Timeout: patience}
			defer clear.CloseIdleConnections()
			answer, err := clear.Get("http://" + i.gateway.Addrs(gateway.ListenHTTP)[1].String() + "/web/1")
			if err != nil || answer.StatusCode != http.StatusForbidden {
				t.Errorf("in clear text: %v, %v, want 403", answer, err)
			} else {
				answer.Body.Close()
			}
		})
	}
}

// describes checks what the OpenAPI description contains for each of two callers.
func (i *identified) describes(named, other *tls.Config) {
	i.t.Helper()
	for _, test := range []struct {
		trust *tls.Config
		want  string
	}{{named, "any either everybody web"}, {other, "any everybody"}} {
		for _, http2 := range []bool{false, true} {
			_, text := i.ask(i.client(test.trust.Clone(), http2), "/openapi.json", "", false)
			var paths struct{ Paths map[string]any }
			if err := json.Unmarshal([]byte(text), &paths); err != nil {
				i.t.Fatal(err)
			}
			var names []string
			for _, name := range []string{"any", "batch", "either", "everybody", "mail", "web"} {
				if paths.Paths["/"+name] != nil {
					names = append(names, name)
				}
			}
			if got := strings.Join(names, " "); got != test.want {
				i.t.Errorf("the description has %s, want %s", got, test.want)
			}
		}
	}
}

// logs waits until the log of requests names the callers.
func (i *identified) logs(callers ...string) {
	i.t.Helper()
	testkit.Eventually(i.t, patience, func() error {
		text, err := os.ReadFile(filepath.Join(i.dir, "requests.log"))
		for _, c := range callers {
			if !bytes.Contains(text, []byte(`"caller":"`+c+`"`)) {
				err = errors.Join(err, fmt.Errorf("the log of requests does not name %s", c))
			}
		}
		return err
	})
}

// redisClient sends inline commands to the Redis frontend.
type redisClient struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func (i *identified) dialRedis(trust *tls.Config) *redisClient {
	i.t.Helper()
	c, err := tls.Dial("tcp", i.redis, trust)
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() { c.Close() })
	return &redisClient{i.t, c, bufio.NewReader(c)}
}

// do returns the first word of an answer.
func (c *redisClient) do(command string) string {
	c.t.Helper()
	c.SetDeadline(time.Now().Add(2 * patience))
	if _, err := io.WriteString(c, command+"\r\n"); err != nil {
		c.t.Fatal(err)
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%s: %v", command, err)
	}
	word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return word
}

// TestCertificateLogsIntoRedis: a certificate that a rule names is a login, and other logins
// remain possible.
func TestCertificateLogsIntoRedis(t *testing.T) {
	testkit.NoLeaks(t)
	i := serveIdentified(t, nil)
	named := i.dialRedis(i.trusting(i.authority.Issue(t, web(t))))
	expect := func(c *redisClient, who string, want map[string]string) {
		t.Helper()
		for command, want := range want {
			for range 2 { // a load and a hit
				if got := c.do(command); got != want {
					t.Errorf("%s, %s: %s, want %s", who, command, got, want)
				}
			}
		}
	}
	asNamed := map[string]string{"STRLEN everybody:1": ":74", "STRLEN any:1": ":74", "STRLEN web:1": ":74", "STRLEN either:1": ":74",
		"STRLEN mail:1": "-NOPERM", "STRLEN batch:1": "-NOPERM"}
	if size := named.do("STRLEN everybody:1"); strings.HasPrefix(size, ":") {
		for command, want := range asNamed {
			if want == ":74" {
				asNamed[command] = size
			}
		}
	}
	expect(named, "named", asNamed)
	if got := named.do("AUTH wrong"); got != "-WRONGPASS" {
		t.Errorf("a wrong password: %s", got)
	}
	expect(named, "named, after a wrong password", asNamed)
	if got := named.do("AUTH batch " + i.key); got != "+OK" {
		t.Fatalf("the key of batch: %s", got)
	}
	expect(named, "named and logged in", map[string]string{"STRLEN batch:1": asNamed["STRLEN web:1"], "STRLEN web:1": asNamed["STRLEN web:1"], "STRLEN mail:1": "-NOPERM"})
	if got := named.do("RESET"); got != "+RESET" {
		t.Errorf("RESET: %s", got)
	}
	expect(named, "named, after RESET", asNamed)
	nameless := i.dialRedis(i.trusting(i.authority.Issue(t, &x509.Certificate{})))
	if got := nameless.do("STRLEN any:1"); got != asNamed["STRLEN web:1"] {
		t.Errorf("a certificate without names: %s", got)
	}
	i.logs("cert:web.internal", "key:batch")
	for _, c := range []*redisClient{named, nameless} {
		c.Close()
	}
	clear, err := net.Dial("tcp", i.gateway.Addrs(gateway.ListenRedis)[1].String())
	if err != nil {
		t.Fatal(err)
	}
	defer clear.Close()
	if got := (&redisClient{t, clear, bufio.NewReader(clear)}).do("STRLEN web:1"); got != "-NOAUTH" {
		t.Errorf("in clear text: %s, want -NOAUTH", got)
	}
}

// TestCertificateEndsOnOpenConnections: an identity ends with its certificate, although the
// connection continues.
func TestCertificateEndsOnOpenConnections(t *testing.T) {
	testkit.NoLeaks(t)
	i := serveIdentified(t, nil)
	for lifetime := 2 * time.Second; ; lifetime *= 2 { // a slow machine may need more
		template := web(t)
		template.NotAfter = time.Now().Add(lifetime)
		trust := i.trusting(i.authority.Issue(t, template))
		if raw, err := tls.Dial("tcp", i.http, trust); err != nil {
			continue // it has expired
		} else if _, err = raw.Read(make([]byte, 0)); err != nil {
			raw.Close()
			continue
		} else {
			raw.Close()
		}
		one, two := i.client(trust.Clone(), false), i.client(trust.Clone(), true)
		redis := i.dialRedis(trust)
		var first [3]bool
		status, _ := i.ask(one, "/web/1", "", false)
		first[0] = status == 200
		status, _ = i.ask(two, "/web/1", "", false)
		first[1] = status == 200
		first[2] = strings.HasPrefix(redis.do("STRLEN web:1"), ":")
		if first != [3]bool{true, true, true} {
			if lifetime > time.Minute {
				t.Fatalf("a certificate with a lifetime of %v is never accepted", lifetime)
			}
			continue
		}
		testkit.Eventually(t, lifetime+2*patience, func() error {
			s1, _ := i.ask(one, "/web/1", "", false)
			s2, _ := i.ask(two, "/web/1", "", false)
			if got := redis.do("STRLEN web:1"); s1 != 403 || s2 != 403 || got != "-NOAUTH" {
				return fmt.Errorf("after it expired: %d, %d, %s, want 403, 403 and -NOAUTH", s1, s2, got)
			}
			return nil
		})
		if s, _ := i.ask(one, "/everybody/1", "", false); s != 200 {
			t.Errorf("a document without access rules: %d", s)
		}
		redis.Close()
		return
	}
}

// TestResumedCertificates: an authority that was removed is no longer trusted, not even for
// sessions that began under it, and a certificate with too many names is refused with a line in the
// log.
func TestResumedCertificates(t *testing.T) {
	dir := t.TempDir()
	old, now := testkit.NewAuthority(t), testkit.NewAuthority(t)
	clients := old.Write(t, dir, "clients")
	cert, key := old.Issue(t, &x509.Certificate{DNSNames: []string{"localhost"}}).Write(t, dir, "server")
	c := gateway.OpenCertificate(t, config.TLS{Cert: cert, Key: key, Clients: clients})
	l, err := tls.Listen("tcp", "127.0.0.1:0", c.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // ends with the listener
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the connection, which the client closes
				defer nc.Close()
				if nc.(*tls.Conn).Handshake() == nil {
					io.WriteString(nc, "in")
				}
			}()
		}
	}()
	dial := func(trust *tls.Config) (resumed bool, err error) {
		nc, err := tls.Dial("tcp", l.Addr().String(), trust)
		if err != nil {
			return false, err
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(2 * patience))
		_, err = io.ReadFull(nc, make([]byte, 2))
		return nc.ConnectionState().DidResume, err
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		old.Write(t, dir, "clients")
		c.Look()
		trust := &tls.Config{RootCAs: old.Pool, ServerName: "localhost", MaxVersion: version, ClientSessionCache: tls.NewLRUClientSessionCache(4),
			Certificates: []tls.Certificate{old.Issue(t, web(t)).Certificate}}
		if resumed, err := dial(trust); resumed || err != nil {
			t.Fatalf("%x: %v, %v", version, resumed, err)
		}
		if resumed, err := dial(trust); !resumed || err != nil {
			t.Fatalf("%x, again: resumed %v, %v", version, resumed, err)
		}
		now.Write(t, dir, "clients")
		c.Look()
		if _, err := dial(trust); err == nil {
			t.Errorf("%x: a session of a removed authority was resumed", version)
		}
	}
	var many x509.Certificate
	for n := range 65 {
		many.DNSNames = append(many.DNSNames, fmt.Sprintf("n%d.internal", n))
	}
	if _, err := dial(&tls.Config{RootCAs: old.Pool, ServerName: "localhost", Certificates: []tls.Certificate{now.Issue(t, &many).Certificate}}); err == nil {
		t.Error("a certificate with 65 names is accepted")
	}
	if text := c.Log(); strings.Count(text, "more than 64 names") != 1 {
		t.Errorf("the log says %s", text)
	}
}

// TestCertificatesHaveRates: certificates of one name share the rate of a caller, over all of
// their connections.
func TestCertificatesHaveRates(t *testing.T) {
	testkit.NoLeaks(t)
	i := serveIdentified(t, func(c *config.Config) {
		c.HTTP.Limits.Caller = config.Rate{PerSecond: 0.001, Burst: 2}
		c.Redis.Limits.Caller = config.Rate{PerSecond: 0.001, Burst: 3}
	})
	named := func() *tls.Config { return i.trusting(i.authority.Issue(t, web(t))) }
	other := i.trusting(i.authority.Issue(t, &x509.Certificate{DNSNames: []string{"shop.internal"}}))
	i.ask(i.client(other.Clone(), true), "/everybody/1", "", false) // it is in memory after this, and another caller is charged
	for n, want := range []int{200, 200, 429} {
		if got, _ := i.ask(i.client(named(), n%2 == 0), "/everybody/1", "", false); got != want {
			t.Errorf("request %d over HTTP: %d, want %d", n+1, got, want)
		}
	}
	if got, _ := i.ask(i.client(i.trusting(i.authority.Issue(t, &x509.Certificate{DNSNames: []string{"third.internal"}})), false), "/everybody/1", "", false); got != 200 {
		t.Errorf("another certificate: %d", got)
	}
	for n, want := range []string{":", ":", ":", "-"} {
		c := i.dialRedis(named())
		if got := c.do("STRLEN everybody:1"); !strings.HasPrefix(got, want) {
			t.Errorf("command %d over Redis: %s, want %s...", n+1, got, want)
		}
		c.Close()
	}
}
