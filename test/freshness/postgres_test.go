package freshness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// shop is the schema that these tests serve, and shopResources declares the resources: documents of
// a table, documents of a statement, and documents without a promise.
const shop = `
CREATE TABLE dept (deptno int PRIMARY KEY, dname text);
CREATE TABLE emp (empno int PRIMARY KEY, deptno int REFERENCES dept, ename text);
CREATE INDEX ON emp (deptno);
CREATE TABLE rate (currency text PRIMARY KEY, value numeric);
INSERT INTO dept SELECT i, 'dept ' || i FROM generate_series(1, 100) AS i;
INSERT INTO emp SELECT 1000 + i, 1 + i % 100, 'emp ' || i FROM generate_series(1, 300) AS i;
INSERT INTO rate VALUES ('EUR', 1.25);
`

const shopResources = `
resources:
  depts: { table: dept, key: [deptno], children: { emps: { table: emp, order: [empno] } } }
  counts:
    sql: SELECT deptno, json_build_object('deptno', deptno, 'emps', count(*)) FROM emp WHERE deptno = ANY ($1) GROUP BY deptno
    key: { deptno: integer }
    depends: [ { table: emp, key: deptno } ]
  rates: { table: rate, key: [currency], promise: none, freshness: 1h }
`

// shopGateway is a gateway over PostgreSQL, with the addresses on which it listens.
type shopGateway struct {
	t                 *testing.T
	file, http, admin string
	*testkit.Process
}

// shopConfig writes a configuration. origin contains the fields of origin other than the URL.
func shopConfig(t *testing.T, url string, origin ...string) *shopGateway {
	t.Helper()
	http, admin := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	text := fmt.Sprintf("origin:\n  url: %q\n", url)
	for _, line := range origin {
		text += "  " + line + "\n"
	}
	text += fmt.Sprintf("frontends: { http: %q }\nadmin: %q\n", http, admin) + shopResources
	return &shopGateway{t: t, file: blackbox.WriteFile(t, "shop.yaml", text), http: "http://" + http, admin: "http://" + admin}
}

