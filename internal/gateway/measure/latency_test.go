package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

func TestBuckets(t *testing.T) {
	for i := range buckets {
		from := lower(i)
		if got := bucket(from); got != i {
			t.Fatalf("bucket(%d ns): got %d, want %d", from, got, i)
		}
		if i == buckets-1 {
			continue
		}
		to := lower(i + 1)
		if got := bucket(to - 1); got != i {
			t.Fatalf("bucket(%d ns): got %d, want %d", to-1, got, i)
		}
		if width := float64(to - from); i > 0 && width > float64(from)/16 {
			t.Errorf("bucket %d of %v is %v wide, want at most a sixteenth", i, from, to-from)
		}
	}
	if got := lower(buckets - 1); got < 100*time.Second {
		t.Errorf("the last bucket begins at %v, want 100 s or more", got)
	}
	if got := bucket(math.MaxInt64); got != buckets-1 {
		t.Errorf("bucket of the greatest duration: got %d, want %d", got, buckets-1)
	}
}

// exact returns the quantile of sorted values by definition.
func exact(sorted []time.Duration, q float64) time.Duration {
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// near says that got is at most half of a bucket from want.
func near(got, want time.Duration) bool {
	return math.Abs(float64(got-want)) <= float64(want)/31+64
}

func TestQuantilesAgainstExact(t *testing.T) {
	rnd := rand.New(rand.NewPCG(testkit.Seed(t), 1))
	for name, draw := range map[string]func() time.Duration{
		"exponential around 2 us": func() time.Duration { return time.Duration(rnd.ExpFloat64() * 2000) },
		"log-uniform 1 us..100 s": func() time.Duration { return time.Duration(math.Exp(rnd.Float64()*18.4) * 1000) },
		"hits and loads": func() time.Duration {
			if rnd.IntN(100) < 95 {
				return time.Duration(800 + rnd.IntN(500))
			}
			return time.Duration(2e6 + rnd.IntN(3e6))
		},
		"one value": func() time.Duration { return 1234567 },
	} {
		var l Latency
		var values []time.Duration
		sum := time.Duration(0)
		for range 20000 {
			d := draw()
			l.Record(d)
			values = append(values, d)
			sum += d
		}
		slices.Sort(values)
		d := l.Snapshot()
		if d.Count() != 20000 || !near(d.Sum(), sum) || !near(d.Mean(), sum/20000) {
			t.Errorf("%s: count %d, sum %v, mean %v; want 20000, %v, %v", name, d.Count(), d.Sum(), d.Mean(), sum, sum/20000)
		}
		for _, q := range []float64{-1, 0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1, 2} {
			want := exact(values, q)
			i := bucket(want)
			if got := d.Quantile(q); bucket(got) != i {
				t.Errorf("%s: quantile %v: got %v, want %v within its bucket %v..%v", name, q, got, want, lower(i), lower(min(i+1, buckets-1)))
			}
		}
		if top := values[len(values)-1]; d.Max() < top || float64(d.Max()) > float64(top)*1.0626+128 {
			t.Errorf("%s: max: got %v, want at most 6.25 %% above %v", name, d.Max(), top)
		}
		for _, limit := range []time.Duration{0, time.Microsecond, 2500 * time.Microsecond, 100 * time.Second, time.Hour} {
			got := d.AtMost(limit)
			low, _ := slices.BinarySearch(values, limit-limit/31)
			high, _ := slices.BinarySearch(values, limit+limit/31+128)
			if got < uint64(low) || got > uint64(high) {
				t.Errorf("%s: at most %v: got %d, want %d..%d", name, limit, got, low, high)
			}
		}
	}
}

func TestDistributionArithmetic(t *testing.T) {
	var a, b Latency
	for range 100 {
		a.Record(time.Millisecond)
	}
	before := a.Snapshot()
	for range 50 {
		a.Record(time.Second)
	}
	a.Record(-time.Second) // a clock that went backwards
	b.Record(3 * time.Second)
	later := a.Snapshot().Sub(before)
	if later.Count() != 51 || !near(later.Sum(), 50*time.Second) || bucket(later.Quantile(0.5)) != bucket(time.Second) {
		t.Errorf("after the first snapshot: %d values, %v, median %v; want 51, 50s, 1s", later.Count(), later.Sum(), later.Quantile(0.5))
	}
	if both := later.Add(b.Snapshot()); both.Count() != 52 || !near(both.Sum(), 53*time.Second) {
		t.Errorf("added: %d values, %v; want 52, 53s", both.Count(), both.Sum())
	}
	if less := before.Sub(a.Snapshot()); less.Count() != 0 || less.Sum() != 0 {
		t.Errorf("the wrong way round: %d values, %v; want none", less.Count(), less.Sum())
	}
	var none Distribution
	if none.Count() != 0 || none.Mean() != 0 || none.Quantile(0.99) != 0 || none.Max() != 0 || none.AtMost(time.Hour) != 0 {
		t.Error("an empty distribution is not all 0")
	}
	var beyond Latency
	beyond.Record(time.Hour)
	if d := beyond.Snapshot(); d.Quantile(1) != lower(buckets-1) || d.Max() != lower(buckets-1) {
		t.Errorf("an hour: quantile %v, max %v; want the last bound %v", d.Quantile(1), d.Max(), lower(buckets-1))
	}
}

func TestLatencyFromManyGoroutines(t *testing.T) {
	var l Latency
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 5000 {
				l.Record(time.Duration(w*i) * time.Microsecond)
			}
		})
	}
	for last := uint64(0); last < 20000; {
		n := l.Snapshot().Count()
		if n < last {
			t.Fatalf("the count went from %d to %d", last, n)
		}
		last = n
	}
	writers.Wait()
}

func TestRecordDoesNotAllocate(t *testing.T) {
	var l Latency
	s := NewSlowest(2)
	for i := range 2 {
		s.Record(0, time.Second, "depts", func() string { return string(rune('a' + i)) }, "load")
	}
	target := "/depts/42"
	if n := testing.AllocsPerRun(1000, func() {
		l.Record(1500)
		s.Record(time.Second, 900*time.Millisecond, "depts", func() string { return target[7:] }, "hit")
	}); n != 0 {
		t.Errorf("%v allocations a request, want 0", n)
	}
}

func BenchmarkLatencyRecord(b *testing.B) {
	var l Latency
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for d := time.Duration(1000); pb.Next(); d += 7 {
			l.Record(d)
		}
	})
}

func BenchmarkSlowestBelow(b *testing.B) {
	s := NewSlowest(1)
	s.Record(0, time.Second, "depts", func() string { return "1" }, "load")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.Record(time.Second, time.Millisecond, "depts", func() string { return "2" }, "hit")
		}
	})
}
