package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/httpload"
	"github.com/slipstream-go/slipstream/internal/load"
)

// serve starts a server and returns the workload of GETs.
func serve(t *testing.T, handler http.HandlerFunc) HTTP {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return workload(t, server.URL)
}

func workload(t *testing.T, url string) HTTP {
	t.Helper()
	target, err := httpload.New(httpload.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return HTTP{target}
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }

func TestReportsSayWhatWasDone(t *testing.T) {
	w := serve(t, hello)
	p := Plan{Callers: 4, Total: 200, WarmUp: 20 * time.Millisecond}
	r, err := p.Run(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if r.Completed != 200 || r.Failed != 0 || r.WarmUp.Completed == 0 || r.HTTP.Bytes != 1000 || r.HTTP.Statuses[200] != 200 {
		t.Errorf("%+v, %+v", r, r.HTTP)
	}
	if c := r.Costs[0]; len(r.Costs) != 1 || c.Of != "generator" || c.CPUSeconds <= 0 || c.PerRequest <= 0 {
		t.Errorf("costs %+v", r.Costs)
	}
	r.Limits = nil // this machine may be busy
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		w.Name() + "\nclosed loop, 4 callers, ", " s\nwarm-up: 0.", " s cut (fixed length): ", " requests, 0 failed\n\nrequests  200 completed, 0 failed    ",
		"p50        p90        p99      p99.9        max\nlatency ", "per request", "in total: generator",
		"received     5.00 B of body on average: 200 with status 200\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// mutant: bench-open-loop-shows-service-time
func TestOpenLoopsReportFromTheIntendedTime(t *testing.T) {
	var n atomic.Int64
	w := serve(t, func(http.ResponseWriter, *http.Request) {
		if n.Add(1) == 1 {
			time.Sleep(200 * time.Millisecond)
		}
	})
	p := Plan{Callers: 1, Total: 100, Rate: 1000, Arrivals: load.Poisson, Seed: 3}
	r, err := p.Run(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	// Half of the requests were planned during the stall of the first.
	if r.Loop != "poisson" || r.Latency.Quantile(0.5) < 20*time.Millisecond || r.Latency.Quantile(0.5) <= r.Service.Quantile(0.5) {
		t.Errorf("%s: median %v from the intended time, %v from sending", r.Loop, r.Latency.Quantile(0.5), r.Service.Quantile(0.5))
	}
	var text strings.Builder
	_ = r.WriteText(&text) // a Builder returns no errors
	for _, want := range []string{"open loop, poisson arrivals, 1 caller, ", " of 1,000 planned", "from the intended time\nservice ", "pacing "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// The report has the fields that docs/BENCH.md documents, because programs read it.
func TestReportInJSON(t *testing.T) {
	w := serve(t, hello)
	p := Plan{Callers: 1, Total: 10}
	r, err := p.Run(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema, Loop string
		Completed    int
		Latency      struct {
			Count int
			P90   float64 `json:"p90_us"`
		}
		Costs []struct{ Of string }
		HTTP  struct{ Statuses map[string]int }

		Timeline []struct {
			At        *float64 `json:"at_seconds"`
			Seconds   float64
			Completed int
			Failed    *int
			P99       float64            `json:"p99_us"`
			CPU       map[string]float64 `json:"cpu_seconds"`
		}
	}
	if err := json.Unmarshal([]byte(text.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != "slipstream-bench/1" || got.Loop != "closed" || got.Completed != 10 || got.Latency.Count != 10 || got.Latency.P90 <= 0 || got.HTTP.Statuses["200"] != 10 || got.Costs[0].Of != "generator" {
		t.Errorf("%+v from\n%s", got, text.String())
	}
	done := 0
	for _, i := range got.Timeline {
		if done += i.Completed; i.At == nil || i.Failed == nil || i.Seconds <= 0 || i.Completed > 0 && i.P99 <= 0 || len(i.CPU) != 1 {
			t.Errorf("%+v", i)
		}
	}
	if done != 10 {
		t.Errorf("the time line has %d of 10 requests", done)
	}
}

func TestFailuresAreShownByKind(t *testing.T) {
	var n atomic.Int64
	w := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		switch n.Add(1) % 10 {
		case 0:
			panic(http.ErrAbortHandler)
		case 1, 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	p := Plan{Callers: 1, Total: 40}
	r, err := p.Run(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	_ = r.WriteText(&text) // a Builder returns no errors
	if !strings.Contains(text.String(), " status 503") || !strings.Contains(text.String(), "the first: status 503 Service Unavailable") {
		t.Errorf("%s", text.String())
	}
	if share := r.FailedShare(); share < 0.15 || share > 0.35 {
		t.Errorf("the share of failed requests is %v: %v", share, r.Failures)
	}
}

// mutant: bench-interrupted-run-unmarked
func TestAnInterruptedRunHasAReport(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var n atomic.Int64
	w := serve(t, func(http.ResponseWriter, *http.Request) {
		if n.Add(1) == 50 {
			cancel()
		}
	})
	p := Plan{Callers: 2, Duration: time.Hour}
	r, err := p.Run(ctx, w)
	if !errors.Is(err, context.Canceled) || r == nil || r.Completed < 40 || r.Partial == "" {
		t.Fatalf("%v, report %+v", err, r)
	}
	var text strings.Builder
	_ = r.WriteText(&text) // a Builder returns no errors
	if !strings.Contains(text.String(), "PARTIAL: load: interrupted") {
		t.Errorf("%s", text.String())
	}
}

func TestWrongPlans(t *testing.T) {
	for problem, p := range map[string]Plan{
		"0 connections":                        {Total: 1},
		"neither a duration":                   {Callers: 1},
		"-1 requests":                          {Callers: 1, Total: -1},
		"arrivals \"poisson\" without":         {Callers: 1, Total: 1, Arrivals: load.Poisson},
		"expected constant, poisson or bursts": {Callers: 1, Total: 1, Rate: 1, Arrivals: "even"},
		"-1 requests a second":                 {Callers: 1, Total: 1, Rate: -1},
		"a duration of":                        {Callers: 1, Duration: 1000 * time.Hour},
	} {
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%+v: %v, want an error that contains %q", p, err, problem)
		}
	}
}

// mutant: bench-limits-unsaid
func TestTheGeneratorsLimitIsLoud(t *testing.T) {
	r := &Report{Latency: new(load.Histogram), Service: new(load.Histogram), Limits: []string{"generator starved: x"}, Doubts: []string{"overloaded: y"}}
	var text strings.Builder
	_ = r.WriteText(&text) // a Builder returns no errors
	if !strings.HasSuffix(text.String(), "\nquestionable: overloaded: y\nTHE GENERATOR WAS THE LIMIT: these are its own figures, not those of the server\n  generator starved: x\n") {
		t.Errorf("%s", text.String())
	}
}

func TestFigures(t *testing.T) {
	for want, got := range map[string]string{
		"0.50 us": took(500 * time.Nanosecond), "12.3 us": took(12345 * time.Nanosecond), "123 ms": took(123456 * time.Microsecond), "2.00 s": took(2 * time.Second),
		"1,234,567": grouped(1234567), "999": grouped(999), "99.5": rate(99.5), "1,000": rate(999.9), "1 caller": counted(1, "caller"), "2.00 KiB": size(2048),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func needProcessTimes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the CPU time of other processes is read on Linux only")
	}
}

func TestCostsOfProcesses(t *testing.T) {
	needProcessTimes(t)
	p := Plan{Callers: 1, Total: 10, PIDs: []int{os.Getpid()}}
	r, err := p.Run(t.Context(), serve(t, hello))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Costs) != 2 || !strings.HasPrefix(r.Costs[1].Of, "process ") || !strings.Contains(r.Costs[1].Of, "(") {
		t.Errorf("%+v", r.Costs)
	}
}

func TestCostsOfMetricsPages(t *testing.T) {
	var scrapes atomic.Int64
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics": // the time grows by two seconds with each scrape
			_, _ = fmt.Fprintf(w, "process_cpu_seconds_total %d\n", 2*scrapes.Add(1))
		case "/others":
			_, _ = w.Write([]byte("a 1\n"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer page.Close()
	p := Plan{Callers: 1, Total: 10, Metrics: []string{page.URL + "/metrics?secret=1"}}
	r, err := p.Run(t.Context(), serve(t, hello))
	if err != nil {
		t.Fatal(err)
	}
	// The page is read once at the start, before and after the window, and each second of it.
	if c := r.Costs[len(r.Costs)-1]; len(r.Costs) != 2 || c.Of != page.URL+"/metrics" || c.CPUSeconds != float64(2*(scrapes.Load()-2)) || c.PerRequest != c.CPUSeconds*1e8 {
		t.Errorf("%+v, want 2 seconds for each of %d scrapes but two", r.Costs, scrapes.Load())
	}
	used := 0.0
	for _, i := range r.Timeline {
		used += i.CPU[page.URL+"/metrics"]
	}
	if scrapes.Load() == 3 && used != r.Costs[1].CPUSeconds { // otherwise a scrape may have been cut off
		t.Errorf("the time line has %v seconds of CPU time", used)
	}
	for url, problem := range map[string]string{
		page.URL + "/others": "the page has no process_cpu_seconds_total", page.URL + "/none": "404", "host/metrics": "expected one such as",
	} {
		p := Plan{Callers: 1, Total: 10, Metrics: []string{url}}
		var cost *CostError
		if _, err := p.Run(t.Context(), serve(t, hello)); !errors.As(err, &cost) || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, want %q", url, err, problem)
		}
	}
}

func TestProcessesWithoutCosts(t *testing.T) {
	needProcessTimes(t)
	p := Plan{Callers: 1, Total: 10, PIDs: []int{1 << 30}}
	if _, err := p.Run(t.Context(), serve(t, hello)); err == nil || !strings.Contains(err.Error(), "process 1073741824: there is no such process") {
		t.Errorf("%v", err)
	}
}