// serve starts the gateway and does not wait until it is ready.
func (g *shopGateway) serve() {
	g.t.Helper()
	g.Process = testkit.Start(g.t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", g.file}, Ready: blackbox.Alive(g.admin)})
}

func (g *shopGateway) await(url string, status int, text string) {
	g.t.Helper()
	testkit.Eventually(g.t, 20*time.Second, func() error {
		got, _, body, err := blackbox.Get(g.t.Context(), url)
		if err == nil && (got != status || !strings.Contains(body, text)) {
			err = fmt.Errorf("%s: %d %s; expected %d with %q", url, got, body, status, text)
		}
		return err
	})
}

// keepsPromise repeatedly updates a department and its employees through write. No GET that begins
// more than the promised second after a commit may return older data, and some answers must be
// hits.
func (g *shopGateway) keepsPromise(write func(sql string)) {
	g.t.Helper()
	g.await(g.admin+"/ready", 200, "true")
	hits := 0
	for i := range 5 {
		write(fmt.Sprintf("UPDATE dept SET dname = 'version %d' WHERE deptno = 42", i))
		write(fmt.Sprintf("INSERT INTO emp VALUES (%d, 42, 'new')", 5000+i))
		committed := time.Now()
		for path, want := range map[string]string{"/depts/42": fmt.Sprintf(`"version %d"`, i), "/counts/42": fmt.Sprintf(`: %d}`, 4+i)} {
			for {
				began := time.Now()
				status, _, body, err := blackbox.Get(g.t.Context(), g.http+path)
				if err != nil || status != 200 {
					g.t.Fatalf("%s: %d %s %v", path, status, body, err)
				}
				if strings.Contains(body, want) {
					break
				}
				if late := began.Sub(committed); late > time.Second {
					g.t.Fatalf("%s, %v after the commit: %s; expected %s", path, late, body, want)
				}
				time.Sleep(2 * time.Millisecond)
			}
			_, head, _, err := blackbox.Get(g.t.Context(), g.http+path) // what the next round must not get
			if err != nil {
				g.t.Fatal(err)
			}
			if head.Get("Cache-Status") == "slipstream; hit" {
				hits++
			}
		}
	}
	if hits == 0 {
		g.t.Error("no answer came from the cache: the promise was kept only by loading")
	}
}

func TestPostgresCommands(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	file := shopConfig(t, pg.URL).file
	blackbox.Expect(t, blackbox.ExitOK, "3 resources, no mistakes", "db apply", "config", "check", "-c", file)
	blackbox.Expect(t, blackbox.ExitIncomplete, "missing", "slipstream db apply", "db", "check", "-c", file)
	plan := blackbox.Expect(t, blackbox.ExitOK, "ON \"public\".\"dept\"", "", "db", "plan", "-c", file)
	if again := blackbox.Run(t, "db", "plan", "-c", file); again.Stdout != plan.Stdout || !strings.HasPrefix(plan.Stdout, "BEGIN;\n") {
		t.Errorf("plan has changed something, or its output begins with another word:\n%s", plan.Stdout)
	}
	if strings.Contains(plan.Stdout, `"rates`) {
		t.Error("the resource without a promise would get triggers")
	}
	blackbox.Expect(t, blackbox.ExitOK, "the record of changes", "", "db", "apply", "-c", file)
	blackbox.Expect(t, blackbox.ExitOK, "present", "", "db", "check", "-c", file)
	blackbox.Expect(t, blackbox.ExitOK, "nothing to do", "", "db", "plan", "-c", file)
	if r := blackbox.Expect(t, blackbox.ExitOK, "-- keep_changes bounds it before keep_bytes (1.0 GiB) does: a gateway that is disconnected for longer than 24h0m starts with an empty cache", "", "db", "plan", "-c", file); strings.Contains(plan.Stdout, "the change table takes") || !strings.Contains(r.Stdout, "-- the change table takes") {
		t.Errorf("what is kept is said before there is a table, or not after:\n%s\n%s", plan.Stdout, r.Stdout)
	}
	blackbox.Expect(t, blackbox.ExitOK, "0 statements were run", "", "db", "apply", "-c", file)
	if r := blackbox.Run(t, "config", "check", "-c", file); r.Code != blackbox.ExitOK || strings.Contains(r.Stderr, "db apply") {
		t.Errorf("config check with all triggers: %+v", r)
	}
	pg.PSQL(t, "ALTER TABLE emp DISABLE TRIGGER ALL")
	blackbox.Expect(t, blackbox.ExitIncomplete, "differs", "", "db", "check", "-c", file)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", file)
	blackbox.Expect(t, blackbox.ExitOK, "present", "", "db", "check", "-c", file)
	blackbox.Expect(t, blackbox.ExitUsage, "", "expected --yes", "db", "drop", "-c", file)
	blackbox.Expect(t, blackbox.ExitOK, "DROP TRIGGER", "", "db", "drop", "-c", file, "--yes")
	blackbox.Expect(t, blackbox.ExitIncomplete, "missing", "", "db", "check", "-c", file)

	// The printed plan is SQL that the database accepts unchanged.
	pg.PSQL(t, plan.Stdout)
	blackbox.Expect(t, blackbox.ExitOK, "present", "", "db", "check", "-c", file)

	blackbox.Expect(t, blackbox.ExitUsage, "", "an SQLite file has no roles", "db", "plan", "-c", blackbox.DemoFiles(t), "--grant", "gateway")
	blackbox.Expect(t, blackbox.ExitFailure, "", "not a connection URL of PostgreSQL", "db", "plan", "-c", file, "--url", "db.example.com")
}

// TestPostgresRefusesViaOverItsOwnTable: a deleted or moved row no longer exists when such a via
// runs, so the document that contained it would not be invalidated.
func TestPostgresRefusesViaOverItsOwnTable(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	const resource = `
  totals:
    sql: SELECT d.deptno, json_build_object('n', count(e.empno)) FROM dept d LEFT JOIN emp e USING (deptno) WHERE d.deptno = ANY ($1) GROUP BY d.deptno
    key: { deptno: integer }
    depends:
      - { table: dept, key: deptno }
      - { table: emp, %s }
`
	for depend, want := range map[string]string{
		`via: "SELECT deptno FROM emp WHERE empno = ANY ($1)"`:                                  `"via" without "key"; expected key: [COLUMN]`,
		`key: empno, via: "SELECT deptno FROM emp WHERE empno = ANY ($1)"`:                      `reads its own table, where a deleted or moved row is missing; expected the columns that via starts from in key, such as key: [deptno]`,
		`key: empno, via: "SELECT deptno FROM emp WHERE empno = ANY ($1)", reads_itself: true`:  "",
		`key: deptno, via: "SELECT deptno FROM dept WHERE deptno = ANY ($1)"`:                   "",
		`key: deptno, via: "SELECT deptno FROM dept WHERE deptno = ANY ($1)", reads_itself: no`: `expected true or false`,
	} {
		g := shopConfig(t, pg.URL)
		text, err := os.ReadFile(g.file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(g.file, append(text, fmt.Sprintf(resource[1:], depend)...), 0o600); err != nil {
			t.Fatal(err)
		}
		if want == "" {
			blackbox.Expect(t, blackbox.ExitOK, "4 resources, no mistakes", "db apply", "config", "check", "-c", g.file)
		} else {
			blackbox.Expect(t, blackbox.ExitUsage, "", want, "config", "check", "-c", g.file)
		}
	}
}

// TestServeWaitsForPostgres: the gateway is started before the server, and without triggers. It
// keeps its promise as soon as both exist, without a restart.
func TestServeWaitsForPostgres(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	pg.Stop(t)
	g := shopConfig(t, pg.URL, "poll: 10ms")
	g.serve()
	g.await(g.admin+"/ready", 503, "the database cannot be reached")
	g.await(g.http+"/depts/42", 503, "detail")

	pg.Restart(t)
	g.await(g.http+"/depts/42", 200, `"dept 42"`)
	g.await(g.admin+"/ready", 503, "db apply")
	blackbox.Expect(t, blackbox.ExitOK, "statements were run", "", "db", "apply", "-c", g.file)
	g.keepsPromise(func(sql string) { pg.PSQL(t, sql) })

	// What operators see: the canary has compared hits and found no stale one.
	figure := func(name string) string {
		_, _, page, err := blackbox.Get(t.Context(), g.admin+"/metrics")
		if err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(page, "\n"+name+" ")
		value, _, _ := strings.Cut(line, "\n")
		return value
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		if _, _, _, err := blackbox.Get(t.Context(), g.http+"/depts/42"); err != nil {
			return err
		}
		if n := figure("slipstream_canary_checks_total"); n == "" || n == "0" {
			return fmt.Errorf("the canary has made %q checks", n)
		}
		return nil
	})
	if n := figure("slipstream_canary_stale_total"); n != "0" {
		t.Errorf("the canary has found %q stale documents\n%s", n, g.Log())
	}
	if n := figure("slipstream_change_to_fresh_seconds_count"); n == "" || n == "0" {
		t.Errorf("the number of measurements of the time from change to fresh is %q", n)
	}

	// A resource without a promise is served and does not make the gateway unready.
	g.await(g.http+"/rates/EUR", 200, "1.25")
	g.await(g.admin+"/config", 200, "promise: none")

	pg.Crash(t)
	g.await(g.admin+"/ready", 503, "behind")
	pg.Restart(t)
	g.await(g.admin+"/ready", 200, "true")
	g.await(g.http+"/depts/42", 200, `"version 4"`)
}

// TestPostgresRoles: a gateway role that owns nothing, an owner that installs the triggers, and
// writers without privileges on our objects.
func TestPostgresRoles(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, "CREATE ROLE owner LOGIN; CREATE ROLE gateway LOGIN; CREATE ROLE writer LOGIN;"+
		"GRANT CREATE ON DATABASE postgres TO owner; GRANT ALL ON SCHEMA public TO owner; SET ROLE owner;"+shop+
		"GRANT SELECT ON dept, emp, rate TO gateway; GRANT SELECT, INSERT, UPDATE ON dept, emp TO writer")
	as := func(role string) string { return strings.Replace(pg.URL, "postgres@", role+"@", 1) }
	g := shopConfig(t, as("gateway"))
	blackbox.Expect(t, blackbox.ExitFailure, "", "run it as the owner of the tables", "db", "apply", "-c", g.file)
	blackbox.Expect(t, blackbox.ExitOK, "statements were run", "", "db", "apply", "-c", g.file, "--url", as("owner"), "--grant", "gateway")
	blackbox.Expect(t, blackbox.ExitOK, "present", "", "db", "check", "-c", g.file)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "check", "-c", g.file, "--grant", "gateway", "--url", as("owner"))
	blackbox.Expect(t, blackbox.ExitOK, "nothing to do", "", "db", "plan", "-c", g.file, "--grant", "gateway", "--url", as("owner"))
	g.serve()
	g.keepsPromise(func(sql string) { pg.PSQL(t, "SET ROLE writer; "+sql) })
	for _, role := range []string{"gateway", "writer"} {
		if got := pg.PSQL(t, "SELECT has_table_privilege('"+role+"', 'slipstream.change', 'INSERT, UPDATE, DELETE, TRUNCATE')"); got != "f\n" {
			t.Errorf("%s may write the record of changes: %s", role, got)
		}
	}
}

