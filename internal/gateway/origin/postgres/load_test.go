package postgres

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

func childOf(name string, n resource.Node) resource.Child { return resource.Child{Name: name, Node: n} }

// filmResources are resources over testdata/film.sql.
func filmResources() []resource.Resource {
	return []resource.Resource{
		{Name: "films", Key: []string{"film_id"}, Root: resource.Node{Table: "film", Children: []resource.Child{
			childOf("actors", resource.Node{Table: "film_actor", Order: []resource.Order{{Column: "role", Descending: true}}, Children: []resource.Child{
				childOf("actor", resource.Node{Table: "actor", On: []resource.Join{{Column: "actor_id", Parent: "actor_id"}}})}}),
			childOf("copies", resource.Node{Table: "inventory", Columns: []string{"inventory_id"}, Children: []resource.Child{
				childOf("rentals", resource.Node{Table: "rental", Columns: []string{"returned", "customer_id"}, Children: []resource.Child{
					childOf("payments", resource.Node{Table: "payment", Columns: []string{"amount"}})}})}})}}},
		{Name: "credits", Key: []string{"actor_id", "film_id"}, Root: resource.Node{Table: "film_actor", Columns: []string{"role"}}},
		{Name: "customers", Key: []string{"email"}, Root: resource.Node{Table: "public.customer", Children: []resource.Child{
			childOf("rentals", resource.Node{Table: "rental"})}}},
	}
}

// orderResources are resources over testdata/orders.sql.
func orderResources() []resource.Resource {
	shipments := childOf("shipments", resource.Node{Table: "shipment"})
	lines := childOf("lines", resource.Node{Table: "line", On: []resource.Join{{Column: "order_id", Parent: "order_id"}}, Children: []resource.Child{shipments}})
	return []resource.Resource{
		{Name: "customers", Key: []string{"customer_id", "tenant"}, Root: resource.Node{Table: "customer", Children: []resource.Child{
			childOf("orders", resource.Node{Table: "orders", Order: []resource.Order{{Column: "placed"}}, Children: []resource.Child{lines}})}}},
		{Name: "orders", Key: []string{"order_id"}, BigintAsString: true, Root: resource.Node{Table: "orders", Children: []resource.Child{lines}}},
	}
}

// reader assembles documents in Go from one plain SELECT per node and row: the
// expected result of a load, by other means.
type reader struct {
	conn *pgx.Conn
	c    *compiled
}

// rows reads the rows of n that match where, each as JSON.
func (r *reader) rows(t *testing.T, n *node, where string, args ...any) []string {
	t.Helper()
	var names, order []string
	for _, col := range n.Table.columns {
		names = append(names, quoteName(col.name)+"::text")
	}
	for _, o := range n.Order {
		term := "x." + quoteName(o.Column) // else it is the text of the same name
		if o.Descending {
			term += " DESC"
		}
		order = append(order, term)
	}
	sql := "SELECT " + strings.Join(names, ", ") + " FROM " + n.Table.sql() + " AS x WHERE " + where
	if n.Parent != nil {
		sql += " ORDER BY " + strings.Join(order, ", ")
	}
	rows, err := r.conn.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]*string, error) {
		values := make([]*string, len(names))
		targets := make([]any, len(names))
		for i := range values {
			targets[i] = &values[i]
		}
		return values, row.Scan(targets...)
	})
	if err != nil {
		t.Fatalf("%v in %s", err, sql)
	}
	var docs []string
	for _, values := range found {
		var members []string
		for _, i := range n.Columns {
			members = append(members, jsonString(n.Table.columns[i].name)+":"+r.value(t, &n.Table.columns[i], values[i]))
		}
		for _, ch := range n.Children {
			var on []string
			var joined []any
			for i, j := range ch.Node.On {
				on = append(on, fmt.Sprintf("%s::text = $%d", quoteName(ch.Node.Table.columns[j.Column].name), i+1))
				joined = append(joined, *values[j.Parent])
			}
			members = append(members, jsonString(ch.Name)+":["+strings.Join(r.rows(t, ch.Node, strings.Join(on, " AND "), joined...), ",")+"]")
		}
		docs = append(docs, "{"+strings.Join(members, ",")+"}")
	}
	return docs
}

