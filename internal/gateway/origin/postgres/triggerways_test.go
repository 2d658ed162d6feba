package postgres

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// BenchmarkTriggerWays is BenchmarkTriggerBody for alternatives other than the body: one function
// for the resources over a table, fewer columns, plain SQL, and triggers that skip rows. The
// documents of all resources show empno, deptno and ename, and not sal.
// docs/decisions/0015-trigger-bodies.md has the results.
func BenchmarkTriggerWays(b *testing.B) {
	for column, value := range map[string]string{"sal": "sal + 1", "ename": "ename || 'x'"} {
		b.Run("changes="+column, func(b *testing.B) { benchmarkTriggerWays(b, column+" = "+value) })
	}
}

func benchmarkTriggerWays(b *testing.B, set string) {
	if runtime.GOOS != "linux" {
		b.Skip("reads /proc")
	}
	pg := testkit.StartPostgres(b)
	runScript(b, pg.URL, `CREATE TABLE dept (deptno int PRIMARY KEY, dname text);
		CREATE TABLE emp (empno int PRIMARY KEY, deptno int REFERENCES dept, ename text, sal int) WITH (fillfactor = 50, autovacuum_enabled = off);
		CREATE INDEX ON emp (deptno);
		INSERT INTO dept SELECT i FROM generate_series(1, 100) AS i;
		INSERT INTO emp SELECT i, 1 + i % 100, '', 0 FROM generate_series(1, 3000) AS i`)
	o := openOrigin(b, Config{URL: pg.URL}, waysResources()...)
	if _, err := o.Apply(b.Context()); err != nil {
		b.Fatal(err)
	}
	ways := costWays(o.schema.Load())
	for i, way := range ways {
		runScript(b, pg.URL, way.script(i))
	}
	conn := connect(b, pg.URL)
	pid := scan[int](b, conn, "SELECT pg_backend_pid()")
	run := func(sql string) {
		if _, err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatalf("%v in %s", err, sql)
		}
	}
	times := make([][]float64, len(ways))
	for range b.N {
		for range costRounds {
			for i, way := range ways {
				run("ALTER TABLE emp DISABLE TRIGGER USER")
				for at := range way.triggers {
					run(fmt.Sprintf(`ALTER TABLE emp ENABLE TRIGGER "way %d/%d"`, i, at))
				}
				run("TRUNCATE slipstream.change")
				run("UPDATE emp SET ename = ''")
				run("VACUUM emp")
				const loop = "DO $$ BEGIN FOR i IN 1..%d LOOP UPDATE emp SET %s WHERE empno = i; END LOOP; END $$"
				run(fmt.Sprintf(loop, 10, set))
				before := onProcessor(b, pid)
				run(fmt.Sprintf(loop, costRows, set))
				times[i] = append(times[i], (onProcessor(b, pid)-before)/costRows)
			}
		}
	}
	median := func(i int) float64 {
		slices.Sort(times[i])
		return times[i][len(times[i])/2]
	}
	for i, way := range ways {
		time := median(i)
		if i > 0 {
			time -= median(0)
		}
		b.ReportMetric(time, way.name+"-us")
	}
}

// waysResources are two resources that record deptno of emp and two that record empno.
func waysResources() []resource.Resource {
	emps := resource.Node{Table: "emp", Columns: []string{"empno", "deptno", "ename"}}
	var all []resource.Resource
	for _, n := range []string{"1", "2"} {
		all = append(all,
			resource.Resource{Name: "depts" + n, Key: []string{"deptno"}, Root: resource.Node{Table: "dept", Children: []resource.Child{{Name: "emps", Node: emps}}}},
			resource.Resource{Name: "emps" + n, Key: []string{"empno"}, Root: emps})
	}
	return all
}

// costWay is a set of triggers for UPDATE of emp.
type costWay struct {
	name     string
	before   string // what they need
	triggers []wayTrigger
}

type wayTrigger struct{ columns, on, body string }

// perStatement is a trigger as it is shipped.
func perStatement(body string) wayTrigger {
	return wayTrigger{"", events[1].referencing + " FOR EACH STATEMENT", body}
}

