package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// wiretap is a listener in front of a server that records what clients send and whether
// anything in schema evil was used.
type wiretap struct {
	address string

	// Guarded by mu.
	mu         sync.Mutex
	statements []string
	evil       []string // messages of the server about it
}

func tap(t *testing.T, databaseURL string) *wiretap {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	w := &wiretap{}
	w.address = testkit.Serve(t, func(client net.Conn, _ int) { w.relay(client, u.Host) }).Addr
	return w
}

func (w *wiretap) relay(client net.Conn, server string) {
	defer client.Close()
	up, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer up.Close()
	// Ends with the client, or when relay returns.
	go func() {
		_ = messages(io.TeeReader(client, up), false, func(kind byte, body []byte) {
			text := ""
			switch kind {
			case 'P': // the name of the statement, then its text
				_, rest, _ := bytes.Cut(body, []byte{0})
				query, _, _ := bytes.Cut(rest, []byte{0})
				text = string(query)
			case 'Q':
				text = string(bytes.TrimRight(body, "\x00"))
			default:
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if !slices.Contains(w.statements, text) {
				w.statements = append(w.statements, text)
			}
		})
		_ = up.Close()
	}()
	_ = messages(io.TeeReader(up, client), true, func(kind byte, body []byte) {
		if (kind == 'E' || kind == 'N') && bytes.Contains(body, []byte("the evil ")) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.evil = append(w.evil, string(bytes.ReplaceAll(body, []byte{0}, []byte(" "))))
		}
	})
}

func (w *wiretap) said() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.evil)
}

// messages calls each for the messages of the protocol. The first message of a client has
// no kind.
func messages(r io.Reader, fromServer bool, each func(kind byte, body []byte)) error {
	for first := !fromServer; ; first = false {
		head := make([]byte, 5)
		if first {
			head = head[1:]
		}
		if _, err := io.ReadFull(r, head); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		if !first {
			each(head[0], body)
		}
	}
}

// urlOf returns the URL of a role, which leads through the tap.
func (w *wiretap) urlOf(d *database, role string) string {
	u, err := url.Parse(d.urlOf(role))
	if err != nil {
		panic(err) // it was parsed before
	}
	u.Host = w.address
	return u.String()
}

const hostileSchema = `
CREATE ROLE owner LOGIN; CREATE ROLE gateway LOGIN;
CREATE SCHEMA app AUTHORIZATION owner;
SET ROLE owner; SET search_path = app;
CREATE TYPE mood AS ENUM ('sad', 'glad');
CREATE DOMAIN code AS varchar(10) COLLATE "C";
CREATE TABLE k (b bool, i2 smallint, i8 bigint, n numeric, t text, c code, d date, ts timestamp, tz timestamptz, u uuid, raw bytea, m mood, rest jsonb, total bigint,
	PRIMARY KEY (b, i2, i8, n, t, c, d, ts, tz, u, raw, m)) PARTITION BY LIST (m);
CREATE TABLE k_sad PARTITION OF k FOR VALUES IN ('sad');
CREATE TABLE k_glad PARTITION OF k FOR VALUES IN ('glad');
CREATE TABLE part (id varchar(20) PRIMARY KEY, b bool, n numeric, t text, c code, d date, ts timestamp, tz timestamptz, u uuid, raw bytea, m mood, i8 numeric, i2 int, shown timestamptz);
CREATE TABLE piece (id int PRIMARY KEY, part varchar(20) REFERENCES part, at timestamptz);
CREATE TABLE bit (id bigint PRIMARY KEY, piece numeric);
CREATE TABLE customer (id int PRIMARY KEY, name varchar(40));
CREATE TABLE orders (id bigint PRIMARY KEY, customer int, status varchar(10), placed date, total numeric);
CREATE TABLE item (order_id bigint, no int, kind varchar(10), price numeric, PRIMARY KEY (order_id, no));
INSERT INTO k VALUES (true, -7, 9007199254740993, 1.500, 'x', 'c', '2020-02-03', '2020-02-03 04:05:06.7', '2020-02-03 04:05:06+00', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\x00ff', 'glad', '{"a": 1}', 5);
INSERT INTO part VALUES ('p', true, 1.5, 'x', 'c', '2020-02-03', '2020-02-03 04:05:06.7', '2020-02-03 04:05:06+00', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\x00ff', 'glad', 9007199254740993, -7, '2020-01-01 00:00:00+00');
INSERT INTO piece VALUES (1, 'p', '2020-02-03 04:05:06+00');
INSERT INTO bit VALUES (1, 1);
INSERT INTO customer VALUES (1, 'Ada'), (2, 'Bob');
INSERT INTO orders VALUES (1, 1, 'new', '2026-01-01', 10.5), (2, 2, 'old', '2026-01-02', 20);
INSERT INTO item VALUES (1, 1, 'a', 4.5), (1, 2, 'b', 6), (2, 1, 'a', 20);
GRANT USAGE ON SCHEMA app TO gateway; GRANT SELECT ON ALL TABLES IN SCHEMA app TO gateway;
RESET ROLE; RESET search_path`