func jsonString(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // strings always can be
	return strings.TrimSpace(b.String())
}

// value turns the text that PostgreSQL has for a value into JSON.
func (r *reader) value(t *testing.T, col *column, text *string) string {
	t.Helper()
	if text == nil {
		return "null"
	}
	v := *text
	isNumber := !strings.Contains("NaN Infinity -Infinity", v)
	switch {
	case col.typ == typeInt8 && r.c.Resource.BigintAsString:
		return jsonString(v)
	case slices.Contains([]uint32{20, 21, 23, 700, 701, 1700}, col.typ) && isNumber, slices.Contains([]uint32{114, 3802}, col.typ):
		return v
	case col.typ == 16:
		return v
	case col.typ == typeBytea:
		var raw []byte
		if _, err := fmt.Sscanf(v, `\x%x`, &raw); err != nil {
			t.Fatal(err)
		}
		return jsonString(base64.StdEncoding.EncodeToString(raw))
	case col.typ == typeTimestampTZ:
		return jsonString(strings.TrimSuffix(strings.Replace(v, " ", "T", 1), "+00") + "Z")
	case col.typ == 1114:
		return jsonString(strings.Replace(v, " ", "T", 1))
	case col.typ == 1009: // text[]
		var list []string
		if err := r.conn.QueryRow(t.Context(), "SELECT $1::text::text[]", v).Scan(&list); err != nil {
			t.Fatal(err)
		}
		quoted := []string{}
		for _, s := range list {
			quoted = append(quoted, jsonString(s))
		}
		return "[" + strings.Join(quoted, ",") + "]"
	}
	return jsonString(v)
}

// allIDs returns the ids of all documents, and some of none.
func allIDs(t *testing.T, conn *pgx.Conn, c *compiled) []string {
	t.Helper()
	var key []string
	for i, at := range c.KeyAt {
		key = append(key, c.keyTypes[i].text(quoteName(c.Root.Table.columns[at].name)))
	}
	rows, err := conn.Query(t.Context(), "SELECT ARRAY["+strings.Join(key, ", ")+"] FROM "+c.Root.Table.sql())
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[[]string])
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, segments := range found {
		ids = append(ids, resource.JoinID(segments))
	}
	return ids
}

// Every document of two schemas, loaded in batches of every size in every query
// mode, equals the document that plain SELECTs assemble.
func TestLoadsAreWhatSelectsSay(t *testing.T) {
	pg := testkit.StartPostgres(t)
	for _, schema := range []struct {
		script    string
		resources []resource.Resource
	}{{"film.sql", filmResources()}, {"orders.sql", orderResources()}} {
		t.Run(schema.script, func(t *testing.T) {
			runScript(t, pg.URL, "CREATE DATABASE "+strings.TrimSuffix(schema.script, ".sql"))
			url := strings.Replace(pg.URL, "/postgres?", "/"+strings.TrimSuffix(schema.script, ".sql")+"?", 1)
			runScript(t, url, schema.script)
			conn := connect(t, url+"&timezone=UTC&intervalstyle=iso_8601")
			for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
				o := openOrigin(t, Config{URL: url + "&default_query_exec_mode=" + mode, Connections: 1}, schema.resources...)
				for i, c := range o.schema.Load().resources {
					compareAll(t, o, i, &reader{conn, c})
				}
			}
		})
	}
}

