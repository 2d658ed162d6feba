package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml/lexer"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// goldenName turns testdata/x.yaml into x and the suffix.
func goldenName(file, suffix string) string {
	return strings.TrimPrefix(strings.TrimSuffix(filepath.ToSlash(file), ".yaml"), "testdata/") + suffix
}

// environment is what the test files find in ${...}.
func environment(t *testing.T) {
	t.Setenv("TEST_DIR", "data")
	t.Setenv("TEST_SECRET", "hunter2")
	t.Setenv("TEST_SIZE", "64MiB")
	t.Setenv("TEST_BATCH", "17")
	t.Setenv("TEST_NESTED", "${TEST_SECRET}")
	if _, set := os.LookupEnv("TEST_NOT_SET"); set {
		t.Fatal("TEST_NOT_SET must not be set")
	}
}

// TestBad checks every message: each file of testdata/bad shows the mistakes
// of one kind, its .err has the messages.
func TestBad(t *testing.T) {
	environment(t)
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v; expected 30 or more", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Parse(filepath.Base(file), data)
			if err == nil {
				t.Fatalf("was accepted as\n%s", c.Marshal())
			}
			all, ok := errors.AsType[*Errors](err)
			if !ok {
				t.Fatalf("%T; expected *Errors", err)
			}
			for _, one := range all.List {
				if one.Line < 1 || one.Column < 1 || !strings.Contains(one.Message, "expected") {
					t.Errorf("%v: no place, or nothing expected", one)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Error("the message shows a value of the environment")
			}
			testkit.Golden(t, goldenName(file, ".err"), []byte(err.Error()+"\n"))
		})
	}
}

