package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// at returns a target that calls f once, from its request number n.
func at(n int64, f func()) *fakeTarget {
	return &fakeTarget{delay: 100 * time.Microsecond, fail: func(call int64) error {
		if call == n {
			f()
		}
		return nil
	}}
}

// mutant: load-interrupted-run-thrown-away
// mutant: load-partial-result-unmarked
func TestAnInterruptedRunKeepsWhatItMeasured(t *testing.T) {
	for name, arrivals := range map[string]Arrivals{"closed": {}, "open": {Process: Constant, Rate: 2000}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			counter := Counter{Name: "x", Read: func(ctx context.Context) (float64, error) { return 1, ctx.Err() }}
			cfg := Config{Callers: 4, Duration: time.Hour, Arrivals: arrivals, Counters: []Counter{counter}}
			r, err := Run(ctx, cfg, at(100, cancel))
			if !errors.Is(err, context.Canceled) || r == nil {
				t.Fatalf("result %v, error %v, want what was measured and the context's error", r, err)
			}
			if r.Completed < 96 || r.Errors != 0 || r.Elapsed >= time.Hour || r.Service.Count() != int64(r.Completed) {
				t.Errorf("completed %d, errors %d, %d latencies in %v", r.Completed, r.Errors, r.Service.Count(), r.Elapsed)
			}
			if !strings.Contains(r.Partial, "interrupted: context canceled") || r.Sample().Partial != r.Partial {
				t.Errorf("marked %q and %q", r.Partial, r.Sample().Partial)
			}
			if _, ok := r.Cost.Counters["x"]; !ok || r.Cost.Client <= 0 {
				t.Errorf("cost %+v: the meters were not read at the end", r.Cost)
			}
			text, err := json.Marshal(r)
			if err != nil || !strings.Contains(string(text), `"partial":"load: interrupted`) {
				t.Errorf("%v, JSON without the field partial", err)
			}
		})
	}
}

// Requests that were not due when the run was interrupted are not counted.
//
// mutant: load-counts-what-was-not-due
func TestAnInterruptedRunMissesOnlyWhatWasDue(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := Run(ctx, Config{Callers: 2, Duration: time.Hour, Arrivals: Arrivals{Process: Constant, Rate: 1000}}, at(20, cancel))
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	counted := float64(r.Completed + r.Errors + r.Cut + r.Unsent)
	if planned := r.Elapsed.Seconds() * 1000; counted > planned+2 {
		t.Errorf("%v requests were counted, but %.0f were due within %v", counted, planned, r.Elapsed)
	}
}

// Requests that are cut off by the end of the context count neither as completed nor as errors.
func TestCutRequestsAreNoErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	target := &waitingTarget{began: make(chan struct{}, 3)}
	go func() { // ends when all callers are waiting; Run waits for them
		for range 3 {
			<-target.began
		}
		cancel()
	}()
	r, err := Run(ctx, Config{Callers: 3, Duration: time.Hour}, target)
	if !errors.Is(err, context.Canceled) || r.Cut != 3 || r.Errors != 0 || r.ErrorSample != "" {
		t.Errorf("%v, result %+v, want 3 requests cut", err, r)
	}
}

// waitingTarget answers only when the context ends.
type waitingTarget struct{ began chan struct{} }

