//go:build unix

package freshness

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// This file tests mistakes of operators: each case checks the message, what is served in the
// meantime, and that nothing has to be restarted once the mistake is corrected.

// as returns the URL of a server for another role.
func as(pg *testkit.Postgres, role string) string {
	return strings.Replace(pg.URL, "postgres@", role+"@", 1)
}

// TestPostgresSettings: ways to specify a database, right and wrong.
func TestPostgresSettings(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	askForPasswords(t, pg)
	const password = `p@s/s:w#r?d %&=`
	pg.PSQL(t, "ALTER ROLE checked PASSWORD '"+password+"'")
	here := fmt.Sprintf("127.0.0.1:%d", pg.Port)
	t.Setenv("PGSERVICEFILE", blackbox.WriteFile(t, "services", fmt.Sprintf("[shop]\nhost=127.0.0.1\nport=%d\nuser=postgres\ndbname=postgres\nsslmode=disable\n", pg.Port)))
	for _, test := range []struct {
		name, url string
		code      int
		stderr    string
	}{
		{"socket", fmt.Sprintf("postgres:///postgres?host=%s&port=%d&user=postgres", url.QueryEscape(pg.SocketDir), pg.Port), blackbox.ExitOK, ""},
		{"no socket", "postgres:///postgres?host=/nowhere&user=postgres", blackbox.ExitUnreachable, "unix_socket_directories"},
		{"IPv6, where nobody listens", fmt.Sprintf("postgres://postgres@[::1]:%d/postgres", pg.Port), blackbox.ExitUnreachable, "hint: "},
		{"escaped password", "postgres://checked:" + strings.ReplaceAll(url.QueryEscape(password), "+", "%20") + "@" + here + "/postgres?sslmode=disable", blackbox.ExitOK, ""},
		{"password as it is", "postgres://checked:" + password + "@" + here + "/postgres", blackbox.ExitUsage, "origin.url: "},
		{"service", "postgres://?service=shop", blackbox.ExitOK, ""},
		{"unknown service", "postgres://?service=nosuch", blackbox.ExitUsage, "unable to find service: nosuch"},
		{"unknown sslmode", "postgres://postgres@" + here + "/postgres?sslmode=sometimes", blackbox.ExitUsage, "sslmode is invalid"},
		{"no TLS", "postgres://postgres@" + here + "/postgres?sslmode=require", blackbox.ExitUnreachable, "sslmode in the URL"},
		{"no authority", pg.URL + "&sslrootcert=/nowhere", blackbox.ExitUsage, "/nowhere"},
		{"unknown parameter", pg.URL + "&zebra=1", blackbox.ExitUsage, `origin.url: postgres: a parameter that the server refuses`},
		{"value of a parameter", pg.URL + "&statement_timeout=soon", blackbox.ExitUsage, `"soon"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := blackbox.Expect(t, test.code, "", test.stderr, "config", "check", "-c", shopConfig(t, test.url).file)
			for _, never := range []string{password, "db.go", "panic", "does the file exist"} {
				if strings.Contains(r.Stderr, never) {
					t.Errorf("the message contains %q: %s", never, r.Stderr)
				}
			}
		})
	}
	t.Setenv("PGPASSWORD", password)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "config", "check", "-c", shopConfig(t, "postgres://checked@"+here+"/postgres?sslmode=disable").file)
	t.Setenv("PGPASSWORD", "other")
	blackbox.Expect(t, blackbox.ExitUnreachable, "", "PGPASSWORD", "config", "check", "-c", shopConfig(t, "postgres://checked@"+here+"/postgres?sslmode=disable").file)
}

// TestPostgresPrivileges: each privilege of the gateway's role is revoked and granted again while
// the gateway serves.
func TestPostgresPrivileges(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop+"CREATE ROLE gateway LOGIN; GRANT SELECT ON dept, emp, rate TO gateway")
	g := shopConfig(t, as(pg, "gateway"))
	blackbox.Expect(t, blackbox.ExitFailure, "", "run it as the owner", "db", "apply", "-c", g.file)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", g.file, "--url", pg.URL)
	blackbox.Expect(t, blackbox.ExitIncomplete, `missing   grants to "gateway"`, "--grant ROLE", "db", "check", "-c", g.file)
	blackbox.Expect(t, blackbox.ExitFailure, "", "run it as the owner", "db", "drop", "-c", g.file, "--yes")
	for _, command := range []string{"plan", "apply", "check"} {
		r := blackbox.Expect(t, blackbox.ExitFailure, "", `there is no role "nosuch" to grant to`, "db", command, "-c", g.file, "--url", pg.URL, "--grant", "nosuch")
		if strings.Contains(r.Stderr, "unavailable") {
			t.Errorf("a server that has answered is reported as unavailable: %s", r.Stderr)
		}
	}
	g.serve()
	g.await(g.admin+"/ready", 503, "db apply --grant")
	g.await(g.http+"/depts/42", 200, "dept 42") // from the database, according to the policy
	blackbox.Expect(t, blackbox.ExitOK, "1 statements were run", "", "db", "apply", "-c", g.file, "--url", pg.URL, "--grant", "gateway")
	g.await(g.admin+"/ready", 200, "true")
	for _, test := range []struct {
		name, revoke, grant string
		ready               string
		status              int
	}{
		{"table", "REVOKE SELECT ON emp FROM gateway", "GRANT SELECT ON emp TO gateway", `role gateway may not read table emp; expected: GRANT SELECT`, 503},
		{"schema of tables", "REVOKE USAGE ON SCHEMA public FROM PUBLIC", "GRANT USAGE ON SCHEMA public TO PUBLIC", "no table dept in the search path of role gateway", 503},
		{"record", "REVOKE SELECT ON slipstream.change FROM gateway", "GRANT SELECT ON slipstream.change TO gateway", "db apply --grant", 200},
		{"schema of the record", "REVOKE USAGE ON SCHEMA slipstream FROM gateway", "GRANT USAGE ON SCHEMA slipstream TO gateway", "db apply --grant", 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			g.await(g.http+"/depts/42", 200, "dept 42")
			pg.PSQL(t, test.revoke)
			g.await(g.admin+"/ready", 503, test.ready)
			g.await(g.http+"/depts/42", test.status, "")
			g.await(g.http+"/rates/EUR", map[bool]int{true: 200, false: 503}[test.name != "schema of tables"], "")
			pg.PSQL(t, "UPDATE dept SET dname = 'dept 42 without "+test.name+"' WHERE deptno = 42")
			pg.PSQL(t, test.grant)
			g.await(g.admin+"/ready", 200, "true")
			if _, _, body, err := blackbox.Get(t.Context(), g.http+"/depts/42"); err != nil || !strings.Contains(body, "without "+test.name) {
				t.Errorf("after the grant: %s %v; expected what was written in the meantime", body, err)
			}
		})
	}

	// The history cannot be given an id: everything comes from the database.
	pg.PSQL(t, "REVOKE EXECUTE ON FUNCTION slipstream.renew() FROM gateway")
	pg.Crash(t)
	pg.Restart(t)
	g.await(g.admin+"/ready", 503, "permission denied for function renew")
	g.await(g.http+"/depts/42", 200, "dept 42")
	pg.PSQL(t, "GRANT EXECUTE ON FUNCTION slipstream.renew() TO gateway")
	g.keepsPromise(func(sql string) { pg.PSQL(t, sql) })
}

// TestPostgresTablesChange: objects that the resources use are dropped, restored or changed while
// they are served.
func TestPostgresTablesChange(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	g := shopConfig(t, pg.URL)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", g.file)
	g.serve()
	g.keepsPromise(func(sql string) { pg.PSQL(t, sql) })
	for _, test := range []struct {
		name, change, back string
		ready              string
		resource           string
	}{
		{"table dropped", "CREATE TABLE kept AS TABLE emp; DROP TABLE emp", "CREATE TABLE emp (empno int PRIMARY KEY, deptno int REFERENCES dept, ename text); CREATE INDEX ON emp (deptno); INSERT INTO emp TABLE kept",
			"no table emp", "/depts/42"},
		{"column of a statement renamed", "ALTER TABLE emp RENAME deptno TO dno", "ALTER TABLE emp RENAME dno TO deptno", `column \"deptno\" does not exist`, "/counts/42"},
		{"type of the key", "ALTER TABLE emp DROP CONSTRAINT emp_deptno_fkey; ALTER TABLE dept ALTER deptno TYPE text; ALTER TABLE emp ALTER deptno TYPE text; ALTER TABLE emp ADD CONSTRAINT emp_deptno_fkey FOREIGN KEY (deptno) REFERENCES dept",
			"ALTER TABLE emp DROP CONSTRAINT emp_deptno_fkey; ALTER TABLE dept ALTER deptno TYPE int USING deptno::int; ALTER TABLE emp ALTER deptno TYPE int USING deptno::int; ALTER TABLE emp ADD CONSTRAINT emp_deptno_fkey FOREIGN KEY (deptno) REFERENCES dept",
			"key column deptno was of kind integer when the gateway started and is now of kind text", "/depts/42"},
		{"type that is no key", "ALTER TABLE emp DROP CONSTRAINT emp_deptno_fkey; ALTER TABLE dept ALTER deptno TYPE float8; ALTER TABLE emp ADD CONSTRAINT emp_deptno_fkey FOREIGN KEY (deptno) REFERENCES dept",
			"ALTER TABLE dept ALTER deptno TYPE int", "deptno", "/depts/42"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g.await(g.http+test.resource, 200, "")
			pg.PSQL(t, test.change)
			g.await(g.admin+"/ready", 503, test.ready)
			g.await(g.http+test.resource, 503, "")
			g.await(g.http+"/rates/EUR", 200, "1.25")
			blackbox.Expect(t, blackbox.ExitUsage, "", g.file+":", "config", "check", "-c", g.file)
			pg.PSQL(t, test.back)
			testkit.Eventually(t, 20*time.Second, func() error {
				if r := blackbox.Run(t, "db", "apply", "-c", g.file); r.Code != blackbox.ExitOK {
					return fmt.Errorf("db apply: %s", r.Stderr)
				}
				return nil
			})
			g.await(g.admin+"/ready", 200, "true")
			pg.PSQL(t, "DELETE FROM emp WHERE empno >= 5000")
			g.keepsPromise(func(sql string) { pg.PSQL(t, sql) })
		})
	}
}

