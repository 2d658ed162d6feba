package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

func TestTriggers(t *testing.T) {
	pg := startServer(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *server)
	}{
		{"every statement that writes", testStatements},
		{"partitions", testPartitions},
		{"inheritance", testInheritance},
		{"composite keys and NULL", testCompositeKeys},
		{"one table at several nodes", testSeveralNodes},
		{"a query's dependencies", testQueryDependencies},
		{"hostile search path", testHostileSearchPath},
		{"settings of the session", testSessionSettings},
		{"more keys than are recorded", testManyKeys},
		{"odd and long names", testOddNames},
		{"migrations", testMigrations},
		{"no subtransactions", testNoSubtransactions},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, pg)
		})
	}
}

// step is a script and what the triggers record.
type step struct{ script, want string }

func (d *database) steps(t *testing.T, steps ...step) {
	t.Helper()
	d.recorded(t)
	for _, s := range steps {
		d.exec(t, s.script)
		if got := d.recorded(t); got != s.want {
			t.Errorf("%s\nrecorded %q, want %q", s.script, got, s.want)
		}
	}
}

func testStatements(t *testing.T, pg *server) {
	d := pg.database(t, `
		CREATE TABLE dept (deptno int PRIMARY KEY, dname text);
		CREATE TABLE emp (empno int PRIMARY KEY, deptno int REFERENCES dept ON DELETE CASCADE ON UPDATE CASCADE, ename text);
		CREATE TABLE task (taskno int PRIMARY KEY, empno int REFERENCES emp ON DELETE SET NULL ON UPDATE CASCADE, what text)`)
	r := deptResource()
	r.Root.Children[0].Node.Children = []resource.Child{{Name: "tasks", Node: resource.Node{Table: "task"}}}
	d.apply(t, Config{}, r)
	merge := step{`MERGE INTO emp USING (VALUES (1, 10), (5, NULL), (6, 30)) AS v(e, d) ON empno = e
			WHEN MATCHED AND d IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET deptno = d WHEN NOT MATCHED THEN INSERT VALUES (e, d)`,
		"depts/emps=10,depts/emps=20,depts/emps=30,depts/emps=40"}
	if pg.Major(t) < 15 { // has no MERGE
		merge.script = `WITH a AS (UPDATE emp SET deptno = 10 WHERE empno = 1), b AS (DELETE FROM emp WHERE empno = 5) INSERT INTO emp VALUES (6, 30)`
	}
	d.steps(t,
		step{`INSERT INTO dept VALUES (10, 'a'), (20, 'b'), (30, 'c'), (40, 'd')`, "depts=10,depts=20,depts=30,depts=40"},
		step{`INSERT INTO emp VALUES (1, 10, 'x'), (2, 10, 'y'), (3, 20, 'z'), (4, NULL, 'nobody')`, "depts/emps=10,depts/emps=20"},
		step{`INSERT INTO task VALUES (100, 1), (101, 1), (102, 2), (103, 3)`, "depts/emps/tasks=1,depts/emps/tasks=2,depts/emps/tasks=3"},
		step{`UPDATE dept SET dname = 'A' WHERE deptno = 10`, "depts=10"},
		step{`UPDATE dept SET dname = 'A' WHERE deptno = 99`, ""},
		step{`UPDATE emp SET deptno = 30 WHERE empno = 2`, "depts/emps=10,depts/emps=30"},
		step{`UPDATE emp SET deptno = NULL WHERE empno = 2`, "depts/emps=30"},
		step{`UPDATE emp SET deptno = 10 WHERE empno = 2`, "depts/emps=10"},
		step{`UPDATE emp SET ename = upper(ename)`, "depts/emps=10,depts/emps=20"},
		step{`DELETE FROM task WHERE taskno = 103`, "depts/emps/tasks=3"},
		step{`INSERT INTO dept VALUES (10, 'B') ON CONFLICT (deptno) DO UPDATE SET dname = excluded.dname`, "depts=10"},
		step{`INSERT INTO dept VALUES (10, 'B') ON CONFLICT DO NOTHING`, ""},
		step{`INSERT INTO emp VALUES (1, 20, 'moved'), (5, 40, 'new') ON CONFLICT (empno) DO UPDATE SET deptno = excluded.deptno`,
			"depts/emps=10,depts/emps=20,depts/emps=40"},
		merge,
		step{`WITH gone AS (DELETE FROM emp WHERE empno = 6 RETURNING deptno) UPDATE dept SET dname = 'less' WHERE deptno IN (SELECT deptno FROM gone)`,
			"depts/emps=30,depts=30"},
		step{`BEGIN; UPDATE dept SET dname = 'rolled back'; ROLLBACK`, ""},
		step{`BEGIN; SAVEPOINT s; UPDATE dept SET dname = 'rolled back'; ROLLBACK TO s; UPDATE dept SET dname = 'c' WHERE deptno = 20; COMMIT`, "depts=20"},
		step{`SET session_replication_role = replica; UPDATE dept SET dname = 'applied' WHERE deptno = 20; RESET session_replication_role`, "depts=20"},
		// In a cascade the trigger of each table records its part. The child's old
		// parent is gone by then, which is why the child's own row names it.
		step{`DELETE FROM dept WHERE deptno = 10`, "depts/emps/tasks=1,depts/emps/tasks=2,depts/emps=10,depts=10"},
		step{`UPDATE dept SET deptno = 21 WHERE deptno = 20`, "depts/emps=20,depts/emps=21,depts=20,depts=21"},
		step{`UPDATE emp SET empno = 33 WHERE empno = 3; UPDATE task SET empno = 33`, "depts/emps/tasks=33,depts/emps=21"},
		step{`TRUNCATE dept CASCADE`, "depts/emps/tasks=*,depts/emps=*,depts=*"},
	)
	copyRows := `1	10	copied
2	20	copied
`
	d.exec(t, `INSERT INTO dept VALUES (10), (20)`)
	d.recorded(t)
	if _, err := d.conn.PgConn().CopyFrom(t.Context(), strings.NewReader(copyRows), `COPY emp FROM STDIN`); err != nil {
		t.Fatal(err)
	}
	if got := d.recorded(t); got != "depts/emps=10,depts/emps=20" {
		t.Errorf("COPY recorded %q", got)
	}
	if got := d.text(t, `BEGIN; SAVEPOINT s; UPDATE dept SET dname = 'x' WHERE deptno = 10; RELEASE s;
		SELECT xid = pg_current_xact_id() FROM slipstream.change`); got != "t" {
		t.Error("what a subtransaction changes is not recorded under the transaction's own number")
	}
	d.exec(t, `ROLLBACK`)
}

