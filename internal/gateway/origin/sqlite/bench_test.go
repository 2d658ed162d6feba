package sqlite

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
)

// articleSchema holds 1,000 departments of 10 employees, 1.6-1.8 KB of JSON each.
func articleSchema() []string {
	return []string{
		`CREATE TABLE dept (deptno INTEGER PRIMARY KEY, dname TEXT, loc TEXT)`,
		`CREATE TABLE emp (empno INTEGER PRIMARY KEY, ename TEXT, job TEXT, mgr INTEGER, hiredate TEXT, sal NUMERIC, comm NUMERIC, deptno INTEGER REFERENCES dept)`,
		`CREATE INDEX emp_deptno ON emp (deptno)`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 1000)
			INSERT INTO dept SELECT i, 'DEPARTMENT NUMBER ' || i, 'LOCATION OF ' || i FROM n`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 10000)
			INSERT INTO emp SELECT i, 'EMPLOYEE ' || i, 'SALESPERSON AND CLERK', i / 10, '1981-02-20T00:00:00Z', 1600 + i, i % 700, 1 + i % 1000 FROM n`,
	}
}

func BenchmarkLoad(b *testing.B) {
	r := deptResource()
	r.Root.Children[0].Node.Columns = nil
	o := openOrigin(b, Config{Path: newFile(b, append([]string{"PRAGMA journal_mode = WAL"}, articleSchema()...)...)}, r)
	for _, batch := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			ids := make([]string, batch)
			b.ReportAllocs()
			var bytes, docs int
			for b.Loop() {
				for i := range ids {
					ids[i] = strconv.Itoa(1 + (docs*7+i)%1000)
				}
				got, err := o.Load(b.Context(), 0, ids)
				if err != nil {
					b.Fatal(err)
				}
				bytes += len(got.Docs[0].Body)
				docs += batch
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(docs), "ns/doc")
			b.ReportMetric(float64(bytes*batch)/float64(docs), "B/doc")
		})
	}
}

type nullSink struct{ noStore }

func (nullSink) Apply([]cache.Event)                       {}
func (nullSink) Advance(time.Duration, cache.Snapshot)     {}
func (nullSink) Void(string)                               {}
func (nullSink) Retract()                                  {}
func (nullSink) SetPromise(cache.ResourceID, bool, string) {}

// BenchmarkPoll is one poll when nothing changed: ten of them a second are the
// price of an idle gateway.
func BenchmarkPoll(b *testing.B) {
	for _, mode := range []string{"WAL", "DELETE"} {
		b.Run(mode, func(b *testing.B) {
			o := openOrigin(b, Config{Path: newFile(b, append([]string{"PRAGMA journal_mode = " + mode}, deptSchema...)...)}, deptResource())
			s := o.Stream(func() time.Duration { return 0 })
			s.sink = nullSink{}
			defer s.disconnect()
			b.ReportAllocs()
			for b.Loop() {
				if err := s.poll(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWriter measures the cost of the triggers for the application: one row
// changed in a transaction of many.
func BenchmarkWriter(b *testing.B) {
	for _, watched := range []bool{false, true} {
		for name, sql := range map[string]string{
			"update": `UPDATE emp SET sal = sal + 1 WHERE empno = 1 + abs(random() % 10000)`,
			"insert": `INSERT INTO emp (ename, deptno) VALUES ('NEW', 1 + abs(random() % 1000))`,
		} {
			b.Run(fmt.Sprintf("%s/watched=%v", name, watched), func(b *testing.B) {
				path := newFile(b, articleSchema()...)
				if watched {
					openOrigin(b, Config{Path: path}, deptResource())
				}
				w := openWriter(b, path, "BEGIN")
				stmt, _, err := w.Prepare(sql)
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if err := stmt.Exec(); err != nil {
						b.Fatal(err)
					}
				}
				mustExec(b, w, "COMMIT")
			})
		}
	}
}

func BenchmarkTrim(b *testing.B) {
	path := newFile(b, deptSchema...)
	openOrigin(b, Config{Path: path}, deptResource())
	w := openWriter(b, path, `UPDATE slipstream_change SET at = 0`)
	for b.Loop() {
		b.StopTimer()
		mustExec(b, w, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d)
			INSERT INTO slipstream_change(at, resource, key, nonce) SELECT 0, 'depts', '1', randomblob(8) FROM n`, trimRows))
		newest, err := strconv.ParseInt(scalar(b, w, `SELECT max(id) FROM slipstream_change`), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if n, err := trim(w, time.Now(), time.Hour, newest); err != nil || n < trimRows-1 {
			b.Fatal(n, err)
		}
	}
}
