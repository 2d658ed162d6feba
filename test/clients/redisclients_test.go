//go:build linux

package clients

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// Third-party Redis clients read documents: what users try first works, and what cannot work fails
// with a reason.

// redisGateway serves the demo's database over the Redis protocol to a user called
// web, and pages by the keys that redis-benchmark requests.
type redisGateway struct {
	*plainGateway
	port     string
	password string
}

func startRedisGateway(t *testing.T) *redisGateway {
	t.Helper()
	port := strconv.Itoa(testkit.FreePort(t))
	g := &redisGateway{port: port, password: access.NewKey()}
	// Another resource that no user may read.
	const more = `  key:
    table: page
    key: [id]
  secrets:
    table: dept
    key: [deptno]
    access: { keys: [nobody] }
`
	g.plainGateway = startEdited(t, `CREATE TABLE page (id TEXT PRIMARY KEY, hits INTEGER);
		INSERT INTO page SELECT printf('%012d', value), value FROM generate_series(0, 99)`, func(config string) string {
		config = strings.Replace(config, "frontends: { http:", "frontends: { redis: \"127.0.0.1:"+port+"\", http:", 1)
		config = strings.Replace(config, "access: { keys: [reference] }", "access: { keys: [reference, web] }", 1)
		user := fmt.Sprintf("redis: { users: { web: \"sha256:%x\" } }\nresources:\n"+more, sha256.Sum256([]byte(g.password)))
		return strings.Replace(config, "resources:\n", user, 1)
	})
	return g
}

// commands returns how many commands of a group were answered, and how many errors.
func (g *redisGateway) commands(t *testing.T, group string) (answered, failed int) {
	t.Helper()
	return int(g.figure(t, "slipstream_redis_commands_total", `\{group="`+group+`"\}`)),
		int(g.figure(t, "slipstream_redis_errors_total", `\{[^}]*\}`))
}

// document returns the HTTP answer for a path.
func (g *redisGateway) document(t *testing.T, path string) string {
	t.Helper()
	body, _ := g.reference(t, path)
	return string(body)
}

// cli runs redis-cli; --no-raw shows the types of replies as on a terminal.
func (g *redisGateway) cli(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	return runForeign(t, stdin, "redis-cli", append([]string{"-p", g.port, "--no-auth-warning"}, args...)...)
}