func testPartitions(t *testing.T, pg *server) {
	d := pg.database(t, `
		CREATE TABLE sale (id int, day date NOT NULL, note text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
		CREATE TABLE sale_old (dropped int, note text, day date NOT NULL, id int NOT NULL);
		ALTER TABLE sale_old DROP dropped;
		ALTER TABLE sale ATTACH PARTITION sale_old FOR VALUES FROM (MINVALUE) TO ('2020-01-01');
		CREATE TABLE sale_new PARTITION OF sale FOR VALUES FROM ('2020-01-01') TO (MAXVALUE) PARTITION BY HASH (id);
		CREATE TABLE sale_new_0 PARTITION OF sale_new FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE sale_new_1 PARTITION OF sale_new FOR VALUES WITH (MODULUS 2, REMAINDER 1)`)
	d.apply(t, Config{}, resource.Resource{Name: "sales", Key: []string{"id", "day"}, Root: resource.Node{Table: "sale"}})
	if n := d.text(t, `SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgenabled = 'A'`); n != "20" {
		t.Errorf("%s triggers on five tables", n)
	}
	old, recent := `sales=["1", "2019-05-01"]`, `sales=["1", "2021-05-01"]`
	d.steps(t,
		step{`INSERT INTO sale VALUES (1, '2019-05-01')`, old},
		step{`INSERT INTO sale VALUES (1, '2021-05-01')`, recent},
		step{`UPDATE sale SET note = 'x'`, old + "," + recent},
		step{`DELETE FROM sale WHERE day = '2021-05-01'`, recent},
		// Moves to another partition. A primary key that changes flushes, see distrust.
		step{`UPDATE sale SET day = '2021-05-01'`, "sales=*," + old + "," + recent},
		step{`UPDATE sale_new SET note = 'direct'`, recent},
		step{`DELETE FROM sale_new_0; DELETE FROM sale_new_1`, recent},
		step{`INSERT INTO sale_old (day, id) VALUES ('2019-05-01', 1)`, old},
		step{`UPDATE sale_old SET note = 'direct', id = 2`, "sales=*," + old + `,sales=["2", "2019-05-01"]`},
		step{`TRUNCATE sale_old`, "sales=*"},
		step{`TRUNCATE sale_new`, "sales=*,sales=*,sales=*"},
		step{`TRUNCATE sale`, "sales=*,sales=*,sales=*,sales=*,sales=*"},
	)
}

