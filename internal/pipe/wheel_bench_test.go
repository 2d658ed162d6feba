package pipe

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkDeadlines has 50,000 calls in flight that are never answered, and reports how long after its deadline a
// caller has the error. The deadlines are 10 us or 40 us apart.
func BenchmarkDeadlines(b *testing.B) {
	const calls = 50_000
	for name, tickets := range map[string]bool{"order": false, "tickets": true} {
		for _, apart := range []time.Duration{10 * time.Microsecond, 40 * time.Microsecond} {
			b.Run(fmt.Sprintf("%s/apart=%v", name, apart), func(b *testing.B) {
				e := virtualEngine(b, tickets, func(c *Config) { c.MaxCalls, c.MaxBytes = 1<<20, 1<<30 })
				var late []time.Duration
				for b.Loop() {
					at := time.Now().Add(time.Second)
					late = append(late, ends(b, e, calls, func() (context.Context, time.Time) {
						at = at.Add(apart)
						return deadlineOnly{context.Background(), at}, at
					}, context.DeadlineExceeded)...)
				}
				slices.Sort(late)
				for _, q := range []struct {
					unit string
					at   int
				}{{"p50-late-ms", len(late) / 2}, {"p99-late-ms", len(late) * 99 / 100}, {"max-late-ms", len(late) - 1}} {
					b.ReportMetric(float64(late[q.at])/float64(time.Millisecond), q.unit)
				}
			})
		}
	}
}