func parseFile(t *testing.T, file string) *Config {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFull(t *testing.T) {
	want := &Config{
		Origin:      Origin{URL: "sqlite:shop.db"},
		Freshness:   2 * time.Second,
		MaxDocument: 1 << 20,
		Resources: []Resource{{
			Resource: resource.Resource{
				Name: "depts", Key: []string{"deptno"}, BigintAsString: true, Freshness: 500 * time.Millisecond, Line: 7,
				Root: resource.Node{
					Table: "dept", Columns: []string{"deptno", "dname"}, Line: 8,
					Children: []resource.Child{{Name: "emps", Node: resource.Node{
						Table: "emp", Columns: []string{"empno", "ename"}, Line: 19,
						On:    []resource.Join{{Column: "deptno", Parent: "deptno"}},
						Order: []resource.Order{{Column: "empno"}, {Column: "hired", Descending: true}},
						Children: []resource.Child{{Name: "skills", Node: resource.Node{
							Table: "skill", Line: 24,
						}}},
					}}},
				},
			},
			OnStale: Unavailable, CacheControl: "private, no-cache", MissingTTL: -1,
			Load: LoadLimits{Batch: 100, Concurrency: 2, Timeout: 90 * time.Second, Queue: 1000},
		}, {
			Resource: resource.Resource{
				Name: "orders", Key: []string{"region", "order_no"}, Freshness: 2 * time.Second, Line: 25,
				Root: resource.Node{Table: "order", Line: 25},
			},
			OnStale: Reload, CacheControl: "no-cache", MissingTTL: time.Minute,
			Load: LoadLimits{Batch: 256, Concurrency: 4, Timeout: 5 * time.Second, Queue: 65536},
		}, {
			Resource: resource.Resource{
				Name: "staff", Key: []string{"id"}, Freshness: 2 * time.Second, Line: 26,
				Root: resource.Node{Table: "staff", Line: 26},
			},
			OnStale: Reload, CacheControl: "private, no-cache", MissingTTL: time.Minute,
			Access: &Access{Keys: []string{"web", "*"}, JWT: true, Claims: map[string][]string{"scope": {"staff:read", "admin"}, "dept": {"hr"}},
				Certificates: []string{"spiffe://prod/web", "billing.internal", "ops@example.com", "192.0.2.7", "*"}},
			Load: LoadLimits{Batch: 256, Concurrency: 4, Timeout: 5 * time.Second, Queue: 65536},
		}},
		Tiers: Tiers{Memory: 512 << 20},
		Frontends: Frontends{HTTP: Listeners{
			{Address: ":8080", Plaintext: true},
			{Address: "192.0.2.1:8443", TLS: TLS{Cert: "tls/cert.pem", Key: "tls/key.pem", Clients: "tls/clients.pem", MinVersion: "1.3"}},
			{Address: "0.0.0.0:8081", Open: true, Plaintext: true},
			{Address: "unix:run/http.sock", Mode: 0o660, Owner: "0:33"},
			{Address: "127.0.0.1:8082"},
		}, Redis: ListenAt(":6379")},
		HTTP: fullHTTP(),
		Redis: Redis{
			Users: []RedisUser{{"web", "sha256:" + strings.Repeat("0123456789abcdef", 4)}, {"01.2", "sha256:" + strings.Repeat("fedcba9876543210", 4)}},
			Open:  true, TLS: TLS{Cert: "tls/cert.pem", Key: "/run/key.pem"},
			Limits: RedisLimits{Client: Rate{50, 50}, Caller: Rate{2, 30}, RequestTimeout: time.Second, IdleTimeout: -1, StallTimeout: 5 * time.Second, LoginTimeout: 3 * time.Second, Connections: 200, PerAddress: 60},
		},
		Auth: Auth{Keys: "keys.txt", JWT: JWT{Keys: "jwks.json", Issuer: "https://login.example", Audience: "shop",
			Algorithms: []string{"RS256", "ES256"}, Leeway: time.Minute}},
		Tracing: Tracing{Endpoint: "http://127.0.0.1:4318", Sample: 1, Service: "shop"},
		Admin: Admin{Address: "0.0.0.0:9100", AllowRemote: true, Token: "admin.token", NoProfiles: true, Line: 36,
			TLS:     TLS{Cert: "tls/cert.pem", Key: "tls/key.pem", Clients: "tls/clients.pem", MinVersion: "1.3"},
			Metrics: Listener{Address: "unix:run/metrics.sock", Mode: 0o666}},
		Drain: Drain{Grace: -1, Timeout: 25 * time.Second}, Handover: "run/handover.sock",
		Log: Log{Level: "debug", Format: "json", Slow: 250 * time.Millisecond, Requests: "requests.log", Audit: "audit.log"},
	}
	got := parseFile(t, "testdata/good/full.yaml")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if d := got.Declarations(); len(d) != 3 || d[1].Name != "orders" {
		t.Errorf("declarations %+v", d)
	}
}

// TestEffective checks the defaults and the written form.
func TestEffective(t *testing.T) {
	environment(t)
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c := parseFile(t, file)
			shown := c.Redacted()
			if defaultEngine() != Loop && !strings.HasPrefix(filepath.Base(file), "full") { // the files are those of Linux
				shown = bytes.Replace(shown, []byte("engine: net/http"), []byte("engine: loop"), 1)
			}
			testkit.Golden(t, goldenName(file, ".effective"), shown)
			sameAgain(t, c)
		})
	}
}

// sameAgain checks that what is written parses to the same configuration.
func sameAgain(t *testing.T, c *Config) {
	t.Helper()
	written := c.Marshal()
	again, err := Parse("written", written)
	if err != nil {
		t.Fatalf("what was written is refused: %v\n%s", err, written)
	}
	again.Origin.Dir = c.Origin.Dir
	a, b := withoutLines(c), withoutLines(again)
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("what was written is another configuration\n%s\n%+v\n%+v", written, a, b)
	}
}

func withoutLines(c *Config) *Config {
	d := *c
	d.Admin.Line = 0
	d.Resources = append([]Resource(nil), c.Resources...)
	var node func(n resource.Node) resource.Node
	node = func(n resource.Node) resource.Node {
		n.Line = 0
		n.Children = append([]resource.Child(nil), n.Children...)
		for i := range n.Children {
			n.Children[i].Node = node(n.Children[i].Node)
		}
		return n
	}
	for i := range d.Resources {
		d.Resources[i].Line = 0
		if q := d.Resources[i].Query; q != nil {
			without := *q
			without.Line, without.Depends = 0, append([]resource.Depend(nil), q.Depends...)
			for j := range without.Depends {
				without.Depends[j].Line = 0
			}
			d.Resources[i].Query = &without
		}
		d.Resources[i].Root = node(d.Resources[i].Root)
	}
	return &d
}

func TestLoadResolvesPaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "slipstream.yaml")
	write := func(url string) {
		t.Helper()
		text := "origin: { url: \"" + url + "\" }\nresources: { depts: { table: dept, key: [deptno] } }\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ url, want string }{
		{"sqlite:shop.db", filepath.Join(dir, "shop.db")},
		{"sqlite:../other/shop.db", filepath.Join(filepath.Dir(dir), "other", "shop.db")},
		{"sqlite:///var/shop.db", "/var/shop.db"},
		{"sqlite:/var/shop.db", "/var/shop.db"},
		{"SQLite:a%20b%3f.db", filepath.Join(dir, "a b?.db")},
	} {
		write(test.url)
		c, err := Load(file)
		if err != nil {
			t.Errorf("%s: %v", test.url, err)
			continue
		}
		if got, err := c.Origin.SQLitePath(); err != nil || got != filepath.FromSlash(test.want) {
			t.Errorf("%s: %q, %v; expected %q", test.url, got, err, test.want)
		}
	}
	if _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("a directory was read as a configuration")
	}
}

// TestRedacted: a password is hidden wherever it is, and a URL in which its place
// is uncertain is hidden as a whole.
func TestRedacted(t *testing.T) {
	for _, test := range []struct{ url, want string }{
		{"sqlite:a b%25.db", "sqlite:a b%25.db"},
		{"sqlite:a b%.db", "hidden"},
		{"sqlite://app:hunter2@db/shop.db", "hidden"},
		{"postgres://app@db/shop", "postgres://app@db/shop"},
		{"postgres://app:@db/shop", "postgres://app:hidden@db/shop"},
		{"postgres://app:hunter2@db/shop?sslmode=require", "postgres://app:hidden@db/shop?sslmode=require"},
		{"postgres://db/shop?user=app&password=hunter2", "postgres://db/shop?user=app&password=hidden"},
		{"postgres://db/shop?p%61ssword=hunter2&sslpassword=hunter2&passfile=/p", "postgres://db/shop?password=hidden&sslpassword=hidden&passfile=/p"},
		{"postgresql://app:hunter%32@a:5432,[::1]:5433,c/shop", "postgresql://app:hidden@a:5432,[::1]:5433,c/shop"},
		{"postgresql://app:hunter2@", "postgresql://app:hidden@"},
		{"postgres://app:hunter2@db:port/%", "hidden"},
		{"postgres://app:hunter2/x@db/shop", "hidden"},
		{"postgres://app:hunter2?x@db/shop", "hidden"},
		{"postgres://app:a@hunter2@db/shop", "hidden"},
		{"postgres://db/shop?options=a@b:hunter2", "hidden"},
		{"host=db password=hunter2", "hidden"},
		{"", ""},
	} {
		c := Config{Origin: Origin{URL: test.url, StreamURL: test.url}}
		got := string(c.Redacted())
		if strings.Contains(got, "hunter2") {
			t.Errorf("%s: shows the password:\n%s", test.url, got)
		}
		if shown := redactURL(test.url); shown != test.want {
			t.Errorf("%s: %s; expected %s", test.url, shown, test.want)
		}
		if c.Origin.URL != test.url {
			t.Errorf("%s: was changed by showing it", test.url)
		}
	}
}

// TestPostgresURL checks which URLs are accepted. That the driver agrees is
// tested where both are known, in package gateway.
func TestPostgresURL(t *testing.T) {
	for _, good := range []string{
		"postgres://", "postgres:///shop", "postgres://db", "postgres://db:5432", "postgres://db:/shop", "postgres://app@/shop",
		"postgres://a,b:5433,[::1],[fe80::1%25eth0]:5432/shop", "postgres://%2Fvar%2Frun%2Fpostgresql/shop",
		"postgresql://%61pp:p%40ss%3A%2F@db/my%20shop?application_name=a%26b&options=-c%20geqo%3Doff", "postgres://db?connect_timeout=5",
	} {
		if driver, err := (Origin{URL: good}).Driver(); err != nil || driver != PostgreSQL {
			t.Errorf("%s: %q, %v", good, driver, err)
		}
	}
}

