package postgres

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A row is as cheap to trim at a high rate of changes as at a twentieth of it, also
// after the rows of the previous minute, which a dump protects.
func TestTrimCostsAsMuchARowAtEachRate(t *testing.T) {
	perRow := func(transactions int) float64 {
		t.Helper()
		d := freshDatabase(t, deptSchema)
		d.apply(t, Config{}, deptResource())
		d.exec(t, `DELETE FROM slipstream.change`) // what apply wrote is young
		dump := d.connect(t, "")
		execOn(t, dump, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; TABLE slipstream.meta`)
		const atMost = 100
		call := fmt.Sprintf("%s('1 hour', %d, %d)", trimCall, 1<<40, atMost)
		buffers, trimmed := 0, 0
		for range 2 { // minutes
			record(t, d.conn, transactions, 1, "2 hours")
			d.settled(t)
			before := countChanges(t, d.conn)
			buffers = 0
			for range 1 + before/atMost {
				touched, _ := measureTrim(t, d.conn, call)
				buffers += touched
			}
			if trimmed = before - countChanges(t, d.conn); trimmed < transactions-1 {
				t.Fatalf("trimmed %d of %d rows", trimmed, before)
			}
		}
		return float64(buffers) / float64(trimmed)
	}
	slow, fast := perRow(1_000), perRow(20_000)
	t.Logf("%.2f buffers a row at the low rate, %.2f at the high one", slow, fast)
	if fast > 2*slow {
		t.Errorf("%.2f buffers a row at the high rate, want at most twice the %.2f of the low one", fast, slow)
	}
}

// BenchmarkTrim deletes the changes of the third minute at a rate, after those of the
// minutes before it, and reports how many pages a row touches. With a snapshot that is
// older than all of them, such as that of pg_dump, no deleted row can be cleaned up. Run
// it with -benchtime=1x.
func BenchmarkTrim(b *testing.B) {
	unhashed, err := os.ReadFile("testdata/unhashed.sql")
	if err != nil {
		b.Fatal(err)
	}
	for _, rate := range []int{100, 20_000} {
		for _, dump := range []bool{false, true} {
			for name, atMost := range map[string]int{"left end": 10_000, "floor": trimRows} { // where it begins
				b.Run(fmt.Sprintf("begin=%s/rate=%d/dump=%t", name, rate, dump), func(b *testing.B) {
					url := testkit.StartPostgres(b, "autovacuum=off").URL
					conn := connect(b, url)
					runScript(b, url, deptSchema)
					if _, err := openOrigin(b, Config{URL: url}, deptResource()).Apply(b.Context()); err != nil {
						b.Fatal(err)
					}
					runScript(b, url, "DELETE FROM slipstream.change") // what apply wrote is young
					call := fmt.Sprintf("%s('1 hour', %d, %d)", trimCall, 1<<40, atMost)
					if name == "left end" { // as releases without hashes did
						runScript(b, url, oldTrim(b, unhashed))
						call = fmt.Sprintf(`slipstream."trim@0123456789ab"('1 hour', %d)`, atMost)
					}
					if dump {
						if _, err := connect(b, url).PgConn().Exec(b.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; TABLE slipstream.meta").ReadAll(); err != nil {
							b.Fatal(err)
						}
					}
					var rows, buffers int
					var took time.Duration
					for b.Loop() {
						for minute := range 3 {
							record(b, conn, 60*rate, 1, "2 hours")
							n := countChanges(b, conn)
							runScript(b, url, "VACUUM ANALYZE slipstream.change")
							for range 1 + n/atMost {
								touched, elapsed := measureTrim(b, conn, call)
								if minute == 2 {
									buffers, took = buffers+touched, took+elapsed
								}
							}
							if minute == 2 {
								rows += n - countChanges(b, conn)
							}
						}
					}
					b.ReportMetric(float64(buffers)/float64(rows), "buffers/row")
					b.ReportMetric(float64(took.Microseconds())/float64(rows), "us/row")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}
