package sqlite

import (
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

func TestPlanApplyCheckDrop(t *testing.T) {
	path := newFile(t, deptSchema...)
	o, err := Open(t.Context(), Config{Path: path}, []resource.Resource{deptResource()})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	plan := func() []origin.Statement {
		t.Helper()
		statements, err := o.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return statements
	}
	w := openWriter(t, path)
	if statements := plan(); len(statements) != 10 || !strings.HasPrefix(statements[0].SQL, "CREATE TABLE") {
		t.Errorf("plan of a bare database: %d statements, the first %v", len(statements), statements[0])
	}
	if n := scalar(t, w, `SELECT count(*) FROM sqlite_schema WHERE name LIKE 'slipstream%'`); n != "0" {
		t.Errorf("a plan made %s objects", n)
	}
	if _, err := o.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rows := scalar(t, w, `SELECT count(*) FROM slipstream_change WHERE key IS NULL`); rows != "1" {
		t.Errorf("%s rows after the first apply, want one that flushes", rows)
	}
	if statements := plan(); len(statements) != 0 {
		t.Errorf("plan after apply: %v", statements)
	}
	if done, err := o.Apply(t.Context()); err != nil || len(done) != 0 {
		t.Errorf("second apply ran %v, %v", done, err)
	}

	mustExec(t, w, `DROP TRIGGER "slipstream_depts/dept/delete"`,
		`CREATE TRIGGER "slipstream_depts/dept/delete" AFTER DELETE ON dept BEGIN SELECT 1; END`,
		`DROP TRIGGER "slipstream_depts/emp/insert"`,
		`CREATE TRIGGER "slipstream_depts/dept/truncate" AFTER DELETE ON dept BEGIN SELECT 1; END`,
		`CREATE TRIGGER "slipstream_another/dept/delete" AFTER DELETE ON dept BEGIN SELECT 1; END`)
	states := make(map[string]origin.State)
	findings, err := o.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.State != origin.Present {
			states[f.Name] = f.State
		}
	}
	want := map[string]origin.State{"slipstream_depts/dept/delete": origin.Differs, "slipstream_depts/emp/insert": origin.Missing,
		"slipstream_depts/dept/truncate": origin.LeftOver, "slipstream_another/dept/delete": origin.LeftOver}
	for name, state := range want {
		if states[name] != state {
			t.Errorf("%s is %s, want %s", name, states[name], state)
		}
	}
	if len(states) != len(want) {
		t.Errorf("findings %v", states)
	}
	if _, err := o.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := scalar(t, w, `SELECT group_concat(name) FROM sqlite_schema WHERE name IN ('slipstream_depts/dept/truncate', 'slipstream_another/dept/delete')`); left != "slipstream_another/dept/delete" {
		t.Errorf("left over after apply: %s; another gateway's trigger stays, our own goes", left)
	}
	if statements := plan(); len(statements) != 0 {
		t.Errorf("plan after repair: %v", statements)
	}
	if _, err := o.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := scalar(t, w, `SELECT count(*) FROM sqlite_schema WHERE name LIKE 'slipstream%'`); n != "0" {
		t.Errorf("%s objects are left after drop", n)
	}
}

// TestApplyIsOneTransaction has a table of a user in the way of the last step.
func TestApplyIsOneTransaction(t *testing.T) {
	path := newFile(t, append(deptSchema, `CREATE VIEW slipstream_change AS SELECT 1`)...)
	o, err := Open(t.Context(), Config{Path: path}, []resource.Resource{deptResource()})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := o.Apply(t.Context()); err == nil {
		t.Fatal("apply over a view of the same name succeeded")
	}
	if n := scalar(t, openWriter(t, path), `SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'`); n != "0" {
		t.Errorf("%s triggers are left of an apply that failed", n)
	}
}

func TestSecondResourceOverTheSameTables(t *testing.T) {
	path := newFile(t, deptSchema...)
	openOrigin(t, Config{Path: path}, deptResource())
	emps := resource.Resource{Name: "emps", Key: []string{"empno"}, Root: resource.Node{Table: "emp"}}
	o := openOrigin(t, Config{Path: path}, deptResource(), emps)
	w := openWriter(t, path)
	before := scalar(t, w, `SELECT max(id) FROM slipstream_change`)
	mustExec(t, w, `UPDATE emp SET ename = 'X' WHERE empno = 1`)
	if got := scalar(t, w, `SELECT group_concat(resource || ' ' || key) FROM (SELECT * FROM slipstream_change WHERE id > `+before+` ORDER BY resource)`); got != "depts 10,emps 1" {
		t.Errorf("recorded %q", got)
	}
	if findings, err := o.Check(t.Context()); err != nil {
		t.Error(err)
	} else {
		for _, f := range findings {
			if f.State != origin.Present {
				t.Errorf("%s is %s", f.Name, f.State)
			}
		}
	}
}

// TestNoTriggersWithoutPromise: writers pay nothing for a resource without a
// promise, and the triggers of a resource that no longer has one are dropped.
func TestNoTriggersWithoutPromise(t *testing.T) {
	path := newFile(t, deptSchema...)
	apply := func(noPromise bool) int {
		t.Helper()
		r := deptResource()
		r.NoPromise = noPromise
		o, err := Open(t.Context(), Config{Path: path}, []resource.Resource{r})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		if _, err := o.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		findings, err := o.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(findings)
	}
	w := openWriter(t, path)
	const count = `SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'`
	if n := apply(true); n != 1 || scalar(t, w, count) != "0" {
		t.Errorf("%d objects, %s triggers; expected only the table", n, scalar(t, w, count))
	}
	if n := apply(false); n < 2 || scalar(t, w, count) == "0" {
		t.Errorf("%d objects, %s triggers; expected triggers", n, scalar(t, w, count))
	}
	if apply(true); scalar(t, w, count) != "0" {
		t.Errorf("%s triggers are left over", scalar(t, w, count))
	}
}
