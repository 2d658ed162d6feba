package postgres

import (
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// TestWhatVersionsAdd has what only some major versions can do. make matrix runs
// it on each.
func TestWhatVersionsAdd(t *testing.T) {
	major := startShared(t).Major(t)
	for _, each := range []struct {
		since int
		rule  string
		run   func(*testing.T)
	}{
		{12, "a stored generated column joins", storedColumnJoins},
		{15, "keys are found whatever the database's locale provider", func(t *testing.T) { localeProviders(t, major) }},
		{17, "rows that a MERGE finds in the target only are recorded", mergeNotMatchedBySource},
		{18, "a virtual generated column is NULL in transition tables", virtualColumnIsNullInTriggers},
		{18, "a virtual generated column is served and does not join", virtualColumnDoesNotJoin},
		{18, "a new expression of a virtual generated column drops the documents", virtualColumnExpression},
		{18, "a key column with a NOT NULL that is not valid is refused", notNullNotValid},
		{18, "a temporal key names no row, and a temporal foreign key joins nothing", temporalKeys},
		{18, "a foreign key that is not enforced joins", foreignKeyNotEnforced},
		{18, "RETURNING old and new values records nothing else", returningOldAndNew},
	} {
		if major >= each.since {
			t.Run(each.rule, each.run)
		}
	}
}

func TestVirtualColumnIsNoKey(t *testing.T) {
	for virtual, want := range map[bool]string{
		false: "",
		true:  "is a virtual generated column, which triggers see as NULL; expected GENERATED ALWAYS AS (...) STORED",
	} {
		if _, problem := keyTypeOf(&column{name: "a", typ: 23, typeName: "integer", deterministic: true, virtual: virtual}); problem != want {
			t.Errorf("virtual %t: %q, want %q", virtual, problem, want)
		}
	}
}

// deptWith is a resource of departments whose employees are joined by a column.
func deptWith(column string) resource.Resource {
	r := deptResource()
	r.Root.Children[0].Node.On = []resource.Join{{Column: column, Parent: "deptno"}}
	return r
}

func storedColumnJoins(t *testing.T) {
	d := freshDatabase(t, `CREATE TABLE dept (deptno int PRIMARY KEY);
		CREATE TABLE emp (empno int PRIMARY KEY, code int, dept int GENERATED ALWAYS AS (code / 100) STORED);
		CREATE INDEX ON emp (dept)`)
	d.apply(t, Config{}, deptWith("dept"))
	d.steps(t,
		step{`INSERT INTO emp VALUES (1, 1007)`, "depts/emps=10"},
		step{`UPDATE emp SET code = 2007`, "depts/emps=10,depts/emps=20"},
		step{`DELETE FROM emp`, "depts/emps=20"},
	)
}

// localeProviders loads by a text key that a column of the collation C joins.
func localeProviders(t *testing.T, major int) {
	providers := []string{`LOCALE_PROVIDER icu ICU_LOCALE 'en-US'`}
	if major >= 17 {
		providers = append(providers, `LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'`)
	}
	for _, provider := range providers {
		s := startShared(t)
		s.PSQL(t, `CREATE DATABASE provided TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' `+provider)
		func() {
			defer s.PSQL(t, `DROP DATABASE provided WITH (FORCE)`)
			d := &database{name: "provided", url: strings.Replace(s.URL, "/postgres?", "/provided?", 1)}
			d.conn = d.connect(t, "")
			d.exec(t, `CREATE TABLE dept (deptno text PRIMARY KEY);
				CREATE TABLE emp (empno int PRIMARY KEY, dept text COLLATE "C");
				CREATE INDEX ON emp (dept);
				INSERT INTO dept VALUES ('é'), ('E'), ('e'), ('Z')`)
			r := deptWith("dept")
			d.apply(t, Config{}, r)
			d.steps(t,
				step{`INSERT INTO emp VALUES (1, 'é'), (2, 'E')`, "depts/emps=E,depts/emps=é"},
				step{`UPDATE dept SET deptno = 'Y' WHERE deptno = 'Z'`, "depts=Y,depts=Z"},
			)
			o := openOrigin(t, Config{URL: d.url}, r)
			for key, want := range map[string]string{"é": `"empno":1`, "E": `"empno":2`, "e": `"emps":[]`} {
				if body := strings.ReplaceAll(string(loadOne(t, o, key)), " ", ""); !strings.Contains(body, want) {
					t.Errorf("%s: document %s is %s, want %s in it", provider, key, body, want)
				}
			}
			_ = o.Close()
		}()
	}
}

func mergeNotMatchedBySource(t *testing.T) {
	d := freshDatabase(t, `CREATE TABLE dept (deptno int PRIMARY KEY);
		CREATE TABLE emp (empno int PRIMARY KEY, deptno int REFERENCES dept) PARTITION BY RANGE (empno);
		CREATE TABLE emp_low PARTITION OF emp FOR VALUES FROM (0) TO (100);
		CREATE TABLE emp_high PARTITION OF emp FOR VALUES FROM (100) TO (200);
		CREATE INDEX ON emp (deptno);
		INSERT INTO dept SELECT generate_series(10, 90, 10);
		INSERT INTO emp VALUES (1, 10), (2, 20), (101, 30), (102, 40)`)
	d.apply(t, Config{}, deptResource())
	d.recorded(t)
	d.exec(t, `MERGE INTO emp USING (VALUES (1, 50), (150, 60)) AS v(k, d) ON emp.empno = k
		WHEN MATCHED THEN UPDATE SET deptno = d WHEN NOT MATCHED BY TARGET THEN INSERT VALUES (k, d)
		WHEN NOT MATCHED BY SOURCE AND emp.deptno = 20 THEN DELETE
		WHEN NOT MATCHED BY SOURCE AND emp.deptno = 30 THEN UPDATE SET deptno = 70 RETURNING merge_action(), emp.*`)
	got := "," + d.recorded(t) + ","
	for _, want := range []string{"10", "20", "30", "50", "60", "70"} {
		if !strings.Contains(got, ",depts/emps="+want+",") && !strings.Contains(got, ",depts/emps=*,") {
			t.Errorf("recorded %s, want the documents of %s or all", got, want)
		}
	}
	if strings.Contains(got, "=40,") {
		t.Errorf("recorded %s, although no row of 40 changed", got)
	}
}

func virtualColumnIsNullInTriggers(t *testing.T) {
	d := freshDatabase(t, watchSQL+`CREATE TABLE a (id int, p int GENERATED ALWAYS AS (id * 2) VIRTUAL); CALL watch('a')`)
	d.fires(t, step{`INSERT INTO a VALUES (1)`, "a INSERT 1"}, step{`UPDATE a SET id = 3`, "a UPDATE 1 to 3"})
}

const virtualSchema = `CREATE TABLE dept (deptno int PRIMARY KEY, double int GENERATED ALWAYS AS (deptno * 2) VIRTUAL);
	CREATE TABLE emp (empno int PRIMARY KEY, code int, deptno int, dept int GENERATED ALWAYS AS (code / 100) VIRTUAL);
	CREATE INDEX ON emp (deptno); INSERT INTO dept VALUES (10); INSERT INTO emp VALUES (1, 1007, 10)`

func virtualColumnDoesNotJoin(t *testing.T) {
	d := freshDatabase(t, virtualSchema)
	if c := readOne(t, d.conn, deptWith("dept")); c.Err == nil || !strings.Contains(c.Err.Error(), "join column emp.dept is a virtual generated column") {
		t.Errorf("as a join column: %v", c.Err)
	}
	q := query(`SELECT deptno, json_build_object('double', double) FROM dept WHERE deptno = ANY ($1)`, queryKey("id", "int"), on("dept", "deptno"), on("emp", "dept"))
	if c := resolveOne(t, d.conn, q); c.Err == nil || !strings.Contains(c.Err.Error(), "column emp.dept, by which documents are found, is a virtual generated column") {
		t.Errorf("as the key of a dependency: %v", c.Err)
	}
	d.apply(t, Config{}, deptWith("deptno"))
	o := openOrigin(t, Config{URL: d.url}, deptWith("deptno"))
	if body := strings.ReplaceAll(string(loadOne(t, o, "10")), " ", ""); !strings.Contains(body, `"double":20`) || !strings.Contains(body, `"dept":10`) {
		t.Errorf("the document is %s, want both columns in it", body)
	}
}

func virtualColumnExpression(t *testing.T) {
	s := startStreamed(t)
	s.exec("ALTER TABLE dept ADD COLUMN twice bigint GENERATED ALWAYS AS (deptno * 2) VIRTUAL")
	s.apply()
	s.run()
	s.expect("*")
	s.exec("ALTER TABLE dept ALTER COLUMN twice SET EXPRESSION AS (deptno * 3)")
	s.expect("*")
}

func notNullNotValid(t *testing.T) {
	d := freshDatabase(t, `CREATE TABLE dept (id int PRIMARY KEY, deptno int UNIQUE); INSERT INTO dept VALUES (1, NULL);
		ALTER TABLE dept ADD CONSTRAINT there NOT NULL deptno NOT VALID`)
	r := deptResource()
	r.Root.Children = nil
	if c := readOne(t, d.conn, r); c.Err == nil || !strings.Contains(c.Err.Error(), "dept.deptno may be NULL") {
		t.Errorf("with a NULL in it: %v", c.Err)
	}
	d.exec(t, `DELETE FROM dept`, `ALTER TABLE public.dept ALTER COLUMN deptno SET NOT NULL`) // as the error says
	if c := readOne(t, d.conn, r); c.Err != nil {
		t.Error(c.Err)
	}
}

func temporalKeys(t *testing.T) {
	d := freshDatabase(t, `CREATE EXTENSION btree_gist; CREATE TABLE dept (deptno int, valid daterange, PRIMARY KEY (deptno, valid WITHOUT OVERLAPS));
		CREATE TABLE emp (empno int, deptno int, valid daterange, PRIMARY KEY (empno, valid WITHOUT OVERLAPS),
			FOREIGN KEY (deptno, PERIOD valid) REFERENCES dept (deptno, PERIOD valid));
		CREATE TABLE firm (id int PRIMARY KEY); CREATE INDEX ON emp (deptno)`)
	r := deptResource()
	r.Root.Children = nil
	if c := readOne(t, d.conn, r); c.Err == nil || !strings.Contains(c.Err.Error(), "key (deptno) does not name one row") {
		t.Errorf("half of a temporal key: %v", c.Err)
	}
	r.Key = []string{"deptno", "valid"}
	if c := readOne(t, d.conn, r); c.Err == nil || !strings.Contains(c.Err.Error(), "key column dept.valid has type daterange") {
		t.Errorf("a temporal key: %v", c.Err)
	}
	firm := resource.Resource{Name: "firms", Key: []string{"id"}, Root: resource.Node{Table: "firm", Children: []resource.Child{{Name: "depts", Node: resource.Node{
		Table: "dept", On: []resource.Join{{Column: "deptno", Parent: "id"}}, Children: []resource.Child{{Name: "emps", Node: resource.Node{Table: "emp"}}}}}}}}
	if c := readOne(t, d.conn, firm); c.Err == nil || !strings.Contains(c.Err.Error(), "foreign key emp_deptno_valid_fkey of table emp has a PERIOD") {
		t.Errorf("a temporal foreign key: %v", c.Err)
	}
	// With the columns named, rows of all periods are followed.
	firm.Root.Children[0].Node.Children[0].Node.On = []resource.Join{{Column: "deptno", Parent: "deptno"}}
	d.apply(t, Config{}, firm)
	d.steps(t,
		step{`INSERT INTO dept VALUES (10, '[2026-01-01,2026-02-01)'), (10, '[2026-02-01,2026-03-01)')`, "firms/depts=10"},
		step{`INSERT INTO emp VALUES (1, 10, '[2026-01-10,2026-02-10)')`, "firms/depts/emps=10"},
		step{`UPDATE emp SET valid = '[2026-01-10,2026-02-20)'`, "firms/depts/emps=10"},
	)
}

func foreignKeyNotEnforced(t *testing.T) {
	d := freshDatabase(t, `CREATE TABLE dept (deptno int PRIMARY KEY);
		CREATE TABLE emp (empno int PRIMARY KEY, deptno int REFERENCES dept NOT ENFORCED); CREATE INDEX ON emp (deptno)`)
	d.apply(t, Config{}, deptResource())
	d.steps(t, step{`INSERT INTO emp VALUES (1, 10)`, "depts/emps=10"}, step{`INSERT INTO dept VALUES (10)`, "depts=10"})
}

func returningOldAndNew(t *testing.T) {
	d := freshDatabase(t, deptSchema)
	d.apply(t, Config{}, deptResource())
	d.steps(t,
		step{`UPDATE emp SET deptno = 30 WHERE empno = 1 RETURNING old.deptno, new.deptno`, "depts/emps=10,depts/emps=30"},
		step{`INSERT INTO dept VALUES (10, 'x') ON CONFLICT (deptno) DO UPDATE SET dname = excluded.dname RETURNING old.*, new.*`, "depts=10"},
	)
}

// newerQueries are statements in the SQL of later versions than the oldest.
func newerQueries(major int) (queries []goodQuery) {
	if major >= 16 {
		queries = append(queries, goodQuery{"constructors of JSON",
			query(`select c.id, json_object('name': c.name, 'orders': json_arrayagg(o.id order by o.id absent on null returning json) absent on null)
				from customer c left join orders o on o.customer = c.id where c.id = any($1) group by c.id`,
				queryKey("id", "int"), on("customer", "id"), on("orders", "customer")),
			[][]string{{"9", "1"}}, `select 2, json_build_object('name', name, 'orders', (select json_agg(o.id order by o.id) from orders o where customer = 1)) from customer where id = 1`})
	}
	if major >= 17 {
		queries = append(queries, goodQuery{"JSON_TABLE and JSON_VALUE",
			query(`select p.id, (select json_build_object('n', j.n, 'v', json_value(p.info, '$.n' returning int)) from json_table(p.info, '$' columns (n int path '$.n')) as j)
				from product p where p.id = any($1)`, queryKey("id", "int"), on("product", "id")),
			[][]string{{"7"}}, `values (1, '{"n": 7, "v": 7}')`})
	}
	return queries
}
