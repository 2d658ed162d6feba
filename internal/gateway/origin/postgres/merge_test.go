package postgres

import (
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// From PostgreSQL 15 to 18, the transition tables of a MERGE into a partitioned table
// are wrong once it has inserted a row. Whatever the server does, the new parents of
// moved rows must be recorded: by their keys, or as a change of all documents.
func TestMergeIntoPartitions(t *testing.T) {
	d := freshDatabase(t, `
		CREATE TABLE dept (deptno int PRIMARY KEY, dname text);
		CREATE TABLE emp (empno int PRIMARY KEY, deptno int REFERENCES dept, ename text) PARTITION BY RANGE (empno);
		CREATE TABLE emp_low PARTITION OF emp FOR VALUES FROM (0) TO (100);
		CREATE TABLE emp_high PARTITION OF emp FOR VALUES FROM (100) TO (200);
		CREATE INDEX ON emp (deptno);
		INSERT INTO dept SELECT i, 'd' || i FROM generate_series(10, 90, 10) AS i;
		INSERT INTO emp SELECT i, 10, 'e' || i FROM generate_series(1, 4) AS i`)
	d.apply(t, Config{}, deptResource())
	d.recorded(t)
	steps := []struct {
		sql  string
		want []string // "*" instead would also be right
	}{
		{`MERGE INTO emp USING (VALUES (150, 30), (1, 70), (2, 80), (151, 30)) AS v(k, d) ON emp.empno = k
			WHEN MATCHED THEN UPDATE SET deptno = d WHEN NOT MATCHED THEN INSERT VALUES (k, d, 'merged')`,
			[]string{"depts/emps=10", "depts/emps=30", "depts/emps=70", "depts/emps=80"}},
		{`MERGE INTO emp USING (VALUES (3, 40), (4, 50)) AS v(k, d) ON emp.empno = k WHEN MATCHED THEN UPDATE SET deptno = d`,
			[]string{"depts/emps=10", "depts/emps=40", "depts/emps=50"}},
		{`UPDATE emp SET empno = 199 WHERE empno = 3`, []string{"depts/emps=40"}},
	}
	if startShared(t).Major(t) < 15 { // has no MERGE
		steps[0].sql = `WITH u AS (UPDATE emp SET deptno = d FROM (VALUES (1, 70), (2, 80)) AS v(k, d) WHERE empno = k)
			INSERT INTO emp VALUES (150, 30, 'new'), (151, 30, 'new')`
		steps[1].sql = `UPDATE emp SET deptno = d FROM (VALUES (3, 40), (4, 50)) AS v(k, d) WHERE empno = k`
	}
	for _, step := range steps {
		d.exec(t, step.sql)
		got := "," + d.recorded(t) + ","
		if strings.Contains(got, ",depts/emps=*,") {
			continue
		}
		for _, w := range step.want {
			if !strings.Contains(got, ","+w+",") {
				t.Errorf("%s recorded %s, want %s or all", step.sql, got, w)
			}
		}
	}
	// Ordinary updates do not pay this price: they do not flush.
	d.exec(t, `UPDATE emp SET deptno = 90 WHERE empno = 4`, `UPDATE emp_high SET ename = 'x'`)
	if got := d.recorded(t); strings.Contains(got, "*") || !strings.Contains(got, "depts/emps=90") {
		t.Errorf("recorded %s, want only keys", got)
	}
}

// Without a primary key nothing distinguishes right transition tables from wrong
// ones.
func TestPartitionsWithoutPrimaryKeyFlush(t *testing.T) {
	d := freshDatabase(t, `
		CREATE TABLE dept (deptno int PRIMARY KEY, dname text);
		CREATE TABLE note (deptno int, what text) PARTITION BY LIST (deptno);
		CREATE TABLE note_all PARTITION OF note DEFAULT;
		CREATE INDEX ON note (deptno);
		INSERT INTO dept VALUES (10, 'd'); INSERT INTO note VALUES (10, 'n')`)
	r := deptResource()
	r.Root.Children = []resource.Child{{Name: "notes", Node: resource.Node{Table: "note",
		On: []resource.Join{{Column: "deptno", Parent: "deptno"}}}}}
	d.apply(t, Config{}, r)
	d.recorded(t)
	d.exec(t, `UPDATE note SET what = 'm' WHERE false`)
	if got := d.recorded(t); got != "" {
		t.Errorf("an update of nothing recorded %s", got)
	}
	d.exec(t, `UPDATE note SET what = 'm'`)
	if got := d.recorded(t); !strings.Contains(got, "depts/notes=*") {
		t.Errorf("recorded %s, want a change of all documents", got)
	}
}
