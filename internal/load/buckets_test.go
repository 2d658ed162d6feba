package load

import (
	"sync"
	"testing"
	"time"
)

// Quantiles cover all durations, however many goroutines record them.
//
// mutant: buckets-merge-forgets-the-longest
func TestBuckets(t *testing.T) {
	var b, all Buckets
	if b.Count() != 0 || b.Quantile(0.5) != 0 || b.Max() != 0 {
		t.Errorf("an empty histogram has %d durations, quantile %v, maximum %v", b.Count(), b.Quantile(0.5), b.Max())
	}
	var wg sync.WaitGroup
	for part := range 4 {
		wg.Go(func() { // ends after its share, awaited below
			for i := range 250 {
				b.Record(time.Duration(4*i+part+1) * time.Microsecond)
			}
		})
	}
	wg.Wait()
	b.Record(-time.Second)
	b.Record(time.Hour)
	all.Record(time.Microsecond)
	all.Merge(&b)
	for q, want := range map[float64]time.Duration{0: 0, 0.5: 500 * time.Microsecond, 0.99: 990 * time.Microsecond, 1: time.Minute} {
		if got := all.Quantile(q); got < want || got > want+want/50 {
			t.Errorf("quantile %v: %v, want %v to 2 %% more", q, got, want)
		}
	}
	if all.Count() != 1003 || all.Max() != time.Minute {
		t.Errorf("%d durations up to %v", all.Count(), all.Max())
	}
	all.Reset()
	if all.Count() != 0 || all.Max() != 0 || all.Quantile(1) != 0 {
		t.Errorf("%d durations up to %v after Reset", all.Count(), all.Max())
	}
}
