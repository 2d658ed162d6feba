package postgres

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// shapesSchema has one type for each way in which the type of a column may contain a
// user-defined type, and a policy that depends on the role that reads.
const shapesSchema = `
CREATE TYPE in_composite AS ENUM ('a', 'b');
CREATE TYPE below_domains AS ENUM ('a', 'b');
CREATE TYPE in_array_of_domain AS ENUM ('a', 'b');
CREATE TYPE in_domain_of_array AS ENUM ('a', 'b');
CREATE TYPE in_range AS ENUM ('a', 'b');
CREATE TYPE in_multirange AS ENUM ('a', 'b');
CREATE TYPE plain AS ENUM ('a', 'b');
CREATE TYPE inner_composite AS (e in_composite, n int, gone int);
CREATE TYPE composite AS (i inner_composite, list inner_composite[]);
CREATE DOMAIN domain_1 AS below_domains;
CREATE DOMAIN domain_2 AS domain_1;
CREATE DOMAIN domain_3 AS in_array_of_domain;
CREATE DOMAIN domain_4 AS in_domain_of_array[];
CREATE TYPE range_1 AS RANGE (SUBTYPE = in_range);
CREATE TYPE range_2 AS RANGE (SUBTYPE = in_multirange, MULTIRANGE_TYPE_NAME = multirange_2);
CREATE TYPE with_cast AS ENUM ('a', 'b');
CREATE FUNCTION cast_to_json(with_cast) RETURNS json LANGUAGE sql IMMUTABLE AS $$ SELECT pg_catalog.json_build_object('is', ($1)::text) $$;
CREATE TABLE thing (id int PRIMARY KEY, c composite, d domain_2, ad domain_3[], da domain_4, r range_1, m multirange_2, p plain, k with_cast, price money);
INSERT INTO thing VALUES (1, ROW(ROW('a', 1, 2), ARRAY[ROW('a', 1, 2)::inner_composite]), 'a', '{a}', '{a}', '[a,b]', '{[a,b]}', 'a', 'a', 1.5);
CREATE TABLE guarded (id int PRIMARY KEY, owner text);
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
INSERT INTO guarded VALUES (1, 'clerks'), (2, 'nobody');
CREATE TABLE note (id int PRIMARY KEY, thing int);
INSERT INTO note VALUES (1, 1);
CREATE TYPE only_in_statement AS (x int, y int);
CREATE TYPE only_in_view AS (x int, y int);
CREATE TYPE only_in_function AS (x int, y int);
CREATE FUNCTION twice(int) RETURNS only_in_function LANGUAGE sql IMMUTABLE AS 'SELECT $1, 2 * $1';
CREATE VIEW noted AS SELECT id, row_to_json(ROW(id, thing)::only_in_view) AS doc FROM note;
`

func shapesResources() []resource.Resource {
	tree := func(name, table string) resource.Resource {
		return resource.Resource{Name: name, Key: []string{"id"}, Freshness: time.Second, Root: resource.Node{Table: table}}
	}
	statement := func(name, sql string, depends ...resource.Depend) resource.Resource {
		r := query(sql, queryKey("id", "int"), depends...)
		r.Name, r.Key, r.Freshness = name, []string{"id"}, time.Second
		return r
	}
	return []resource.Resource{
		tree("things", "thing"),
		statement("rows", "select id, row_to_json(t) from thing t where id = any($1)", on("thing", "id")),
		tree("guarded", "guarded"),
		statement("literal", "select id, row_to_json(ROW(id, thing)::only_in_statement) from note where id = any($1)", on("note", "id")),
		statement("views", "select id, doc from noted where id = any($1)", on("note", "id")),
		statement("functions", "select id, to_jsonb(twice(thing)) from note where id = any($1)", on("note", "id")),
	}
}

