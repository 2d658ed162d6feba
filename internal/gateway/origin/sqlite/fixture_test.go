package sqlite

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// newFile creates a database file with the given statements and returns its path.
func newFile(t testing.TB, sql ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.db")
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// The driver's default for foreign keys is ON, that of most libraries OFF.
	mustExec(t, db, "PRAGMA foreign_keys = OFF", "PRAGMA synchronous = OFF")
	mustExec(t, db, sql...)
	return path
}

// openWriter opens a connection of the application that owns the database.
func openWriter(t testing.TB, path string, sql ...string) *sqlite3.Conn {
	t.Helper()
	db, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	mustExec(t, db, "PRAGMA foreign_keys = OFF", "PRAGMA synchronous = OFF")
	mustExec(t, db, sql...)
	return db
}

func mustExec(t testing.TB, db *sqlite3.Conn, sql ...string) {
	t.Helper()
	for _, s := range sql {
		if err := db.Exec(s); err != nil {
			t.Fatalf("%v\nin %s", err, s)
		}
	}
}

// openOrigin opens an origin and creates its triggers.
func openOrigin(t testing.TB, cfg Config, resources ...resource.Resource) *Origin {
	t.Helper()
	o, err := Open(t.Context(), cfg, resources)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	if _, err := o.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

// get loads one document of the first resource; "" is a missing row.
func get(t testing.TB, o *Origin, id string) string {
	t.Helper()
	batch, err := o.Load(t.Context(), 0, []string{id})
	if err != nil {
		t.Fatal(err)
	}
	if batch.Docs[0].Err != nil {
		t.Fatal(batch.Docs[0].Err)
	}
	return string(batch.Docs[0].Body)
}

func wantDoc(t testing.TB, o *Origin, id, want string) {
	t.Helper()
	if got := get(t, o, id); got != want {
		t.Errorf("document %q:\n got %s\nwant %s", id, got, want)
	}
}

// scalar returns the text of the first column of the first row.
func scalar(t testing.TB, db *sqlite3.Conn, sql string) string {
	t.Helper()
	var text string
	if err := query(db, sql, nil, func(s *sqlite3.Stmt) error {
		text = s.ColumnText(0)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return text
}

// foreignWriter is a process with a SQLite library of another build, as the
// applications that own such files have: it shares no code with the gateway.
type foreignWriter struct {
	t       testing.TB
	answers *bufio.Scanner
	sql     io.Writer
}

// newForeignWriter starts one on the file at path. It ends with the test.
func newForeignWriter(t testing.TB, path string) *foreignWriter {
	t.Helper()
	const script = `
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=10)
db.execute("PRAGMA synchronous = OFF")
for line in sys.stdin:
    try:
        sql = json.loads(line)
        # executescript commits an open transaction before it begins
        (db.executescript if ";" in sql else db.execute)(sql)
        print("ok", flush=True)
    except sqlite3.Error as e:
        if db.in_transaction:
            db.rollback()
        print(e, flush=True)
`
	program, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("python3 is needed as a foreign writer: install the package python3 (its sqlite3 module comes with it)")
	}
	cmd := exec.Command(program, "-c", script, path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // ends its loop
		if err := cmd.Wait(); err != nil {
			t.Errorf("python3: %v", err)
		}
	})
	return &foreignWriter{t: t, answers: bufio.NewScanner(out), sql: in}
}

// exec runs statements; the error is the library's.
func (f *foreignWriter) exec(sql string) error {
	f.t.Helper()
	line, err := json.Marshal(sql)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.sql.Write(append(line, '\n')); err != nil {
		f.t.Fatal(err)
	}
	if !f.answers.Scan() {
		f.t.Fatalf("python3 gave no answer: %v", f.answers.Err())
	}
	if answer := f.answers.Text(); answer != "ok" {
		return errors.New(answer)
	}
	return nil
}

// deptResource is a department with its employees.
func deptResource() resource.Resource {
	return resource.Resource{
		Name: "depts", Key: []string{"deptno"},
		Root: resource.Node{Table: "dept", Children: []resource.Child{
			{Name: "emps", Node: resource.Node{Table: "emp", Columns: []string{"empno", "ename"}}},
		}},
	}
}

var deptSchema = []string{
	`CREATE TABLE dept (deptno INTEGER PRIMARY KEY, dname TEXT NOT NULL)`,
	`CREATE TABLE emp (empno INTEGER PRIMARY KEY, ename TEXT, deptno INTEGER REFERENCES dept)`,
	`CREATE INDEX emp_deptno ON emp (deptno)`,
	`INSERT INTO dept VALUES (10, 'ACCOUNTING'), (20, 'RESEARCH'), (30, 'SALES')`,
	`INSERT INTO emp VALUES (1, 'CLARK', 10), (2, 'KING', 10), (3, 'SMITH', 20)`,
}
