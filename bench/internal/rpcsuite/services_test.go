package rpcsuite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A sample counts for middleware if middleware or a function that it has called was running, and
// neither for what the client does within it nor for the callers.
func TestSharesOfMiddleware(t *testing.T) {
	const (
		retry   = "github.com/slipstream-go/slipstream/thrift/rpc/governance.(*Retry).Call"
		breaker = "github.com/failsafe-go/failsafe-go/circuitbreaker.(*circuitBreaker[...]).TryAcquirePermit"
		call    = "github.com/slipstream-go/slipstream/thrift/rpc.(*Client).Call"
		pipe    = "github.com/slipstream-go/slipstream/internal/pipe.(*Engine).Do"
		echo    = "main.client.Echo"
	)
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}}
	for i, stack := range [][]string{
		{retry, echo}, {"sync.(*Mutex).Lock", breaker, retry, echo}, // middleware
		{pipe, call, retry, echo}, {call, retry, echo}, {"runtime.mallocgc", pipe, call, retry, echo}, // the client
		{echo}, {"runtime.findRunnable"}, {"runtime.gcBgMarkWorker"}, // the rest
	} {
		s := &profile.Sample{Value: []int64{1, int64(1 + i)}}
		for _, name := range stack {
			f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
			l := &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
			p.Function, p.Location, s.Location = append(p.Function, f), append(p.Location, l), append(s.Location, l)
		}
		p.Sample = append(p.Sample, s)
	}
	file := filepath.Join(t.TempDir(), "cpu.pprof")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := p.Write(f); err != nil {
		t.Fatal(err)
	}
	got := make(map[load.Metric]float64)
	if err := addShares(file, got); err != nil || got[chainShare] != 3./36 || got[callShare] != 12./36 {
		t.Errorf("%v, %v, want 3/36 and 12/36", got, err)
	}
}

// A window may have no samples.
func TestSharesOfNoSamples(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpu.pprof")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := (&profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}}).Write(f); err != nil {
		t.Fatal(err)
	}
	got := make(map[load.Metric]float64)
	if err := addShares(file, got); err != nil || len(got) > 0 {
		t.Errorf("%v, %v, want nothing", got, err)
	}
}

func TestCheckServices(t *testing.T) {
	round := func(scenario, subject string, values map[load.Metric]float64) command.RawRound {
		r := command.RawRound{Scenario: scenario, Subject: subject, Values: make(map[load.Metric]*float64)}
		for m, v := range values {
			r.Values[m] = &v
		}
		return r
	}
	raw := func(chain, call, allocs float64) command.RawRounds {
		var with, without []command.RawRound
		for i := range 3 {
			with = append(with, round("chain/100", load.Ours, map[load.Metric]float64{load.ClientUS: float64(10 + i), chainShare: chain + 0.01*float64(i), callShare: call}))
			without = append(without, round("chain/100", bare, map[load.Metric]float64{load.ClientUS: 9.75}))
		}
		return command.RawRounds{
			"chain/100":  {load.Ours: with, bare: without, load.Control: {round("chain/100", load.Control, map[load.Metric]float64{chainShare: 0.05})}},
			"frontend/1": {load.Ours: {round("frontend/1", load.Ours, map[load.Metric]float64{serverAllocs: allocs})}},
			"stream/1":   {load.Ours: {round("stream/1", load.Ours, map[load.Metric]float64{serverAllocs: 2})}},
		}
	}
	rows := []load.Row{{Scenario: "chain/100", Subject: load.Ours}, {Scenario: "chain/100", Subject: bare}, {Scenario: "frontend/1", Subject: load.Ours}, {Scenario: "stream/1", Subject: load.Ours}}
	for _, c := range []struct {
		chain, call, allocs float64
		want                [2]string
	}{
		{0.08, 0.5, 0.01, [2]string{"profile: met (9.0 %, what it calls 50.0 %, control 5.0 %)", "hit, 0: met (0.010)"}},
		{0.10, 0.5, 1, [2]string{"profile: missed (11.0 %", "hit, 0: missed (1.000)"}},
		{0.08, 0, 0, [2]string{"profile: cannot tell (9.0 %", "hit, 0: met (0.000)"}},
	} {
		var b strings.Builder
		checkServices(&b, raw(c.chain, c.call, c.allocs), rows)
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[0], c.want[0]) || !strings.Contains(lines[1], "median 1.25 us of [0.25 1.25 2.25]") || !strings.Contains(lines[2], c.want[1]) {
			t.Errorf("%+v:\n%s", c, &b)
		}
	}
}
