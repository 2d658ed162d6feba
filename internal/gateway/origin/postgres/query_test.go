package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// orderSchema is a shop: orders of customers have lines with products, which are
// in categories, many to many. Orders of a year are a partition.
const orderSchema = `
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE DOMAIN order_number AS bigint CHECK (VALUE > 0);
CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL, mood mood, score float8);
CREATE TABLE orders (id bigint, placed date NOT NULL, customer int, at timestamptz, total numeric, PRIMARY KEY (id, placed)) PARTITION BY RANGE (placed);
CREATE TABLE orders_2025 PARTITION OF orders FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE orders_2026 PARTITION OF orders FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE product (id int PRIMARY KEY, code varchar(20) UNIQUE, ref uuid, price numeric(10,2), info jsonb, words tsvector);
CREATE TABLE line (order_id order_number, no smallint, product_id int, quantity int, PRIMARY KEY (order_id, no));
CREATE TABLE category (id int PRIMARY KEY, parent int, title text);
CREATE TABLE product_category (product_id int, category_id int, PRIMARY KEY (product_id, category_id));
CREATE TABLE nokey (a int, b float8, c char(3));
CREATE VIEW line_total AS SELECT l.order_id, l.no, l.quantity * p.price AS total FROM line l JOIN product p ON p.id = l.product_id;
CREATE VIEW order_total AS SELECT order_id, sum(total) AS total FROM line_total GROUP BY order_id;
CREATE VIEW recent AS SELECT id, placed FROM orders WHERE placed > current_date - 7;
CREATE VIEW sampled AS SELECT * FROM line TABLESAMPLE system (50);
CREATE MATERIALIZED VIEW totals AS SELECT * FROM order_total;
CREATE SEQUENCE counter;
CREATE SCHEMA other;
CREATE TABLE other."odd Name" (id int PRIMARY KEY, "a.b" text);
CREATE FUNCTION doubled(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2';
CREATE FUNCTION lines_of(bigint) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM line WHERE order_id = $1';
CREATE FUNCTION note(text) RETURNS text LANGUAGE plpgsql AS 'BEGIN INSERT INTO nokey VALUES (1); RETURN $1; END';
CREATE FUNCTION plus_noise(int, int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT $1 + $2 + (random() * 10)::int';
CREATE AGGREGATE noisy (int) (SFUNC = plus_noise, STYPE = int, INITCOND = '0');
CREATE FUNCTION drifts(int, int) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT $1 < $2';
CREATE OPERATOR <<< (FUNCTION = drifts, LEFTARG = int, RIGHTARG = int);
INSERT INTO customer VALUES (1, 'Ada', 'happy', 1.5), (2, 'Bob''s "x"', 'sad', NULL);
INSERT INTO product SELECT n, 'P' || n, ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, n + 0.50, jsonb_build_object('n', n) FROM generate_series(1, 20) n;
INSERT INTO orders SELECT n, date '2025-12-20' + n, 1 + n % 2, '2026-01-01 12:00:00+02', n FROM generate_series(1, 30) n;
INSERT INTO line SELECT n, k, 1 + (n * k) % 20, k FROM generate_series(1, 30) n, generate_series(1, 3) k;
INSERT INTO category VALUES (1, NULL, 'all'), (2, 1, 'tools'), (3, 2, 'hammers');
INSERT INTO product_category SELECT n, 1 + n % 3 FROM generate_series(1, 20) n;
INSERT INTO other."odd Name" VALUES (1, 'x');
`

// connectOrders makes a database with the schema of orders.
func connectOrders(t *testing.T) *pgx.Conn {
	t.Helper()
	d := freshDatabase(t, orderSchema)
	d.exec(t, "ALTER DATABASE "+d.name+" SET TimeZone = 'UTC'")
	return connect(t, d.url)
}

