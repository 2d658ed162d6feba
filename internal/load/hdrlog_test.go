package load

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The log is readable by another program, that of the format's authors.
//
// mutant: hdr-log-without-the-whole
func TestHDRLog(t *testing.T) {
	l := newTimeline(false, 1, []float64{0})
	var whole Histogram
	rng := rand.New(rand.NewPCG(1, 2))
	for second := range 3 {
		for range 100 * (second + 1) {
			d := time.Duration(rng.Int64N(int64(time.Second)))
			l.record(0, d, 1, 0)
			whole.Record(d)
		}
		l.add(l.harvest(time.Duration(second+1)*time.Second, []float64{0}))
	}
	r := runner{line: l}
	var b strings.Builder
	started := time.Date(2026, 11, 28, 1, 2, 3, 400e6, time.UTC)
	if err := WriteHDRLog(&b, started, r.intervals(), &whole); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "#[StartTime: 1795827723.400 (seconds since epoch), 2026-11-28T01:02:03Z]\n") {
		t.Errorf("%.300s", b.String())
	}
	reader := hdrhistogram.NewHistogramLogReader(strings.NewReader(b.String()))
	var sum int64
	for i := range 4 {
		h, err := reader.NextIntervalHistogram()
		if err != nil || h == nil {
			t.Fatalf("line %d: %v, %v", i, h, err)
		}
		if i == 3 {
			if h.Tag() != WholeTag || h.TotalCount() != sum || h.ValueAtQuantile(50) != int64(whole.Quantile(0.5)) || width(h) != 3 {
				t.Errorf("%q: %d of %d requests, p50 %d, %d to %d ms", h.Tag(), h.TotalCount(), sum, h.ValueAtQuantile(50), h.StartTimeMs(), h.EndTimeMs())
			}
			continue
		}
		if h.Tag() != "" || h.TotalCount() != int64(100*(i+1)) || width(h) != 1 {
			t.Errorf("line %d: %q, %d requests, %d to %d ms", i, h.Tag(), h.TotalCount(), h.StartTimeMs(), h.EndTimeMs())
		}
		interval := l.cells[i].interval(false, nil)
		if p99 := h.ValueAtQuantile(99); float64(p99) < 0.99*float64(interval.P99) || float64(p99) > 1.01*float64(interval.P99) {
			t.Errorf("line %d: p99 %d, want %v", i, p99, interval.P99)
		}
		sum += h.TotalCount()
	}
}

// width returns the length of an interval in seconds.
func width(h *hdrhistogram.Histogram) int64 { return (h.EndTimeMs() - h.StartTimeMs() + 500) / 1000 }

// The buckets in JSON are text that other implementations of HdrHistogram read. Text of older
// versions, encoded in base64 twice, can still be read.
func TestHistogramsInJSON(t *testing.T) {
	var h Histogram
	h.Record(time.Millisecond)
	data, err := json.Marshal(&h)
	if err != nil {
		t.Fatal(err)
	}
	var in struct{ HDR string }
	if err := json.Unmarshal(data, &in); err != nil {
		t.Fatal(err)
	}
	if d, err := hdrhistogram.Decode([]byte(in.HDR)); err != nil || d.TotalCount() != 1 {
		t.Errorf("%v, %q", err, in.HDR)
	}
	old := strings.Replace(string(data), in.HDR, base64.StdEncoding.EncodeToString([]byte(in.HDR)), 1)
	for _, text := range []string{string(data), old} {
		var got Histogram
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Count() != 1 {
			t.Errorf("%v: %d values of %s", err, got.Count(), text)
		}
	}
	var bad Histogram
	if err := json.Unmarshal([]byte(`{"hdr": "%"}`), &bad); err == nil {
		t.Error("no error for text that is not a histogram")
	}
}
