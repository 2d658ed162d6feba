package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Quantiles are exact to three digits with plain values and with buckets, and merging gives the
// same result however the values are split.
func TestHistogramQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 1000, spillAt, spillAt + 1, 3 * spillAt} {
		var whole Histogram
		parts := make([]Histogram, 3)
		var values []time.Duration
		for i := range n {
			d := time.Duration(math.Exp(rng.NormFloat64()*2) * float64(300*time.Microsecond))
			d = min(max(d, 100*time.Microsecond), 50*time.Second)
			values = append(values, d)
			whole.Record(d)
			parts[i%3].Record(d)
		}
		slices.Sort(values)
		var merged Histogram
		for i := range parts {
			merged.Merge(&parts[i])
		}
		if whole.Count() != int64(n) || merged.Count() != int64(n) {
			t.Fatalf("n=%d: counts %d and %d", n, whole.Count(), merged.Count())
		}
		for _, q := range []float64{0.5, 0.9, 0.99, 0.999, 1} {
			// HdrHistogram rounds the rank to the nearest integer, textbooks round it up.
			from := values[min(max(int(q*float64(n))-1, 0), n-1)]
			to := values[min(max(int(math.Ceil(q*float64(n)))-1, 0), n-1)]
			for name, h := range map[string]*Histogram{"whole": &whole, "merged": &merged} {
				got := float64(h.Quantile(q))
				if got < 0.999*float64(from)-1024 || got > 1.001*float64(to)+1024 {
					t.Errorf("n=%d %s: quantile %v is %v, want %v to %v", n, name, q, time.Duration(got), from, to)
				}
			}
		}
	}
}

func TestHistogramLimits(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Mean() != 0 || h.Count() != 0 {
		t.Error("an empty histogram has values")
	}
	h.Record(-time.Second)
	h.Record(2 * time.Minute)
	if h.Count() != 2 || h.Clamped() != 1 {
		t.Errorf("count %d, clamped %d, want 2 and 1", h.Count(), h.Clamped())
	}
	if m := h.Max(); m < 59*time.Second || m > 61*time.Second {
		t.Errorf("max %v, want about 60 s", m)
	}
	h.Reset()
	if h.Count() != 0 || h.Clamped() != 0 {
		t.Error("reset kept values")
	}
}

func TestHistogramReadWhileRecording(t *testing.T) {
	var h Histogram
	h.Record(time.Millisecond)
	_ = h.Quantile(0.5)
	h.Record(3 * time.Millisecond)
	if h.Count() != 2 || h.Max() < 3*time.Millisecond {
		t.Errorf("count %d, max %v after recording after a read", h.Count(), h.Max())
	}
}

// The record path must not allocate once the histogram has its full size.
func TestRecordDoesNotAllocate(t *testing.T) {
	var h Histogram
	for range spillAt + 1 {
		h.Record(time.Millisecond)
	}
	if n := testing.AllocsPerRun(1000, func() { h.Record(time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations a value", n)
	}
	var small Histogram
	for range 3000 {
		small.Record(time.Millisecond)
	}
	small.Reset()
	if n := testing.AllocsPerRun(1000, func() { small.Record(time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations a value after a warm-up", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	var h Histogram
	for i := 0; b.Loop(); i++ {
		h.Record(time.Duration(i&0xfffff) * time.Microsecond / 16)
	}
}