// hostileResources qualify all of their names.
func hostileResources() []resource.Resource {
	same := func(columns ...string) (on []resource.Join) {
		for _, c := range columns {
			on = append(on, resource.Join{Column: c, Parent: c})
		}
		return on
	}
	key := []string{"b", "i2", "i8", "n", "t", "c", "d", "ts", "tz", "u", "raw", "m"}
	return []resource.Resource{
		{Name: "k", Key: key, BigintAsString: true, Root: resource.Node{Table: "app.k", Children: []resource.Child{childOf("parts", resource.Node{
			Table: "app.part", On: same("b", "n", "t", "c", "d", "ts", "tz", "u", "raw", "m", "i8", "i2"), Children: []resource.Child{childOf("pieces", resource.Node{
				Table: "app.piece", On: []resource.Join{{Column: "part", Parent: "id"}}, Children: []resource.Child{childOf("bits", resource.Node{
					Table: "app.bit", On: []resource.Join{{Column: "piece", Parent: "id"}}})}})}})}}},
		{Name: "orders", Key: []string{"id"}, Query: &resource.Query{
			Key: queryKey("id", "pg_catalog.int8"),
			SQL: `WITH sums (order_id, price) AS (
					SELECT i.order_id, pg_catalog.sum(i.price) FROM app.item AS i WHERE i.kind OPERATOR(pg_catalog.=) ANY ('{a,b}'::pg_catalog.varchar[]) GROUP BY i.order_id)
				SELECT o.id, pg_catalog.json_build_object('id', o.id, 'customer', pg_catalog.upper(c.name), 'status', o.status OPERATOR(pg_catalog.||) '!'::pg_catalog.text,
					'sum', (SELECT x.coalesce_sum FROM (SELECT s.price OPERATOR(pg_catalog.*) 2 FROM sums AS s WHERE s.order_id OPERATOR(pg_catalog.=) o.id) AS x (coalesce_sum)),
					'kinds', ARRAY(SELECT pg_catalog."left"(u.k, 1) FROM pg_catalog.unnest(ARRAY['x', 'y']::pg_catalog.text[]) WITH ORDINALITY AS u (k, place) ORDER BY u.place),
					'from', (SELECT r.a FROM pg_catalog.json_to_record('{"a": 1}'::pg_catalog.json) AS r (a int, b pg_catalog.text)),
					'year', EXTRACT(year FROM o.placed), 'known', o.status OPERATOR(pg_catalog.~~) 'n%'::pg_catalog.text COLLATE pg_catalog."C")
				FROM app.orders AS o JOIN app.customer AS c ON c.id OPERATOR(pg_catalog.=) o.customer
				WHERE o.id OPERATOR(pg_catalog.=) ANY ($1) AND o.id OPERATOR(pg_catalog.=) ANY (SELECT i.order_id FROM app.item AS i)`,
			Depends: []resource.Depend{on("app.orders", "id"), on("app.item", "order_id"),
				via("app.customer", `SELECT o.id FROM app.orders AS o WHERE o.customer OPERATOR(pg_catalog.=) ANY ($1)`, "id")},
		}},
	}
}

