package postgres

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// refusalsSQL has tables that cannot be documents, or only partly.
const refusalsSQL = `
	CREATE TABLE dept (deptno int PRIMARY KEY, name text, boss int, code text UNIQUE, motto text UNIQUE NOT NULL);
	CREATE TABLE emp (empno int PRIMARY KEY, deptno int REFERENCES dept, second int REFERENCES dept, name text, f float8);
	CREATE TABLE loner (id int PRIMARY KEY, deptno int, txt text, fl float4);
	CREATE VIEW v AS SELECT * FROM dept;
	CREATE MATERIALIZED VIEW mv AS SELECT * FROM dept;
	CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY);
	CREATE FOREIGN DATA WRAPPER wrapper; CREATE SERVER far FOREIGN DATA WRAPPER wrapper;
	CREATE FOREIGN TABLE foreigner (id int) SERVER far;
	CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id);
	CREATE UNLOGGED TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
	CREATE TABLE outside (id int) PARTITION BY RANGE (id);
	CREATE FOREIGN TABLE outside_1 PARTITION OF outside FOR VALUES FROM (0) TO (10) SERVER far;
	CREATE TABLE whole (id int PRIMARY KEY) PARTITION BY RANGE (id);
	CREATE TABLE part PARTITION OF whole FOR VALUES FROM (0) TO (10);
	CREATE TABLE up (id int); CREATE TABLE down (PRIMARY KEY (id)) INHERITS (up);
	CREATE TABLE first (id int PRIMARY KEY); CREATE TABLE second (id int PRIMARY KEY); CREATE TABLE heir () INHERITS (first, second);
	CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	CREATE TYPE pair AS (a int, b int);
	CREATE TABLE types (f4 float4 UNIQUE NOT NULL, f8 float8 UNIQUE NOT NULL, m money UNIQUE NOT NULL, c char(5) UNIQUE NOT NULL,
		iv interval UNIQUE NOT NULL, nc text COLLATE nocase UNIQUE NOT NULL, j jsonb UNIQUE NOT NULL, a int[] UNIQUE NOT NULL,
		p pair UNIQUE NOT NULL, inet inet UNIQUE NOT NULL, t time UNIQUE NOT NULL);
	CREATE TABLE keys (a int NOT NULL, b int NOT NULL, c int UNIQUE, d int NOT NULL, e int NOT NULL, f int NOT NULL, g int NOT NULL,
		PRIMARY KEY (a, b), UNIQUE (d) DEFERRABLE);
	CREATE UNIQUE INDEX ON keys (e) WHERE e > 0;
	CREATE UNIQUE INDEX ON keys ((f + 1));
	CREATE UNIQUE INDEX ON keys (g) INCLUDE (a);
	CREATE SCHEMA hidden; CREATE TABLE hidden.treasure (id int PRIMARY KEY);
	CREATE TABLE "Odd.Name" ("Key ""1""" int PRIMARY KEY);
	CREATE TABLE secret (id int PRIMARY KEY, a int, b int);
	CREATE TABLE halfsecret (id int PRIMARY KEY, a int, b int);
	CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
	REVOKE SELECT ON secret, halfsecret FROM reader; GRANT SELECT (id, a) ON halfsecret TO reader;`