// TestRedisCLI: redis-cli as people use it.
func TestRedisCLI(t *testing.T) {
	g := startRedisGateway(t)
	login := []string{"--user", "web", "--pass", g.password}
	dept, order := g.document(t, "/depts/42"), g.document(t, "/orders/emea/17")
	quoted := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }
	const readOnly, unknown = "(error) READONLY *", "(error) ERR unknown command *"
	rows := [][2]string{
		{"PING", "PONG"},
		{"GET depts:42", quoted(dept)},
		{"get orders:emea:17", quoted(order)},
		{"GET orders:nowhere:17", "(nil)"},
		{"EXISTS depts:42 orders:emea:17 depts:9999999", "(integer) 2"},
		{"STRLEN depts:42", fmt.Sprintf("(integer) %d", len(dept))},
		{"GETRANGE depts:42 0 12", quoted(dept[:13])},
		{"TTL depts:42", "(integer) -1"},
		{"TTL depts:9999999", "(integer) -2"},
		{"TYPE depts:42", "string"},
		{"ECHO hello", `"hello"`},
		{"SELECT 0", "OK"},
		{"SELECT 1", "(error) ERR DB index is out of range"},
		{"CLIENT SETNAME people", "OK"},
		{"CLIENT GETNAME", `"people"`},
		{"COMMAND COUNT", "(integer) *"},
		{"SET depts:42 x", readOnly},
		{"DEL depts:42", readOnly},
		{"EXPIRE depts:42 10", readOnly},
		{"HSET depts:42 dname x", readOnly},
		{"FLUSHALL", readOnly},
		{"CONFIG SET maxmemory 1", readOnly},
		{"GET depts", "(error) ERR the key names a resource but no row; expected depts:{deptno}"},
		{"GET nothing:1", "(error) ERR there is no such resource*"},
		{"GET depts:x", "(error) ERR resource depts, key column deptno: *"},
		{"GET secrets:1", "(error) NOPERM *"},
		{"KEYS *", unknown},
		{"SCAN 0", unknown},
		{"MONITOR", unknown},
		{"SUBSCRIBE news", unknown},
		{"MULTI", unknown},
		{"EVAL return 0", unknown},
		{"HGETALL depts:42", unknown},
		{"GET", "(error) ERR wrong number of arguments for 'get' command"},
	}
	var script strings.Builder
	for _, r := range rows {
		fmt.Fprintln(&script, r[0])
	}
	for _, protocol := range []string{"-2", "-3"} {
		t.Run("pipe "+protocol, func(t *testing.T) {
			out := g.cli(t, script.String(), append(login, "--no-raw", protocol)...)
			// It assumes that MONITOR has started until it reads the reply.
			lines := strings.Split(strings.ReplaceAll(out, "Reading messages... (press Ctrl-C to quit)\n", ""), "\n")
			for i, r := range rows {
				if i >= len(lines) || !matches(lines[i], r[1]) {
					t.Fatalf("%s: got %q, want %q; complete output:\n%s", r[0], lines[min(i, len(lines)-1)], r[1], out)
				}
			}
		})
	}
	one := func(name, want, stdin string, args ...string) {
		t.Helper()
		if got := strings.TrimRight(g.cli(t, stdin, args...), "\n"); !matches(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	one("raw", dept, "", append(login, "get", "depts:42")...)
	one("last argument from standard input", dept, "depts:42", append(login, "-x", "get")...)
	one("URL", dept, "", "-u", "redis://web:"+g.password+"@127.0.0.1:"+g.port+"/0", "get", "depts:42")
	one("API key as the password", dept, "", "--pass", g.keys["reference"], "get", "depts:42")
	one("API key with its name", dept, "", "--user", "reference", "--pass", g.keys["reference"], "-3", "get", "depts:42")
	one("batch", fmt.Sprintf("1) %s\n2) (nil)\n3) %s", quoted(dept), quoted(order)), "", append(login, "--no-raw", "mget", "depts:42", "depts:9999999", "orders:emea:17")...)
	one("many of them", strings.TrimSuffix(strings.Repeat(dept+"\n", 50), "\n"), "", append(login, "-r", "50", "get", "depts:42")...)
	one("a write", "READONLY *", "", append(login, "set", "depts:42", "x")...)
	one("monitor", "*ERR unknown command 'monitor'*", "", append(login, "monitor")...)
	one("help of a command", "*", "", append(login, "command", "docs", "get")...)
	one("figures", "# Server*redis_version:*keyspace_hits:*", "", append(login, "info")...)
	one("settings", "appendonly\nno", "", append(login, "config", "get", "appendonly")...)
	one("nobody", "NOAUTH Authentication required.*", "", "get", "depts:42")
	one("nobody, what is open over HTTP", "NOAUTH Authentication required.*", "", "get", "orders:emea:17")
	// Its message about a failed login goes to standard error, and it continues.
	one("a wrong password", "NOAUTH Authentication required.*", "", "--user", "web", "--pass", "wrong", "get", "depts:42")
}

// matches compares with a pattern in which * matches anything.
func matches(got, pattern string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return got == pattern
	}
	rest, ok := strings.CutPrefix(got, parts[0])
	for _, p := range parts[1:] {
		at := strings.Index(rest, p)
		ok = ok && at >= 0
		if ok {
			rest = rest[at+len(p):]
		}
	}
	return ok && (rest == "" || parts[len(parts)-1] == "")
}

// TestRedisBenchmark: redis-benchmark reads documents, and its counts agree with those of the
// gateway.
func TestRedisBenchmark(t *testing.T) {
	g := startRedisGateway(t)
	for _, c := range []struct {
		name string
		n    int
		args []string
		says string
	}{
		{"get", 20_000, []string{"-P", "16", "-r", "100", "-t", "get"}, "GET: "},
		{"get without pipelines", 5_000, []string{"-r", "100", "-t", "get"}, "GET: "},
		{"document", 20_000, []string{"-P", "16", "get", "depts:42"}, "get depts:42: "},
		{"RESP3", 20_000, []string{"-3", "-P", "16", "get", "depts:42"}, "get depts:42: "},
	} {
		before, failed := g.commands(t, "get")
		args := []string{"-p", g.port, "--user", "web", "-a", g.password, "-q", "-e", "-c", "8", "-n", strconv.Itoa(c.n)}
		out := runForeign(t, "", "redis-benchmark", append(args, c.args...)...)
		after, errs := g.commands(t, "get")
		// A round of pipelines is always sent completely.
		if n := after - before; n < c.n || n > c.n+16*8 || errs != failed {
			t.Errorf("%s: the gateway has counted %d replies and %d errors, want %d", c.name, n, errs-failed, c.n)
		}
		if !strings.Contains(out, c.says) || !strings.Contains(out, " requests per second") || strings.Contains(strings.ToUpper(out), "ERR") {
			t.Errorf("%s: %s", c.name, out)
		}
		t.Logf("%s: %s", c.name, strings.TrimSpace(out[strings.LastIndex(strings.TrimSpace(out), "\r")+1:]))
	}
	out, err := exec.CommandContext(t.Context(), "redis-benchmark", "-p", g.port, "--user", "web", "-a", g.password, "-q", "-n", "1000", "-t", "set").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "READONLY") {
		t.Errorf("writes: %v, %s", err, out)
	}
}

