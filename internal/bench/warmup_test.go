package bench

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// mutant: warm-up-doubt-unsaid
func TestReportsSayWhyTheWarmUpEnded(t *testing.T) {
	for want, w := range map[string]WarmUpReport{
		"": {},
		"warm-up: 1.00 s cut (fixed length): 7 requests, 1 failed\n":                                {End: load.WarmUpPlanned},
		"warm-up: 1.00 s cut (rate and latency were steady from its start): 7 requests, 1 failed\n": {End: load.WarmUpSteady},
		"warm-up: 1.00 s cut (rate and latency were steady after 0.40 s): 7 requests, 1 failed\n":   {End: load.WarmUpSteady, SteadyFrom: 0.4},
		"warm-up: 1.00 s cut (rate or latency was still changing): 7 requests, 1 failed\n":          {End: load.WarmUpChanging},
	} {
		if want != "" {
			w.Seconds, w.Completed, w.Failed = 1, 7, 1
		}
		var b strings.Builder
		if w.write(&b); b.String() != want {
			t.Errorf("%q, want %q", b.String(), want)
		}
		if doubts := w.doubts(); (len(doubts) > 0) != (w.End == load.WarmUpChanging) {
			t.Errorf("%s: doubts %q", w.End, doubts)
		}
	}
}

// A plan without a fixed warm-up waits for a steady state, but not longer than its window.
func TestUntilSteady(t *testing.T) {
	for window, want := range map[time.Duration][2]time.Duration{
		0:                {0, 0},
		time.Second:      {time.Second, time.Second},
		10 * time.Second: {2 * time.Second, 10 * time.Second},
		time.Hour:        {2 * time.Second, 30 * time.Second},
	} {
		p := Plan{Duration: window}
		if p.UntilSteady(); p.SteadyAfter != want[0] || p.WarmUp != want[1] {
			t.Errorf("%v: %v to %v, want %v", window, p.SteadyAfter, p.WarmUp, want)
		}
	}
}

// A run that waits for a steady state reports it, and the window has its full length.
func TestAWarmUpEndsWhenItIsSteady(t *testing.T) {
	w := serve(t, func(http.ResponseWriter, *http.Request) { time.Sleep(time.Millisecond) })
	p := Plan{Callers: 2, Total: 100, Rate: 500, WarmUp: time.Hour, SteadyAfter: time.Second}
	r, err := p.Run(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if u := r.WarmUp; u.End != load.WarmUpSteady || u.Seconds < 1 || u.SteadyFrom >= u.Seconds || len(u.Timeline) == 0 || r.Completed+r.Failed != 100 {
		t.Errorf("%+v before %d requests", u, r.Completed)
	}
}
