package demo

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/gateway/config"
)

const testSeed = 1

// create makes a database.
func create(t *testing.T, seed uint64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "demo.db")
	if err := Create(path, seed); err != nil {
		t.Fatal(err)
	}
	return path
}

// template is the database of testSeed: created once, because that takes seconds
// under the race detector.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "demo-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "demo.db")
	if err := Create(path, testSeed); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// prepared returns a database for the test.
func prepared(t *testing.T) string {
	t.Helper()
	data, err := template()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "demo.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, path string) *sqlite3.Conn {
	t.Helper()
	db, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// column returns the first column of all rows.
func column(t *testing.T, db *sqlite3.Conn, sql string) []string {
	t.Helper()
	stmt, _, err := db.Prepare(sql)
	if err != nil {
		t.Fatalf("%v in %s", err, sql)
	}
	defer stmt.Close()
	var all []string
	for stmt.Step() {
		all = append(all, stmt.ColumnText(0))
	}
	if err := stmt.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// allRows is a digest of every table.
const allRows = `
SELECT 'd', json_array(dept.deptno, dname, loc, cost_center, budget, updated_at) AS row FROM dept UNION ALL
SELECT 'e', json_array(empno, deptno, ename, job, grade, email, hired, salary, remote) FROM emp UNION ALL
SELECT 'o', json_array(region, order_no, customer, ordered_at, status, currency) FROM orders UNION ALL
SELECT 'l', json_array(line_id, region, order_no, sku, product, quantity, price) FROM order_line UNION ALL
SELECT 's', json_array(shipment_id, line_id, carrier, tracking_no, shipped_at) FROM shipment`

func TestCreate(t *testing.T) {
	start := time.Now()
	path := create(t, testSeed)
	took := time.Since(start)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d KiB in %v", info.Size()>>10, took)
	if took > 15*time.Second { // 0.1 s on the idle machine where it was written, 2 s under the race detector
		t.Errorf("took %v", took)
	}
	db := open(t, path)
	for _, test := range []struct{ sql, want string }{
		{"SELECT count(*) FROM dept", "1000"},
		{"SELECT count(*) FROM emp", "10000"},
		{"SELECT count(*) FROM orders", "2000"},
		{"SELECT count(*) FROM order_line", "6000"},
		{"SELECT count(*) FROM (SELECT deptno FROM emp GROUP BY deptno HAVING count(*) = 10)", "1000"},
		{"SELECT count(*) > 3000 FROM shipment", "1"},
		{"SELECT count(*) FROM pragma_foreign_key_check", "0"},
		{"SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'", "0"},
		{"PRAGMA integrity_check", "ok"},
		{"PRAGMA journal_mode", "wal"},
	} {
		if got := column(t, db, test.sql); len(got) != 1 || got[0] != test.want {
			t.Errorf("%s: %v; expected %s", test.sql, got, test.want)
		}
	}
	if err := Create(path, testSeed); err == nil {
		t.Error("an existing database was overwritten")
	}
}

// TestSeed: the same seed gives the same rows, another seed different ones.
func TestSeed(t *testing.T) {
	digest := func(seed uint64) string {
		return column(t, open(t, create(t, seed)), "SELECT hex(sum(length(row)*unicode(substr(row, 4+length(row)/2)))) || group_concat(substr(row, -9)) FROM ("+allRows+")")[0]
	}
	one, again, other := digest(testSeed), digest(testSeed), digest(testSeed+1)
	if one != again {
		t.Error("the same seed gave other rows")
	}
	if one == other {
		t.Error("another seed gave the same rows")
	}
}

// TestDocumentSize: a department with its ten employees is 1.6 to 1.8 KB.
func TestDocumentSize(t *testing.T) {
	db := open(t, prepared(t))
	sizes := column(t, db, `SELECT min(n) || ' ' || max(n) FROM (SELECT length(CAST(json_object('deptno', deptno, 'dname', dname,
		'loc', loc, 'cost_center', cost_center, 'budget', budget, 'updated_at', replace(updated_at, ' ', 'T'), 'emps',
		(SELECT json_group_array(json_object('empno', empno, 'ename', ename, 'job', job, 'grade', grade, 'email', email, 'hired', hired, 'salary', salary,
		'remote', json(iif(remote, 'true', 'false')))) FROM emp WHERE emp.deptno = dept.deptno)) AS BLOB)) AS n FROM dept)`)
	t.Logf("smallest and largest: %s bytes", sizes[0])
	if sizes[0] < "1600" || sizes[0][5:] > "1800" || len(sizes[0]) != 9 {
		t.Errorf("%s bytes; expected 1600 to 1800", sizes[0])
	}
}

func TestConfig(t *testing.T) {
	for _, path := range []string{"/var/a b/demo.db", "demo?#%.db", "${HOME}/demo.db"} {
		c, err := config.Parse("demo.yaml", []byte(Config(path, "127.0.0.1:0", "127.0.0.1:0")))
		if err != nil {
			t.Fatalf("%v\n%s", err, Config(path, "127.0.0.1:0", "127.0.0.1:0"))
		}
		if got, err := c.Origin.SQLitePath(); err != nil || got != filepath.FromSlash(path) {
			t.Errorf("path %q, %v; expected %q", got, err, path)
		}
		if len(c.Resources) != 2 || len(c.Resources[1].Key) != 2 || len(c.Resources[1].Root.Children[0].Node.Children) != 1 {
			t.Errorf("resources %+v", c.Resources)
		}
	}
}