func testInheritance(t *testing.T, pg *server) {
	d := pg.database(t, `
		CREATE TABLE city (name text PRIMARY KEY, people int);
		CREATE TABLE capital (state text) INHERITS (city)`)
	d.apply(t, Config{}, resource.Resource{Name: "cities", Key: []string{"name"}, Root: resource.Node{Table: "city"}})
	d.steps(t,
		step{`INSERT INTO city VALUES ('Bonn')`, "cities=Bonn"},
		step{`INSERT INTO capital VALUES ('Berlin')`, "cities=Berlin"},
		step{`UPDATE city SET people = 1`, "cities=Berlin,cities=Bonn"},
		step{`UPDATE ONLY city SET people = 1`, "cities=Bonn"},
		step{`UPDATE capital SET people = 1`, "cities=Berlin"},
		step{`DELETE FROM city`, "cities=Berlin,cities=Bonn"},
		step{`TRUNCATE city`, "cities=*,cities=*"},
	)
}

// testCompositeKeys has a column of the name of the trigger functions' variable.
func testCompositeKeys(t *testing.T, pg *server) {
	d := pg.database(t, `
		CREATE TABLE shop (country text, recorded int, name text, PRIMARY KEY (country, recorded));
		CREATE TABLE till (id uuid PRIMARY KEY, country text, recorded int, FOREIGN KEY (country, recorded) REFERENCES shop)`)
	d.apply(t, Config{}, resource.Resource{Name: "shops", Key: []string{"country", "recorded"}, Root: resource.Node{Table: "shop",
		Children: []resource.Child{{Name: "tills", Node: resource.Node{Table: "till"}}}}})
	d.steps(t,
		step{`INSERT INTO shop VALUES ('d"e\', 1), ('fr', 2)`, `shops=["d\"e\\", "1"],shops=["fr", "2"]`},
		step{`INSERT INTO till VALUES (gen_random_uuid(), 'fr', 2), (gen_random_uuid(), 'fr', 2)`, `shops/tills=["fr", "2"]`},
		step{`INSERT INTO till VALUES (gen_random_uuid(), 'fr', NULL), (gen_random_uuid(), NULL, NULL)`, ""},
		step{`UPDATE till SET country = NULL WHERE recorded = 2`, `shops/tills=["fr", "2"]`},
	)
}

func testSeveralNodes(t *testing.T, pg *server) {
	d := pg.database(t, `
		CREATE TABLE person (id int PRIMARY KEY, name text);
		CREATE TABLE letter (id int PRIMARY KEY, sender int REFERENCES person, receiver int REFERENCES person)`)
	d.apply(t, Config{}, resource.Resource{Name: "people", Key: []string{"id"}, Root: resource.Node{Table: "person", Children: []resource.Child{
		{Name: "sent", Node: resource.Node{Table: "letter", On: []resource.Join{{Column: "sender", Parent: "id"}}}},
		{Name: "received", Node: resource.Node{Table: "letter", On: []resource.Join{{Column: "receiver", Parent: "id"}}}},
	}}}, resource.Resource{Name: "letters", Key: []string{"id"}, Root: resource.Node{Table: "letter"}})
	d.exec(t, `INSERT INTO person VALUES (1), (2), (3)`)
	d.steps(t,
		step{`INSERT INTO letter VALUES (7, 1, 2), (8, 1, NULL)`, "letters=7,letters=8,people/received=2,people/sent=1"},
		step{`UPDATE letter SET receiver = 3 WHERE id = 7`, "letters=7,people/received=2,people/received=3,people/sent=1"},
		step{`DELETE FROM letter`, "letters=7,letters=8,people/received=3,people/sent=1"},
		step{`TRUNCATE letter`, "letters=*,people/sent=*"},
	)
}