// play plans, applies, checks, serves, follows and drops, and returns all results.
func (w *wiretap) play(t *testing.T, d *database) string {
	t.Helper()
	var b strings.Builder
	say := func(what string, value any, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		fmt.Fprintf(&b, "%s: %v\n", what, value)
	}
	// The superuser may be refused; the message does not matter here.
	root, err := Open(t.Context(), Config{URL: w.urlOf(d, ""), Administer: true, GrantTo: "gateway"}, hostileResources())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	_, _ = root.Plan(t.Context())
	_, _ = root.Check(t.Context())
	if _, err := root.Apply(t.Context()); err == nil {
		_, err = root.Drop(t.Context())
		say("drop", nil, err)
	}
	owner, err := Open(t.Context(), Config{URL: w.urlOf(d, "owner"), Administer: true, GrantTo: "gateway"}, hostileResources())
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	say("warnings", owner.Warnings(), nil)
	plan, err := owner.Plan(t.Context())
	say("plan", plan, err)
	done, err := owner.Apply(t.Context())
	say("apply", done, err)
	findings, err := owner.Check(t.Context())
	say("check", findings, err)

	// A derivation may take an eighth of the promise, and the first ones on a slow machine need more
	// than that of one second.
	polls := newPollLog(t)
	o, err := Open(t.Context(), Config{URL: w.urlOf(d, "gateway"), Freshness: 10 * time.Minute, Logger: slog.New(polls)}, hostileResources())
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	say("warnings", o.Warnings(), nil)
	if _, err := o.Prepare(t.Context(), hostileResources()); err != nil {
		t.Error(err)
	}
	s := &streamed{T: t, url: d.url, db: d.conn, origin: o}
	began := time.Now()
	clock := func() time.Duration { return time.Since(began) }
	s.sink = &recorder{clock: clock, promises: map[cache.ResourceID]string{}}
	s.runInto(clock, s.sink)
	say("promises", s.sink.promises, nil)
	kid := resource.JoinID([]string{"true", "-7", "9007199254740993", "1.5", "x", "c", "2020-02-03", "2020-02-03T04:05:06.700000",
		"2020-02-03T04:05:06.000000Z", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00ff", "glad"})
	load := func() {
		t.Helper()
		for i, ids := range [][]string{{kid}, {"2", "1", "7"}} {
			batch, err := o.Load(t.Context(), cache.ResourceID(i), ids)
			for _, doc := range batch.Docs {
				say("document", string(doc.Body), doc.Err)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	load()
	for _, change := range []string{
		`UPDATE app.k SET total = 6`, `UPDATE app.part SET shown = NULL`, `UPDATE app.piece SET at = 'infinity'`, `UPDATE app.bit SET piece = 1.0`,
		`UPDATE app.orders SET status = 'done' WHERE id = 1`, `UPDATE app.item SET price = 1 WHERE order_id = 2`, `UPDATE app.customer SET name = 'Cleo' WHERE id = 2`,
	} {
		s.sink.forget()
		s.exec(change)
		s.advance()
		ids := strings.Fields(s.sink.ids())
		slices.Sort(ids)
		say(change, slices.Compact(ids), nil)
	}
	load()
	s.stop()
	polls.check(t, s.stream)
	_, err = owner.Drop(t.Context())
	say("drop", nil, err)
	_, err = owner.Apply(t.Context()) // references to the record are checked once more
	say("apply", nil, err)
	return b.String()
}

// No name in a statement of Slipstream is looked up along the search path, whatever schema
// is before pg_catalog. The texts of resources are qualified here: unqualified names in
// them have the meaning that they have for the role.
func TestHostileSchemas(t *testing.T) {
	var clean *played
	t.Run("none", func(t *testing.T) { clean = playOn(t, func(*database) {}) })
	t.Run("in front of pg_catalog", func(t *testing.T) {
		hostile := playOn(t, func(d *database) {
			runScript(t, d.url, "evil.sql")
			for what, least := range map[string]int{"pg_proc WHERE pronamespace": 2500, "pg_operator WHERE oprnamespace": 700, "pg_class WHERE relkind = 'r' AND relnamespace": 120} {
				if got := d.text(t, fmt.Sprintf("SELECT count(*) >= %d FROM %s = 'evil'::regnamespace", least, what)); got != "t" {
					t.Fatalf("evil has fewer than %d objects of %s", least, what)
				}
			}
			d.exec(t, "ALTER DATABASE "+d.name+" SET search_path = evil, pg_catalog")
		})
		hostile.compare(t, clean)
		hostile.findEvil(t)
	})
	// What every role could do before PostgreSQL 15.
	t.Run("in public", func(t *testing.T) {
		hostile := playOn(t, func(d *database) { runScript(t, d.url, "planted.sql") })
		hostile.compare(t, clean)
		if got := hostile.text(t, "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"); got != "f" {
			t.Errorf("mallory is a superuser: %s", got)
		}
		trap := tap(t, hostile.url)
		conn := connect(t, trap.urlOf(hostile.database, "gateway"))
		if got := textOn(t, conn, "SELECT u FROM unnest('{2,3}'::text[]) AS u"); got != "1,1" || len(trap.said()) != 1 {
			t.Errorf("the trap does not work: got %s, messages %q", got, trap.said())
		}
	})
}

// played is a database and what was observed when everything was run on it.
type played struct {
	*database
	*wiretap
	transcript string
}

func playOn(t *testing.T, prepare func(*database)) *played {
	t.Helper()
	d := freshDatabase(t)
	d.exec(t, hostileSchema, "GRANT CREATE ON DATABASE "+d.name+" TO owner")
	prepare(d)
	p := &played{database: d, wiretap: tap(t, d.url)}
	p.transcript = p.play(t, d)
	return p
}

func (p *played) compare(t *testing.T, clean *played) {
	t.Helper()
	if p.transcript != clean.transcript {
		t.Errorf("got\n%s\nwithout anything hostile\n%s", p.transcript, clean.transcript)
	}
	for _, said := range p.said() {
		t.Error(said)
	}
}

// findEvil looks for references of any statement to schema evil, even those that would
// have done no harm.
func (p *played) findEvil(t *testing.T) {
	t.Helper()
	trap := p.connect(t, "")
	execOn(t, trap, "SET search_path = evil, pg_catalog")
	if _, err := trap.Exec(t.Context(), "SELECT 1 = 1"); err == nil {
		t.Fatal("the trap does not work: 1 = 1 has a result")
	}
	viewed := 0
	for _, statement := range p.statements {
		if found, isQuery := resolvedIn(t, trap, statement); isQuery {
			viewed++
			if found != "" {
				t.Errorf("%s\nin\n%s", found, statement)
			}
		}
	}
	if viewed < 30 {
		t.Errorf("only %d of %d statements were checked", viewed, len(p.statements))
	}
}

var parameter = regexp.MustCompile(`\$[0-9]+`)

// resolvedIn returns what a query refers to in schema evil with the path of the connection, or
// why the database does not accept the query.
func resolvedIn(t *testing.T, conn *pgx.Conn, statement string) (found string, isQuery bool) {
	t.Helper()
	text := strings.TrimPrefix(statement, "EXPLAIN (COSTS OFF) ")
	if !strings.HasPrefix(strings.TrimSpace(text), "SELECT") && !strings.HasPrefix(strings.TrimSpace(text), "WITH") || strings.Contains(text, ";\n") {
		return "", false
	}
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "CREATE TEMPORARY VIEW looked_at (c) AS SELECT 1 FROM (\n"+parameter.ReplaceAllString(text, "NULL")+"\n) AS statement"); err != nil {
		return err.Error(), true
	}
	if err := tx.QueryRow(t.Context(), `SELECT COALESCE(pg_catalog.string_agg(i.identity, ', '), '') FROM pg_catalog.pg_depend AS d
		JOIN pg_catalog.pg_rewrite AS r ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid OPERATOR(pg_catalog.=) r.oid,
		LATERAL pg_catalog.pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid) AS i
		WHERE r.ev_class OPERATOR(pg_catalog.=) 'pg_temp.looked_at'::pg_catalog.regclass AND (i.schema OPERATOR(pg_catalog.=) 'evil' OR i.identity OPERATOR(pg_catalog.~) '^evil')`).Scan(&found); err != nil {
		t.Fatal(err)
	}
	return found, true
}