// resolveOne compiles a resource as the survey does.
func resolveOne(t *testing.T, conn *pgx.Conn, r resource.Resource) *compiled {
	t.Helper()
	if r.Name == "" {
		r.Name = "things"
	}
	if r.Line == 0 {
		r.Line = 7
	}
	r.Key = nil
	for _, k := range r.Query.Key {
		r.Key = append(r.Key, k.Name)
	}
	var found *schema
	err := pgx.BeginTxFunc(t.Context(), conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) (err error) {
		found, err = readSchema(t.Context(), tx, origin.NewSet([]resource.Resource{r}))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found.resources[0]
}

func queryKey(pairs ...string) (keys []resource.QueryKey) {
	for i := 0; i < len(pairs); i += 2 {
		keys = append(keys, resource.QueryKey{Name: pairs[i], Type: pairs[i+1]})
	}
	return keys
}

func on(table string, columns ...string) resource.Depend {
	return resource.Depend{Table: table, Columns: columns}
}

func via(table, sql string, columns ...string) resource.Depend {
	return resource.Depend{Table: table, Via: sql, Columns: columns}
}

// itself declares that a via has to read the table of its dependency.
func itself(d resource.Depend) resource.Depend {
	d.ReadsItself = true
	return d
}

func query(sql string, key []resource.QueryKey, depends ...resource.Depend) resource.Resource {
	return resource.Resource{Query: &resource.Query{SQL: sql, Key: key, Depends: depends}}
}

// loadKeys executes the load statement for keys given column by column.
func loadKeys(t *testing.T, conn *pgx.Conn, c *compiled, limit int, keys ...[]string) map[int][]*string {
	t.Helper()
	arguments := make([]any, 0, len(keys)+1)
	for _, column := range keys {
		arguments = append(arguments, column)
	}
	docs := make(map[int][]*string)
	err := pgx.BeginTxFunc(t.Context(), conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), c.load, append(arguments, limit)...)
		if err != nil {
			return err
		}
		var place int
		var doc *string
		_, err = pgx.ForEachRow(rows, []any{&place, &doc}, func() error {
			docs[place] = append(docs[place], doc)
			return nil
		})
		return err
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, c.load)
	}
	if len(docs[0]) != 1 || strings.Count(*docs[0][0], "/") < 1 {
		t.Fatalf("header is %v", docs[0])
	}
	return docs
}

// Statements that are accepted, and for some keys the expected documents, which
// the statement in want returns, one text per key.
type goodQuery struct {
	name     string
	resource resource.Resource
	keys     [][]string // column by column
	want     string     // a SELECT of (place, text)
}

