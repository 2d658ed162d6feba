package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const differenceBase = `origin: { url: "postgres://app:hunter2@db/shop" }
resources:
  depts: { table: dept, key: [deptno], children: { emps: { table: emp, order: [empno] } } }
  items: { table: item, key: [order_id, line] }
frontends: { redis: "127.0.0.1:6379" }
redis: { users: { web: "sha256:" } }
`

func parsedDifference(t *testing.T, edit func(string) string) *Config {
	t.Helper()
	text := strings.Replace(differenceBase, "sha256:", "sha256:"+strings.Repeat("a", 64), 1)
	c, err := Parse("x.yaml", []byte(edit(text)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// show formats a difference, one line per change.
func show(list []Change) string {
	var lines []string
	for _, c := range list {
		lines = append(lines, fmt.Sprintf("%s: %s -> %s (%s)", c.Key, c.Old, c.New, c.Effect))
	}
	return strings.Join(lines, "\n")
}

func TestDifference(t *testing.T) {
	replace := func(pairs ...string) func(string) string {
		return func(s string) string { return strings.NewReplacer(pairs...).Replace(s) }
	}
	add := func(text string) func(string) string { return func(s string) string { return s + text } }
	for name, c := range map[string]struct {
		edit func(string) string
		want string
	}{
		"nothing":  {add("# a comment\n"), ""},
		"password": {replace("hunter2", "hunter3"), `origin.url: "postgres://app:hidden@db/shop" -> "postgres://app:hidden@db/shop" (restart)`},
		"digest":   {replace(strings.Repeat("a", 64), strings.Repeat("b", 64)), `redis.users.web: hidden -> hidden (reload)`},
		"freshness": {add("freshness: 2s\n"), "freshness: 1s -> 2s (reload)\n" +
			"resources.depts.freshness: 1s -> 2s (reload)\nresources.items.freshness: 1s -> 2s (reload)"},
		"table":   {replace("table: item", "table: items"), "resources.items.table: item -> items (reload, its documents are dropped)"},
		"order":   {replace("[empno]", "[-empno]"), "resources.depts.children.emps.order"},
		"policy":  {replace("[deptno],", "[deptno], on_stale: verify,"), "resources.depts.on_stale: reload -> verify (reload)"},
		"renamed": {replace("  items:", "  lines:"), "resources.items: served ->  (reload)\nresources.lines:  -> a new resource (reload)"},
		"added": {replace("frontends:", "  new: { table: t, key: [a] }\nfrontends:"),
			"resources.new:  -> a new resource (reload)"},
		"listener":    {add("admin: 127.0.0.1:9101\n"), `admin.address: "127.0.0.1:9100" -> "127.0.0.1:9101" (restart)`},
		"token":       {add("admin: { token: admin.token }\n"), "admin.token:  -> admin.token (reload)"},
		"profiles":    {add("admin: { profiles: false }\n"), "admin.profiles:  -> false (reload)"},
		"audit":       {add("log: { audit: audit.log }\n"), "log.audit:  -> audit.log (reload)"},
		"metrics":     {add("admin: { metrics: 127.0.0.1:9101 }\n"), `admin.metrics:  -> "127.0.0.1:9101" (restart)`},
		"memory":      {add("tiers: { memory: 1GiB }\n"), "tiers.memory: 256MiB -> 1GiB (restart)"},
		"cors":        {add("http: { cors: { origins: [\"https://a.example\"] } }\n"), `http.cors.origins:  -> ["https://a.example"] (reload)` + "\nhttp.cors.max_age:  -> 10m (reload)"},
		"rate":        {add("http: { limits: { client: { rate: 5 } } }\n"), "http.limits.client.rate:  -> 5 (reload)\nhttp.limits.client.burst:  -> 5 (reload)"},
		"timeout":     {add("http: { limits: { stall_timeout: 5s } }\n"), "http.limits.stall_timeout: 30s -> 5s (restart)"},
		"long loads":  {replace("[deptno],", "[deptno], load: { timeout: 9s },"), "resources.depts.load.timeout: 5s -> 9s (restart)"},
		"short loads": {replace("[deptno],", "[deptno], load: { timeout: 2s },"), "resources.depts.load.timeout: 5s -> 2s (reload)"},
		"added with long loads": {replace("frontends:", "  new: { table: t, key: [a], load: { timeout: 9s } }\nfrontends:"),
			"resources.new:  -> a new resource (reload)\nresources.new.load.timeout:  -> 9s (restart)"},
		"fewer at once":    {replace("[deptno],", "[deptno], load: { concurrency: 1 },"), "resources.depts.load.concurrency: 4 -> 1 (reload)"},
		"connections":      {replace(`shop" }`, `shop", connections: 5 }`), "origin.connections: 8 -> 5 (restart)"},
		"connections said": {replace(`shop" }`, `shop", connections: 8 }`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			old, new := parsedDifference(t, replace()), parsedDifference(t, c.edit)
			list := Difference(old, new)
			if got := show(list); got != c.want && (name != "order" || !strings.HasPrefix(got, c.want) || len(list) != 1) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			shown := DifferenceShown(old.Redacted(), new)
			list = slices.DeleteFunc(list, func(c Change) bool { return c.Old == c.New }) // secrets
			if !strings.HasSuffix(name, "long loads") && show(shown) != show(list) {
				t.Errorf("from what is shown\n%s\nwant\n%s", show(shown), show(list))
			}
			if text := show(list); strings.Contains(text, "hunter") || strings.Contains(text, "sha256") {
				t.Errorf("a secret in %s", text)
			}
		})
	}
}

// How many connections there are by default follows from the resources of the start: resources that
// are added, removed and added again later need no restart.
func TestDifferenceOfLaterReloads(t *testing.T) {
	const added, removed = "  new: { table: t, key: [a] }\n", "  items: { table: item, key: [order_id, line] }\n"
	two := func(s string) string { return s }
	three := func(s string) string { return strings.Replace(s, "frontends:", added+"frontends:", 1) }
	another := func(s string) string { return strings.Replace(three(s), removed, "", 1) }
	for i, step := range [][2]func(string) string{{two, three}, {three, three}, {three, another}, {another, two}} {
		was, is := parsedDifference(t, step[0]), parsedDifference(t, step[1])
		for _, list := range [][]Change{Difference(was, is), DifferenceShown(was.Redacted(), is)} {
			if need := NeedRestart(list); len(need) > 0 || (len(list) > 0) != (i != 1) {
				t.Errorf("step %d: %s", i, show(list))
			}
		}
	}
}

// TestEveryFieldHasACost: each field states the effect of a change, itself or by its mapping, but not
// both. A field that states nothing would count as one that needs a restart.
func TestEveryFieldHasACost(t *testing.T) {
	all := new(Config).fields()
	var check func(path string, list []field)
	check = func(path string, list []field) {
		for _, f := range list {
			key := path + f.Name
			switch {
			case f.Reload != "":
				if got := effectOf(key, all); got != f.Reload {
					t.Errorf("%s costs %q, want %q as its field says", key, got, f.Reload)
				}
			case f.Value.members == nil:
				t.Errorf("%s has no Reload: say what a change of it costs", key)
			case f.Value.named:
				check(key+".x.", f.Value.members())
			default:
				check(key+".", f.Value.members())
			}
		}
	}
	check("", all)
	c := Change{Key: "tomorrow"}
	if c.judge(&Config{}); c.Effect != AtRestart {
		t.Errorf("a key that no table has takes effect at %s, want %s", c.Effect, AtRestart)
	}
}

// TestDefaultsOfTheTable: a default is valid for its field and obeys the rules of the file
// wherever the setting applies.
func TestDefaultsOfTheTable(t *testing.T) {
	c, err := Parse("x.yaml", []byte(strings.Replace(differenceBase, "sha256:", "sha256:"+strings.Repeat("a", 64), 1)+`
auth: { jwt: { keys: "https://login.example/keys", audience: any } }
http: { cors: { origins: ["*"] } }
tracing: { endpoint: "http://127.0.0.1:4318" }
`))
	if err != nil {
		t.Fatal(err)
	}
	if again := c.WithDefaults(); string(again.Marshal()) != string(c.Marshal()) {
		t.Error("defaults that were filled in change by being filled in again")
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// Every key of the schema is classified, and only the intended keys need no restart.
func TestNeedRestart(t *testing.T) {
	for key, want := range map[string]Effect{
		"origin.url": AtRestart, "origin.poll": AtRestart, "max_document": AtRestart, "handover": AtRestart, "log.format": AtRestart,
		"http.engine": AtRestart, "http.trusted_proxies": AtRestart, "drain.grace": AtRestart, "http.hosts": AtReload, "redis.tls.cert": AtRestart,
		"frontends.http": AtRestart, "http.limits.clients": AtRestart, "a.key.of.tomorrow": AtRestart,
		"auth.jwt.issuer": AtReload, "log.level": AtReload, "tracing.sample": AtReload,
	} {
		c := Change{Key: key}
		c.judge(&Config{})
		if c.Effect != want {
			t.Errorf("%s: %s, want %s", key, c.Effect, want)
		}
	}
	list := []Change{{Key: "a", Effect: AtReload}, {Key: "b", Effect: AtRestart}}
	if got := NeedRestart(list); len(got) != 1 || got[0].Key != "b" {
		t.Errorf("NeedRestart = %v", got)
	}
}

// Every key of admin, of its metrics listener and of log is classified: listeners need a
// restart, settings that are read with each request do not.
func TestEffectsOfAdminAndLog(t *testing.T) {
	want := map[string]Effect{
		"admin.address": AtRestart, "admin.tls": AtRestart, "admin.plaintext": AtRestart, "admin.mode": AtRestart, "admin.owner": AtRestart,
		"admin.allow_remote": AtRestart, "admin.token": AtReload, "admin.metrics": AtRestart, "admin.profiles": AtReload,
		"log.level": AtReload, "log.format": AtRestart, "log.slow": AtReload, "log.requests": AtReload, "log.audit": AtReload,
	}
	keys := make(map[string]bool)
	for _, name := range fieldNames(new(Admin).fields()) {
		keys["admin."+name] = true
	}
	for _, name := range fieldNames(new(Log).fields()) {
		keys["log."+name] = true
	}
	for key := range keys {
		c := Change{Key: key}
		if c.judge(&Config{}); c.Effect != want[key] {
			t.Errorf("%s takes effect at %q, want %q", key, c.Effect, want[key])
		}
	}
	if len(keys) != len(want) {
		t.Errorf("the table has %d keys, want %d", len(keys), len(want))
	}
}
