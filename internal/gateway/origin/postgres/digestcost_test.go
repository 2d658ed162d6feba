package postgres

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// wideSchema is a schema of ten tables with ten columns each, some of user-defined
// types, and wideResource is a document over all of them.
func wideSchema(partitions int) (sql string, r resource.Resource) {
	var b strings.Builder
	b.WriteString(`CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); CREATE TYPE point3 AS (x int, y int, m mood); CREATE DOMAIN email AS text CHECK (VALUE LIKE '%@%');`)
	r = resource.Resource{Name: "wide", Key: []string{"id"}, Freshness: time.Second, Root: resource.Node{Table: "t0"}}
	for i := range 10 {
		kind := ""
		if i == 9 && partitions > 0 {
			kind = " PARTITION BY RANGE (id)"
		}
		fmt.Fprintf(&b, "CREATE TABLE t%d (id int PRIMARY KEY, root int, a text, b numeric, c date, d timestamptz, e mood, f point3, g email, h jsonb)%s; CREATE INDEX ON t%[1]d (root);", i, kind)
		if i > 0 {
			r.Root.Children = append(r.Root.Children, resource.Child{Name: fmt.Sprintf("c%d", i), Node: resource.Node{
				Table: fmt.Sprintf("t%d", i), On: []resource.Join{{Column: "root", Parent: "id"}}}})
		}
	}
	for i := range partitions {
		fmt.Fprintf(&b, "CREATE TABLE t9_%d PARTITION OF t9 FOR VALUES FROM (%d) TO (%d);", i, 10*i, 10*i+10)
	}
	return b.String(), r
}

// BenchmarkDigest measures the statement that every check sends, with its round trip.
func BenchmarkDigest(b *testing.B) {
	pg := testkit.StartPostgres(b, "max_locks_per_transaction=4096")
	databases := 0
	for _, partitions := range []int{0, 1000} {
		b.Run(fmt.Sprintf("tables=10/partitions=%d", partitions), func(b *testing.B) {
			databases++
			name := fmt.Sprintf("wide%d", databases)
			runScript(b, pg.URL, "CREATE DATABASE "+name)
			url := strings.Replace(pg.URL, "/postgres?", "/"+name+"?", 1)
			sql, r := wideSchema(partitions)
			runScript(b, url, sql)
			o := openOrigin(b, Config{URL: url}, r)
			if _, err := o.Apply(b.Context()); err != nil {
				b.Fatal(err)
			}
			s := o.Stream(func() time.Duration { return 0 })
			var err error
			if s.conn, err = o.connectOne(b.Context()); err != nil {
				b.Fatal(err)
			}
			defer s.disconnect()
			found, err := s.look(b.Context(), goneBack{})
			if err != nil {
				b.Fatal(err)
			}
			before := processorTime(b, s.conn.PgConn().PID())
			for b.Loop() {
				rows, err := s.conn.Query(b.Context(), digestSQL, found.watch.arguments()...)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := found.watch.read(rows); err != nil {
					b.Fatal(err)
				}
			}
			used := processorTime(b, s.conn.PgConn().PID()) - before
			b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "server-cpu-ms/op")
		})
	}
}

// processorTime returns the processor time that a process of this machine has used.
func processorTime(b *testing.B, pid uint32) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0 // not Linux: only the time is measured
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err := errors.Join(err1, err2); err != nil {
		b.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // clock ticks
}
