package redisload

import (
	"testing"
	"time"
)

// A limiter grants its rate in complete series, and at most one series after a pause.
func TestLimiter(t *testing.T) {
	l := &limiter{gap: 100 * time.Microsecond, next: time.Now()}
	begun := time.Now()
	for range 20 {
		l.take(10)
	}
	if took := time.Since(begun); took < 20*time.Millisecond {
		t.Errorf("200 grants at 10,000 a second took %v, want at least 20 ms", took)
	}
	time.Sleep(50 * time.Millisecond)
	begun = time.Now()
	for range 10 {
		l.take(10)
	}
	if took := time.Since(begun); took < 100*l.gap-SeriesMax*l.gap {
		t.Errorf("100 grants after a pause took %v: the pause was made up for", took)
	}
}

func TestExperiments(t *testing.T) {
	for design, limiters := range map[string]int{DesignRight: 240, DesignA: 5, DesignB: 5, DesignC: 240} {
		e, err := newExperiment(Work{Design: design, Rate: 80_000}, 5, 240, 1)
		if err != nil || len(e.limiters) != limiters {
			t.Errorf("design %s: %d limiters, %v; want %d", design, len(e.limiters), err, limiters)
			continue
		}
		if want := time.Duration(limiters) * time.Second / 80_000; e.limiters[0].gap != want {
			t.Errorf("design %s: gap %v, want %v", design, e.limiters[0].gap, want)
		}
	}
	if _, err := newExperiment(Work{Design: "d", Rate: 1}, 1, 1, 1); err == nil {
		t.Error("an unknown design is accepted")
	}
}