func (w *waitingTarget) NewCaller(context.Context, int) (Caller, error) { return w, nil }
func (w *waitingTarget) Close() error                                   { return nil }
func (w *waitingTarget) Do(ctx context.Context) error {
	w.began <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// A caller that does not end with the context is closed soon afterwards, not at the end of the
// window.
func TestAnInterruptedRunDoesNotWaitForRequestsThatHang(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r, err := Run(ctx, Config{Callers: 3, Duration: time.Hour, DrainLimit: 20 * time.Millisecond}, blockedTarget{})
	if !errors.Is(err, context.DeadlineExceeded) || r.Cut != 3 {
		t.Errorf("%v, result %+v, want 3 requests cut", err, r)
	}
}

// If a meter fails at the end, only its figure is lost.
func TestAMeterThatFailsAtTheEndKeepsTheRest(t *testing.T) {
	broken, reads := errors.New("no such page"), 0
	good := Counter{Name: "good", Read: func(context.Context) (float64, error) { reads++; return float64(reads), nil }}
	bad := Counter{Name: "bad", Read: func(context.Context) (float64, error) {
		if reads > 1 {
			return 0, broken
		}
		return 0, nil
	}}
	r, err := Run(t.Context(), Config{Callers: 1, Duration: time.Minute, Requests: 5, Counters: []Counter{good, bad}}, &fakeTarget{})
	if !errors.Is(err, broken) || r == nil {
		t.Fatalf("result %v, error %v", r, err)
	}
	if !strings.Contains(r.Partial, "counter bad: no such page") || r.Completed != 5 {
		t.Errorf("marked %q with %d requests", r.Partial, r.Completed)
	}
	if _, ok := r.Cost.Counters["bad"]; ok || r.Cost.Counters["good"] != 1 {
		t.Errorf("counters %v", r.Cost.Counters)
	}
}

// If the context ends during the warm-up, the run has no result.
func TestNothingIsMeasuredInTheWarmUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if r, err := Run(ctx, Config{Callers: 1, Duration: time.Hour, WarmUp: time.Hour}, at(3, cancel)); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("result %+v, error %v, want no result", r, err)
	}
}

// pingTarget sends PING to a Redis server.
type pingTarget struct {
	address string
	answer  func()
}

func (p *pingTarget) NewCaller(ctx context.Context, _ int) (Caller, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	return &pingCaller{p, conn, bufio.NewReader(conn)}, nil
}

type pingCaller struct {
	target *pingTarget
	conn   net.Conn
	in     *bufio.Reader
}

func (c *pingCaller) Close() error { return c.conn.Close() }
func (c *pingCaller) Do(context.Context) error {
	if _, err := c.conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := c.in.ReadString('\n')
	if err != nil {
		return err
	}
	if line != "+PONG\r\n" {
		return errors.New(line)
	}
	c.target.answer()
	return nil
}

// mutant: load-dead-server-unnoticed
func TestAServerThatDiesEndsTheRun(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // other systems have no meter of another process
	}
	server := testkit.StartRedis(t)
	pid := server.PID()
	answers := 0
	target := &pingTarget{address: server.Addr, answer: func() {
		if answers++; answers == 200 {
			server.Kill()
		}
	}}
	r, err := Run(t.Context(), Config{Callers: 1, Duration: time.Hour, Servers: []int{pid}}, target)
	if !errors.Is(err, ErrServerEnded) || r == nil {
		t.Fatalf("result %v, error %v, want what was measured and %v", r, err, ErrServerEnded)
	}
	if r.Completed < 200 || r.Elapsed >= time.Hour || !strings.Contains(r.Partial, ErrServerEnded.Error()) {
		t.Errorf("completed %d in %v, marked %q", r.Completed, r.Elapsed, r.Partial)
	}
	if s := r.Sample(); s.Partial == "" || s.Values[RPS] <= 0 || math.IsNaN(s.Values[ClientUS]) {
		t.Errorf("sample %+v", s)
	}
	// A run against a server that is already dead measures nothing.
	if r, err := Run(t.Context(), Config{Callers: 1, Duration: time.Hour, Servers: []int{pid}}, &fakeTarget{}); r != nil || err == nil {
		t.Errorf("result %+v, error %v for a dead server", r, err)
	}
}

// endsIn returns a scenario whose rival fails in a round, with a partial sample.
func endsIn(name string, round int) Scenario {
	sc := comparison(name, 0.01, nil)
	whole := sc.Subjects[2].Run
	sc.Subjects[2].Run = func(ctx context.Context, n int) (Sample, error) {
		s, err := whole(ctx, n)
		if n == round {
			s.Values[ServerUS] *= 1000
			return s, errors.New("killed")
		}
		return s, err
	}
	return sc
}