func TestRefusals(t *testing.T) {
	pg := startServer(t) // its subscription would keep a database in use
	runScript(t, pg.URL, refusalsSQL)
	reader := connect(t, strings.Replace(pg.URL, "postgres@", "reader@", 1))
	table := func(name string, key ...string) resource.Resource {
		return resource.Resource{Name: "r", Line: 3, Key: key, Root: resource.Node{Table: name}}
	}
	with := func(r resource.Resource, children ...resource.Child) resource.Resource {
		r.Root.Children = children
		return r
	}
	on := func(column, parent string) []resource.Join { return []resource.Join{{Column: column, Parent: parent}} }
	dept := table("dept", "deptno")
	tests := map[string]struct {
		resource resource.Resource
		want     string
	}{
		"no such table":             {table("dpt", "deptno"), `no table dpt; did you mean "dept"?`},
		"case counts":               {table("Dept", "deptno"), `no table Dept; did you mean "dept"?`},
		"schema outside the path":   {table("treasure", "id"), `did you mean "hidden.treasure"?`},
		"no usage of the schema":    {table("hidden.treasure", "id"), `GRANT USAGE ON SCHEMA "hidden" TO "reader"`},
		"three parts":               {table("a.b.c", "id"), "expected table or schema.table"},
		"unbalanced quote":          {table(`"a`, "id"), "unbalanced quote"},
		"text after a quote":        {table(`"a"b`, "id"), "continues after a quoted name"},
		"empty name":                {table("", "id"), "expected table or schema.table"},
		"injection":                 {table(`dept; DROP TABLE dept`, "id"), "no table dept; DROP TABLE dept"},
		"view":                      {table("v", "deptno"), "is a view; name the underlying table, or declare the resource with sql"},
		"materialized view":         {table("mv", "deptno"), "is a materialized view"},
		"foreign table":             {table("foreigner", "id"), "is a foreign table"},
		"unlogged":                  {table("unlogged", "id"), "SET LOGGED"},
		"unlogged partition":        {table("parted", "id"), "parted_1 is an unlogged table"},
		"foreign partition":         {table("outside", "id"), "outside_1 is a foreign table"},
		"partition":                 {table("part", "id"), "part belongs to public.whole as well, and changes by statements that name public.whole would be missed"},
		"heir":                      {table("down", "id"), "name public.up instead"},
		"heir of another too":       {table("first", "id"), "heir belongs to public.second as well"},
		"catalog":                   {table("pg_class", "oid"), "system table"},
		"no SELECT":                 {table("secret", "id"), `GRANT SELECT ON "public"."secret" TO "reader"`},
		"no SELECT on a column":     {table("halfsecret", "id"), `GRANT SELECT ("b") ON "public"."halfsecret" TO "reader"`},
		"no key":                    {table("dept"), "no key"},
		"no such key":               {table("dept", "depno"), `no column "depno"; did you mean "deptno"?`},
		"key twice":                 {table("dept", "deptno", "deptno"), "listed twice"},
		"key may be NULL":           {table("dept", "code"), "may be NULL"},
		"half a key":                {table("keys", "a"), "does not name one row"},
		"more than a key":           {table("keys", "a", "b", "g"), "does not name one row"},
		"deferrable":                {table("keys", "d"), "does not name one row"},
		"partial index":             {table("keys", "e"), "does not name one row"},
		"index over an expression":  {table("keys", "f"), "does not name one row"},
		"float4":                    {table("types", "f4"), "some numbers have several spellings"},
		"float8":                    {table("types", "f8"), "some numbers have several spellings"},
		"money":                     {table("types", "m"), "lc_monetary"},
		"char(n)":                   {table("types", "c"), "trailing spaces"},
		"interval":                  {table("types", "iv"), "24:00:00 and 1 day"},
		"nondeterministic":          {table("types", "nc"), "not deterministic"},
		"jsonb":                     {table("types", "j"), "has type jsonb"},
		"array":                     {table("types", "a"), "has type integer[]"},
		"composite":                 {table("types", "p"), "has type public.pair"},
		"inet":                      {table("types", "inet"), "has type inet"},
		"time":                      {table("types", "t"), "has type time without time zone"},
		"root with on":              {resource.Resource{Name: "r", Key: []string{"deptno"}, Root: resource.Node{Table: "dept", On: on("deptno", "deptno")}}, "nothing to be joined to"},
		"unknown column":            {resource.Resource{Name: "r", Key: []string{"deptno"}, Root: resource.Node{Table: "dept", Columns: []string{"nam"}}}, `did you mean "name"?`},
		"column twice":              {resource.Resource{Name: "r", Key: []string{"deptno"}, Root: resource.Node{Table: "dept", Columns: []string{"name", "name"}}}, "listed twice"},
		"no foreign key":            {with(dept, childOf("x", resource.Node{Table: "loner"})), "no foreign key leads from table loner to dept"},
		"two foreign keys":          {with(dept, childOf("x", resource.Node{Table: "emp"})), "2 foreign keys lead from table emp to dept: emp_deptno_fkey (deptno)"},
		"unknown join column":       {with(dept, childOf("x", resource.Node{Table: "emp", On: on("dept", "deptno")})), `no column "dept"`},
		"unknown parent column":     {with(dept, childOf("x", resource.Node{Table: "emp", On: on("deptno", "dept")})), `table dept has no column "dept"`},
		"unknown order":             {with(dept, childOf("x", resource.Node{Table: "emp", On: on("deptno", "deptno"), Order: []resource.Order{{Column: "nme"}}})), `no column "nme"`},
		"types that do not compare": {with(dept, childOf("x", resource.Node{Table: "loner", On: on("txt", "deptno")})), "have types text and integer"},
		"float join":                {with(dept, childOf("x", resource.Node{Table: "loner", On: on("fl", "deptno")})), "join column loner.fl has type real"},
		"member twice":              {with(dept, childOf("name", resource.Node{Table: "loner", On: on("deptno", "deptno")})), `two members called "name"`},
		"long name":                 {with(dept, childOf(strings.Repeat("x", 64), resource.Node{Table: "loner", On: on("deptno", "deptno")})), "PostgreSQL keeps 63"},
		"itself":                    {with(dept, childOf("x", resource.Node{Table: "public.dept", On: on("boss", "deptno")})), "contains itself"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := readOne(t, reader, tt.resource)
			if c.Err == nil || !strings.Contains(c.Err.Error(), tt.want) {
				t.Errorf("got %v\nwant %q in it", c.Err, tt.want)
			}
		})
	}
	for _, fits := range []resource.Resource{dept, table("keys", "b", "a"), table("keys", "g"), table(`"Odd.Name"`, `Key "1"`), table(`"public"."dept"`, "motto"),
		{Name: "r", Key: []string{"id"}, Root: resource.Node{Table: "halfsecret", Columns: []string{"a"}}}} {
		if c := readOne(t, reader, fits); c.Err != nil {
			t.Errorf("%s %v: %v", fits.Root.Table, fits.Key, c.Err)
		}
	}
	// Temporary tables and subscriptions are seen only from where they are.
	owner := connect(t, pg.URL)
	if _, err := owner.Exec(t.Context(), `CREATE TEMP TABLE passing (id int PRIMARY KEY);
		CREATE SUBSCRIPTION sub CONNECTION 'dbname=none' PUBLICATION p WITH (connect = false);
		INSERT INTO pg_subscription_rel SELECT oid, 'loner'::regclass, 'r', NULL FROM pg_subscription`); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"passing": "temporary table", "loner": "belongs to a subscription"} {
		if c := readOne(t, owner, table(name, "id")); c.Err == nil || !strings.Contains(c.Err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", name, c.Err, want)
		}
	}
	// Open collects what is wrong with all resources.
	_, err := Open(t.Context(), Config{URL: pg.URL}, []resource.Resource{table("v", "deptno"), dept, table("mv", "deptno")})
	var schemaErr *origin.SchemaError
	if !errors.As(err, &schemaErr) || strings.Count(err.Error(), "view") < 2 || schemaErr.Line != 3 {
		t.Errorf("Open: %v", err)
	}
}

