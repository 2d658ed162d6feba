package postgres

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// runScript runs a file of testdata, or SQL text, as the superuser.
func runScript(t testing.TB, url, script string) {
	t.Helper()
	if strings.HasSuffix(script, ".sql") {
		text, err := os.ReadFile("testdata/" + script)
		if err != nil {
			t.Fatal(err)
		}
		script = string(text)
	}
	conn := connect(t, url)
	if _, err := conn.Exec(t.Context(), script); err != nil {
		t.Fatal(err)
	}
}

// connect opens a connection that ends with the test.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// openOrigin opens an origin that ends with the test.
func openOrigin(t testing.TB, cfg Config, resources ...resource.Resource) *Origin {
	t.Helper()
	if cfg.Definer == "" {
		cfg.Definer = testkit.Definer
	}
	o, err := Open(t.Context(), cfg, resources)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o
}

// loadOne loads one document of the first resource; nil if it is missing.
func loadOne(t testing.TB, o *Origin, id string) []byte {
	t.Helper()
	batch, err := o.Load(t.Context(), 0, []string{id})
	if err != nil {
		t.Fatal(err)
	}
	if err := batch.Docs[0].Err; err != nil {
		t.Fatal(err)
	}
	return batch.Docs[0].Body
}

// follow makes o behave as if a stream followed the present history.
func follow(t testing.TB, o *Origin) {
	t.Helper()
	var text string
	if err := o.pool.QueryRow(t.Context(), "SELECT "+header(o.schema.Load().tracked)).Scan(&text); err != nil {
		t.Fatal(err)
	}
	_, h, err := parseHeader(text)
	if err != nil {
		t.Fatal(err)
	}
	o.history.Store(&h)
}

// shared tables of slipstream, as Apply makes them, as far as loads need them.
const trackedSQL = `CREATE SCHEMA slipstream;
	CREATE TABLE slipstream.change (xid xid8);
	CREATE TABLE slipstream.meta (version int);
	CREATE UNLOGGED TABLE slipstream.incarnation (id uuid NOT NULL);
	INSERT INTO slipstream.incarnation VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');`

var _ cache.Origin = (*Origin)(nil)