func testQueryDependencies(t *testing.T, pg *server) {
	d := pg.database(t, `
		CREATE TABLE line (id int PRIMARY KEY, order_id bigint, product_id int);
		CREATE TABLE product (id int PRIMARY KEY, price numeric)`)
	d.apply(t, Config{}, resource.Resource{Name: "totals", Key: []string{"order_id"}, Query: &resource.Query{
		SQL: `SELECT l.order_id, json_build_object('sum', sum(p.price)) FROM line l JOIN product p ON p.id = l.product_id WHERE l.order_id = ANY($1) GROUP BY 1`,
		Key: []resource.QueryKey{{Name: "order_id", Type: "bigint"}},
		Depends: []resource.Depend{
			{Table: "line", Columns: []string{"order_id"}},
			{Table: "product", Columns: []string{"id"}, Via: `SELECT order_id FROM line WHERE product_id = ANY($1)`},
		}}})
	d.steps(t,
		step{`INSERT INTO line VALUES (1, 77, 5), (2, NULL, 5)`, "totals/1=77"},
		step{`INSERT INTO product VALUES (5, 1.50)`, "totals/2=5"},
		step{`UPDATE product SET price = 2`, "totals/2=5"},
		step{`TRUNCATE product`, "totals/2=*"},
	)
}

// testHostileSearchPath puts everything that a writer can before the names that
// triggers use: the writer's code must not run with the owner's privileges.
func testHostileSearchPath(t *testing.T, pg *server) {
	d := pg.database(t, `
		CREATE TABLE shop (country text, no numeric, opened date, at timestamptz, id uuid, raw bytea, PRIMARY KEY (country, no, opened, at, id, raw));
		CREATE TABLE dept (deptno int PRIMARY KEY, dname text);
		CREATE TABLE emp (empno int PRIMARY KEY, deptno int REFERENCES dept);
		CREATE ROLE mallory LOGIN; GRANT ALL ON shop, dept, emp TO mallory; CREATE SCHEMA evil AUTHORIZATION mallory`)
	shops := resource.Resource{Name: "shops", Key: []string{"country", "no", "opened", "at", "id", "raw"}, Root: resource.Node{Table: "shop"}}
	d.apply(t, Config{}, shops, deptResource())
	d.recorded(t)
	mallory := d.connect(t, "mallory")
	evil := []string{
		`CREATE TABLE evil.caught (what text)`,
		`CREATE FUNCTION evil.spring(what text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
			IF current_user <> 'mallory' THEN INSERT INTO evil.caught VALUES (what || ' as ' || current_user); END IF; END $$`,
		`CREATE TYPE evil.text AS (a int); CREATE TYPE evil.int8 AS (a int); CREATE TYPE evil.xid8 AS (a int); CREATE TYPE evil."trigger" AS (a int)`,
		`CREATE TEMP TABLE new_rows (country text, deptno int); CREATE TEMP TABLE old_rows (deptno int); INSERT INTO new_rows VALUES ('forged', 666);
			CREATE TEMP TABLE change (source text, key text); CREATE TEMP TABLE k (c1 int); CREATE TEMP TABLE r (deptno int)`,
		`CREATE TABLE evil.new_rows AS TABLE pg_temp.new_rows; CREATE TABLE evil.old_rows AS TABLE pg_temp.old_rows`,
	}
	for _, typ := range []string{"int4", "int8", "text", "numeric", "date", "timestamp", "timestamptz", "uuid", "bytea", "bool"} {
		for _, operator := range []string{"=", "<>", "<", ">", "<=", ">="} {
			evil = append(evil, fmt.Sprintf(`CREATE FUNCTION evil.%[1]s_%[3]d(pg_catalog.%[1]s, pg_catalog.%[1]s) RETURNS pg_catalog.bool LANGUAGE plpgsql AS
				'BEGIN PERFORM evil.spring(''operator %[2]s''); RETURN NULL; END'; CREATE OPERATOR evil.%[2]s (LEFTARG = pg_catalog.%[1]s, RIGHTARG = pg_catalog.%[1]s, FUNCTION = evil.%[1]s_%[3]d)`,
				typ, operator, len(evil)))
		}
	}
	evil = append(evil, `CREATE FUNCTION evil.more(pg_catalog.int8, pg_catalog.int4) RETURNS pg_catalog.bool LANGUAGE plpgsql AS
		'BEGIN PERFORM evil.spring(''operator >''); RETURN NULL; END'; CREATE OPERATOR evil.> (LEFTARG = pg_catalog.int8, RIGHTARG = pg_catalog.int4, FUNCTION = evil.more)`)
	for _, function := range []string{"encode(pg_catalog.bytea, pg_catalog.text)", "trim_scale(pg_catalog.numeric)", "to_json(pg_catalog.date)", "btrim(pg_catalog.text, pg_catalog.text)",
		"to_char(pg_catalog.timestamp, pg_catalog.text)", "timezone(pg_catalog.text, pg_catalog.timestamptz)", "text(pg_catalog.int4)", "pg_current_xact_id()", "clock_timestamp()",
		"json_build_array(VARIADIC pg_catalog.text[])"} {
		evil = append(evil, fmt.Sprintf(`CREATE FUNCTION evil.%s RETURNS pg_catalog.text LANGUAGE plpgsql AS 'BEGIN PERFORM evil.spring(''function''); RETURN ''forged''; END'`, function))
	}
	execOn(t, mallory, evil...)
	execOn(t, mallory, `SET search_path = evil, pg_temp, pg_catalog`)
	if got := textOn(t, mallory, `SELECT 1 = 1`); got != "" {
		t.Fatalf("the trap does not work: 1 = 1 is %q", got)
	}
	execOn(t, mallory, `INSERT INTO public.shop VALUES ('de', 1.50, '2020-01-02', '2020-01-02 03:04:05+00', '11111111-2222-3333-4444-555555555555', '\xc0de')`,
		`UPDATE public.shop SET raw = '\xbeef'`, `DELETE FROM public.shop`,
		`INSERT INTO public.dept VALUES (10)`, `INSERT INTO public.emp VALUES (1, 10)`, `UPDATE public.emp SET empno = 2`, `DELETE FROM public.emp`, `DELETE FROM public.dept`)
	code := `shops=["de", "1.5", "2020-01-02", "2020-01-02T03:04:05.000000Z", "11111111-2222-3333-4444-555555555555", "c0de"]`
	beef := strings.Replace(code, "c0de", "beef", 1)
	want := strings.Join([]string{"depts/emps=10", "depts/emps=10", "depts/emps=10", "depts=10", "depts=10", beef, beef, code, code}, ",")
	if got := d.recorded(t); got != want {
		t.Errorf("recorded\n%s\nwant\n%s", got, want)
	}
	if got := d.text(t, `SELECT string_agg(what, '; ') FROM evil.caught`); got != "" {
		t.Errorf("ran with the owner's rights: %s", got)
	}
}

