package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

var (
	idKey    = queryKey("id", "int")
	orderKey = queryKey("order_id", "bigint")
)

// totals counts the orders of each customer.
const totals = "select c.id, json_build_object('n', count(o.id)) from customer c left join orders o on o.customer = c.id where c.id = any($1) group by c.id"

// Declarations that are refused; testdata/queries_refused.txt has the messages.
var refusedQueries = []struct {
	name     string
	resource resource.Resource
}{
	// The text of the statement.
	{"empty", query("  -- nothing\n", idKey)},
	{"no parameter", query("select id, '{}'::json from customer", idKey, on("customer", "id"))},
	{"parameter only in a string", query("select id, '{}'::json from customer where name = '$1' or name = $a$ $1 $a$ /* $1 */", idKey, on("customer", "id"))},
	{"parameter that is none", query("select id, '{}'::json\nfrom customer where id = any($1) and id <> $2", idKey, on("customer", "id"))},
	{"second parameter unused", query("select id, id, '{}'::json from customer where id = any($1)", queryKey("a", "int", "b", "int"), on("customer", "id", "id"))},
	{"parameter zero", query("select $0, $1", idKey)},
	{"huge parameter", query("select $99999999999999999999", idKey)},
	{"two statements", query("select id, '{}'::json from customer where id = any($1); delete from customer", idKey, on("customer", "id"))},
	{"two statements behind a comment", query("select id, '{}'::json from customer where id = any($1) /* ; */ ;\n-- ;\n drop table customer; --", idKey, on("customer", "id"))},
	{"string without end", query("select 'it\\'s $1'", idKey)},
	{"dollar quote without end", query("select $a$ $1 $b$", idKey)},
	{"comment without end", query("select /* /* */ $1", idKey)},
	{"identifier without end", query(`select "$1`, idKey)},
	{"out of the parentheses", query("select id, '{}'::json from customer where id = any($1)) as x, (select pg_sleep(1)", idKey, on("customer", "id"))},
	{"open parenthesis", query("select id, '{}'::json from customer where id = any($1) and (true", idKey, on("customer", "id"))},
	{"delete", query("delete from customer where id = any($1) returning id, '{}'::json", idKey, on("customer", "id"))},
	{"copy", query("copy (select $1) to program 'true'", idKey)},
	{"delete in a with", query("with gone as (delete from customer where id = any($1) returning id) select id, '{}'::json from gone", idKey, on("customer", "id"))},
	{"insert in a nested with", query("select * from (with new as (insert into nokey values (1) returning a) select a, '{}'::json from new where a = any($1)) x", idKey, on("nokey", "a"))},
	{"select into", query("select id, '{}'::json into gone from customer where id = any($1)", idKey, on("customer", "id"))},
	{"limit", query("select id, '{}'::json from customer where id = any($1) order by (select 1 limit 1)\nlimit 1", idKey, on("customer", "id"))},
	{"via with fetch", query("select id, '{}'::json from customer where id = any($1)", idKey, via("customer", "select id from customer where id = any($1) Fetch first row only", "id"))},
	{"NUL", query("select $1 \x00", idKey)},
	{"syntax", query("select id, '{}'::json form customer where id = any($1)", idKey, on("customer", "id"))},
	{"unknown table", query("select id, '{}'::json from custommer where id = any($1)", idKey, on("customer", "id"))},
	{"unknown column", query("select idd, '{}'::json from customer where id = any($1)", idKey, on("customer", "id"))},
	{"bad literal", query("select id, '{'::json from customer where id = any($1)", idKey, on("customer", "id"))},
	{"array against scalar", query("select id, '{}'::json from customer where id = $1", idKey, on("customer", "id"))},

	// The key and the columns.
	{"no key", query("select '{}'::json from customer", nil, on("customer", "id"))},
	{"key twice", query("select id, id, '{}'::json from customer where id = any($1) and id = any($2)", queryKey("id", "int", "id", "int"), on("customer", "id", "id"))},
	{"unknown key type", query("select id, '{}'::json from customer where id = any($1)", queryKey("id", "bigit"), on("customer", "id"))},
	{"key type that is no type", query("select id, '{}'::json from customer where id = any($1)", queryKey("id", "int); drop table customer; --"), on("customer", "id"))},
	{"key types without canonical form", query("select 1, 1, 1, 1, 1, '{}'::json from customer where ($1, $2, $3, $4, $5) is not null",
		queryKey("a", "float8", "b", "char(3)", "c", "interval", "d", "jsonb", "e", "int[]"), on("customer", "id"))},
	{"key type other than the column's", query("select name, '{}'::json from customer where name = any($1::text[])", queryKey("name", "uuid"), on("customer", "name"))},
	{"a fraction for an integer key", query("select price, '{}'::json from product where id = any($1)", idKey, on("product", "id"))},
	{"an enum for a text key", query("select mood, json_agg(id) from customer where mood::text = any($1) group by 1", queryKey("mood", "text"), on("customer", "mood"))},
	{"document missing", query("select id from customer where id = any($1)", idKey, on("customer", "id"))},
	{"a column too many", query("select id, name, '{}'::json from customer where id = any($1)", idKey, on("customer", "id"))},
	{"document of text", query("select id, '{}' from customer where id = any($1)", idKey, on("customer", "id"))},
	{"document of a row", query("select id, c from customer c where id = any($1)", idKey, on("customer", "id"))},

	// The tables that the statement reads.
	{"no depends", query("select id, '{}'::json from customer where id = any($1)", idKey)},
	{"two tables of a join are missing", query("select order_id, json_agg(price) from line join product p on p.id = product_id join customer c on c.id = no where order_id = any($1) group by 1", orderKey, on("line", "order_id"))},
	{"a table in a subquery in a with", query("with x as (select order_id from line where exists (select from category)) select order_id, '{}'::json from x where order_id = any($1)", orderKey, on("line", "order_id"))},
	{"a table behind two views", query("select order_id, json_build_array(total) from order_total where order_id = any($1)", orderKey, on("line", "order_id"))},
	{"a partition", query("select id, json_agg(total) from orders_2026 where id = any($1) group by id", queryKey("id", "bigint"))},
	{"the root by one partition", query("select id, json_agg(total) from orders where id = any($1) group by id", queryKey("id", "bigint"), on("orders_2026", "id"))},
	{"a materialized view", query("select order_id, json_build_array(total) from totals where order_id = any($1)", orderKey, on("line", "order_id"))},
	{"a foreign table", query("select a, '{}'::json from far where a = any($1)", idKey)},
	{"a sequence", query("select last_value, '{}'::json from counter where last_value = any($1)", queryKey("id", "bigint"))},
	{"a system table", query("select id, json_build_array((select count(*) from pg_class)) from customer where id = any($1)", idKey, on("customer", "id"))},
	{"a system view", query("select id, json_build_array((select count(*) from information_schema.tables)) from customer where id = any($1)", idKey, on("customer", "id"))},
	{"a view as a dependency", query("select order_id, json_build_array(total) from order_total where order_id = any($1)", orderKey, on("order_total", "order_id"))},
	{"an unknown dependency", query("select id, '{}'::json from customer where id = any($1)", idKey, on("customers", "id"))},

	// Functions that it calls.
	{"the time", query("select id, json_build_object('at', now(), 'on', current_date, 'by', current_user, 'clock', localtime(0)) from customer where id = any($1)", idKey, on("customer", "id"))},
	{"the time behind a view", query("select id, '{}'::json from recent where id = any($1)", queryKey("id", "bigint"), on("orders", "id"))},
	{"the time in a text", query("select id, json_build_array(('now'::text)::timestamptz) from customer where id = any($1)", idKey, on("customer", "id"))},
	{"age counts from today", query("select id, json_build_array(age(at)) from orders where id = any($1)", queryKey("id", "bigint"), on("orders", "id"))},
	{"settings, random, sequences", query("select id, json_build_array(current_setting('a.b', true), random(), gen_random_uuid(), nextval('counter')) from customer where id = any($1)", idKey, on("customer", "id"))},
	{"text search without configuration", query("select id, json_build_array(to_tsvector(name)) from customer where id = any($1)", idKey, on("customer", "id"))},
	{"a stable function of a user", query("select order_id, json_build_array(lines_of(order_id)) from line where order_id = any($1)", orderKey, on("line", "order_id"))},
	{"a function of a user that writes", query("select id, json_build_array(note(name)) from customer where id = any($1)", idKey, on("customer", "id"))},
	{"an operator of a user", query("select id, json_agg(id) from customer where id = any($1) and id <<< 3 group by id", idKey, on("customer", "id"))},
	{"an operator of a user in a comparison of arrays", query("select id, json_agg(id) from customer where id = any($1) and id <<< all(array[3]) group by id", idKey, on("customer", "id"))},
	{"an aggregate of a user", query("select id, json_build_array(noisy(id)) from customer where id = any($1) group by id", idKey, on("customer", "id"))},
	{"an aggregate of a user over a window", query("select id, json_build_array(noisy(id) over ()) from customer where id = any($1)", idKey, on("customer", "id"))},
	{"a sample", query("select order_id, '{}'::json from line tablesample bernoulli (10) where order_id = any($1)", orderKey, on("line", "order_id"))},
	{"a sample behind a view", query("select order_id, json_agg(no) from sampled where order_id = any($1) group by 1", orderKey, on("line", "order_id"))},
	{"locks", query("select id, '{}'::json from customer where id = any($1) for update", idKey, on("customer", "id"))},
	{"all at once", query("select order_id, json_build_array(random(), clock_timestamp()) from line join product on true join totals using (order_id) where order_id = any($1)", orderKey, on("line", "order_id"))},

	// The dependencies.
	{"neither key nor via", query("select id, '{}'::json from customer where id = any($1)", idKey, on("customer"))},
	{"too few columns", query("select order_id, no, '{}'::json from line where order_id = any($1) and no = any($2)", queryKey("o", "bigint", "n", "int"), on("line", "order_id"))},
	{"unknown column of a dependency", query("select id, '{}'::json from customer where id = any($1)", idKey, on("customer", "idd"))},
	{"column of a dependency twice", query("select order_id, no, '{}'::json from line where order_id = any($1) and no = any($2)", queryKey("o", "bigint", "n", "int"), on("line", "no", "no"))},
	{"column of another type", query("select id, '{}'::json from customer where id = any($1)", idKey, on("customer", "name"))},
	{"column without canonical form", query("select id, '{}'::json from customer where id = any($1)", idKey, on("customer", "score"))},
	{"via without key", query("select id, '{}'::json from customer where id = any($1)", idKey, on("customer", "id"), via("product", "select 1 where 777 = any($1)"))},
	{"via without key, for a table without primary key", query("select id, json_build_array((select count(*) from nokey)) from customer where id = any($1)", idKey, on("customer", "id"), via("nokey", "select unnest($1)"))},
	{"via that reads its own table", query(totals, idKey, on("customer", "id"), via("orders", "select customer from orders where id = any($1)", "id"))},
	{"via that reads its own table beside others", query(totals, idKey, on("customer", "id"), via("orders", "select c.id from customer c where exists (select from orders o where o.customer = c.id and o.id = any($1))", "id"))},
	{"via that reads its own table through a view", query("select id, json_build_array(order_total.total) from order_total join orders on id = order_id where id = any($1)", queryKey("id", "bigint"),
		on("orders", "id"), via("line", "select order_id from order_total where order_id = any($1)", "order_id"), via("product", "select order_id from line where product_id = any($1)", "id"))},
	{"via that reads a partition of its own table", query(totals, idKey, on("customer", "id"), via("orders", "select customer from orders_2026 where id = any($1)", "id"))},
	{"via that reads its own table, with a foreign key", query("select id, json_build_array((select count(*) from note where customer = c.id)) from customer c where id = any($1)", idKey,
		on("customer", "id"), via("note", "select customer from note where id = any($1)", "id"))},
	{"vias that lead to each other", query("select id, json_build_array((select count(*) from line join product on true)) from customer where id = any($1)", idKey, on("customer", "id"),
		via("line", "select id from product where id = any($1)", "product_id"), via("product", "select product_id from line where product_id = any($1)", "id"))},
	{"vias in a circle of three", query("select id, json_build_array((select count(*) from line, product, category)) from customer where id = any($1)", idKey, on("customer", "id"),
		via("line", "select id from product where id = any($1)", "product_id"), via("product", "select id from category where id = any($1)", "id"),
		via("category", "select product_id from line where product_id = any($1)", "id"))},
	{"no key but that of the dependency that reads itself", query(totals, idKey, on("customer", "id"), itself(via("orders", "select customer from orders where id = any($1)")))},
	{"via by a column without canonical form", query("select id, json_build_array((select count(*) from nokey)) from customer where id = any($1)", idKey, on("customer", "id"), via("nokey", "select unnest($1)", "c"))},
	{"via with a parameter too many", query("select id, '{}'::json from customer where id = any($1)", idKey, via("customer", "select id from customer where id = any($1) or id = any($2)", "id"))},
	{"via of two columns", query("select id, '{}'::json from customer where id = any($1)", idKey, via("customer", "select id, name from customer where id = any($1)", "id"))},
	{"via of another type", query("select id, '{}'::json from customer where id = any($1)", idKey, via("customer", "select name from customer where id = any($1)", "id"))},
	{"via that does not parse", query("select id, '{}'::json from customer where id = any($1)", idKey, via("customer", "select id fro customer where id = any($1)", "id"))},
	{"via that reads a table that is no dependency", query("select order_id, json_agg(p.price) from unnest($1) as order_id, product p group by 1", orderKey, via("product", "select order_id from line where product_id = any($1)", "id"))},
	{"via that calls what it must not", query("select id, '{}'::json from customer where id = any($1)", idKey, via("customer", "select id from customer where id = any($1) and random() < 0.5 and current_user <> ''", "id"))},
	{"via that writes", query("select id, '{}'::json from customer where id = any($1)", idKey, via("customer", "with x as (delete from customer where id = any($1) returning id) select id from x", "id"))},
	{"via in two statements", query("select id, '{}'::json from customer where id = any($1)", idKey, via("customer", "select id from customer where id = any($1);\ndrop table customer", "id"))},
}