// A scenario that does not finish is stored separately and marked, and no verdict is based on it.
//
// mutant: suite-partial-among-whole
// mutant: suite-judges-partial
func TestAScenarioThatDoesNotFinish(t *testing.T) {
	dir := t.TempDir()
	opts := Options{Directory: dir, Progress: new(bytes.Buffer), Seed: 3}
	suite := Suite{Name: "fake", Scenarios: []Scenario{comparison("hit/1", 0.01, nil), comparison("hit/16", 0.01, nil)}}
	if _, err := suite.Run(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "fake.json"))
	if err != nil {
		t.Fatal(err)
	}
	suite.Scenarios[1] = endsIn("hit/16", 4)
	opts.Filter = "hit/16"
	report, err := suite.Run(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "net/http, round 4: killed") {
		t.Fatalf("error %v", err)
	}
	if now, err := os.ReadFile(filepath.Join(dir, "fake.json")); err != nil || !bytes.Equal(now, whole) {
		t.Errorf("%v; the complete results have changed", err)
	}
	rows, err := ReadRows(filepath.Join(dir, PartialDirectory, "fake.json"))
	if err != nil || len(rows) != 4 || len(report.Rows) != 4 || len(Whole(rows)) != 0 {
		t.Fatalf("%v, partial rows %+v", err, rows)
	}
	for _, row := range rows {
		if row.Partial == "" || row.RatioLo != nil || row.Rounds < 3 || *row.ServerUS > 50 {
			t.Errorf("row %+v: want at least 3 complete rounds, marked, without the unfinished one", row)
		}
	}
	if len(report.Ratios) != 0 || len(report.Verdicts) != 2 {
		t.Errorf("ratios %v, verdicts %v", report.Ratios, report.Verdicts)
	}
	for _, v := range report.Verdicts {
		if v.Outcome != CannotTell || !strings.Contains(v.String(), "partial: ") {
			t.Errorf("verdicts on a scenario that did not finish: %v", v)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, PartialDirectory, "raw", "fake.jsonl"))
	if err != nil || bytes.Count(raw, []byte(`"partial":"killed"`)) != 1 {
		t.Errorf("%v, want one round marked in\n%s", err, raw)
	}
	var text, table bytes.Buffer
	if err := errors.Join(report.WriteText(&text), WriteMarkdown(&table, rows)); err != nil {
		t.Fatal(err)
	}
	if strings.Count(text.String(), " (partial)\n") != 4 || !strings.Contains(text.String(), "hit/16: partial: load: fake hit/16: net/http, round 4: killed") {
		t.Errorf("text without marks:\n%s", &text)
	}
	if strings.Count(table.String(), " (partial) |") != 4 || !strings.Contains(table.String(), "Partial: load: fake hit/16") {
		t.Errorf("table without marks:\n%s", &table)
	}
}

// Without a complete round, the figures are those of the unfinished one, and the number of rounds
// is 0.
func TestAScenarioThatEndsInItsFirstRound(t *testing.T) {
	sc := endsIn("hit/1", 1)
	sc.Subjects = sc.Subjects[2:3]
	dir := t.TempDir()
	report, err := Suite{Name: "fake", Scenarios: []Scenario{sc}}.Run(t.Context(), Options{Directory: dir, Progress: new(bytes.Buffer)})
	if err == nil || len(report.Rows) != 1 || report.Rows[0].Rounds != 0 || report.Rows[0].Partial == "" || report.Rows[0].ServerUS == nil {
		t.Errorf("%v, rows %+v", err, report.Rows)
	}
	// A partial sample without an error is refused in the same way.
	sc.Subjects[0].Run = func(context.Context, int) (Sample, error) {
		return Sample{Values: map[Metric]float64{ServerUS: 1}, Partial: "swallowed"}, nil
	}
	report, err = Suite{Name: "fake", Scenarios: []Scenario{sc}}.Run(t.Context(), Options{Directory: dir, Progress: new(bytes.Buffer)})
	if err == nil || !strings.Contains(err.Error(), "swallowed") || report.Rows[0].Rounds != 0 {
		t.Errorf("%v, rows %+v", err, report.Rows)
	}
	// If nothing was measured, nothing is stored.
	dir = t.TempDir()
	sc.Subjects[0].Run = func(context.Context, int) (Sample, error) { return Sample{}, errors.New("no server") }
	if _, err = (Suite{Name: "fake", Scenarios: []Scenario{sc}}).Run(t.Context(), Options{Directory: dir, Progress: new(bytes.Buffer)}); err == nil {
		t.Error("no error")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%v, stored %v although nothing was measured", err, entries)
	}
}
