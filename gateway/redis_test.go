package gateway_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
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

// redisConn is a client of the Redis frontend to which a test writes lines.
type redisConn struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

func dialRedis(t testing.TB, g *gateway.Gateway, config *tls.Config) *redisConn {
	t.Helper()
	c, err := net.Dial("tcp", g.RedisAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		t.Fatal(err)
	}
	if config != nil {
		c = tls.Client(c, config)
	}
	return &redisConn{t, c, bufio.NewReader(c)}
}

// do sends a command as a line of words and returns the value of a string reply, or the
// line of any other: "$-1", "-NOAUTH ...".
func (c *redisConn) do(command string) string {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, command+"\r\n"); err != nil {
		c.t.Fatal(err)
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%s: %v", command, err)
	}
	line = strings.TrimSuffix(line, "\r\n")
	var n int
	if _, err := fmt.Sscanf(line, "$%d", &n); err != nil || n < 0 {
		return line
	}
	value := make([]byte, n+2)
	if _, err := io.ReadFull(c.r, value); err != nil {
		c.t.Fatalf("%s: %v", command, err)
	}
	return string(value[:n])
}

// TestRedisFrontend: it serves the documents of HTTP with the same promise, and is in
// the metrics, the dashboard and the log of requests. The drain ends both frontends
// together.
func TestRedisFrontend(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	cfg := configure(t, path, deptResource+"log: { requests: requests.log }\n")
	cfg.Frontends.Redis = config.ListenAt("127.0.0.1:0")
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg)
	s.awaitReady()
	c := dialRedis(t, s.gateway, nil)
	if got, want := c.do("GET depts:1"), s.get("/depts/1").body; got != want {
		t.Errorf("got %s, over HTTP %s", got, want)
	}
	for command, want := range map[string]string{
		"GET depts:9999": "$-1", "EXISTS depts:1": ":1", "SET depts:1 x": "-READONLY ", "GET depts:x": "-ERR ", "PING": "+PONG",
	} {
		if got := c.do(command); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
	committed := write(t, path, "UPDATE dept SET dname = 'other' WHERE deptno = 1")
	for {
		began := time.Now()
		if strings.Contains(c.do("GET depts:1"), "other") {
			break
		}
		if age := began.Sub(committed); age > cfg.Freshness {
			t.Fatalf("the change is missing %v after its commit", age)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for name, least := range map[string]float64{
		"slipstream_redis_commands_total": 7, "slipstream_redis_errors_total": 2, "slipstream_redis_body_bytes_total": 50,
		"slipstream_redis_command_duration_seconds_count": 4, "slipstream_engine_accepted_total": 2, "slipstream_frontend_connections": 2,
	} {
		if got := s.metric(name); got < least {
			t.Errorf("%s is %v, want at least %v", name, got, least)
		}
	}
	testkit.Eventually(t, patience, func() error {
		var page struct {
			Frontends []struct {
				Name        string
				Connections int
			}
		}
		a := s.do("GET", s.admin+"/dashboard.json")
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || len(page.Frontends) != 2 || page.Frontends[1].Name != "redis" || page.Frontends[1].Connections != 1 {
			return fmt.Errorf("the dashboard shows %+v, %v", page, err)
		}
		return nil
	})
	s.client.CloseIdleConnections()
	if err := shutdown(t, s.gateway); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(c.r); err != nil || len(rest) > 0 {
		t.Errorf("the drain left %q, %v; want the end of the connection", rest, err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "requests.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"protocol":"redis","client":"127.0.0.1","method":"get","target":"depts:1","bytes":`, `"protocol":"http"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the log of requests lacks %s:\n%s", part, text)
		}
	}
}

// TestRedisLogin: which clients must log in and how, and what a user may read.
func TestRedisLogin(t *testing.T) {
	path := newDatabase(t, writeAhead+company)
	key := access.NewKey()
	line, err := access.KeyLine("shop", key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "keys.txt"), []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const resources = `
resources:
  depts: { table: dept, key: [deptno], promise: none }
  staff: { table: emp, key: [empno], promise: none, access: { keys: [web] } }
auth: { keys: keys.txt }
`
	for _, test := range []struct {
		open     bool
		commands []string // each followed by the beginning of its answer
	}{
		{false, []string{
			"GET depts:1", "-NOAUTH ", "AUTH web wrong", "-WRONGPASS ", "AUTH shop " + key, "+OK", "GET depts:1", `{"deptno":1`, "GET staff:1001", "-NOPERM ",
			"AUTH web secret", "+OK", "GET staff:1001", `{"empno":1001`, "AUTH " + key, "+OK", "GET staff:1001", "-NOPERM ",
		}},
		{true, []string{"GET depts:1", `{"deptno":1`, "GET staff:1001", "-NO", "AUTH web secret", "+OK", "GET staff:1001", `{"empno":1001`}},
	} {
		cfg := configure(t, path, resources)
		cfg.Frontends.Redis = config.ListenAt("127.0.0.1:0")
		cfg.Redis.Open = test.open
		cfg.Redis.Users = []config.RedisUser{{Name: "web", Password: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("secret")))}}
		c := dialRedis(t, serve(t, cfg).gateway, nil)
		for i := 0; i < len(test.commands); i += 2 {
			if got := c.do(test.commands[i]); !strings.HasPrefix(got, test.commands[i+1]) {
				t.Errorf("open %v: %s: got %s, want %s", test.open, test.commands[i], got, test.commands[i+1])
			}
		}
	}
}

// TestRedisTLS: clients that use TLS are answered, and a gateway whose certificate
// cannot be read does not start.
func TestRedisTLS(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	cfg := configure(t, path, deptResource)
	cfg.Frontends.Redis = config.ListenAt("127.0.0.1:0")
	cfg.Redis.TLS = config.TLS{Cert: "cert.pem", Key: "key.pem"}
	if g, err := gateway.New(cfg, gateway.Options{}); err == nil || !strings.Contains(err.Error(), "tls: redis at ") {
		t.Errorf("without files: got %v, want an error of its TLS", err)
		_ = shutdown(t, g)
	}
	roots := gateway.WriteCertificate(t, filepath.Dir(path), 1)
	s := serve(t, cfg)
	c := dialRedis(t, s.gateway, &tls.Config{RootCAs: roots, ServerName: "localhost"})
	if got := c.do("PING"); got != "+PONG" {
		t.Errorf("got %s", got)
	}
	c.conn.Close()
	s.client.CloseIdleConnections()
	if err := shutdown(t, s.gateway); err != nil {
		t.Error(err)
	}
}

// TestRedisPortTaken: Start says which listener cannot be bound.
func TestRedisPortTaken(t *testing.T) {
	testkit.NoLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := configure(t, newDatabase(t, writeAhead+company), deptResource)
	cfg.Frontends.Redis = config.ListenAt(l.Addr().String())
	g, err := gateway.New(cfg, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(context.Background()); err == nil || !strings.Contains(err.Error(), "redis: ") {
		t.Errorf("Start returned %v, want an error of redis", err)
	}
	if err := shutdown(t, g); err != nil {
		t.Error(err)
	}
}