var goodQueries = []goodQuery{
	{"aggregate over a join",
		query("select order_id, json_build_object('total', sum(quantity * price)) from line join product p on p.id = product_id where order_id = any($1) group by order_id;  -- done",
			queryKey("order_id", "bigint"), on("line", "order_id"), via("product", "select order_id from line where product_id = any($1)", "id")),
		[][]string{{"3", "99", "1", "3"}},
		"select case o when 3 then p else 3 end, json_build_object('total', sum(quantity * price))::text from line join product q on q.id = product_id, (values (3, 1), (1, 0), (3, 4)) v(o, p) where order_id = o group by o, p"},
	{"composite key in the other order",
		query("with l as (select * from line where (no, order_id) in (select a, b from unnest($2, $1) as u(a, b))) select order_id, no, to_jsonb(l) from l",
			queryKey("order_id", "bigint", "no", "int"), on("line", "order_id", "no")),
		[][]string{{"1", "2", "2"}, {"2", "1", "7"}},
		"select case order_id when 1 then 1 else 2 end, to_jsonb(l)::text from line l where (order_id, no) in ((1, 2), (2, 1))"},
	{"views over views",
		query("select order_id, json_build_object('total', total) from order_total where order_id = any($1::bigint[])",
			queryKey("order_id", "bigint"), on("line", "order_id"), via("product", "select l.order_id from line as l where l.product_id = any($1)", "id")),
		[][]string{{"5"}}, "select 1, json_build_object('total', total)::text from order_total where order_id = 5"},
	{"window, lateral, set-returning, ordinality",
		query(`select c.id, json_build_object('name', c.name, 'orders', o.list) from unnest($1) with ordinality as k(id, n) join customer c on c.id = k.id
			cross join lateral (select json_agg(json_build_object('id', x.id, 'rank', x.rank)) as list from
			(select id, rank() over (partition by customer order by placed desc) from orders where customer = c.id order by id limit 3) x) o`,
			queryKey("id", "int"), on("customer", "id"), on("orders", "customer")),
		[][]string{{"2", "1"}},
		`select 3 - c.id, json_build_object('name', c.name, 'orders', (select json_agg(json_build_object('id', x.id, 'rank', x.rank)) from
			(select id, rank() over (order by placed desc) from orders where customer = c.id order by id limit 3) x))::text from customer c`},
	{"text key, a table of another schema, strings with parameters in them",
		query(`select p.code, json_build_object('$1', '$2', 'e', E'it\'s $3', 'd', $q$ $4 '$q$, "id", (select "a.b" from other."odd Name" as "$5" where "$5".id = p.id)) /* $6 /* ; */ */ from product p where p.code = any($1) -- $7`,
			queryKey("code", "text"), on("product", "code"), via(`other."odd Name"`, "select code from product where id = any($1)", "id")),
		[][]string{{"P1", "p1", "P2", "x'; drop table line; --"}},
		`select case id when 1 then 1 else 3 end, json_build_object('$1', '$2', 'e', 'it''s $3', 'd', ' $4 ''', id::text, (select 'x' where id = 1))::text from product where id in (1, 2)`},
	{"uuid key", query("select ref, info from product where ref = any($1)", queryKey("ref", "uuid"), on("product", "ref")),
		[][]string{{"00000000-0000-0000-0000-000000000004"}}, `values (1, '{"n": 4}')`},
	{"numeric key", query("select price, json_build_array(id) from product where price = any($1)", queryKey("price", "numeric"), on("product", "price")),
		[][]string{{"4.5", "4.51"}}, `values (1, '[4]')`},
	{"numeric key of an integer column", query("select id::int, json_build_array(id) from product where id = any($1)", queryKey("id", "decimal"), on("product", "id")),
		[][]string{{"4", "4.5"}}, `values (1, '[4]')`},
	{"enum key", query("select mood, json_agg(name order by id) from customer where mood = any($1) group by mood", queryKey("mood", "mood"), on("customer", "mood")),
		[][]string{{"happy", "glad"}}, `values (1, '["Ada"]')`},
	{"date and timestamp", query("select placed, json_agg(date_trunc('day', at) order by id) from orders where placed = any($1) group by placed",
		queryKey("placed", "date"), on("orders", "placed")),
		[][]string{{"2025-12-21"}}, `values (1, '["2026-01-01T00:00:00+00:00"]')`},
	{"timestamptz key", query("select at, json_build_array(count(*)) from orders where at = any($1) group by at", queryKey("at", "timestamptz"), on("orders", "at")),
		[][]string{{"2026-01-01T10:00:00.000000Z"}}, `values (1, '[30]')`},
	{"a partition is followed with its root", query("select id, json_build_array(placed) from orders_2026 where id = any($1)", queryKey("id", "bigint"), on("orders", "id")),
		[][]string{{"30", "1"}}, `values (1, '["2026-01-19"]')`},
	{"harmless functions and an immutable one of the user",
		query(`select id, json_build_object('c', concat(name, ' ', score), 'f', format('%s', id), 't', to_char(now_is, 'YYYY'), 'y', extract(year from now_is), 'd', public.doubled(id), 'a', array_to_string(array[1, 2], ','), 'n', name || id)
			from (select *, timestamptz '2026-01-01' as now_is from customer) c where id = any($1)`, queryKey("id", "int"), on("customer", "id")),
		[][]string{{"1"}}, `values (1, '{"c" : "Ada 1.5", "f" : "1", "t" : "2026", "y" : 2026, "d" : 2, "a" : "1,2", "n" : "Ada1"}')`},
	{"recursive, union, values", query(`with recursive up(root, id, title) as (select id, id, title from category where id = any($1) union all
			select up.root, p.id, p.title from up join category c on c.id = up.id join category p on p.id = c.parent)
			select root, jsonb_agg(title order by id) from up group by root union all (select 0, '[]'::jsonb)`,
		queryKey("id", "int"), itself(via("category", `with recursive down(id) as (select unnest($1) union select c.id from category c join down on c.parent = down.id) select id::int from down`, "id"))),
		[][]string{{"3", "0"}}, `values (1, '["all", "tools", "hammers"]'), (2, '[]')`},
	{"a NULL document is a missing row", query("select id, case when id = 1 then '{}'::json end from customer where id = any($1)", queryKey("id", "int"), on("customer", "id")),
		[][]string{{"1", "2"}}, `values (1, '{}')`},
	{"keys that were not asked for", query("select id, '{}'::json from customer where id is not null or id = any($1)", queryKey("id", "int"), on("customer", "id")),
		[][]string{{"2"}}, `values (1, '{}')`},
	{"no table", query("select k, json_build_object('twice', k * 2) from unnest($1) as k", queryKey("n", "bigint")), [][]string{{"4"}}, `values (1, '{"twice" : 8}')`},
}

