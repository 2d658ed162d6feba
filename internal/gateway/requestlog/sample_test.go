package requestlog

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestSample: failed and slow requests are always selected, of the others the
// configured fraction, and the shares of the lines add up to all requests.
func TestSample(t *testing.T) {
	rnd := testkit.Rand(t)
	const requests = 100_000
	for _, part := range []float64{0.001, 0.1, 0.5, 1e-12} {
		s := newSample(part, time.Second)
		taken := 0
		for range requests {
			if e := hit(); s.takes(e, rnd.Uint32()) {
				taken++
			}
		}
		// Six standard deviations.
		want, off := part*requests, 6*math.Sqrt(part*(1-part)*requests)+1
		if got := float64(taken); math.Abs(got-want) > off {
			t.Errorf("sample %v selected %d of %d, want %v +- %.0f", part, taken, requests, want, off)
		}
	}
	for _, c := range []struct {
		what   string
		part   float64
		slow   time.Duration
		change func(*Entry)
		random uint32
		taken  bool
		share  string
	}{
		{"everything", 0, time.Second, func(e *Entry) {}, math.MaxUint32, true, ""},
		{"everything, said so", 1, time.Second, func(e *Entry) {}, math.MaxUint32, true, ""},
		{"the least number", 1e-12, 0, func(e *Entry) {}, 0, true, `,"sample":1e-12`},
		{"below", 0.25, 0, func(e *Entry) {}, 1<<30 - 1, true, `,"sample":0.25`},
		{"above", 0.25, 0, func(e *Entry) {}, 1 << 30, false, ""},
		{"none", -1, time.Second, func(e *Entry) {}, 0, false, ""},
		{"no such row", -1, time.Second, func(e *Entry) { e.Status = 404 }, 0, false, ""},
		{"refused", -1, time.Second, func(e *Entry) { e.Status = 429 }, 0, true, `,"sample":1`},
		{"failed", 0.5, time.Second, func(e *Entry) { e.Status = 503 }, math.MaxUint32, true, `,"sample":1`},
		{"failed command", 0.5, time.Second, func(e *Entry) { e.Status, e.Error = 0, "TIMEOUT" }, math.MaxUint32, true, `,"sample":1`},
		{"slow", 0.5, time.Second, func(e *Entry) { e.Took = time.Second + 1 }, math.MaxUint32, true, `,"sample":1`},
		{"slow, not asked for", 0.5, -1, func(e *Entry) { e.Took = time.Hour }, math.MaxUint32, false, ""},
	} {
		s, e := newSample(c.part, c.slow), hit()
		c.change(e)
		if taken := s.takes(e, c.random); taken != c.taken || string(e.share) != c.share {
			t.Errorf("%s: selected %v with %q, want %v with %q", c.what, taken, e.share, c.taken, c.share)
		}
	}
}

// TestSampledLog: a request that is not selected leaves no trace, neither a line
// nor a count.
func TestSampledLog(t *testing.T) {
	testkit.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "requests.log")
	l, err := Open(Config{Path: path, Sample: 0.5, Slow: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	const each = 1000
	for range each {
		l.Record(hit())
		failed := hit()
		failed.Status = 503
		l.Record(failed)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	failed, hits := 0, 0
	for b := range bytes.Lines(text) {
		switch one := parse(t, b); {
		case one.Status == 503 && one.Sample == 1:
			failed++
		case one.Status == 200 && one.Sample == 0.5:
			hits++
		default:
			t.Fatalf("%s", b)
		}
	}
	if failed != each || hits < each/4 || hits > each*3/4 {
		t.Errorf("%d lines of failures and %d of hits; want %d, and about half", failed, hits, each)
	}
	if l.Lines() != int64(failed+hits) || l.Dropped() != 0 {
		t.Errorf("%d lines, %d dropped; the file has %d", l.Lines(), l.Dropped(), failed+hits)
	}
}
