package postgres

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// costRounds is how often each body is measured for one iteration of the benchmark,
// and costRows how many rows are updated for that.
const (
	costRounds = 7
	costRows   = 3_000
)

// BenchmarkTriggerBody measures the processor time, in the server's process, that
// bodies of a trigger function add to an UPDATE by primary key, in one
// session that only loops. All bodies are measured in turn in each round, and the
// medians of the rounds are reported. docs/decisions/0015-trigger-bodies.md has the results.
func BenchmarkTriggerBody(b *testing.B) {
	for _, rows := range []int{1, 2, 100} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) { benchmarkTriggerBody(b, rows) })
	}
}

func benchmarkTriggerBody(b *testing.B, rows int) {
	if runtime.GOOS != "linux" {
		b.Skip("reads /proc")
	}
	pg := testkit.StartPostgres(b)
	runScript(b, pg.URL, `CREATE TABLE dept (deptno int PRIMARY KEY, dname text);
		CREATE TABLE emp (empno int PRIMARY KEY, deptno int REFERENCES dept, ename text, sal int) WITH (fillfactor = 50, autovacuum_enabled = off);
		CREATE INDEX ON emp (deptno);
		INSERT INTO dept SELECT i FROM generate_series(1, 100) AS i;
		INSERT INTO emp SELECT i, 1 + i % 100, '', 0 FROM generate_series(1, 3000) AS i`)
	o := openOrigin(b, Config{URL: pg.URL}, deptResource())
	if _, err := o.Apply(b.Context()); err != nil {
		b.Fatal(err)
	}
	conn := connect(b, pg.URL)
	function := scan[string](b, conn, `SELECT p.oid::regprocedure FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid
		WHERE t.tgrelid = 'emp'::regclass AND t.tgname LIKE '%/update'`)
	shipped := scan[string](b, conn, `SELECT prosrc FROM pg_proc WHERE oid = $1::regprocedure`, function)
	run := func(sql string) {
		if _, err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatalf("%v in %s", err, sql)
		}
	}
	bodies := costBodies(shipped)
	times := make([][]float64, len(bodies))
	pid := scan[int](b, conn, "SELECT pg_backend_pid()")
	for range b.N {
		for range costRounds {
			for i, body := range bodies {
				run("ALTER TABLE emp DISABLE TRIGGER USER")
				if body.text != "" {
					run("CREATE OR REPLACE FUNCTION " + function + " RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $bench$" + body.text + "$bench$")
					run("ALTER TABLE emp ENABLE TRIGGER USER")
				}
				run("TRUNCATE slipstream.change")
				run("VACUUM emp")
				const loop = "DO $$ BEGIN FOR i IN 0..%d LOOP UPDATE emp SET sal = sal + 1 WHERE empno BETWEEN %d * i + 1 AND %[2]d * i + %[2]d; END LOOP; END $$"
				run(fmt.Sprintf(loop, 9, 1))
				before := onProcessor(b, pid)
				run(fmt.Sprintf(loop, costRows/rows-1, rows))
				times[i] = append(times[i], (onProcessor(b, pid)-before)/float64(costRows/rows))
			}
		}
	}
	median := func(i int) float64 {
		slices.Sort(times[i])
		return times[i][len(times[i])/2]
	}
	for i, body := range bodies {
		time := median(i)
		if i > 0 {
			time -= median(0)
		}
		b.ReportMetric(time, body.name+"-us")
	}
}

type costBody struct{ name, text string }

// costBodies are no trigger, an empty trigger, the body of this release, and others
// that were tried.
func costBodies(shipped string) []costBody {
	const insert = "INSERT INTO slipstream.change (source, key) SELECT 'depts/emps'::pg_catalog.text, "
	const flush = `GET DIAGNOSTICS recorded = ROW_COUNT;
		IF recorded OPERATOR(pg_catalog.>) 10000 THEN INSERT INTO slipstream.change (source, key) VALUES ('depts/emps', NULL); END IF;`
	const declare = "\n#variable_conflict use_column\nDECLARE recorded pg_catalog.int8;\nBEGIN "
	const union = `FROM (SELECT r.deptno FROM old_rows AS r WHERE r.deptno IS NOT NULL
		UNION SELECT r.deptno FROM new_rows AS r WHERE r.deptno IS NOT NULL) AS k(c1) LIMIT 10001; `
	const general = " IF NOT FOUND THEN PERFORM FROM new_rows LIMIT 1; IF FOUND THEN " + insert + "k.c1::pg_catalog.text " + union + flush + " END IF; END IF; RETURN NEW; END"
	return []costBody{
		{"none", ""},
		{"call", "BEGIN RETURN NEW; END"},
		{"constant-row", "BEGIN " + insert + "'1'; RETURN NEW; END"},
		{"new-rows-only", "BEGIN " + insert + "r.deptno::pg_catalog.text FROM new_rows AS r; RETURN NEW; END"},
		{"format-1", declare + insert + "k.c1::pg_catalog.text " + union + flush + " RETURN NULL; END"},
		{"shipped", shipped},
		{"no-limit", declare + insert + "k.c1::pg_catalog.text " + strings.Replace(union, " LIMIT 10001", "", 1) + " RETURN NEW; END"},
		{"one-row-array", declare + insert + `r.deptno::pg_catalog.text FROM new_rows AS r
			WHERE ARRAY[r.deptno::pg_catalog.text] OPERATOR(pg_catalog.=) ARRAY(SELECT o.deptno::pg_catalog.text FROM old_rows AS o LIMIT 2);` + general},
		{"one-row-join", declare + insert + `r.deptno::pg_catalog.text FROM new_rows AS r, old_rows AS o
			WHERE (r.deptno OPERATOR(pg_catalog.=) o.deptno) IS TRUE AND NOT EXISTS (SELECT FROM new_rows OFFSET 1);` + general},
		{"exception-clause", declare + `DECLARE keys pg_catalog.text[]; BEGIN BEGIN
			keys := ARRAY(SELECT k.c1::pg_catalog.text ` + strings.TrimSuffix(union, "; ") + `);
			EXCEPTION WHEN undefined_column OR undefined_function THEN keys := NULL; END;
			` + insert + `k FROM pg_catalog.unnest(keys) AS k; ` + flush + ` RETURN NULL; END; END`},
	}
}

// onProcessor returns how many microseconds of CPU time a process has used.
func onProcessor(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		b.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	nanoseconds, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return float64(nanoseconds) / 1000
}