// TestPostgresThroughPgBouncer: a single URL through a pooler is enough, whatever its mode; a
// direct one for the stream is better.
func TestPostgresThroughPgBouncer(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	type run struct {
		name, parameters string
		pooler, origin   []string
	}
	tests := []run{
		{"exec", "&default_query_exec_mode=exec", nil, nil},
		{"simple protocol", "&default_query_exec_mode=simple_protocol", nil, nil},
		{"stream past it", "&default_query_exec_mode=exec", nil, []string{fmt.Sprintf("stream_url: %q", pg.URL), "notify: true"}},
	}
	for _, mode := range testkit.PoolModes(t) {
		tests = append(tests, run{mode.Name, mode.Parameters, mode.Settings, nil})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// Each gateway has its own pooler: PgBouncer 1.18 may crash on a cancel request whose
			// sender has disconnected, which happens when a gateway ends.
			pooler := testkit.StartPgBouncer(t, pg, test.pooler...)
			g := shopConfig(t, pooler.URL+test.parameters, test.origin...)
			blackbox.Expect(t, blackbox.ExitOK, "statements were run", "", "db", "apply", "-c", g.file)
			blackbox.Expect(t, blackbox.ExitOK, "present", "", "db", "check", "-c", g.file)
			pg.PSQL(t, "DELETE FROM emp WHERE empno >= 5000")
			g.serve()
			g.keepsPromise(func(sql string) { pg.PSQL(t, sql) })
			if err := g.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if code := blackbox.ExitCode(t, g.Process, 20*time.Second); code != blackbox.ExitOK {
				t.Errorf("exit code %d\n%s", code, g.Log())
			}
		})
	}
}

