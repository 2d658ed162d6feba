package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// What db plan prints is all that psql needs, the statements of an administrator
// included.
func TestPostgresPlanCanBeFedToPSQL(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	g := shopConfig(t, pg.URL)
	plan := expect(t, exitOK, "CREATE ROLE \"my definer\" NOLOGIN;\nBEGIN;\n", "", "db", "plan", "-c", g.file, "--definer", "my definer")
	expect(t, exitFailure, "", `CREATE ROLE "my definer" NOLOGIN;`, "db", "apply", "-c", g.file, "--definer", "my definer")
	pg.PSQL(t, plan.stdout)
	expect(t, exitOK, "nothing to do", "", "db", "plan", "-c", g.file, "--definer", "my definer")
	expect(t, exitOK, "present", "", "db", "check", "-c", g.file, "--definer", "my definer")
}

// check says what triggers of other definitions cost, and prune drops those that no
// given configuration needs.
func TestPostgresPrune(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	g := shopConfig(t, pg.URL)
	expect(t, exitOK, "statements were run", "", "db", "apply", "-c", g.file)
	smaller := filepath.Join(t.TempDir(), "smaller.yaml")
	text := "origin: { url: \"" + pg.URL + "\" }\nresources:\n  emps: { table: emp, key: [empno] }\n"
	if err := os.WriteFile(smaller, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, exitOK, "statements were run", "", "db", "apply", "-c", smaller)
	costs := expect(t, exitOK, "triggers on public.emp are not needed by this configuration", "", "db", "check", "-c", smaller)
	if !strings.Contains(costs.stdout, "18 % fewer a second") {
		t.Errorf("check does not say what left-overs cost:\n%s", costs.stdout)
	}
	expect(t, exitOK, "0 objects were dropped", "", "db", "prune", "-c", smaller, "-c", g.file)
	expect(t, exitOK, "DROP TRIGGER", "", "db", "prune", "-c", smaller)
	expect(t, exitOK, "0 objects were dropped", "", "db", "prune", "-c", smaller)
	expect(t, exitOK, "", "", "db", "check", "-c", smaller)
	expect(t, exitIncomplete, "missing", "", "db", "check", "-c", g.file)
	sqlite := filepath.Join(t.TempDir(), "sqlite.yaml")
	if err := os.WriteFile(sqlite, []byte("origin: { url: \"sqlite:x.db\" }\nresources:\n  emps: { table: emp, key: [empno] }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, exitUsage, "", "apply drops what it does not need", "db", "prune", "-c", sqlite)
}
