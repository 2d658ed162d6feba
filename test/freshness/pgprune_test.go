package freshness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// The output of db plan can be run by psql, including the statements of an administrator.
func TestPostgresPlanCanBeFedToPSQL(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	g := shopConfig(t, pg.URL)
	plan := blackbox.Expect(t, blackbox.ExitOK, "CREATE ROLE \"my definer\" NOLOGIN;\nBEGIN;\n", "", "db", "plan", "-c", g.file, "--definer", "my definer")
	blackbox.Expect(t, blackbox.ExitFailure, "", `CREATE ROLE "my definer" NOLOGIN;`, "db", "apply", "-c", g.file, "--definer", "my definer")
	pg.PSQL(t, plan.Stdout)
	blackbox.Expect(t, blackbox.ExitOK, "nothing to do", "", "db", "plan", "-c", g.file, "--definer", "my definer")
	blackbox.Expect(t, blackbox.ExitOK, "present", "", "db", "check", "-c", g.file, "--definer", "my definer")
}

// check reports the cost of triggers of other definitions, and prune drops those that
// no given configuration needs.
func TestPostgresPrune(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	g := shopConfig(t, pg.URL)
	blackbox.Expect(t, blackbox.ExitOK, "statements were run", "", "db", "apply", "-c", g.file)
	smaller := filepath.Join(t.TempDir(), "smaller.yaml")
	text := "origin: { url: \"" + pg.URL + "\" }\nresources:\n  emps: { table: emp, key: [empno] }\n"
	if err := os.WriteFile(smaller, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	blackbox.Expect(t, blackbox.ExitOK, "statements were run", "", "db", "apply", "-c", smaller)
	costs := blackbox.Expect(t, blackbox.ExitOK, "triggers on public.emp are not needed by this configuration", "", "db", "check", "-c", smaller)
	if !strings.Contains(costs.Stdout, "by 18 % with one writer") {
		t.Errorf("check does not say what left-overs cost:\n%s", costs.Stdout)
	}
	blackbox.Expect(t, blackbox.ExitOK, "0 objects were dropped", "", "db", "prune", "-c", smaller, "-c", g.file)
	blackbox.Expect(t, blackbox.ExitOK, "DROP TRIGGER", "", "db", "prune", "-c", smaller)
	blackbox.Expect(t, blackbox.ExitOK, "0 objects were dropped", "", "db", "prune", "-c", smaller)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "check", "-c", smaller)
	blackbox.Expect(t, blackbox.ExitIncomplete, "missing", "", "db", "check", "-c", g.file)
	sqlite := filepath.Join(t.TempDir(), "sqlite.yaml")
	if err := os.WriteFile(sqlite, []byte("origin: { url: \"sqlite:x.db\" }\nresources:\n  emps: { table: emp, key: [empno] }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	blackbox.Expect(t, blackbox.ExitUsage, "", "apply drops what it does not need", "db", "prune", "-c", sqlite)
}