func TestGoodQueries(t *testing.T) {
	conn := connectOrders(t)
	for _, tt := range slices.Concat(goodQueries, newerQueries(startShared(t).Major(t))) {
		for _, noPromise := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/no promise=%t", tt.name, noPromise), func(t *testing.T) {
				r := tt.resource
				r.NoPromise = noPromise
				c := resolveOne(t, conn, r)
				if c.Err != nil {
					t.Fatal(c.Err)
				}
				if len(c.Warnings) > 0 {
					t.Errorf("warnings: %q", c.Warnings)
				}
				if len(c.sources) != len(r.Query.Depends) {
					t.Fatalf("%d sources for %d dependencies", len(c.sources), len(r.Query.Depends))
				}
				for i, s := range c.sources {
					if want := fmt.Sprintf("things/%d", i+1); s.name != want || (s.derive == "") != (r.Query.Depends[i].Via == "") {
						t.Errorf("source %d is %q, derived by %q", i, s.name, s.derive)
					}
				}
				docs := loadKeys(t, conn, c, 1<<20, tt.keys...)
				delete(docs, 0)
				rows, err := conn.Query(t.Context(), tt.want)
				if err != nil {
					t.Fatal(err)
				}
				var place int
				var want string
				if _, err := pgx.ForEachRow(rows, []any{&place, &want}, func() error {
					if got := docs[place]; len(got) != 1 || got[0] == nil || !sameJSON(t, *got[0], want) {
						t.Errorf("place %d:\n got %s\nwant %s", place, texts(got), want)
					}
					delete(docs, place)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				for place, doc := range docs {
					t.Errorf("place %d has %s, expected to be missing", place, texts(doc))
				}
			})
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	compact := func(text string) string {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		out, _ := json.Marshal(value) // a parsed value can be encoded
		return string(out)
	}
	return compact(a) == compact(b)
}

func texts(docs []*string) []string {
	out := make([]string, len(docs))
	for i, d := range docs {
		if out[i] = "NULL"; d != nil {
			out[i] = *d
		}
	}
	return out
}

func TestLargeAndAmbiguousDocuments(t *testing.T) {
	conn := connectOrders(t)
	c := resolveOne(t, conn, query("select order_id, json_build_array(no) from line where order_id = any($1)", queryKey("id", "bigint"), on("line", "order_id")))
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	if got := texts(loadKeys(t, conn, c, 100, []string{"9", "1"})[2]); len(got) != 3 {
		t.Errorf("three rows of a key give %s", got)
	}
	c = resolveOne(t, conn, query("select id, json_build_object('n', repeat('x', id * 10)) from customer where id = any($1)", queryKey("id", "bigint"), on("customer", "id")))
	docs := loadKeys(t, conn, c, 25, []string{"1", "2"})
	if got := texts(docs[1]); !slices.Equal(got, []string{`{"n" : "xxxxxxxxxx"}`}) {
		t.Errorf("document of 20 bytes under a limit of 25: %s", got)
	}
	if got := texts(docs[2]); !slices.Equal(got, []string{"NULL"}) {
		t.Errorf("document of 30 bytes under a limit of 25: %s", got)
	}
}

// derived executes the derivation of a source for a recorded text.
func derived(t *testing.T, conn *pgx.Conn, s source, recorded string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT d.key FROM (SELECT $1::text AS key) AS c CROSS JOIN LATERAL (SELECT q.key FROM ("+s.derive+") AS q(key) OFFSET 0) AS d ORDER BY 1", recorded)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%v\n%s", err, s.derive)
	}
	return keys
}