func (w costWay) script(number int) string {
	var b strings.Builder
	b.WriteString(w.before)
	for at, t := range w.triggers {
		fmt.Fprintf(&b, `CREATE FUNCTION slipstream."way %[1]d/%[2]d"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $way$%[3]s$way$;
			ALTER FUNCTION slipstream."way %[1]d/%[2]d"() OWNER TO %[6]s;
			CREATE TRIGGER "way %[1]d/%[2]d" AFTER UPDATE%[4]s ON emp %[5]s EXECUTE FUNCTION slipstream."way %[1]d/%[2]d"();`,
			number, at, t.body, t.columns, t.on, testkit.Definer)
	}
	return b.String()
}

func costWays(s *schema) []costWay {
	var all []*group // of emp
	for _, c := range s.resources {
		for _, g := range groups(c) {
			if g.table.name == "emp" {
				all = append(all, g)
			}
		}
	}
	shipped := func(groups ...*group) (list []wayTrigger) {
		for _, g := range groups {
			list = append(list, perStatement(g.body(1, false)))
		}
		return list
	}
	one := func(groups ...*group) []wayTrigger {
		g := &group{resource: "all", table: groups[0].table}
		for _, each := range groups {
			g.sources = append(g.sources, each.sources...)
		}
		return shipped(g)
	}
	body := all[0].body(1, false)
	const insert = "INSERT INTO slipstream.change (source, key) "
	source := quoteText(all[0].sources[0].recorded)
	narrow := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(body, "slipstream.change", "slipstream.narrow"), source+"::pg_catalog.text", "17"), source, "17")
	row := "\nBEGIN " + insert + "VALUES (" + source + ", OLD.deptno); IF OLD.deptno IS DISTINCT FROM NEW.deptno THEN " + insert + "VALUES (" + source + ", NEW.deptno); END IF; RETURN NULL; END"
	side := func(n int, rows string) string {
		return fmt.Sprintf(`SELECT deptno::pg_catalog.text COLLATE pg_catalog."C" AS k, empno::pg_catalog.text COLLATE pg_catalog."C" AS e, ename COLLATE pg_catalog."C" AS n, %d AS side FROM %s`, n, rows)
	}
	skip := "\nBEGIN " + insert + "SELECT DISTINCT " + source + ", g.k FROM (" + side(-1, "old_rows") + " UNION ALL " + side(1, "new_rows") +
		") AS g GROUP BY g.k, g.e, g.n HAVING pg_catalog.sum(g.side) OPERATOR(pg_catalog.<>) 0 LIMIT 10001; RETURN NULL; END"
	return []costWay{
		{name: "none"},
		{name: "shipped-1", triggers: shipped(all[0])},
		{name: "shipped-2", triggers: shipped(all[:2]...)},
		{name: "shipped-4", triggers: shipped(all...)},
		{name: "one-function-2", triggers: one(all[:2]...)},
		{name: "one-function-4", triggers: one(all...)},
		{name: "shared-rows-4", triggers: shipped(all[:2]...)}, // resources that record the same columns share a row
		{name: "shared-rows-one-function-4", triggers: one(all[:2]...)},
		{name: "narrow", before: `CREATE TABLE slipstream.narrow (xid xid8 NOT NULL DEFAULT pg_current_xact_id(), source int NOT NULL, key text);
			CREATE INDEX ON slipstream.narrow (xid); GRANT INSERT ON slipstream.narrow TO ` + testkit.Definer + ";", triggers: []wayTrigger{perStatement(narrow)}},
		{name: "constant-row", triggers: []wayTrigger{perStatement("BEGIN " + insert + "VALUES (" + source + ", '1'); RETURN NULL; END")}},
		{name: "constant-row-by-sql", before: `CREATE FUNCTION slipstream.way(text, text) RETURNS void LANGUAGE sql AS $$INSERT INTO slipstream.change (source, key) VALUES ($1, $2)$$;`,
			triggers: []wayTrigger{perStatement("BEGIN PERFORM slipstream.way(" + source + ", '1'); RETURN NULL; END")}},
		{name: "skip", triggers: []wayTrigger{perStatement(skip)}},
		{name: "row-level", triggers: []wayTrigger{{"", "FOR EACH ROW", row}}},
		{name: "row-level-when", triggers: []wayTrigger{{"", "FOR EACH ROW WHEN ((OLD.empno, OLD.deptno, OLD.ename) IS DISTINCT FROM (NEW.empno, NEW.deptno, NEW.ename))", row}}},
		{name: "row-level-of", triggers: []wayTrigger{{" OF empno, deptno, ename", "FOR EACH ROW", row}}},
	}
}