// askForPasswords makes the server require a password for the role "checked".
func askForPasswords(t *testing.T, pg *testkit.Postgres) {
	t.Helper()
	hba := filepath.Join(pg.SocketDir, "data", "pg_hba.conf")
	rules := "local all all trust\nhost all checked 127.0.0.1/32 scram-sha-256\nhost all unwelcome 127.0.0.1/32 reject\nhost all all 127.0.0.1/32 trust\n"
	if err := os.WriteFile(hba, []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	pg.PSQL(t, "CREATE ROLE checked LOGIN PASSWORD 'right'; CREATE ROLE unwelcome LOGIN; CREATE ROLE blind LOGIN;"+
		"GRANT SELECT ON ALL TABLES IN SCHEMA public TO checked; SELECT pg_reload_conf()")
}

// TestPostgresFailures: the messages for the most common failures say what to do and never contain
// a password.
func TestPostgresFailures(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	askForPasswords(t, pg)
	url := func(user, host, database string) string {
		return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable&connect_timeout=5", user, host, database)
	}
	here := fmt.Sprintf("127.0.0.1:%d", pg.Port)
	for _, test := range []struct {
		name, url string
		code      int
		hint      string
	}{
		{"wrong password", url("checked:hunter2", here, "postgres"), blackbox.ExitUnreachable, "the password comes from the URL"},
		{"pg_hba.conf", url("unwelcome:hunter2", here, "postgres"), blackbox.ExitUnreachable, "does pg_hba.conf admit it"},
		{"unknown role", url("nobody:hunter2", here, "postgres"), blackbox.ExitUnreachable, "does the role exist"},
		{"unknown database", url("postgres:hunter2", here, "shop"), blackbox.ExitUnreachable, "the database is the last part of the URL"},
		{"nobody listens", url("postgres:hunter2", fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t)), "postgres"), blackbox.ExitUnreachable, "is PostgreSQL running there"},
		{"no such host", url("postgres:hunter2", "no-such-host.invalid", "postgres"), blackbox.ExitUnreachable, "is it right in the URL"},
		{"no permission", url("blind:hunter2", here, "postgres"), blackbox.ExitUsage, "SELECT"},
		{"no table", url("postgres:hunter2", here, "template1"), blackbox.ExitUsage, "no table dept"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := shopConfig(t, test.url)
			for _, args := range [][]string{{"config", "check"}, {"db", "plan"}} {
				r := blackbox.Expect(t, test.code, "", test.hint, append(args, "-c", g.file)...)
				if strings.Contains(r.Stderr+r.Stdout, "hunter2") {
					t.Errorf("%v contains the password: %s", args, r.Stderr)
				}
			}
		})
	}
	if r := blackbox.Expect(t, blackbox.ExitOK, "checked:hidden@", "", "config", "show", "-c", shopConfig(t, url("checked:hunter2", here, "postgres")).file); strings.Contains(r.Stdout, "hunter2") {
		t.Errorf("config show: %s", r.Stdout)
	}
}

// TestServeWaitsForThePasswordOfPostgres: a wrong password is not fatal, because the mistake may be
// in the database. Once it is corrected there, the gateway recovers.
func TestServeWaitsForThePasswordOfPostgres(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	askForPasswords(t, pg)
	g := shopConfig(t, fmt.Sprintf("postgres://checked:hunter2@127.0.0.1:%d/postgres?sslmode=disable", pg.Port))
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", g.file, "--url", pg.URL, "--grant", "checked")
	g.serve()
	g.await(g.admin+"/ready", 503, "password")
	pg.PSQL(t, "ALTER ROLE checked PASSWORD 'hunter2'")
	g.keepsPromise(func(sql string) { pg.PSQL(t, sql) })
	_, _, page, err := blackbox.Get(t.Context(), g.admin+"/config")
	if err != nil || strings.Contains(page+g.Log(), "hunter2") {
		t.Errorf("the password is shown: %v\n%s\n%s", err, page, g.Log())
	}
}
