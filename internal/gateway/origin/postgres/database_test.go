package postgres

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// server is one PostgreSQL for many tests, each with its own database.
type server struct {
	*testkit.Postgres
	databases atomic.Int64
}

func startServer(t *testing.T, settings ...string) *server {
	t.Helper()
	return &server{Postgres: testkit.StartPostgres(t, settings...)}
}

// database is one test's database. Its methods fail the test on any error.
type database struct {
	name string
	url  string
	conn *pgx.Conn // of the superuser
}

// database makes a database and runs a script in it.
func (s *server) database(t *testing.T, script ...string) *database {
	t.Helper()
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	s.PSQL(t, "CREATE DATABASE "+name)
	d := &database{name: name, url: strings.Replace(s.URL, "/postgres?", "/"+name+"?", 1)}
	d.conn = d.connect(t, "")
	d.exec(t, script...)
	return d
}

func (d *database) urlOf(role string) string {
	if role == "" {
		return d.url
	}
	return strings.Replace(d.url, "postgres://postgres@", "postgres://"+url.PathEscape(role)+"@", 1)
}

// connect opens another session, of a role if one is given.
func (d *database) connect(t *testing.T, role string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), d.urlOf(role))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the test is over
	return conn
}

func (d *database) exec(t *testing.T, scripts ...string) {
	t.Helper()
	execOn(t, d.conn, scripts...)
}

// text returns the rows of a query: values joined by spaces, rows by commas.
func (d *database) text(t *testing.T, sql string) string {
	t.Helper()
	return textOn(t, d.conn, sql)
}

// origin opens an origin of the resources as a role, or as the superuser if it is
// "". It does not call Open: these tests only need the pool.
func (d *database) origin(t *testing.T, cfg Config, role string, resources ...resource.Resource) *Origin {
	t.Helper()
	cfg.URL = d.urlOf(role)
	if role == "" && cfg.Definer == "" {
		cfg.Definer = testkit.Definer
	}
	pool, err := pgxpool.New(t.Context(), cfg.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	to, err := newConnector(cfg.URL, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	o := &Origin{cfg: cfg.withDefaults(), pool: pool, loadFrom: to}
	o.set.Store(origin.NewSet(resources))
	return o
}

// apply calls Apply and returns the statements.
func (d *database) apply(t *testing.T, cfg Config, resources ...resource.Resource) []origin.Statement {
	t.Helper()
	done, err := d.origin(t, cfg, "", resources...).Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

const recordedSQL = `SELECT regexp_replace(source, '@[0-9a-f]{12}$', '') || '=' || COALESCE(key, '*')
	FROM slipstream.change WHERE source <> '` + witnessSource + `' ORDER BY 1`

// recorded returns the content of the change table, one word per row and without the
// hashes of sources, and empties it.
func (d *database) recorded(t *testing.T) string {
	t.Helper()
	got := d.text(t, recordedSQL)
	d.exec(t, `DELETE FROM slipstream.change`)
	return got
}

func execOn(t *testing.T, conn *pgx.Conn, scripts ...string) {
	t.Helper()
	for _, script := range scripts {
		if err := tryOn(t, conn, script); err != nil {
			t.Fatalf("%v in %s", err, script)
		}
	}
}

func tryOn(t *testing.T, conn *pgx.Conn, script string) error {
	t.Helper()
	_, err := conn.PgConn().Exec(t.Context(), script).ReadAll()
	return err
}

func textOn(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%v in %s", err, sql)
	}
	var rows []string
	for _, row := range results[len(results)-1].Rows {
		var values []string
		for _, value := range row {
			values = append(values, string(value))
		}
		rows = append(rows, strings.Join(values, " "))
	}
	return strings.Join(rows, ",")
}

const deptSchema = `
	CREATE TABLE dept (deptno int PRIMARY KEY, dname text);
	CREATE TABLE emp (empno int PRIMARY KEY, deptno int REFERENCES dept, ename text);
	CREATE INDEX ON emp (deptno);
	INSERT INTO dept SELECT i, 'd' || i FROM generate_series(10, 40, 10) AS i;
	INSERT INTO emp SELECT i, 10 * i, 'e' || i FROM generate_series(1, 4) AS i`

func deptResource() resource.Resource {
	return resource.Resource{Name: "depts", Key: []string{"deptno"}, Root: resource.Node{Table: "dept",
		Children: []resource.Child{{Name: "emps", Node: resource.Node{Table: "emp"}}}}}
}