// TestPostgresHasNoConnectionLeft: other clients use all connections, before the gateway starts and
// while it serves. The gateway cannot use those reserved for superusers.
func TestPostgresHasNoConnectionLeft(t *testing.T) {
	pg := testkit.StartPostgres(t, "max_connections=12", "superuser_reserved_connections=3")
	pg.PSQL(t, shop+"CREATE ROLE gateway LOGIN; CREATE ROLE hog LOGIN; GRANT SELECT ON dept, emp, rate TO gateway")
	g := shopConfig(t, as(pg, "gateway"))
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", g.file, "--url", pg.URL, "--grant", "gateway")
	count := func(role string) int {
		n, _ := strconv.Atoi(strings.TrimSpace(pg.PSQL(t, "SELECT count(*) FROM pg_stat_activity WHERE usename = '"+role+"'")))
		return n
	}
	// take uses up all connections and returns a function that releases them.
	take := func() func() {
		var hogs []*exec.Cmd
		another := func() {
			hog := exec.Command("psql", "-X", "-q", "-d", as(pg, "hog"), "-c", "SELECT pg_sleep(60)")
			if err := hog.Start(); err != nil {
				t.Fatal(err)
			}
			hogs = append(hogs, hog)
		}
		testkit.Eventually(t, 10*time.Second, func() error {
			// The connections of the checks themselves count, too, so this takes a few attempts.
			another()
			if n := count("hog"); n < 9 {
				return fmt.Errorf("%d of 9 connections are taken", n)
			}
			return nil
		})
		return func() {
			pg.PSQL(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'hog'")
			for _, hog := range hogs {
				_ = hog.Wait() // it was cut off
			}
		}
	}
	giveBack := take()
	for _, args := range [][]string{{"config", "check"}, {"db", "check"}} {
		blackbox.Expect(t, blackbox.ExitUnreachable, "", "max_connections", append(args, "-c", g.file)...)
	}
	g.serve()
	g.await(g.admin+"/ready", 503, "no connection left")
	g.await(g.http+"/depts/42", 503, "")
	giveBack()
	g.keepsPromise(func(sql string) { pg.PSQL(t, sql) })
}

// TestPostgresRestoredElsewhere: a dump that contains the record of changes of another cluster has
// transaction numbers that mean nothing in this one.
func TestPostgresRestoredElsewhere(t *testing.T) {
	pg, other := testkit.StartPostgres(t), testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	other.PSQL(t, shop)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", shopConfig(t, pg.URL).file)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", shopConfig(t, other.URL).file)
	// pg_dump refuses servers newer than itself. Its dump would contain the same objects and these
	// rows.
	for _, table := range []string{"slipstream.meta", "slipstream.change", "slipstream.incarnation"} {
		rows := pg.PSQL(t, fmt.Sprintf(`SELECT 'INSERT INTO %[1]s SELECT * FROM json_populate_record(NULL::%[1]s, ' || quote_literal(row_to_json(t)) || ');' FROM %[1]s AS t`, table))
		other.PSQL(t, fmt.Sprintf("DELETE FROM %s; %s", table, rows))
	}
	g := shopConfig(t, other.URL)
	blackbox.Expect(t, blackbox.ExitIncomplete, "differs   row of slipstream.meta", "db apply", "db", "check", "-c", g.file)
	g.serve()
	g.await(g.admin+"/ready", 503, "the record of changes was restored from another cluster; run slipstream db apply")
	g.await(g.http+"/depts/42", 200, "dept 42")
	blackbox.Expect(t, blackbox.ExitOK, "restored into this", "", "db", "apply", "-c", g.file)
	g.keepsPromise(func(sql string) { other.PSQL(t, sql) })

	// A copy within the cluster differs from the original only in its name.
	pg.PSQL(t, "CREATE DATABASE copy TEMPLATE template0")
	crossed := shopConfig(t, pg.URL, fmt.Sprintf("stream_url: %q", strings.Replace(pg.URL, "/postgres?", "/copy?", 1)))
	crossed.serve()
	crossed.await(crossed.admin+"/ready", 503, `stream_url leads to the database`)
}