// contents returns a text that differs if anything in the database does.
func contents(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	var text string
	if err := conn.QueryRow(t.Context(), `SELECT concat_ws('; ', (SELECT md5(string_agg(c::text, ',' ORDER BY id)) FROM customer c),
		(SELECT count(*) FROM nokey), (SELECT count(*) FROM line), (SELECT last_value FROM counter),
		(SELECT string_agg(oid::regclass::text, ',' ORDER BY oid) FROM pg_class WHERE oid >= 16384 AND relnamespace <> 'pg_toast'::regnamespace),
		(SELECT string_agg(oid::regprocedure::text, ',' ORDER BY oid) FROM pg_proc WHERE oid >= 16384),
		current_setting('search_path'))`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRefusedQueries(t *testing.T) {
	conn := connectOrders(t)
	if _, err := conn.Exec(t.Context(), `CREATE EXTENSION postgres_fdw; CREATE SERVER far_away FOREIGN DATA WRAPPER postgres_fdw;
		CREATE FOREIGN TABLE far (a int) SERVER far_away; CREATE TABLE note (id int PRIMARY KEY, customer int REFERENCES customer)`); err != nil {
		t.Fatal(err)
	}
	before := contents(t, conn)
	var messages strings.Builder
	for i, tt := range refusedQueries {
		tt.resource.Query.Line = 11
		for d := range tt.resource.Query.Depends {
			tt.resource.Query.Depends[d].Line = 12 + d
		}
		t.Run(tt.name, func(t *testing.T) {
			problem := problemOf(t, resolveOne(t, conn, tt.resource))
			fmt.Fprintf(&messages, "%s: line %d: %s\n", tt.name, problem.Line, problem.Problem)
		})
		if after := contents(t, conn); after != before {
			t.Fatalf("query %d (%s) left something behind:\n%s\nbefore it:\n%s", i, tt.name, after, before)
		}
	}
	testkit.Golden(t, "queries_refused.txt", []byte(messages.String()))
}
