package foreign

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

const wrkOutput = `Running 2s test @ http://127.0.0.1:8080/
  2 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.05ms    1.27ms  20.52ms   88.62%
    Req/Sec    47.35k     5.36k   57.22k    70.00%
  Latency Distribution
     50%  635.00us
     75%    1.28ms
     90%    2.50ms
     99%    1.02s 
  188495 requests in 2.01s, 343.11MB read
Requests/sec:  93778.61
Transfer/sec:    170.70MB
`

func TestParseWrk(t *testing.T) {
	for _, tc := range []struct {
		extra  string
		errors uint64
	}{
		{"", 0},
		{"  Socket errors: connect 1, read 2, write 3, timeout 4\n", 10},
		{"  Non-2xx or 3xx responses: 188495\n", 188495},
		{"  Socket errors: connect 0, read 5, write 0, timeout 0\n  Non-2xx or 3xx responses: 7\n", 12},
	} {
		r, err := ParseWrk(wrkOutput + tc.extra)
		if err != nil {
			t.Fatal(err)
		}
		if r.Completed != 188495 || r.Elapsed != 2010*time.Millisecond || r.P50 != 635*time.Microsecond || r.P99 != 1020*time.Millisecond {
			t.Errorf("%+v", r)
		}
		if r.Errors != tc.errors || (r.Problem != "") != (tc.errors > 0) {
			t.Errorf("%q: %d errors (%q), want %d", tc.extra, r.Errors, r.Problem, tc.errors)
		}
	}
	for _, bad := range []string{"", "unable to connect to 127.0.0.1:1 Connection refused\n", wrkOutput + "  Non-2xx or 3xx responses:\n", wrkOutput + "Socket errors: connect x\n", "x requests in 2s, 1MB read\n", "1 requests in x, 1MB read\n", "   50%  x\n"} {
		if r, err := ParseWrk(bad); err == nil {
			t.Errorf("%.80q accepted as %+v", bad, r)
		}
	}
}

const redisOutput = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"GET pages:__rand_int__","16666.67","0.167","0.048","0.151","0.447","0.519","0.559"
`

func TestParseRedisBenchmark(t *testing.T) {
	r, err := ParseRedisBenchmark(50_000)(redisOutput)
	if err != nil {
		t.Fatal(err)
	}
	if r.Completed != 50_000 || r.Elapsed.Round(time.Millisecond) != 3*time.Second || r.P50 != 151*time.Microsecond || r.P99 != 519*time.Microsecond {
		t.Errorf("%+v", r)
	}
	head, _, _ := strings.Cut(redisOutput, "\n")
	for _, bad := range []string{"", head + "\n", redisOutput + `"GET","1","1","1","1","1","1","1"` + "\n", strings.Replace(redisOutput, "16666.67", "nan", 1), strings.Replace(redisOutput, "16666.67", "0", 1), strings.Replace(redisOutput, `"rps"`, `"x"`, 1), strings.Replace(redisOutput, "0.519", "", 1)} {
		if r, err := ParseRedisBenchmark(1)(bad); err == nil {
			t.Errorf("%.80q accepted as %+v", bad, r)
		}
	}
}

func TestSample(t *testing.T) {
	s, err := Run{Completed: 1000, Elapsed: 2 * time.Second, Client: 3 * time.Millisecond, Server: 5 * time.Millisecond, P50: 7 * time.Microsecond, Errors: 2}.Sample()
	if err != nil {
		t.Fatal(err)
	}
	for metric, want := range map[load.Metric]float64{load.RPS: 500, load.ClientUS: 3, load.ServerUS: 5, load.P50US: 7} {
		if s.Values[metric] != want {
			t.Errorf("%s is %v, want %v", metric, s.Values[metric], want)
		}
	}
	if _, ok := s.Values[load.P99US]; ok || s.Errors != 2 {
		t.Errorf("%+v", s)
	}
	if _, err := (Run{Elapsed: time.Second}).Sample(); err == nil {
		t.Error("a run without requests has figures")
	}
}

// The error contains the output of a failing program.
func TestMeasure(t *testing.T) {
	g := Generator{Program: "sh", Parse: func(output string) (Run, error) { return Run{Completed: uint64(len(output))}, nil }}
	g.Args = []string{"-c", "echo four"}
	r, err := g.Measure(t.Context(), []int{os.Getpid()})
	if err != nil || r.Completed != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := g.Measure(t.Context(), []int{1 << 30}); err == nil {
		t.Error("a process that does not exist was metered")
	}
	g.Args = []string{"-c", "echo four; echo sorry >&2; exit 3"}
	if _, err := g.Measure(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "sorry") {
		t.Errorf("error %v, want one that contains the output", err)
	}
	g.Accept = 3
	if r, err := g.Measure(t.Context(), nil); err != nil || r.Completed != 5 {
		t.Errorf("%+v, %v with an exit code that is accepted", r, err)
	}
	g.Accept = 5
	if _, err := g.Measure(t.Context(), nil); err == nil {
		t.Error("an exit code other than the accepted one was accepted")
	}
}

const slipstreamOutput = `{"schema": "slipstream-bench/1", "seconds": 2.5, "completed": 50000, "failed": 0,
	"service": {"count": 50000, "p50_us": 151.5, "p99_us": 519, "hdr": "x"},
	"redis": {"sets": 0, "get_hits": 50000, "get_misses": 0, "wrong": 0, "stale": 0}}`

// Every wrong answer is an error of the run.
func TestParseSlipstream(t *testing.T) {
	r, err := ParseSlipstream(slipstreamOutput)
	if err != nil {
		t.Fatal(err)
	}
	if r.Completed != 50_000 || r.Errors != 0 || r.Elapsed != 2500*time.Millisecond || r.P50 != 151500*time.Nanosecond || r.P99 != 519*time.Microsecond {
		t.Errorf("%+v", r)
	}
	for _, field := range []string{`"failed": 0`, `"get_misses": 0`, `"wrong": 0`, `"stale": 0`} {
		r, err := ParseSlipstream(strings.Replace(slipstreamOutput, field, strings.Replace(field, "0", "3", 1), 1))
		if err != nil || r.Errors != 3 {
			t.Errorf("%s is 3: %d errors, %v", field, r.Errors, err)
		}
	}
	for _, bad := range []string{"", "{}", strings.Replace(slipstreamOutput, "bench/1", "bench/2", 1), strings.Replace(slipstreamOutput, `"failed"`, `"partial": "interrupted", "failed"`, 1)} {
		if r, err := ParseSlipstream(bad); err == nil {
			t.Errorf("%.80q accepted as %+v", bad, r)
		}
	}
}