// TestPostgresHangs: the server stops answering without closing connections. The gateway reports
// this, ends within seconds when requested, and starts in spite of it.
func TestPostgresHangs(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	g := shopConfig(t, pg.URL)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", g.file)
	g.serve()
	g.keepsPromise(func(sql string) { pg.PSQL(t, sql) })
	pids := []int{pg.PID()}
	for pid := range strings.FieldsSeq(pg.PSQL(t, "SELECT pid FROM pg_stat_activity WHERE application_name = 'slipstream'")) {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, n)
	}
	each := func(signal syscall.Signal) {
		for _, pid := range pids {
			_ = syscall.Kill(pid, signal) // one may have ended
		}
	}
	each(syscall.SIGSTOP)
	t.Cleanup(func() { each(syscall.SIGCONT) }) // before the server is shut down
	g.await(g.admin+"/ready", 503, "the last poll of the stream failed")
	began := time.Now()
	if err := g.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := blackbox.ExitCode(t, g.Process, 20*time.Second); code != blackbox.ExitOK || time.Since(began) > 8*time.Second {
		t.Errorf("exit code %d after %v; expected 0 within seconds\n%s", code, time.Since(began), g.Log())
	}
	g.serve()
	g.await(g.admin+"/ready", 503, "the database cannot be reached: no answer within")
	each(syscall.SIGCONT)
	g.await(g.admin+"/ready", 200, "true")
	pg.PSQL(t, "DELETE FROM emp WHERE empno >= 5000")
	g.keepsPromise(func(sql string) { pg.PSQL(t, sql) })

	// A killed gateway leaves no sessions on the server.
	g.Kill()
	testkit.Eventually(t, 10*time.Second, func() error {
		if left := pg.PSQL(t, "SELECT state, query FROM pg_stat_activity WHERE application_name = 'slipstream'"); left != "" {
			return fmt.Errorf("sessions of the killed gateway: %s", left)
		}
		return nil
	})
}

// TestPostgresIsLocked: the gateway does not wait for a long transaction, because all later
// requests for the lock would then wait, too.
func TestPostgresIsLocked(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	g := shopConfig(t, pg.URL)
	hold := exec.CommandContext(t.Context(), "psql", "-X", "-q", "-d", pg.URL, "-c", "UPDATE emp SET ename = 'held' WHERE empno = 1001; SELECT pg_sleep(60)")
	if err := hold.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if pg.PSQL(t, "SELECT 1 FROM pg_locks WHERE relation = 'emp'::regclass AND mode = 'RowExclusiveLock'") == "" {
			return fmt.Errorf("no session holds the lock yet")
		}
		return nil
	})
	blackbox.Expect(t, blackbox.ExitFailure, "", "nothing was changed: a table was locked for 5 s", "db", "apply", "-c", g.file)
	blackbox.Expect(t, blackbox.ExitIncomplete, "missing", "", "db", "check", "-c", g.file)
	pg.PSQL(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()")
	_ = hold.Wait() // it was cut off
	blackbox.Expect(t, blackbox.ExitOK, "statements were run", "", "db", "apply", "-c", g.file)
}
