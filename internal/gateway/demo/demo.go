// Package demo creates a small company's database in one SQLite file, with a writer
// that keeps changing it, so that a gateway can be tried out on a machine that has
// only Go.
//
// The tables are those of an ordinary application: no trigger, column or setting
// exists for the gateway's sake.
package demo

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/gateway/config"
)

// Sizes of the database. A department with its ten employees is a document of
// 1.6 to 1.8 KB of JSON.
const (
	Depts         = 1000
	EmpsPerDept   = 10
	OrdersPerArea = 500
	LinesPerOrder = 3

	firstEmp  = 10_001
	firstLine = 1
)

// Regions are the first part of the key of an order.
var Regions = []string{"amer", "apac", "emea", "latam"}

const tables = `
CREATE TABLE dept (
	deptno      INTEGER PRIMARY KEY,
	dname       TEXT NOT NULL,
	loc         TEXT NOT NULL,
	cost_center TEXT NOT NULL,
	budget      INTEGER NOT NULL,
	updated_at  TIMESTAMP NOT NULL
);
CREATE TABLE emp (
	empno  INTEGER PRIMARY KEY,
	deptno INTEGER NOT NULL REFERENCES dept (deptno),
	ename  TEXT NOT NULL,
	job    TEXT NOT NULL,
	grade  TEXT NOT NULL,
	email  TEXT NOT NULL,
	hired  DATE NOT NULL,
	salary INTEGER NOT NULL,
	remote BOOLEAN NOT NULL
);
CREATE TABLE orders (
	region     TEXT NOT NULL,
	order_no   INTEGER NOT NULL,
	customer   TEXT NOT NULL,
	ordered_at TIMESTAMP NOT NULL,
	status     TEXT NOT NULL,
	currency   TEXT NOT NULL,
	PRIMARY KEY (region, order_no)
);
CREATE TABLE order_line (
	line_id  INTEGER PRIMARY KEY,
	region   TEXT NOT NULL,
	order_no INTEGER NOT NULL,
	sku      TEXT NOT NULL,
	product  TEXT NOT NULL,
	quantity INTEGER NOT NULL,
	price    NUMERIC NOT NULL,
	FOREIGN KEY (region, order_no) REFERENCES orders (region, order_no)
);
CREATE TABLE shipment (
	shipment_id INTEGER PRIMARY KEY,
	line_id     INTEGER NOT NULL REFERENCES order_line (line_id) ON DELETE CASCADE,
	carrier     TEXT NOT NULL,
	tracking_no TEXT NOT NULL,
	shipped_at  TIMESTAMP
);
`

// Indexes are created after the rows: sorting once is faster than 22,000 insertions.
const indices = `
CREATE INDEX emp_dept ON emp (deptno);
CREATE INDEX order_line_order ON order_line (region, order_no);
CREATE INDEX shipment_line ON shipment (line_id);
`

// Config returns the configuration of a gateway over the database, as the YAML
// that a user would write. database is its path, httpAddr and adminAddr are
// host:port. An address that other machines can reach is open to all of them.
func Config(database, httpAddr, adminAddr string) string {
	return fmt.Sprintf(`origin:
  url: %q
freshness: 1s

resources:
  # GET /depts/42: a department with its employees.
  depts:
    table: dept
    key: [deptno]
    children:
      emps:
        table: emp
        on: { deptno: deptno }
        order: [empno]
        columns: [empno, ename, job, grade, email, hired, salary, remote]

  # GET /orders/emea/17: a composite key, three levels of tables. The joins are
  # found by the foreign keys.
  orders:
    table: orders
    key: [region, order_no]
    children:
      lines:
        table: order_line
        order: [line_id]
        columns: [line_id, sku, product, quantity, price]
        children:
          shipments:
            table: shipment
            order: [-shipped_at, shipment_id]
            columns: [shipment_id, carrier, tracking_no, shipped_at]

tiers: { memory: 64MiB }
frontends: { http: %s }
admin: %q
`, originURL(database), listener(httpAddr), adminAddr)
}

// listener formats an address as a listener of the configuration.
func listener(addr string) string {
	if (config.Listener{Address: addr}).Exposed() {
		return fmt.Sprintf("{ address: %q, open: true }", addr)
	}
	return strconv.Quote(addr)
}

// originURL formats a path as a URL of the configuration.
func originURL(path string) string {
	path = strings.ReplaceAll(path, `\`, "/")
	return "sqlite:" + strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23", "$", "%24").Replace(path)
}

// Create creates the database at path, which must not exist. The same seed gives
// the same rows.
func Create(path string, seed uint64) (err error) {
	db, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE|sqlite3.OPEN_EXRESCODE)
	if err != nil {
		return fmt.Errorf("demo: %s: %w", path, err)
	}
	defer func() {
		if closed := db.Close(); err == nil && closed != nil {
			err = fmt.Errorf("demo: %s: %w", path, closed)
		}
	}()
	// WAL, so that the writer and the gateway's reads do not wait for each
	// other. It cannot be set inside a transaction.
	if err := db.Exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; BEGIN EXCLUSIVE"); err != nil {
		return fmt.Errorf("demo: %s: %w", path, err)
	}
	g := &generator{db: db, rand: rand.New(rand.NewPCG(seed, seed))}
	for _, step := range []func() error{
		func() error { return db.Exec(tables) }, g.depts, g.emps, g.orders, g.lines,
		func() error { return db.Exec(indices) },
		func() error { return db.Exec("COMMIT") },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("demo: %s: %w", path, err)
		}
	}
	return nil
}