// Whatever changes documents without a change of a row flushes them before the
// horizon passes it, and documents loaded afterwards are those that a new session
// would return.
func TestDigestCoversWhatShapesDocuments(t *testing.T) {
	testkit.NoLeaks(t)
	pg := startServer(t)
	d := pg.database(t, shapesSchema)
	d.exec(t, `CREATE ROLE reader LOGIN; CREATE ROLE clerks; CREATE ROLE inherited; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
		CREATE POLICY of_clerks ON guarded TO clerks USING (owner = 'clerks'); CREATE FUNCTION may(text) RETURNS bool LANGUAGE sql STABLE AS 'SELECT false';
		CREATE POLICY by_function ON guarded TO reader USING (may(owner)); CREATE POLICY by_setting ON guarded TO reader USING (owner = current_setting('app.owner', true))`)
	owner := openOrigin(t, Config{URL: d.url, GrantTo: "reader"}, shapesResources()...)
	if _, err := owner.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := openOrigin(t, Config{URL: d.urlOf("reader"), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}, shapesResources()...)
	began := time.Now()
	clock := func() time.Duration { return time.Since(began) }
	s := &streamed{T: t, url: d.url, db: d.conn, origin: o, sink: &recorder{clock: clock, promises: map[cache.ResourceID]string{}}}
	s.runInto(clock, s.sink)

	const things, rows, guarded, literal, views, functions = 0, 1, 2, 3, 4, 5
	for _, tt := range []struct {
		name, sql string
		// The resources whose documents differ afterwards. If nil, those with money
		// would differ if the machine had other locales than C, so they must be
		// flushed.
		want []int
	}{
		{"enum of a column", "ALTER TYPE plain RENAME VALUE 'a' TO 'z'", []int{things, rows}},
		{"enum in a composite in an array in a composite", "ALTER TYPE in_composite RENAME VALUE 'a' TO 'z'", []int{things, rows}},
		{"attribute renamed", "ALTER TYPE inner_composite RENAME ATTRIBUTE n TO m", []int{things, rows}},
		{"attribute dropped", "ALTER TYPE inner_composite DROP ATTRIBUTE gone", []int{things, rows}},
		{"attribute of a new type added", "CREATE TYPE later AS (x int); ALTER TYPE composite ADD ATTRIBUTE l later", []int{things, rows}},
		{"attribute of the new type renamed", "ALTER TYPE later RENAME ATTRIBUTE x TO y; UPDATE thing SET c.l = ROW(1)::later", []int{things, rows}},
		{"attribute of the new type renamed again", "ALTER TYPE later RENAME ATTRIBUTE y TO z", []int{things, rows}},
		{"enum below two domains", "ALTER TYPE below_domains RENAME VALUE 'a' TO 'z'", []int{things, rows}},
		{"enum below an array of a domain", "ALTER TYPE in_array_of_domain RENAME VALUE 'a' TO 'z'", []int{things, rows}},
		{"enum below a domain of an array", "ALTER TYPE in_domain_of_array RENAME VALUE 'a' TO 'z'", []int{things, rows}},
		{"subtype of a range", "ALTER TYPE in_range RENAME VALUE 'a' TO 'z'", []int{things, rows}},
		{"subtype of a multirange", "ALTER TYPE in_multirange RENAME VALUE 'a' TO 'z'", []int{things, rows}},
		{"cast to json made", "CREATE CAST (with_cast AS json) WITH FUNCTION cast_to_json(with_cast)", []int{things, rows}},
		{"function of the cast replaced", `CREATE OR REPLACE FUNCTION cast_to_json(with_cast) RETURNS json LANGUAGE sql IMMUTABLE AS 'SELECT pg_catalog.json_build_object(''was'', ($1)::text)'`, []int{things, rows}},
		{"cast to json dropped", "DROP CAST (with_cast AS json)", []int{things, rows}},
		{"type of the statement alone", "ALTER TYPE only_in_statement RENAME ATTRIBUTE x TO z", []int{literal}},
		{"type of a view's expression", "ALTER TYPE only_in_view RENAME ATTRIBUTE x TO z", []int{views}},
		{"type that a function returns", "ALTER TYPE only_in_function RENAME ATTRIBUTE x TO z", []int{functions}},
		{"locale of money for the database", "ALTER DATABASE " + d.name + " SET lc_monetary = 'POSIX'", nil},
		{"locale of money for the role", "ALTER ROLE reader IN DATABASE " + d.name + " SET lc_monetary = 'C'", nil},
		{"locale of money for the role no more", "ALTER ROLE reader IN DATABASE " + d.name + " RESET lc_monetary", nil},
		{"member of the role of a policy", "GRANT clerks TO reader", []int{guarded}},
		{"member no more", "REVOKE clerks FROM reader", []int{guarded}},
		{"member through another role", "GRANT clerks TO inherited; GRANT inherited TO reader", []int{guarded}},
		{"member through another role no more", "REVOKE clerks FROM inherited", []int{guarded}},
		{"function of a policy", "CREATE OR REPLACE FUNCTION may(text) RETURNS bool LANGUAGE sql STABLE AS 'SELECT $1 = ''clerks'''", []int{guarded}},
		{"function of a policy again", "CREATE OR REPLACE FUNCTION may(text) RETURNS bool LANGUAGE sql STABLE AS 'SELECT false'", []int{guarded}},
		{"setting that a policy reads", "ALTER ROLE reader SET app.owner = 'clerks'", []int{guarded}},
		{"setting that a policy reads no more", "ALTER ROLE reader RESET ALL", []int{guarded}},
		{"role bypasses row-level security", "ALTER ROLE reader BYPASSRLS", []int{guarded}},
		{"role bypasses it no more", "ALTER ROLE reader NOBYPASSRLS", []int{guarded}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := s.documents(t)
			s.sink.forget()
			d.exec(t, tt.sql)
			s.advance()
			flushed := s.sink.flushed()
			after := s.documents(t)
			for i := range before {
				differs := before[i] != after[i]
				if differs != slices.Contains(tt.want, i) {
					t.Errorf("resource %d was %s and is %s, expected another: %t", i, before[i], after[i], !differs)
				}
				if (differs || tt.want == nil && i <= rows) && !slices.Contains(flushed, i) {
					t.Errorf("resource %d was %s and is %s, and the horizon passed that without a flush", i, before[i], after[i])
				}
			}
		})
	}
}

// documents loads all documents of the first two keys of each resource.
func (s *streamed) documents(t *testing.T) (all []string) {
	t.Helper()
	for i := range s.origin.set.Load().Resources {
		batch, err := s.origin.Load(t.Context(), cache.ResourceID(i), []string{"1", "2"})
		if err != nil {
			t.Fatal(err)
		}
		var text []string
		for _, doc := range batch.Docs {
			if doc.Err != nil {
				t.Fatal(doc.Err)
			}
			text = append(text, string(doc.Body))
		}
		all = append(all, strings.Join(text, " "))
	}
	return all
}

// flushed returns the resources that events have flushed since the last call of
// forget.
func (r *recorder) flushed() (resources []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.All {
			resources = append(resources, int(e.Key.Resource))
		}
	}
	return resources
}
