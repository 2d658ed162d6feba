package postgres

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

func oidOf(t *testing.T, conn *pgx.Conn, kind, name string) (oid uint32) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT $1::text::"+kind+"::oid", name).Scan(&oid); err != nil {
		t.Fatal(err)
	}
	return oid
}

func mustExec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestRelationsAndFunctionsOfAQuery(t *testing.T) {
	conn := connectOrders(t)
	mustExec(t, conn, `CREATE VIEW priced AS SELECT id, doubled(price::int) AS price FROM product;
		CREATE FUNCTION less(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 < $2';
		CREATE OPERATOR <# (FUNCTION = less, LEFTARG = int, RIGHTARG = int);
		CREATE FUNCTION add(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + $2';
		CREATE AGGREGATE added (int) (SFUNC = add, STYPE = int);
		CREATE FUNCTION tripled(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 3 * $1'`)
	c := resolveOne(t, conn, query("select o.id, json_build_array(public.added(p.price), sum(line_total.total)) from orders o, priced p, line_total where o.id = any($1) and p.id OPERATOR(public.<#) 3 group by o.id",
		queryKey("id", "bigint"), on("orders", "id"), via("product", "select order_id from line where product_id = any($1) and public.tripled(no) > 0", "id"), on("line", "order_id"), on("category", "id")))
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	want := []string{"orders", "orders_2025", "orders_2026", "product", "line", "category", "priced", "line_total"}
	if len(c.relations) != len(want) {
		t.Errorf("%d relations, want %d", len(c.relations), len(want))
	}
	for _, name := range want {
		if !slices.Contains(c.relations, oidOf(t, conn, "regclass", name)) {
			t.Errorf("relation %s is not watched", name)
		}
	}
	want = []string{"doubled(int)", "less(int,int)", "add(int,int)", "added(int)", "tripled(int)"}
	if len(c.functions) != len(want) {
		t.Errorf("%d functions, want %d", len(c.functions), len(want))
	}
	for _, name := range want {
		if !slices.Contains(c.functions, oidOf(t, conn, "regprocedure", name)) {
			t.Errorf("function %s is not watched", name)
		}
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "no statement reads table category of depends") {
		t.Errorf("warnings: %q", c.Warnings)
	}
}

// Loads use the objects that were checked, whatever is created before them in the
// path later.
func TestCheckedNamesAreLoaded(t *testing.T) {
	conn := connectOrders(t)
	mustExec(t, conn, `CREATE SCHEMA early; SET search_path = early, public`)
	c := resolveOne(t, conn, query("select id, json_build_object('name', name, 'twice', doubled(id), 'today', 'today'::date, 'p', '$1') from customer where id = any($1)", idKey, on("customer", "id")))
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	before := texts(loadKeys(t, conn, c, 1000, []string{"1"})[1])
	mustExec(t, conn, `CREATE TABLE early.customer (id int, name text); INSERT INTO early.customer VALUES (1, 'wrong');
		CREATE FUNCTION early.doubled(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 13'`)
	if after := texts(loadKeys(t, conn, c, 1000, []string{"1"})[1]); !slices.Equal(after, before) || len(after) != 1 || !strings.Contains(after[0], "Ada") {
		t.Errorf("%q before, %q after", before, after)
	}
	if strings.Contains(c.load, "'today'::date") {
		t.Errorf("the date would change from day to day: %s", c.load)
	}
}

// Without a promise a statement may call any function; it is not executed
// before the first load.
func TestWithoutPromise(t *testing.T) {
	conn := connectOrders(t)
	before := contents(t, conn)
	r := query("select id, json_build_array(note(name), now(), nextval('counter'), (select count(*) from totals tablesample system (10)), (select count(*) from pg_class)) from customer where id = any($1)", idKey)
	r.NoPromise = true
	c := resolveOne(t, conn, r)
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	if after := contents(t, conn); after != before {
		t.Errorf("resolving the resource changed the database:\n%s\n%s", before, after)
	}
	if len(c.sources) != 0 || len(c.functions) != 0 {
		t.Errorf("sources %v, functions %v", c.sources, c.functions)
	}
	for _, sql := range []string{
		"with gone as (delete from customer where id = any($1) returning id) select id, '{}'::json from gone",
		"select id, name from customer where id = any($1)",
		"select id, '{}'::json from nothing where id = any($1)",
		"select id, '{}'::json from customer where id = any($1); drop table customer",
	} {
		r := query(sql, idKey)
		r.NoPromise = true
		problemOf(t, resolveOne(t, conn, r))
	}
}

