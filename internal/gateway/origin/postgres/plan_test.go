package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// From what a trigger records, a derivation finds the same documents as
// walking up the tree in Go.
func TestSourcesLeadToTheDocuments(t *testing.T) {
	pg := testkit.StartPostgres(t)
	for script, resources := range map[string][]resource.Resource{"film.sql": filmResources(), "orders.sql": orderResources()} {
		name := strings.TrimSuffix(script, ".sql")
		runScript(t, pg.URL, "CREATE DATABASE "+name)
		url := strings.Replace(pg.URL, "/postgres?", "/"+name+"?", 1)
		runScript(t, url, script)
		conn := connect(t, url)
		derived := 0
		for _, r := range resources {
			c := readOne(t, conn, r)
			if c.Err != nil {
				t.Fatal(c.Err)
			}
			for i, s := range c.sources {
				if s.derive != "" {
					derived++
				}
				compareSource(t, conn, c, c.Nodes[i], s)
			}
		}
		if derived < 3 {
			t.Errorf("%s: only %d sources derive", script, derived)
		}
	}
}

func compareSource(t *testing.T, conn *pgx.Conn, c *compiled, n *node, s source) {
	t.Helper()
	var types []keyType
	var columns, plain []string
	for _, at := range s.columns {
		kt, _ := keyTypeOf(&s.table.columns[at])
		types = append(types, kt)
		columns = append(columns, "x."+quoteName(s.table.columns[at].name))
	}
	for _, col := range s.table.columns {
		plain = append(plain, "x."+quoteName(col.name)+"::text")
	}
	rows, err := conn.Query(t.Context(), "SELECT "+keyText(types, columns)+", ARRAY["+strings.Join(plain, ", ")+"] FROM "+s.table.sql()+" AS x LIMIT 150")
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		recorded string
		values   []*string
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		Recorded string
		Values   []*string
	}])
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		r := row{f.Recorded, f.Values}
		want := climb(t, conn, c, n, r.values)
		got := []string{r.recorded}
		if s.derive != "" {
			rows, err := conn.Query(t.Context(), "SELECT d.* FROM (SELECT $1::text AS key OFFSET 0) AS c, LATERAL ("+s.derive+" OFFSET 0) AS d", r.recorded)
			if err != nil {
				t.Fatal(err)
			}
			if got, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
		}
		ids := make(map[string]bool)
		for _, text := range got {
			id, ok := decodeKey(c.Key, text)
			if !ok {
				t.Fatalf("%s: no id in %q", s.name, text)
			}
			ids[id] = true
		}
		if !maps.Equal(ids, want) {
			t.Fatalf("%s: %q leads to %v, want %v", s.name, r.recorded, ids, want)
		}
	}
}

// climb finds the ids of the documents that contain a row of n, with one plain
// SELECT per level, all values compared as texts of numbers without trailing zeros.
func climb(t *testing.T, conn *pgx.Conn, c *compiled, n *node, values []*string) map[string]bool {
	t.Helper()
	ids := make(map[string]bool)
	if n.Parent == nil {
		var segments []string
		for _, at := range c.KeyAt {
			segments = append(segments, *values[at])
		}
		ids[resource.JoinID(segments)] = true
		return ids
	}
	var where, plain []string
	var args []any
	for i, j := range n.On {
		if values[j.Column] == nil {
			return ids
		}
		where = append(where, fmt.Sprintf("x.%s::text = $%d", quoteName(n.Parent.Table.columns[j.Parent].name), i+1))
		args = append(args, *values[j.Column])
	}
	for _, col := range n.Parent.Table.columns {
		plain = append(plain, "x."+quoteName(col.name)+"::text")
	}
	rows, err := conn.Query(t.Context(), "SELECT ARRAY["+strings.Join(plain, ", ")+"] FROM "+n.Parent.Table.sql()+" AS x WHERE "+strings.Join(where, " AND "), args...)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[[]*string])
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range found {
		maps.Copy(ids, climb(t, conn, c, n.Parent, values))
	}
	return ids
}

// Some sources record the key itself, the others a link.
func TestSources(t *testing.T) {
	pg := freshDatabase(t)
	runScript(t, pg.url, "orders.sql")
	conn := connect(t, pg.url)
	columns := func(s source) (names []string) {
		for _, at := range s.columns {
			names = append(names, s.table.columns[at].name)
		}
		return names
	}
	customers, orders := readOne(t, conn, orderResources()[0]), readOne(t, conn, orderResources()[1])
	for _, tt := range []struct {
		source  source
		name    string
		columns []string
		derives bool
	}{
		{customers.sources[0], "customers", []string{"customer_id", "tenant"}, false},
		{customers.sources[1], "customers/orders", []string{"customer_id", "tenant"}, false}, // in the order of the key
		{customers.sources[2], "customers/orders/lines", []string{"order_id"}, true},
		{customers.sources[3], "customers/orders/lines/shipments", []string{"order_id", "line_no"}, true},
		{orders.sources[0], "orders", []string{"order_id"}, false},
		{orders.sources[1], "orders/lines", []string{"order_id"}, true}, // bigint and numeric have different texts
		{orders.sources[2], "orders/lines/shipments", []string{"order_id", "line_no"}, true},
	} {
		if tt.source.name != tt.name || !slices.Equal(columns(tt.source), tt.columns) || (tt.source.derive != "") != tt.derives {
			t.Errorf("%s records %v, derives %q; want %s, %v, derives: %v", tt.source.name, columns(tt.source), tt.source.derive, tt.name, tt.columns, tt.derives)
		}
		if strings.Contains(tt.source.derive, quoteName(tt.source.table.name)+" AS") {
			t.Errorf("%s reads its own table: %s", tt.name, tt.source.derive)
		}
	}
}