// testSessionSettings checks that the recorded text is a function of the value.
func testSessionSettings(t *testing.T, pg *server) {
	d := pg.database(t, `
		CREATE TYPE mood AS ENUM ('sad', 'glad');
		CREATE DOMAIN code AS varchar(10);
		CREATE TABLE k (b bool, i2 smallint, i8 bigint, n numeric, t text, c code, d date, ts timestamp, tz timestamptz, u uuid, raw bytea, m mood,
			PRIMARY KEY (b, i2, i8, n, t, c, d, ts, tz, u, raw, m))`)
	d.apply(t, Config{}, resource.Resource{Name: "k", Key: []string{"b", "i2", "i8", "n", "t", "c", "d", "ts", "tz", "u", "raw", "m"}, Root: resource.Node{Table: "k"}})
	d.exec(t, `INSERT INTO k VALUES (true, -7, 9007199254740993, 1.500, 'é', 'c', '2020-02-03', '2020-02-03 04:05:06.7', '2020-02-03 04:05:06+00',
		'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\x00ff', 'glad')`)
	want := `k=["true", "-7", "9007199254740993", "1.5", "é", "c", "2020-02-03", "2020-02-03T04:05:06.700000", "2020-02-03T04:05:06.000000Z", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00ff", "glad"]`
	d.recorded(t)
	for _, settings := range []string{"", "SET DateStyle = 'SQL, DMY'; SET TimeZone = 'Asia/Kathmandu'", "SET DateStyle = 'German'", "SET bytea_output = 'escape'",
		"SET TimeZone = 'America/New_York'; SET extra_float_digits = 0; SET standard_conforming_strings = off; SET backslash_quote = on", "SET default_transaction_isolation = 'serializable'",
		"SET jit_above_cost = 0; SET enable_hashagg = off", "SET row_security = off", "SET plpgsql.extra_errors = 'all'; SET plpgsql.variable_conflict = 'use_variable'", "SET client_encoding = 'LATIN1'"} {
		session := d.connect(t, "")
		execOn(t, session, settings+";DELETE FROM k", `RESET client_encoding`)
		if got := d.recorded(t); got != want {
			t.Errorf("%s: recorded\n%s\nwant\n%s", settings, got, want)
		}
		d.exec(t, `INSERT INTO k VALUES (true, -7, 9007199254740993, 1.5, 'é', 'c', '2020-02-03', '2020-02-03 04:05:06.7', '2020-02-03 04:05:06+00',
			'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\x00ff', 'glad')`)
		d.recorded(t)
	}
}

