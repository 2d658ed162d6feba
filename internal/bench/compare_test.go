package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/httpload"
	"github.com/slipstream-go/slipstream/internal/load"
)

// side returns a side with 20 requests per round.
func side(t *testing.T, handler http.HandlerFunc) Side {
	t.Helper()
	url := strings.TrimPrefix(serve(t, handler).Name(), "GET ")
	return Side{Plan: Plan{Callers: 1, Total: 20}, Open: func(context.Context) (Workload, error) {
		target, err := httpload.New(httpload.Options{URL: url})
		return HTTP{target}, err
	}}
}

func TestComparisonsHaveAllRounds(t *testing.T) {
	c, err := Compare(t.Context(), side(t, hello), side(t, hello), CompareOptions{Rounds: 3, Seed: 1, Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	rounds := map[string]int{}
	for _, r := range c.Rounds {
		rounds[r.Subject]++
	}
	if rounds["A"] != 3 || rounds["A again"] != 3 || rounds["B"] != 3 || len(c.Verdicts) != 3 || c.Partial != "" {
		t.Errorf("rounds %v, verdicts %+v", rounds, c.Verdicts)
	}
	for _, v := range c.Verdicts { // three rounds are too few for a verdict
		if v.Word != "cannot tell" || v.Pairs != 3 || v.Ratio <= 0 {
			t.Errorf("%+v", v)
		}
	}
	var text, lines, object strings.Builder
	if err := errors.Join(c.WriteText(&text), c.WriteBenchfmt(&lines), c.WriteJSON(&object)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "each run: closed loop, 1 caller") || strings.Count(text.String(), "cannot tell: the ratio of A to itself") != 3 {
		t.Errorf("%s", text.String())
	}
	if strings.Count(lines.String(), "subject=A_again-") != 3 || !strings.HasPrefix(lines.String(), "goos: ") || !strings.Contains(lines.String(), "Unit req/s better=higher\n") {
		t.Errorf("%s", lines.String())
	}
	if !json.Valid([]byte(object.String())) {
		t.Errorf("%s", object.String())
	}
}

// compared returns a comparison with the given figures.
func compared(metric load.Metric, a, again, b []float64) *Comparison {
	samples := func(values []float64) (s []load.Sample) {
		for _, v := range values {
			s = append(s, load.Sample{Values: map[load.Metric]float64{metric: v}})
		}
		return s
	}
	return &Comparison{samples: &load.Comparison{Rounds: map[string][]load.Sample{load.Ours: samples(a), load.Control: samples(again), sideB: samples(b)}}}
}

// mutant: bench-faster-is-slower
// mutant: bench-judges-without-control
func TestVerdicts(t *testing.T) {
	base := []float64{100, 101, 99, 100, 102, 98, 100}
	again := []float64{101, 100, 100, 99, 101, 99, 100}
	wild := []float64{60, 150, 80, 200, 100, 55, 130}
	scaled := func(by float64) (out []float64) {
		for _, v := range base {
			out = append(out, v*by)
		}
		return out
	}
	for _, tc := range []struct {
		metric   load.Metric
		again, b []float64
		word     string
	}{
		{load.RPS, again, scaled(1.5), "faster"},
		{load.RPS, again, scaled(0.5), "slower"},
		{load.P99US, again, scaled(1.5), "slower"},
		{load.P99US, again, scaled(0.5), "faster"},
		{load.ServerUS, again, scaled(0.5), "cheaper"},
		{load.ServerUS, again, scaled(1.5), "costlier"},
		{load.RPS, again, again, "cannot tell"},
		{load.RPS, wild, scaled(3), "cannot tell"},
	} {
		v, ok := compared(tc.metric, base, tc.again, tc.b).judge(tc.metric)
		if !ok || v.Word != tc.word || v.Pairs != 7 || (v.Word == "cannot tell") != (v.Why != "") {
			t.Errorf("%s of %v: %+v, want %s", tc.metric, tc.b, v, tc.word)
		}
	}
	if _, ok := compared(load.RPS, base, again, base).judge(load.ServerUS); ok {
		t.Error("a verdict on a figure that was not measured")
	}
}

// A comparison that ends early keeps the rounds before that.
func TestAComparisonThatEndsEarly(t *testing.T) {
	var n atomic.Int64
	dying := func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) > 30 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	c, err := Compare(t.Context(), side(t, hello), side(t, dying), CompareOptions{Rounds: 5, Seed: 1, Progress: io.Discard})
	if err == nil || !strings.Contains(c.Partial, "B, round 3: no request got a correct answer: status 500") {
		t.Errorf("%v, partial %q", err, c.Partial)
	}
	if share, first, _ := c.Failed(); len(c.Rounds) < 6 || share <= 0 || first != "status 500 Internal Server Error" {
		t.Errorf("%d rounds; the share of failed requests is %v: %s", len(c.Rounds), share, first)
	}
	var object strings.Builder
	if err := c.WriteJSON(&object); err != nil {
		t.Error(err)
	}
}

// stepTarget answers at most the given number of requests a second, with one clock for all callers.
type stepTarget struct {
	HTTP
	each time.Duration
	next *atomic.Int64
}

func (s stepTarget) NewCaller(context.Context, int) (load.Caller, error) { return s, nil }
func (s stepTarget) Do(context.Context) error {
	now := time.Now().UnixNano()
	for {
		free := s.next.Load()
		begin := max(free, now)
		if s.next.CompareAndSwap(free, begin+int64(s.each)) {
			time.Sleep(time.Duration(begin + int64(s.each) - now))
			return nil
		}
	}
}
func (s stepTarget) Close() error { return nil }

// mutant: bench-knee-at-the-first-miss
func TestTheKneeIsWhereTheServerGivesUp(t *testing.T) {
	target, err := httpload.New(httpload.Options{URL: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	s := Side{Plan: Plan{Callers: 20, Duration: 400 * time.Millisecond}, Open: func(context.Context) (Workload, error) {
		return stepTarget{HTTP{target}, 2 * time.Millisecond, new(atomic.Int64)}, nil
	}}
	k, err := FindKnee(t.Context(), s, KneeOptions{P99: time.Minute, From: 50, To: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	// The target answers at most 500 a second, and fewer on a busy machine.
	if k.Capped || k.Rate > 600 || len(k.Points) < 3 {
		t.Errorf("found %v requests a second of 500, capped %v, after %d runs", k.Rate, k.Capped, len(k.Points))
	}
	for i := range len(k.Points) - 1 {
		if k.Points[i].Plan.Rate > k.Points[i+1].Plan.Rate {
			t.Error("the curve is not sorted by rate")
		}
	}
	var text, lines strings.Builder
	if err := errors.Join(k.WriteText(&text), k.WriteBenchfmt(&lines)); err != nil || !strings.Contains(text.String(), "planned/s") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestTheSearchForAKnee(t *testing.T) {
	ok := side(t, hello)
	ok.Plan = Plan{Callers: 2, Duration: 50 * time.Millisecond}
	k, err := FindKnee(t.Context(), ok, KneeOptions{P99: time.Nanosecond, From: 100, To: 100})
	if err != nil || k.Rate != 0 || k.Capped {
		t.Errorf("%v, %+v, want no rate, because no run can meet the limit", err, k)
	}
	for _, o := range []KneeOptions{{From: 1, To: 2}, {P99: 1, To: 2}, {P99: 1, From: 3, To: 2}, {P99: 1, From: math.NaN(), To: 2}} {
		if _, err := FindKnee(t.Context(), ok, o); err == nil {
			t.Errorf("%+v accepted", o)
		}
	}
}

func TestTheLiveLine(t *testing.T) {
	var b strings.Builder
	l := NewLive(&b)
	l.Show(load.Interval{WarmUp: true, Width: time.Second, Completed: 2000, P50: 500 * time.Microsecond, P99: time.Millisecond, Client: 100 * time.Millisecond})
	l.Show(load.Interval{Width: time.Second, Completed: 1000, Errors: 3, P50: 2 * time.Millisecond, P99: 9 * time.Millisecond, Client: time.Second, Counters: map[string]float64{"a": 1e9, "b": 5e8}})
	l.Show(load.Interval{Start: time.Second, Width: 2 * time.Second, Errors: 1, Client: time.Second, Counters: map[string]float64{"a": 1e9}})
	l.Clear()
	for _, want := range []string{
		"\r   1 s   2,000 a second, p50 500 us, p99 1.00 ms, CPU 0.10   (warm-up)\r",
		"\r   1 s   1,000 a second, p50 2.00 ms, p99 9.00 ms, 3 failed, CPU 1.00 + 1.50\r",
		"\r   3 s   0.00 a second, 4 failed, CPU 0.50 + 0.50 ",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %q", want, b.String())
		}
	}
	if !strings.HasSuffix(b.String(), " \r") {
		t.Errorf("%q does not end with an empty line", b.String())
	}
}