// TestRedisLibraries: redis-py and node-redis, each with the results that its users see.
func TestRedisLibraries(t *testing.T) {
	g := startRedisGateway(t)
	dept, order := g.document(t, "/depts/42"), g.document(t, "/orders/emea/17")
	for _, c := range []struct {
		name string
		env  string
		args []string
	}{
		{"redis-py", "", []string{pythonWithRedis(t), "testdata/clients/redis_client.py"}},
		// The modules of Debian are there; a Node from another source does not search that
		// directory.
		{"node-redis", "NODE_PATH=/usr/share/nodejs", []string{"node", "testdata/clients/redis_client.cjs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, c.args[0], append(c.args[1:], g.port, "web", g.password)...)
			cmd.Env = append(os.Environ(), c.env)
			out, err := cmd.Output()
			if err != nil {
				if exit, ok := errors.AsType[*exec.ExitError](err); ok {
					out = append(exit.Stderr, out...)
				}
				t.Fatalf("%v (run: make prepare)\n%s", err, out)
			}
			var got map[string]any
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			want := map[string]any{
				"ping": true, "get": dept, "missing": nil, "mget": []any{dept, nil, order}, "exists": 2.0, "strlen": float64(len(dept)),
				"ttl": -1.0, "type": "string", "role": "master", "name": "library",
				"pipeline": []any{order, dept, 1.0}, "flood": 1000.0,
				"set": "READONLY", "key": "ERR", "resource": "ERR", "secret": "NOPERM", "transaction": "ERR", "subscribe": "ERR", "password": "WRONGPASS", "nobody": "NOAUTH",
			}
			for name, w := range want {
				if fmt.Sprint(got[name]) != fmt.Sprint(w) {
					t.Errorf("%s: got %v, want %v", name, got[name], w)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d results, want %d", len(got), len(want))
			}
		})
	}
}

// pythonWithRedis returns a Python that has redis-py: the first one in PATH, or that of the system,
// for which Debian provides a package.
func pythonWithRedis(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"python3", "/usr/bin/python3"} {
		c := exec.CommandContext(t.Context(), path, "-c", "import redis; redis.Redis")
		c.Dir = t.TempDir() // Python would import a directory named redis instead
		if c.Run() == nil {
			return path
		}
	}
	t.Fatal("no Python has redis-py (run: make prepare)")
	return ""
}

// TestRedisOwnClient: the client of package redis reads the documents of a gateway.
func TestRedisOwnClient(t *testing.T) {
	g := startRedisGateway(t)
	ctx := t.Context()
	dept, order := g.document(t, "/depts/42"), g.document(t, "/orders/emea/17")
	for _, protocol := range []string{"2", "3"} {
		o, err := redis.ParseURL("redis://web:" + g.password + "@127.0.0.1:" + g.port + "/0?client_name=ours&protocol=" + protocol)
		if err != nil {
			t.Fatal(err)
		}
		c, err := redis.Connect(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got, found, err := c.Get(ctx, "depts:42"); got != dept || !found || err != nil {
			t.Errorf("GET: %q, %v, %v", got, found, err)
		}
		if got, found, err := c.Get(ctx, "depts:9999999"); got != "" || found || err != nil {
			t.Errorf("GET of a missing row: %q, %v, %v", got, found, err)
		}
		items, err := c.MGet(ctx, "depts:42", "depts:9999999", "orders:emea:17")
		if err != nil || len(items) != 3 || items[0].Value != dept || items[1].Found || items[2].Value != order {
			t.Errorf("MGET: %v, %v", items, err)
		}
		if n, err := c.Exists(ctx, "depts:42", "depts:9999999"); n != 1 || err != nil {
			t.Errorf("EXISTS: %d, %v", n, err)
		}
		if err := c.Ping(ctx); err != nil {
			t.Error(err)
		}
		for code, do := range map[string]func() error{
			"READONLY": func() error { return c.Set(ctx, "depts:42", "x") },
			"NOPERM":   func() error { _, _, err := c.Get(ctx, "secrets:1"); return err },
			"ERR":      func() error { _, _, err := c.Get(ctx, "depts:x"); return err },
		} {
			if server, ok := errors.AsType[*redis.ServerError](do()); !ok || server.Code != code {
				t.Errorf("got %v, want an error with the code %s", server, code)
			}
		}
		const many = 2000
		texts := make([]string, many)
		batch := &redis.Batch{}
		for i := range texts {
			batch.Add(&texts[i], redis.Cmd("GET", fmt.Sprintf("key:%012d", i%100)))
		}
		if err := c.DoBatch(ctx, batch); err != nil {
			t.Error(err)
		}
		for i, text := range texts {
			if want := fmt.Sprintf(`{"id":"%012d","hits":%d}`, i%100, i%100); text != want {
				t.Fatalf("%d of a pipeline: %q, want %q", i, text, want)
			}
		}
	}
	wrong := redis.Options{Addr: net.JoinHostPort("127.0.0.1", g.port), User: "web", Password: "wrong"}
	c, err := redis.Connect(ctx, wrong)
	if err == nil {
		c.Close()
	}
	if server, ok := errors.AsType[*redis.ServerError](err); !ok || server.Code != "WRONGPASS" {
		t.Errorf("a wrong password: %v", err)
	}
}