func TestDerivations(t *testing.T) {
	conn := connectOrders(t)
	one := "select id, json_build_array(1) from customer where id = any($1)"
	tests := []struct {
		name     string
		resource resource.Resource
		source   int
		recorded string
		want     []string
	}{
		{"an alias named as the recorded one", query(one, queryKey("id", "int"), on("customer", "id"),
			itself(via("orders", "select c.customer from orders c where c.id = any($1)", "id"))), 1, "3", []string{"2"}},
		{"several columns", query(one, queryKey("id", "int"), on("customer", "id"),
			itself(via("orders", "select c.customer from orders c join unnest($1, $2) as k(i, p) on c.id = i and c.placed = p", "id", "placed"))), 1, `["3", "2025-12-23"]`, []string{"2"}},
		{"a composite key, each once", query("select order_id, no, json_build_array(1) from line where order_id = any($1) and no = any($2)",
			queryKey("o", "bigint", "n", "int"), on("line", "order_id", "no"),
			via("product", "select order_id, no from line l, unnest(array[1, 2]) where product_id = any($1) and order_id < 5 order by 1, 2", "id")), 1, "3", []string{`["1", "2"]`, `["2", "1"]`}},
		{"no key for NULL", query(one, queryKey("id", "int"), on("customer", "id"),
			itself(via("orders", "select nullif(customer, 2) from orders where id = any($1)", "id"))), 1, "3", []string{}},
		{"a deleted row", query(one, queryKey("id", "int"), on("customer", "id"),
			via("product", "select 1 where 777 = any($1)", "id")), 1, "777", []string{"1"}},
		{"a text that no trigger of today records", query(one, queryKey("id", "int"), on("customer", "id"),
			itself(via("orders", "select customer from orders where id = any($1)", "id"))), 1, "x'; drop table orders; --", []string{}},
	}
	for _, tt := range tests {
		for _, noPromise := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/no promise=%t", tt.name, noPromise), func(t *testing.T) {
				r := tt.resource
				r.NoPromise = noPromise
				if !noPromise {
					// Other tables that via reads next to the customer.
					r.Query = &resource.Query{SQL: r.Query.SQL, Key: r.Query.Key, Depends: slices.Clone(r.Query.Depends)}
				}
				c := resolveOne(t, conn, r)
				if c.Err != nil {
					t.Fatal(c.Err)
				}
				if got := derived(t, conn, c.sources[tt.source], tt.recorded); !slices.Equal(got, tt.want) {
					t.Errorf("keys %q, want %q", got, tt.want)
				}
			})
		}
	}
}

// problemOf returns the error of a resource that must be refused.
func problemOf(t *testing.T, c *compiled) *origin.SchemaError {
	t.Helper()
	if c.Err == nil {
		t.Fatalf("accepted: %s", c.load)
	}
	var schemaError *origin.SchemaError
	if !errors.As(error(c.Err), &schemaError) {
		t.Fatalf("%v is no SchemaError", c.Err)
	}
	return schemaError
}