func compareAll(t *testing.T, o *Origin, i int, r *reader) {
	t.Helper()
	ids := allIDs(t, r.conn, r.c)
	if len(ids) < 50 {
		t.Fatalf("%s: %d documents to compare", r.c.Resource.Name, len(ids))
	}
	ids = ids[:min(len(ids), 200)]
	ids = slices.Insert(ids, 7, missingID(r.c.Key))
	var bodies [][]byte
	for rest, size := ids, 1; len(rest) > 0; size *= 2 {
		n := min(size, len(rest))
		batch, err := o.Load(t.Context(), cache.ResourceID(i), rest[:n])
		if err != nil {
			t.Fatal(err)
		}
		for j, doc := range batch.Docs {
			if doc.Err != nil {
				t.Fatalf("%s %q: %v", r.c.Resource.Name, rest[j], doc.Err)
			}
			bodies = append(bodies, doc.Body)
		}
		rest = rest[n:]
	}
	for j, id := range ids[:20] { // one by one, with another statement
		batch, err := o.Load(t.Context(), cache.ResourceID(i), []string{id})
		if err != nil || batch.Docs[0].Err != nil || !bytes.Equal(batch.Docs[0].Body, bodies[j]) {
			t.Fatalf("%s %q by itself: %v\n got %s\nwant %s", r.c.Resource.Name, id, errors.Join(err, batch.Docs[0].Err), batch.Docs[0].Body, bodies[j])
		}
	}
	for j, id := range ids {
		segments, err := resource.Split(r.c.Key, id)
		if err != nil {
			t.Fatal(err)
		}
		var where []string
		var args []any
		for k, at := range r.c.KeyAt {
			where = append(where, fmt.Sprintf("%s::text = $%d", quoteName(r.c.Root.Table.columns[at].name), k+1))
			args = append(args, segments[k])
		}
		want := strings.Join(r.rows(t, r.c.Root, strings.Join(where, " AND "), args...), "")
		if string(bodies[j]) != want {
			t.Fatalf("%s %q:\n got %s\nwant %s", r.c.Resource.Name, id, bodies[j], want)
		}
		if want != "" && !json.Valid(bodies[j]) {
			t.Fatalf("%s %q is not JSON: %s", r.c.Resource.Name, id, bodies[j])
		}
	}
}

// missingID is an id that no row has, and that only the widest types can hold.
func missingID(key []resource.KeyColumn) string {
	var segments []string
	for _, k := range key {
		segments = append(segments, map[resource.Kind]string{
			resource.Integer: "9223372036854775807", resource.Text: "nobody", resource.Decimal: "0.5",
			resource.UUID: "00000000-0000-0000-0000-000000000000",
		}[k.Kind])
	}
	return resource.JoinID(segments)
}

// Documents do not depend on settings of the role, the database or the server.
func TestDocumentsDoNotDependOnSettings(t *testing.T) {
	pg := testkit.StartPostgres(t)
	runScript(t, pg.URL, "film.sql")
	load := func() [][]byte {
		o := openOrigin(t, Config{URL: pg.URL}, filmResources()...)
		var bodies [][]byte
		for _, id := range []string{"1", "2", "3", "4", "5"} {
			bodies = append(bodies, loadOne(t, o, id))
		}
		return bodies
	}
	want := load()
	runScript(t, pg.URL, `ALTER DATABASE postgres SET TimeZone = 'Asia/Kathmandu'; ALTER DATABASE postgres SET DateStyle = 'German';
		ALTER DATABASE postgres SET IntervalStyle = 'postgres_verbose'; ALTER DATABASE postgres SET extra_float_digits = '-10';
		ALTER DATABASE postgres SET bytea_output = 'escape'; ALTER DATABASE postgres SET search_path = public, pg_catalog;
		ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'; ALTER DATABASE postgres SET standard_conforming_strings = off`)
	if got := load(); !reflect.DeepEqual(got, want) {
		t.Errorf("other settings give\n%s\nwant\n%s", got, want)
	}
}