func TestPrivilegesOfQueries(t *testing.T) {
	server := testkit.StartPostgres(t)
	owner, err := pgx.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(context.WithoutCancel(t.Context()))
	mustExec(t, owner, orderSchema)
	mustExec(t, owner, `CREATE ROLE reader LOGIN; CREATE ROLE "No Temp" LOGIN; GRANT SELECT ON customer, order_total TO reader, "No Temp";
		REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC; GRANT TEMPORARY ON DATABASE postgres TO reader;
		CREATE FUNCTION secret(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'; REVOKE EXECUTE ON FUNCTION secret FROM PUBLIC;
		CREATE SCHEMA closed; CREATE TABLE closed.t (id int)`)
	as := func(role, options string) *pgx.Conn {
		u, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.User(role)
		u.RawQuery += options
		conn, err := pgx.Connect(t.Context(), u.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		return conn
	}
	customers := "select id, json_build_array(name) from customer where id = any($1)"
	for i, tt := range []struct{ role, options, sql, want string }{
		{"reader", "", customers, ""},
		{"No Temp", "", customers, `sql: a temporary view of the statement is needed to find what it reads: permission denied to create temporary tables in database "postgres"; expected: GRANT TEMPORARY ON DATABASE "postgres" TO "No Temp", or promise: none`},
		{"reader", "&default_transaction_read_only=on", customers, `sql: a temporary view of the statement is needed to find what it reads: cannot execute CREATE FUNCTION in a read-only transaction; expected: ALTER ROLE "reader" SET default_transaction_read_only = off, or promise: none`},
		{"reader", "&standard_conforming_strings=off", customers, `standard_conforming_strings is off for role reader, so strings cannot be recognized; expected: ALTER ROLE "reader" SET standard_conforming_strings = on`},
		{"reader", "", "select id, json_build_array((select count(*) from product)) from customer where id = any($1)", "sql: permission denied for table product"},
		{"reader", "", "select id, json_build_array(secret(id)) from customer where id = any($1)", "sql: permission denied for function secret"},
		{"reader", "", "select id, '[]'::json from closed.t where id = any($1)", "sql: permission denied for schema closed"},
	} {
		r := query(tt.sql, idKey, on("customer", "id"))
		if strings.Contains(tt.sql, "product") {
			r.Query.Depends = append(r.Query.Depends, via("product", "select 1 where 1 = any($1)", "id"))
		}
		c := resolveOne(t, as(tt.role, tt.options), r)
		switch {
		case tt.want == "" && c.Err != nil:
			t.Errorf("%d: %v", i, c.Err)
		case tt.want != "" && problemOf(t, c).Problem != tt.want:
			t.Errorf("%d:\n got %s\nwant %s", i, c.Err.Problem, tt.want)
		}
		if r.NoPromise = true; i == 1 || i == 2 {
			if c := resolveOne(t, as(tt.role, tt.options), r); c.Err != nil {
				t.Errorf("%d without a promise: %v", i, c.Err)
			}
		}
	}
	mustExec(t, owner, "REVOKE USAGE ON LANGUAGE sql FROM PUBLIC")
	if got, want := problemOf(t, resolveOne(t, as("reader", ""), query(customers, idKey, on("customer", "id")))).Problem, `GRANT USAGE ON LANGUAGE sql TO "reader"`; !strings.Contains(got, want) {
		t.Errorf("%s\ndoes not say %s", got, want)
	}
}

// A database that fails is not a fault of the declaration.
func TestFailingDatabaseIsNoSchemaError(t *testing.T) {
	conn := connectOrders(t)
	r := query("select id, '{}'::json from customer where id = any($1)", idKey, on("customer", "id"))
	r.Key = []string{"id"}
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cat, err := newCatalog(t.Context(), tx)
	if err != nil {
		t.Fatal(err)
	}
	for i, end := range []func(){
		func() { mustExec(t, conn, "SET LOCAL statement_timeout = '1ms'; SET LOCAL jit = off") },
		func() { _ = conn.Close(t.Context()) },
	} {
		end()
		c, err := compile(t.Context(), tx, cat, &r)
		if i == 0 && err == nil && c.Err == nil {
			continue // faster than a millisecond each
		}
		if err == nil {
			t.Errorf("%d: error is of the declaration: %v", i, c.Err)
		}
	}
}

// Many statements of one transaction do not conflict with each other.
func TestSeveralQueriesInOneTransaction(t *testing.T) {
	conn := connectOrders(t)
	for i := range 3 {
		good := query("select id, '{}'::json from customer where id = any($1)", idKey, on("customer", "id"), via("product", fmt.Sprintf("select %d where 1 = any($1)", i), "id"))
		if c := resolveOne(t, conn, good); c.Err != nil {
			t.Fatal(c.Err)
		}
	}
	var left int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_class WHERE relpersistence = 't'`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d temporary relations are left, %v", left, err)
	}
}