// TestDefaultsOfPostgres: the defaults depend on the resources.
func TestDefaultsOfPostgres(t *testing.T) {
	load := func(resources string) *Config {
		t.Helper()
		c, err := Parse("defaults.yaml", []byte("origin: { url: \"postgres://db/shop\" }\nfreshness: 2s\nresources:\n"+resources))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load("  a: { table: a, key: [a], load: { concurrency: 2 } }\n  b: { table: b, key: [b], freshness: 300ms, promise: none }\n")
	if o := c.Origin; o.Connections != 6 || o.Poll != 25*time.Millisecond || o.KeepChanges != 24*time.Hour || o.KeepBytes != 1<<30 {
		t.Errorf("%+v; expected 6 connections, 25ms, 24h", o)
	}
	if d := c.MinFreshness(); d != 2*time.Second {
		t.Errorf("tightest freshness %v; expected 2s, the other has no promise", d)
	}
	c = load("  a: { table: a, key: [a], load: { concurrency: 100 } }\n  b: { table: b, key: [b], freshness: 300ms }\n")
	if c.Origin.Connections != 16 || c.MinFreshness() != 300*time.Millisecond {
		t.Errorf("%+v, %v; expected 16 connections, 300ms", c.Origin, c.MinFreshness())
	}
}

// TestValidate: a Config made in Go obeys the rules of the file.
func TestValidate(t *testing.T) {
	good := Config{
		Origin: Origin{URL: "sqlite:shop.db"},
		Resources: []Resource{{Resource: resource.Resource{
			Name: "depts", Key: []string{"deptno"}, Root: resource.Node{Table: "de${pt"},
		}}},
	}
	if err := good.Validate(); err != nil {
		t.Errorf("a good one: %v", err)
	}
	bad := good
	bad.Admin.Address = "0.0.0.0:9100"
	bad.Tiers.Memory = 1
	bad.Resources = append(bad.Resources, Resource{Resource: resource.Resource{Name: "Über"}})
	err := bad.Validate()
	for _, want := range []string{"admin: ", "tiers.memory: ", "resources.Über: not the name", `field "key" is missing`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

func TestErrorsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("origin: { url: sqlite:shop.db }\nresources: { a: { table: a, key: [a] } }\n")
	for i := range 50 {
		b.WriteString("x" + strings.Repeat("y", i) + ": 1\n")
	}
	_, err := Parse("many.yaml", []byte(b.String()))
	all, ok := errors.AsType[*Errors](err)
	if !ok || len(all.List) != 20 || all.More != 30 || !strings.HasSuffix(err.Error(), "and 30 more") {
		t.Errorf("%v", err)
	}
	if one, ok := errors.AsType[*Error](err); !ok || one.Line != 3 {
		t.Errorf("the first mistake is %v; expected the one on line 3", one)
	}
}

// TestHugeFiles: neither a file of the largest size nor one with the most
// tokens may take long or exhaust the stack.
func TestHugeFiles(t *testing.T) {
	const mib = 1 << 20
	check := func(what, text string) {
		start := time.Now()
		if _, err := Parse("huge.yaml", []byte(text)); err == nil {
			t.Errorf("%s: was accepted", what)
		}
		// The slowest takes 0.9 s on the machine where it was written.
		if d := time.Since(start); d > 30*time.Second {
			t.Errorf("%s: took %v", what, d)
		} else if d > 300*time.Millisecond {
			t.Logf("%s: took %v", what, d)
		}
	}
	for _, unit := range []string{"a: b\n", "[", "{", "{a: ", "- ", "- a\n", "? ", "a:\n", "a: ", ":", "'", "\"", "&a ", "*a ", "!!a ", "\n", " ",
		"# x\n", "aaaa", "a,", "|\n", "--- ", "---\n", "...\n", "- a: b\n  ", "\t", "${", "a: >\n  b\n", "]", "\r", "\\", "<<: "} {
		tokens := max(len(lexer.Tokenize(strings.Repeat(unit, 100)))/100, 1)
		n := min(maxTokens/tokens-10, mib/len(unit)-10)
		check(fmt.Sprintf("tokens of %q", unit), strings.Repeat(unit, n))
		check(fmt.Sprintf("tokens of %q inside", unit), "a:\n  "+strings.Repeat(unit, n))
	}
	for _, unit := range []string{"a: b\n", "[", "{a: ", "- ", "&a ", "|\n", " ", "\""} {
		check(fmt.Sprintf("1 MiB of %q", unit), strings.Repeat(unit, mib/len(unit)))
	}
	check("indented ever deeper", deeper(1400))
	if _, err := Parse("huge.yaml", make([]byte, mib+1)); err == nil || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("more than 1 MiB: %v", err)
	}
}

func deeper(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