// A writer changes parent and children in one transaction. No load may see a part.
func TestDocumentsAreNotTorn(t *testing.T) {
	pg := freshDatabase(t)
	runScript(t, pg.url, `CREATE TABLE dept (id int PRIMARY KEY, version int NOT NULL);
		CREATE TABLE emp (id int PRIMARY KEY, dept int NOT NULL REFERENCES dept, version int NOT NULL);
		CREATE INDEX ON emp (dept);
		INSERT INTO dept VALUES (1, 0), (2, 0); INSERT INTO emp SELECT i, 1 + i % 2, 0 FROM generate_series(1, 10) AS i`)
	o := openOrigin(t, Config{URL: pg.url}, resource.Resource{Name: "depts", Key: []string{"id"},
		Root: resource.Node{Table: "dept", Children: []resource.Child{childOf("emps", resource.Node{Table: "emp", Columns: []string{"version"}})}}})
	writer := connect(t, pg.url)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	// Stopped below, which waits for its end.
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			err := pgx.BeginFunc(context.WithoutCancel(ctx), writer, func(tx pgx.Tx) error {
				_, err := tx.Exec(context.WithoutCancel(ctx), `UPDATE emp SET version = version + 1 WHERE id <= 5;
					UPDATE dept SET version = version + 1; UPDATE emp SET version = version + 1 WHERE id > 5`)
				return err
			})
			if err != nil {
				t.Error(err)
				break
			}
		}
	}()
	versions := make(map[int]bool)
	for end := time.Now().Add(2 * time.Minute); len(versions) < 200; {
		if t.Failed() || time.Now().After(end) {
			t.Fatalf("%d versions seen, want 200", len(versions))
		}
		batch, err := o.Load(t.Context(), 0, []string{"1", "2"})
		if err != nil {
			t.Fatal(err)
		}
		var first int
		for i, doc := range batch.Docs {
			var d struct {
				Version int
				Emps    []struct{ Version int }
			}
			if err := json.Unmarshal(doc.Body, &d); err != nil || len(d.Emps) != 5 {
				t.Fatal(err, string(doc.Body))
			}
			if i == 0 {
				first = d.Version
				versions[first] = true
			}
			for _, e := range d.Emps {
				if e.Version != first || d.Version != first {
					t.Fatalf("torn: %s, another document of the load has version %d", doc.Body, first)
				}
			}
		}
	}
	stop()
	<-ended
}

// Names that could be confused with something else in the statement, more columns
// than a function has arguments, and rows of nothing but NULL.
func TestOddTables(t *testing.T) {
	pg := freshDatabase(t)
	var columns, members []string
	for i := range 300 {
		columns = append(columns, fmt.Sprintf(`"c%d" int DEFAULT %d`, i, i))
		members = append(members, fmt.Sprintf(`"c%d":%d`, i, i))
	}
	runScript(t, pg.url, `CREATE TABLE wide (id int PRIMARY KEY, `+strings.Join(columns, ", ")+`); INSERT INTO wide VALUES (1);
		CREATE TABLE "select" ("r" int PRIMARY KEY, "r_" int, "k" int, "t0" int, "doc""; --" text, "$1" text);
		CREATE TABLE t1 (id int PRIMARY KEY, "r" int REFERENCES "select", "place" int, "ä ""b" int[], z timestamptz[], e text);
		CREATE INDEX ON t1 (r);
		INSERT INTO "select" VALUES (1, 2, 3, 4, '<&>', E'\u2028'), (2, NULL, NULL, NULL, NULL, NULL);
		INSERT INTO t1 VALUES (1, 1, NULL, '{{1,2},{3,NULL}}', '{2024-01-01 00:00+02}', ''), (2, 1, NULL, NULL, NULL, NULL)`)
	node := func(columns ...string) resource.Node { return resource.Node{Table: "t1", Columns: columns} }
	o := openOrigin(t, Config{URL: pg.url},
		resource.Resource{Name: "wide", Key: []string{"id"}, Root: resource.Node{Table: "wide"}},
		resource.Resource{Name: "odd", Key: []string{"r"}, Root: resource.Node{Table: "select", Children: []resource.Child{
			childOf("r__", node("r", "place", `ä "b`, "z", "e")), childOf("nulls", node("place"))}}})
	if got, want := string(loadOne(t, o, "1")), `{"id":1,`+strings.Join(members, ",")+"}"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	batch, err := o.Load(t.Context(), 1, []string{"1", "2"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`{"r":1,"r_":2,"k":3,"t0":4,"doc\"; --":"<&>","$1":"` + "\u2028" + `","r__":[` +
			`{"r":1,"place":null,"ä \"b":[[1,2],[3,null]],"z":["2023-12-31T22:00:00+00:00"],"e":""},{"r":1,"place":null,"ä \"b":null,"z":null,"e":null}],` +
			`"nulls":[{"place":null},{"place":null}]}`,
		`{"r":2,"r_":null,"k":null,"t0":null,"doc\"; --":null,"$1":null,"r__":[],"nulls":[]}`,
	} {
		if got := string(batch.Docs[i].Body); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}