// readOne compiles one resource over conn.
func readOne(t testing.TB, conn *pgx.Conn, r resource.Resource) *compiled {
	t.Helper()
	var s *schema
	err := pgx.BeginTxFunc(t.Context(), conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		var err error
		s, err = readSchema(t.Context(), tx, origin.NewSet([]resource.Resource{r}))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.resources[0]
}

func TestWarnings(t *testing.T) {
	pg := freshDatabase(t)
	runScript(t, pg.url, `CREATE TABLE dept (deptno int PRIMARY KEY, code int NOT NULL);
		CREATE TABLE emp (deptno int, code int);
		ALTER TABLE dept ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON dept USING (code > 1);
		CREATE TABLE heir () INHERITS (dept);
		CREATE ROLE reader LOGIN; GRANT SELECT ON dept, emp TO reader;
		INSERT INTO dept VALUES (1, 1), (2, 2)`)
	url := strings.Replace(pg.url, "postgres@", "reader@", 1)
	o := openOrigin(t, Config{URL: url}, resource.Resource{Name: "depts", Key: []string{"deptno"}, Root: resource.Node{Table: "dept", Children: []resource.Child{
		childOf("emps", resource.Node{Table: "emp", On: []resource.Join{{Column: "code", Parent: "code"}}})}}})
	for _, want := range []string{
		"row-level security applies to role reader on table dept",
		"no index of table emp starts with its join column code; every load reads the whole table",
		"no index of table dept starts with code",
		"table emp has no primary key",
		"tables inherit from dept",
	} {
		if !slices.ContainsFunc(o.Warnings(), func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("no warning %q in %q", want, o.Warnings())
		}
	}
	if body := loadOne(t, o, "1"); body != nil {
		t.Errorf("row-level security hides dept 1, got %s", body)
	}
	if body := loadOne(t, o, "2"); body == nil {
		t.Error("dept 2 is missing")
	}
}

// A table's description has its partitions of partitions, with one that is being
// detached, and what its keys and indexes are.
func TestCatalog(t *testing.T) {
	pg := freshDatabase(t)
	nulls := "NULLS NOT DISTINCT"
	if startShared(t).Major(t) < 15 {
		nulls = "" // the server does not know it
	}
	runScript(t, pg.url, `CREATE DOMAIN posint AS int CHECK (VALUE > 0); CREATE DOMAIN small AS posint;
		CREATE TYPE color AS ENUM ('red', 'green');
		CREATE TABLE m (a int, gone int, b small NOT NULL, c color, d varchar(9) COLLATE "C", PRIMARY KEY (b, a)) PARTITION BY RANGE (a);
		ALTER TABLE m DROP COLUMN gone;
		CREATE TABLE m1 PARTITION OF m FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (a);
		CREATE TABLE m11 PARTITION OF m1 FOR VALUES FROM (0) TO (5);
		CREATE TABLE m2 PARTITION OF m FOR VALUES FROM (10) TO (20);
		CREATE INDEX ON m (c) INCLUDE (d); CREATE INDEX ON m USING brin (a);
		CREATE TABLE up (b int, a int, FOREIGN KEY (a, b) REFERENCES m (a, b), UNIQUE `+nulls+` (a, b))`)
	runScript(t, pg.url, "UPDATE pg_inherits SET inhdetachpending = true WHERE inhrelid = 'm2'::regclass")
	c := readOne(t, connect(t, pg.url), resource.Resource{Name: "r", Key: []string{"a", "b"}, Root: resource.Node{Table: "m"}})
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	m := c.Root.Table
	var names []string
	for _, r := range m.tree {
		names = append(names, r.name)
	}
	if !slices.Equal(names, []string{"m", "m1", "m2", "m11"}) || len(c.relations) != 4 {
		t.Errorf("tree %v, %d relations", names, len(c.relations))
	}
	if !slices.Equal(m.ColumnNames(), []string{"a", "b", "c", "d"}) || m.columns[1].number != 3 || m.columns[1].typ != 23 ||
		m.columns[1].typeName != "public.small" || m.columns[2].enum != "public.color" || m.columns[3].collation != `pg_catalog."C"` || !m.columns[3].deterministic {
		t.Errorf("columns %+v", m.columns)
	}
	if !slices.Equal(m.primaryKey, []int{1, 0}) || len(m.unique) != 1 || !slices.Equal(m.leading, []int{1, 2}) {
		t.Errorf("primary key %v, unique %v, leading %v", m.primaryKey, m.unique, m.leading)
	}
	up := readOne(t, connect(t, pg.url), resource.Resource{Name: "r", Key: []string{"a"}, Root: resource.Node{Table: "up"}}).Nodes[0].Table
	if len(up.foreignKeys) < 1 || up.foreignKeys[0].table != m.oid || !slices.Equal(up.foreignKeys[0].from, []string{"a", "b"}) {
		t.Errorf("foreign keys %+v", up.foreignKeys)
	}
}