// bigSQL is large enough that reading a whole table is far from cheap.
const bigSQL = `CREATE TABLE dept (deptno int PRIMARY KEY, name text);
	CREATE TABLE emp (empno int PRIMARY KEY, deptno numeric NOT NULL, name text COLLATE "C");
	CREATE TABLE task (id int PRIMARY KEY, emp bigint NOT NULL, owner text);
	INSERT INTO dept SELECT i, 'dept ' || i FROM generate_series(1, 20000) AS i;
	INSERT INTO emp SELECT i, 1 + i % 20000, 'emp ' || i FROM generate_series(1, 100000) AS i;
	INSERT INTO task SELECT i, 1 + i % 100000, 'emp ' || 1 + i % 100000 FROM generate_series(1, 100000) AS i;
	CREATE INDEX ON emp (deptno); CREATE INDEX ON task (emp); CREATE INDEX ON emp (name); CREATE INDEX ON task (owner);
	ANALYZE;`

// Loads and derivations are index scans all the way down, also with the generic
// plan, with statistics or without.
func TestPlansUseIndexes(t *testing.T) {
	pg := freshDatabase(t)
	runScript(t, pg.url, bigSQL)
	on := func(column, parent string) []resource.Join { return []resource.Join{{Column: column, Parent: parent}} }
	tree := func(task []resource.Join) resource.Resource {
		return resource.Resource{Name: "depts", Key: []string{"deptno"}, Root: resource.Node{Table: "dept", Children: []resource.Child{
			childOf("emps", resource.Node{Table: "emp", On: on("deptno", "deptno"), Children: []resource.Child{
				childOf("tasks", resource.Node{Table: "task", On: task})}})}}}
	}
	for _, statistics := range []string{"", "DELETE FROM pg_statistic; UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE relname IN ('dept', 'emp', 'task')"} {
		if statistics != "" {
			runScript(t, pg.url, statistics)
		}
		for name, r := range map[string]resource.Resource{"numbers": tree(on("emp", "empno")), "collations": tree(on("owner", "name"))} {
			o := openOrigin(t, Config{URL: pg.url, Connections: 1}, r)
			c := o.schema.Load().resources[0]
			for i := range 10 {
				if _, err := o.Load(t.Context(), 0, []string{fmt.Sprint(i)}); err != nil {
					t.Fatal(err)
				}
			}
			for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
				for _, keys := range []int{1, 200} {
					checkPlan(t, pg.url, name, mode, c.load, fmt.Sprintf("(SELECT array_agg(i::text) FROM generate_series(1, %d) AS i), 1000000", keys))
				}
				for _, s := range c.sources {
					if s.derive != "" {
						checkPlan(t, pg.url, s.name, mode, "SELECT d.* FROM unnest($1::text[]) AS c (key), LATERAL ("+s.derive+" OFFSET 0) AS d", "ARRAY['7', '8']")
					}
				}
			}
		}
	}
}

// checkPlan fails if the plan of a statement reads a whole table.
func checkPlan(t *testing.T, url, name, mode, sql, args string) {
	t.Helper()
	conn := connect(t, url+"&plan_cache_mode="+mode+"&default_query_exec_mode=simple_protocol")
	if strings.Contains(args, "SELECT") { // EXECUTE accepts no subquery
		n := scan[string](t, conn, "SELECT "+strings.TrimSuffix(strings.Split(args, ", 1000000")[0], ""))
		args = quoteText(n) + ", 1000000"
	}
	if _, err := conn.Exec(t.Context(), "PREPARE s AS "+sql); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), "EXPLAIN EXECUTE s ("+args+")")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	// The header looks the database up in a catalog that has one page.
	if strings.Contains(strings.ReplaceAll(plan, "Seq Scan on pg_database", ""), "Seq Scan") || !strings.Contains(plan, "Index") {
		t.Errorf("%s with %s:\n%s", name, mode, plan)
	}
	_ = conn.Close(t.Context())
}

// A load is one statement, whatever the number of keys and of tables.
func TestLoadIsOneStatement(t *testing.T) {
	pg := testkit.StartPostgres(t, "shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track=top")
	runScript(t, pg.URL, "film.sql")
	runScript(t, pg.URL, "CREATE EXTENSION pg_stat_statements")
	o := openOrigin(t, Config{URL: pg.URL, Connections: 1}, filmResources()...)
	conn := connect(t, pg.URL)
	ids := []string{"1", "2", "3", "999999"}
	scan[string](t, conn, "SELECT pg_stat_statements_reset()::text")
	const loads = 7
	for range loads {
		if _, err := o.Load(t.Context(), cache.ResourceID(0), ids); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := conn.Query(t.Context(), "SELECT calls, query FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'")
	if err != nil {
		t.Fatal(err)
	}
	var calls int64
	var query string
	statements := 0
	if _, err := pgx.ForEachRow(rows, []any{&calls, &query}, func() error {
		statements++
		if calls != loads {
			t.Errorf("%d calls, want %d: %.100s", calls, loads, query)
		}
		return nil
	}); err != nil || statements != 1 {
		t.Errorf("%d statements, want 1 (%v)", statements, err)
	}
}