func testManyKeys(t *testing.T, pg *server) {
	d := pg.database(t, deptSchema)
	d.apply(t, Config{}, deptResource())
	d.recorded(t)
	rows := func() string {
		t.Helper()
		got := d.text(t, `SELECT split_part(source, '@', 1), key IS NULL, count(*) FROM slipstream.change GROUP BY 1, 2 ORDER BY 1, 2`)
		d.exec(t, `TRUNCATE slipstream.change`)
		return got
	}
	for _, s := range []step{
		{`INSERT INTO dept SELECT i FROM generate_series(1001, 11000) AS i`, "depts f 10000"},
		{`INSERT INTO dept SELECT i FROM generate_series(20001, 30001) AS i`, "depts f 10001,depts t 1"},
		{`INSERT INTO emp SELECT i, 10 FROM generate_series(100, 50000) AS i`, "depts/emps f 1"},
		{`UPDATE emp SET ename = 'x'`, "depts/emps f 4"},
		{`UPDATE emp SET deptno = 19001 + empno WHERE empno BETWEEN 1000 AND 10999`, "depts/emps f 10001,depts/emps t 1"},
		{`DELETE FROM emp WHERE empno BETWEEN 1000 AND 10999`, "depts/emps f 10000"},
	} {
		d.exec(t, s.script)
		if got := rows(); got != s.want {
			t.Errorf("%s: recorded %s, want %s", s.script, got, s.want)
		}
	}
}

func testOddNames(t *testing.T, pg *server) {
	odd := "o'\"\\ $body$\n-- é%s"
	long := strings.Repeat("lang é", 8) // 56 bytes, cut inside a character
	table, key := quoteName(odd), quoteName("key "+odd)
	d := pg.database(t,
		fmt.Sprintf(`CREATE SCHEMA %[1]s; CREATE TABLE %[1]s.%[1]s (%[2]s int PRIMARY KEY); CREATE TABLE %[1]s.%[3]s (%[2]s int PRIMARY KEY);
			CREATE TABLE %[1]s.%[4]s (%[2]s int PRIMARY KEY)`, table, key, quoteName(long+"1"), quoteName(long+"2")))
	var resources []resource.Resource
	for i, name := range []string{odd, long + "1", long + "2"} {
		resources = append(resources, resource.Resource{Name: fmt.Sprintf("%s %d", odd+strings.Repeat("ö", 40), i), Key: []string{"key " + odd},
			Root: resource.Node{Table: table + "." + quoteName(name)}})
	}
	o := d.origin(t, Config{}, "", resources...)
	mustApply(t, o)
	if plan := mustPlan(t, o); len(plan) != 0 {
		t.Errorf("plan after apply: %v", plan)
	}
	if n := d.text(t, `SELECT count(*) FROM pg_proc WHERE pronamespace = 'slipstream'::regnamespace`); n != "14" {
		t.Errorf("%s functions, want 4 for each of 3 tables and 2", n)
	}
	d.recorded(t)
	for i, name := range []string{odd, long + "1", long + "2"} {
		d.exec(t, fmt.Sprintf(`INSERT INTO %s.%s VALUES (%d)`, table, quoteName(name), i))
		if got, want := d.recorded(t), fmt.Sprintf("%s=%d", resources[i].Name, i); got != want {
			t.Errorf("recorded %q, want %q", got, want)
		}
	}
	mustApply(t, d.origin(t, Config{}, "", resources[0])) // the others stay
	if n := d.text(t, `SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal`); n != "12" {
		t.Errorf("%s triggers, want 12", n)
	}
	if _, err := o.Drop(t.Context()); err != nil {
		t.Error(err)
	}
}
