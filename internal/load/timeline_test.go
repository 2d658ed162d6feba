package load

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestBucketsOfATimeLine(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	check := func(ns int64) {
		i := lineBucket(ns)
		if i < 0 || i >= lineBuckets {
			t.Fatalf("%d is in bucket %d of %d", ns, i, lineBuckets)
		}
		top := lineTop(i)
		if ns > top || i > 0 && ns <= lineTop(i-1) || float64(top-ns) > float64(ns)/63 {
			t.Fatalf("%d is in bucket %d, which ends at %d", ns, i, top)
		}
	}
	for ns := range int64(10_000) {
		check(ns)
	}
	check(histogramHighest)
	for range 100_000 {
		check(rng.Int64N(histogramHighest + 1))
	}
}

// mutant: timeline-forgets-pairs
func TestATimeLineIsBounded(t *testing.T) {
	l := newTimeline(false, 1, []float64{0})
	const seconds = 5*maxCells + 3
	for i := range seconds {
		l.record(0, time.Duration(i)*time.Microsecond, 2, 1)
		l.add(l.harvest(time.Duration(i+1)*time.Second, []float64{float64(i + 1)}))
		if len(l.cells) >= maxCells {
			t.Fatalf("%d cells after %d s", len(l.cells), i+1)
		}
	}
	if l.ticks != 8 || len(l.cells) < seconds/8 {
		t.Errorf("%d cells of %d s", len(l.cells), l.ticks)
	}
	var at time.Duration
	var completed, failed uint64
	for _, c := range l.cells {
		i := c.interval(false, nil)
		if i.Start != at || i.Width <= 0 || i.Client != time.Duration(i.Width/time.Second) || i.P50 > i.P99 || i.P99 > i.Max {
			t.Fatalf("%+v after %v", i, at)
		}
		at += i.Width
		completed, failed = completed+i.Completed, failed+i.Errors
	}
	if at != seconds*time.Second || completed != 2*seconds || failed != seconds {
		t.Errorf("%d requests, %d errors in %v", completed, failed, at)
	}
	if last := l.cells[len(l.cells)-1].interval(false, nil).Max; last != (seconds-1)*time.Microsecond {
		t.Errorf("the longest latency is %v", last)
	}
}

func TestTheRestOfATimeLine(t *testing.T) {
	l := newTimeline(false, 1, []float64{0})
	for i, rest := range []time.Duration{0, 400 * time.Millisecond, 600 * time.Millisecond} {
		l.cells, l.read = nil, 0
		l.add(l.harvest(time.Second, []float64{1}))
		l.record(0, time.Second, 1, 0)
		l.finish(time.Second+rest, []float64{2})
		if want := 1 + i/2; len(l.cells) != want {
			t.Errorf("%d cells with a remainder of %v, want %d", len(l.cells), rest, want)
		}
		if last := l.cells[len(l.cells)-1].interval(false, nil); last.Completed != 1 || last.Start+last.Width != time.Second+rest {
			t.Errorf("%+v", last)
		}
	}
	l.finish(0, []float64{2}) // the end is before the last reading
	if last := l.cells[len(l.cells)-1]; last.width < 0 {
		t.Errorf("a width of %v", last.width)
	}
}

// mutant: timeline-from-sending
func TestATimeLineIsOfTheWholeWindow(t *testing.T) {
	closed := &fakeTarget{delay: time.Millisecond, fail: func(n int64) error {
		if n%10 == 0 {
			return errors.New("no")
		}
		return nil
	}}
	var reads int
	counters := []Counter{
		{Name: "quiet", Read: func(context.Context) (float64, error) { reads++; return float64(reads), nil }},
		{Name: "live", Live: true, Read: func(context.Context) (float64, error) { return 5, nil }},
	}
	r, err := Run(t.Context(), Config{Callers: 3, Duration: time.Hour, WarmUp: 30 * time.Millisecond, Total: 200, Timeline: true, Counters: counters}, closed)
	if err != nil {
		t.Fatal(err)
	}
	var sum Interval
	for _, i := range r.Timeline {
		sum.Completed, sum.Errors, sum.Width, sum.Client = sum.Completed+i.Completed, sum.Errors+i.Errors, sum.Width+i.Width, sum.Client+i.Client
		if v, ok := i.Counters["live"]; !ok || v != 0 || len(i.Counters) != 1 || i.P50 < time.Millisecond {
			t.Errorf("%+v", i)
		}
	}
	if sum.Completed != r.Completed || sum.Errors != r.Errors || sum.Client != r.Cost.Client || (sum.Width-r.Elapsed).Abs() > 100*time.Millisecond {
		t.Errorf("the sum of the intervals is %+v, want %d completed, %d errors, %v of CPU time in %v", sum, r.Completed, r.Errors, r.Cost.Client, r.Elapsed)
	}
	if reads != 2 {
		t.Errorf("a counter that is not live was read %d times", reads)
	}

	// One caller whose requests take 20 ms cannot keep up with a request each millisecond.
	late, err := Run(t.Context(), Config{Callers: 1, Duration: time.Hour, Total: 20, Timeline: true, Arrivals: Arrivals{Process: Constant, Rate: 1000}}, &fakeTarget{delay: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if first := late.Timeline[0]; first.Max < 200*time.Millisecond {
		t.Errorf("%+v, want latencies from the intended time", first)
	}
}

func TestUnknownCountersAreAbsent(t *testing.T) {
	l := newTimeline(false, 1, []float64{0, 1, 2})
	nan := math.NaN()
	l.add(l.harvest(1*time.Second, []float64{nan, nan, 3}))
	l.add(l.harvest(2*time.Second, []float64{1, 2, 4}))
	for _, c := range l.cells {
		if i := c.interval(false, []string{"a", "b"}); len(i.Counters) != 1 || i.Counters["b"] != 1 || i.Client != 0 {
			t.Errorf("%+v, want only b", i)
		}
	}
}

// mutant: window-in-the-warm-up
func TestWindowIsCalledInTheWindow(t *testing.T) {
	var calls int
	target := &fakeTarget{delay: time.Millisecond}
	r, err := Run(t.Context(), Config{Callers: 2, Duration: time.Hour, WarmUp: 20 * time.Millisecond, Total: 100, Window: func(ctx context.Context) {
		calls++
		<-ctx.Done()
		if n := target.calls.Load(); n < 100 {
			t.Errorf("the context ended after %d requests", n)
		}
		time.Sleep(50 * time.Millisecond)
	}}, target)
	if err != nil || calls != 1 {
		t.Fatalf("%d calls, %v", calls, err)
	}
	if r.Completed != 100 {
		t.Errorf("%d requests", r.Completed)
	}
}
