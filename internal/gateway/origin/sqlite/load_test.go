package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
)

func TestLoadNestedDocument(t *testing.T) {
	o := openOrigin(t, Config{Path: newFile(t, deptSchema...)}, deptResource())
	wantDoc(t, o, "10", `{"deptno":10,"dname":"ACCOUNTING","emps":[{"empno":1,"ename":"CLARK"},{"empno":2,"ename":"KING"}]}`)
	wantDoc(t, o, "30", `{"deptno":30,"dname":"SALES","emps":[]}`)
	wantDoc(t, o, "40", ``)
	wantDoc(t, o, "-9223372036854775808", ``)
}

func TestLoadAnswersInTheOrderOfItsKeys(t *testing.T) {
	o := openOrigin(t, Config{Path: newFile(t, deptSchema...)}, deptResource())
	batch, err := o.Load(t.Context(), 0, []string{"30", "40", "10", "30", "x"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"deptno":30,`, ``, `{"deptno":10,`, `{"deptno":30,`, ``}
	for i, doc := range batch.Docs {
		if !strings.HasPrefix(string(doc.Body), want[i]) || (doc.Body == nil) != (want[i] == "") {
			t.Errorf("document %d is %q", i, doc.Body)
		}
		if (doc.Err != nil) != (i == 4) {
			t.Errorf("document %d: error %v", i, doc.Err)
		}
		// The memory tier charges the capacity: it must be the size of the
		// allocation, as chosen by append, and not part of the scratch buffer.
		if want := cap(append([]byte(nil), doc.Body...)); cap(doc.Body) != want {
			t.Errorf("document %d has %d bytes in %d, want %d", i, len(doc.Body), cap(doc.Body), want)
		}
	}
	if _, err := o.Load(t.Context(), 7, []string{"1"}); err == nil {
		t.Error("load of a resource that does not exist succeeded")
	}
}

func TestRowsComeInTheDeclaredOrder(t *testing.T) {
	path := newFile(t, `CREATE TABLE p (id INTEGER PRIMARY KEY)`,
		`CREATE TABLE c (a TEXT, b INTEGER, p INTEGER, sort TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID`,
		`INSERT INTO p VALUES (1)`,
		`INSERT INTO c VALUES ('y', 1, 1, 'm'), ('x', 2, 1, 'm'), ('x', 1, 1, 'm'), ('a', 9, 1, NULL), ('b', 9, 1, 'z')`)
	resourceWith := func(order ...resource.Order) resource.Resource {
		return resource.Resource{Name: "p", Key: []string{"id"}, Root: resource.Node{Table: "p", Children: []resource.Child{
			{Name: "c", Node: resource.Node{Table: "c", Columns: []string{"a", "b"}, Order: order, On: []resource.Join{{Column: "p", Parent: "id"}}}}}}}
	}
	o := openOrigin(t, Config{Path: path}, resourceWith())
	wantDoc(t, o, "1", `{"id":1,"c":[{"a":"a","b":9},{"a":"b","b":9},{"a":"x","b":1},{"a":"x","b":2},{"a":"y","b":1}]}`)
	o = openOrigin(t, Config{Path: path}, resourceWith(resource.Order{Column: "sort", Descending: true}))
	wantDoc(t, o, "1", `{"id":1,"c":[{"a":"b","b":9},{"a":"x","b":1},{"a":"x","b":2},{"a":"y","b":1},{"a":"a","b":9}]}`)
}

func TestFourLevelsBelowTheRoot(t *testing.T) {
	schema := []string{`CREATE TABLE t0 (id INTEGER PRIMARY KEY)`, `INSERT INTO t0 VALUES (1)`}
	var child []resource.Child
	for level := resource.MaxDepth; level >= 1; level-- {
		child = []resource.Child{{Name: fmt.Sprintf("l%d", level), Node: resource.Node{
			Table: fmt.Sprintf("t%d", level), Columns: []string{"id"}, Children: child}}}
	}
	for level := 1; level <= resource.MaxDepth; level++ {
		schema = append(schema, fmt.Sprintf(`CREATE TABLE t%d (id TEXT PRIMARY KEY, up REFERENCES t%d) WITHOUT ROWID`, level, level-1))
	}
	schema = append(schema, `INSERT INTO t1 VALUES ('a', 1), ('b', 1)`, `INSERT INTO t2 VALUES ('aa', 'a'), ('ba', 'b')`,
		`INSERT INTO t3 VALUES ('aaa', 'aa')`, `INSERT INTO t4 VALUES ('aaaa', 'aaa'), ('aaab', 'aaa')`)
	r := resource.Resource{Name: "r", Key: []string{"id"}, Root: resource.Node{Table: "t0", Children: child}}
	w := newWorld(t, r, schema...)
	wantDoc(t, w.origin, "1", `{"id":1,"l1":[{"id":"a","l2":[{"id":"aa","l3":[{"id":"aaa","l4":[{"id":"aaaa"},{"id":"aaab"}]}]}]},{"id":"b","l2":[{"id":"ba","l3":[]}]}]}`)
	w.wantChanged(`UPDATE t4 SET up = NULL WHERE id = 'aaaa'`, "1")
	w.wantChanged(`REPLACE INTO t4 VALUES ('aaab', 'aaa')`)
	w.wantChanged(`REPLACE INTO t3 VALUES ('aaa', 'ba')`, "1")
}

// TestRowsThatDifferInCaseAlone has a primary key stricter than its column: the
// children of a row must be found by the key's collation.
func TestRowsThatDifferInCaseAlone(t *testing.T) {
	path := newFile(t, `CREATE TABLE r (id INTEGER PRIMARY KEY)`, `INSERT INTO r VALUES (1)`,
		`CREATE TABLE m (id TEXT COLLATE NOCASE, r INTEGER, ref INTEGER, PRIMARY KEY (id COLLATE BINARY)) WITHOUT ROWID`,
		`CREATE TABLE l (id INTEGER PRIMARY KEY, ref INTEGER)`,
		`INSERT INTO m VALUES ('a', 1, 10), ('A', 1, 20)`, `INSERT INTO l VALUES (1, 10), (2, 20)`)
	o := openOrigin(t, Config{Path: path}, resource.Resource{Name: "r", Key: []string{"id"}, Root: resource.Node{Table: "r", Children: []resource.Child{
		{Name: "m", Node: resource.Node{Table: "m", Columns: []string{"id"}, On: []resource.Join{{Column: "r", Parent: "id"}},
			Order: []resource.Order{{Column: "ref"}}, Children: []resource.Child{
				{Name: "l", Node: resource.Node{Table: "l", Columns: []string{"id"}, On: []resource.Join{{Column: "ref", Parent: "ref"}}}}}}}}}})
	wantDoc(t, o, "1", `{"id":1,"m":[{"id":"a","l":[{"id":1}]},{"id":"A","l":[{"id":2}]}]}`)
}

// TestKeyOfEveryType does a GET, an update and a GET for every kind of key,
// with children whose foreign key is of another type than the key.
func TestKeyOfEveryType(t *testing.T) {
	tests := []struct {
		declared, fk, value, child, id string
		kind                           resource.Kind
	}{
		{"INTEGER", "INTEGER", "7", "7", "7", resource.Integer},
		{"INTEGER", "TEXT", "7", "'007'", "7", resource.Integer},
		{"INTEGER", "TEXT", "7", "'7.0'", "7", resource.Integer},
		{"INTEGER", "", "7", "'7'", "7", resource.Integer},
		{"INTEGER", "REAL", "7", "7", "7", resource.Integer},
		{"BIGINT", "BLOB", "-9223372036854775808", "-9223372036854775808", "-9223372036854775808", resource.Integer},
		{"MEDIUMINT UNSIGNED", "NUMERIC", "'12'", "12.0", "12", resource.Integer},
		{"TEXT", "TEXT", "'a/b c'", "'a/b c'", "a/b c", resource.Text},
		{"TEXT", "INTEGER", "'007'", "7", "007", resource.Text},
		{"TEXT", "NUMERIC", "'7.50'", "7.5", "7.50", resource.Text},
		{"VARCHAR(40)", "", "'x'", "'x'", "x", resource.Text},
		{"CHARACTER(3)", "TEXT", "42", "42", "42", resource.Text},
		{"BLOB", "BLOB", "x'00AbFf'", "x'00abff'", "00abff", resource.Bytes},
		{"BLOB", "TEXT", "x'41'", "x'41'", "41", resource.Bytes},
		{"blob", "", "x'00'", "x'00'", "00", resource.Bytes},
	}
	for _, tt := range tests {
		for _, suffix := range []string{"", " WITHOUT ROWID"} {
			t.Run(fmt.Sprintf("%s %s from %s %s%s", tt.declared, tt.id, tt.fk, tt.child, suffix), func(t *testing.T) {
				r := resource.Resource{Name: "r", Key: []string{"k"}, Root: resource.Node{Table: "r", Columns: []string{"v"}, Children: []resource.Child{
					{Name: "c", Node: resource.Node{Table: "c", Columns: []string{"v"}, On: []resource.Join{{Column: "fk", Parent: "k"}}}}}}}
				w := newWorld(t, r, `CREATE TABLE r (k `+tt.declared+` PRIMARY KEY NOT NULL, v)`+suffix,
					`CREATE TABLE c (fk `+tt.fk+`, v)`, `INSERT INTO r VALUES (`+tt.value+`, 'old')`)
				if kind := w.origin.KeyColumns(0)[0].Kind; kind != tt.kind {
					t.Errorf("kind %v, want %v", kind, tt.kind)
				}
				wantDoc(t, w.origin, tt.id, `{"v":"old","c":[]}`)
				w.wantChanged(`UPDATE r SET v = 'new'`, tt.id)
				wantDoc(t, w.origin, tt.id, `{"v":"new","c":[]}`)
				w.wantChanged(`INSERT INTO c VALUES (`+tt.child+`, 'child')`, tt.id)
				wantDoc(t, w.origin, tt.id, `{"v":"new","c":[{"v":"child"}]}`)
				w.wantChanged(`UPDATE c SET v = 'grown'`, tt.id)
				w.wantChanged(`DELETE FROM c`, tt.id)
				w.wantChanged(`DELETE FROM r`, tt.id)
				wantDoc(t, w.origin, tt.id, ``)
			})
		}
	}
}

func TestCompositeKey(t *testing.T) {
	r := resource.Resource{Name: "r", Key: []string{"tenant", "id", "hash"}, Root: resource.Node{Table: "r"}}
	w := newWorld(t, r, `CREATE TABLE r (id INTEGER, tenant TEXT, hash BLOB, v, PRIMARY KEY (tenant, id, hash))`,
		`INSERT INTO r VALUES (1, 'a,1', x'ff', 'one'), (11, 'a', x'ff', 'two')`)
	one, err := resource.ID(w.origin.KeyColumns(0), []string{"a,1", "1", "ff"})
	if err != nil {
		t.Fatal(err)
	}
	wantDoc(t, w.origin, one, `{"id":1,"tenant":"a,1","hash":"/w==","v":"one"}`)
	w.wantChanged(`UPDATE r SET v = 'three' WHERE id = 1`, one)
}

func TestDocumentAboveTheLimit(t *testing.T) {
	const limit = 2000
	path := newFile(t, append(deptSchema,
		`UPDATE dept SET dname = printf('%.*c', 3000, 'x') WHERE deptno = 20`,
		`WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i+1 FROM n WHERE i < 100000) INSERT INTO emp SELECT i, 'N', 10 FROM n`,
		`INSERT INTO dept VALUES (40, zeroblob(3000000)), (50, zeroblob(1600))`)...)
	o := openOrigin(t, Config{Path: path, MaxDocument: limit}, deptResource())
	batch, err := o.Load(t.Context(), 0, []string{"10", "30", "20", "40", "50"})
	if err != nil {
		t.Fatal(err)
	}
	for i, doc := range batch.Docs {
		if tooLarge := errors.Is(doc.Err, cache.ErrTooLarge); tooLarge != (i != 1) || (doc.Body != nil) != (i == 1) {
			t.Errorf("document %d: %d bytes, %v", i, len(doc.Body), doc.Err)
		}
	}
	// The statements are nevertheless ready for the next document.
	wantDoc(t, o, "30", `{"deptno":30,"dname":"SALES","emps":[]}`)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.idle {
		if cap(c.body) > 4*limit {
			t.Errorf("%d bytes of scratch were kept for a limit of %d", cap(c.body), limit)
		}
	}
}

func TestLoadEndsWithItsContext(t *testing.T) {
	path := newFile(t, append(deptSchema, `DROP INDEX emp_deptno`,
		`WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i+1 FROM n WHERE i < 300000) INSERT INTO emp SELECT i, 'N', 99 FROM n`)...)
	o := openOrigin(t, Config{Path: path, Connections: 1}, deptResource())
	began := time.Now()
	wantDoc(t, o, "30", `{"deptno":30,"dname":"SALES","emps":[]}`)
	scan := time.Since(began)
	began = time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	ids := make([]string, 200) // a scan of the table each
	for i := range ids {
		ids[i] = "10"
	}
	_, err := o.Load(ctx, 0, ids)
	took := time.Since(began)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("Load = %v", err)
	}
	if took > 20*scan {
		t.Errorf("the load of 200 scans ended after %v; one takes %v", took, scan)
	}
	wantDoc(t, o, "30", `{"deptno":30,"dname":"SALES","emps":[]}`)

	// Waiting for a connection ends, too, and is not caused by the keys.
	o.slots <- struct{}{}
	ctx, cancel = context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := o.Load(ctx, 0, ids[:1]); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("Load without a free connection = %v; it must not be blamed on the keys", err)
	}
	<-o.slots
}

func TestLoadAfterClose(t *testing.T) {
	o := openOrigin(t, Config{Path: newFile(t, deptSchema...)}, deptResource())
	if err := errors.Join(o.Close(), o.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Load(t.Context(), 0, []string{"10"}); !errors.Is(err, cache.ErrClosed) {
		t.Errorf("Load = %v", err)
	}
}

// TestDocumentsAreNeverTorn moves an employee between two departments, and with
// it a count, in one transaction: no batch may show it in both or in neither.
func TestDocumentsAreNeverTorn(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE"} {
		t.Run(mode, func(t *testing.T) {
			path := newFile(t, append([]string{"PRAGMA journal_mode = " + mode}, deptSchema...)...)
			o := openOrigin(t, Config{Path: path, BusyTimeout: 10 * time.Second}, deptResource())
			w := openWriter(t, path)
			if err := w.BusyTimeout(10 * time.Second); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			// Ends when ctx is canceled; the receive below waits for it.
			go func() {
				for i := 0; ctx.Err() == nil; i++ {
					from, to := 10+i%2*20, 30-i%2*20
					err := w.Exec(fmt.Sprintf(`BEGIN IMMEDIATE; UPDATE emp SET deptno = %d WHERE empno = 1;
						UPDATE dept SET dname = 'without' WHERE deptno = %d; UPDATE dept SET dname = 'with' WHERE deptno = %d; COMMIT`, to, from, to))
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
			moves, last := 0, ""
			for deadline := time.Now().Add(time.Minute); moves < 50; {
				if time.Now().After(deadline) {
					t.Fatalf("%d moves seen, want 50", moves)
				}
				batch, err := o.Load(t.Context(), 0, []string{"10", "30"})
				if err != nil {
					t.Fatal(err)
				}
				bodies := string(batch.Docs[0].Body) + string(batch.Docs[1].Body)
				if bodies != last {
					moves++
				}
				last = bodies
				if strings.Count(bodies, `"empno":1,`) != 1 {
					t.Fatalf("torn: %s", bodies)
				}
				for _, doc := range batch.Docs {
					body := string(doc.Body)
					if strings.Contains(body, `"without"`) && strings.Contains(body, `"empno":1,`) ||
						strings.Contains(body, `"with"`) && !strings.Contains(body, `"empno":1,`) {
						t.Fatalf("torn: %s", body)
					}
				}
			}
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestLoadAllocatesLittle(t *testing.T) {
	r := deptResource()
	r.Root.Children[0].Node.Columns = nil
	o := openOrigin(t, Config{Path: newFile(t, articleSchema()...)}, r)
	ids := make([]string, 100)
	for i := range ids {
		ids[i] = fmt.Sprint(i + 1)
	}
	allocs := testing.AllocsPerRun(20, func() {
		if _, err := o.Load(t.Context(), 0, ids); err != nil {
			t.Fatal(err)
		}
	})
	// One for the body, two inside the driver, and a few for the batch.
	if limit := 3.5 * float64(len(ids)); allocs > limit && !raceEnabled {
		t.Errorf("%v allocations for %d documents, want at most %v", allocs, len(ids), limit)
	}
}

// A value that the library has no memory for fails its document; if the panic
// were not contained, it would end the process.
func TestValueThatTheLibraryCannotHold(t *testing.T) {
	path := newFile(t, `CREATE TABLE doc (id INTEGER PRIMARY KEY, w TEXT)`, `INSERT INTO doc VALUES (1, ''), (100, '')`,
		`ALTER TABLE doc ADD COLUMN v TEXT AS (hex(zeroblob(id * 1000000))) VIRTUAL`)
	o := openOrigin(t, Config{Path: path, MaxDocument: 1 << 30},
		resource.Resource{Name: "doc", Key: []string{"id"}, Root: resource.Node{Table: "doc"}})
	if batch, err := o.Load(t.Context(), 0, []string{"100"}); err == nil && batch.Docs[0].Err == nil {
		t.Errorf("a document of %d bytes was loaded", len(batch.Docs[0].Body))
	}
	batch, err := o.Load(t.Context(), 0, []string{"1"})
	if err != nil || len(batch.Docs[0].Body) < 2_000_000 {
		t.Errorf("after that: %d bytes, %v", len(batch.Docs[0].Body), err)
	}
}
