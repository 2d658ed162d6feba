package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/tarantoolserver"
	"github.com/slipstream-go/slipstream/internal/load"
)

func quick(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t.TempDir(), options{Flags: command.Flags{Quick: true}})
	t.Cleanup(func() {
		if err := h.closeServer(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// One complete window of each subject has all figures: in every mode, over one socket and many,
// with contexts, and with default settings.
func TestWindowsHaveAllFigures(t *testing.T) {
	for _, name := range []string{"blocking/1", "reuse/1", "sync/64", "async/4", "async-16conn/16", "ctx/512", "ctx-async/16", "default/async/16"} {
		t.Run(name, func(t *testing.T) {
			h := quick(t)
			scenarios := h.Scenarios()
			i := slices.IndexFunc(scenarios, func(sc load.Scenario) bool { return sc.Name == name })
			if i < 0 {
				t.Fatal("no such scenario")
			}
			for _, subject := range scenarios[i].Subjects {
				if unsound(subject.Name, name) {
					continue
				}
				sample, err := subject.Run(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				if sample.Errors != 0 {
					t.Errorf("%s: %d errors: %s", subject.Name, sample.Errors, sample.ErrorSample)
				}
				for _, m := range []load.Metric{load.RPS, load.ClientUS, load.ServerUS, load.P50US, load.P99US} {
					if !(sample.Values[m] > 0) {
						t.Errorf("%s: %s is %v", subject.Name, m, sample.Values[m])
					}
				}
				for _, m := range []load.Metric{load.Allocs, load.BytesOp} {
					if v, ok := sample.Values[m]; !ok || math.IsNaN(v) {
						t.Errorf("%s: %s is %v", subject.Name, m, v)
					}
				}
			}
		})
	}
}

// A subject that hangs or fails completely ends the run, except for the one that is known to do so.
func TestBrokenSubjects(t *testing.T) {
	h := quick(t)
	for _, r := range h.rounds() {
		if r.scenario != "ctx/512" && r.scenario != "sync/512" {
			continue
		}
		r.work.Mode = "broken"
		for _, k := range kinds() {
			sample, err := h.run(t.Context(), k.name, r, 1)
			if unsound(k.name, r.scenario) {
				if err != nil || sample.Errors != 1 || !strings.Contains(sample.ErrorSample, "no mode") {
					t.Errorf("%s, %s: %+v, %v", r.scenario, k.name, sample, err)
				}
			} else if err == nil {
				t.Errorf("%s, %s: %+v", r.scenario, k.name, sample)
			}
		}
	}
}

// A server has the settings that the name of the scenario says.
func TestServerSettings(t *testing.T) {
	for _, r := range quick(t).rounds() {
		if got := r.settings == tarantoolserver.Tuned; got == strings.HasPrefix(r.scenario, "default/") {
			t.Errorf("%s: tarantoolserver.Tuned is %t", r.scenario, got)
		}
	}
}

// Programs read the names, and the goals belong to the right scenarios.
func TestScenarios(t *testing.T) {
	wants := map[string]string{
		"sync/512":     "[client_us <= 0.30x of go-tarantool-v3-release]",
		"sync/8192":    "[client_us <= 0.40x of go-tarantool-v3-release]",
		"async/16":     "[client_us <= 0.22x of go-tarantool-v3-release]",
		"async/64":     "[client_us <= 0.22x of go-tarantool-v3-release]",
		"async/512":    "[client_us <= 0.22x of go-tarantool-v3-release]",
		"ctx/512":      "[client_us <= 1.05x of slipstream-background]",
		"ctx-async/16": "[client_us <= 1.05x of slipstream-background]",
	}
	names := []string{"blocking/1", "reuse/1"}
	for _, n := range []int{1, 8, 64, 512, 1024, 8192} {
		names = append(names, fmt.Sprint("sync/", n))
	}
	for _, prefix := range []string{"async/", "async-16conn/"} {
		for _, n := range []int{1, 4, 16, 64, 512} {
			names = append(names, fmt.Sprint(prefix, n))
		}
	}
	names = append(names, "ctx/512", "ctx-async/16", "default/sync/512", "default/sync/8192", "default/async/16")
	var got []string
	for _, sc := range quick(t).Scenarios() {
		got = append(got, sc.Name)
		want, ok := wants[sc.Name]
		if !ok {
			want = "[]"
		}
		if goals := fmt.Sprint(sc.Goals); goals != want {
			t.Errorf("%s has goals %s, want %s", sc.Name, goals, want)
		}
		subjects := 5
		if begins(sc.Name, []string{"ctx", "async", "sync/"}) {
			subjects = 6
		}
		if len(sc.Subjects) != subjects {
			t.Errorf("%s has %d subjects, want %d", sc.Name, len(sc.Subjects), subjects)
		}
		if sc.Close == nil {
			t.Errorf("%s does not stop its server", sc.Name)
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("scenarios %q, want %q", got, names)
	}
}

func rowOf(scenario, subject string, rps, client, allocs float64) load.Row {
	return load.Row{Scenario: scenario, Subject: subject, RPS: &rps, ClientUS: &client, Allocs: &allocs}
}

func TestCheck(t *testing.T) {
	rows := []load.Row{
		rowOf("sync/1", load.Ours, 20_000, 30, 0.5), rowOf("sync/1024", load.Ours, 700_000, 1, 0.002), rowOf("sync/8192", load.Ours, 600_000, 1.5, 0.04),
		rowOf("sync/1024", goTarantool3, 900_000, 5, 4), rowOf("async/16", load.Ours, 1_000_000, 0.5, 0.02),
		rowOf("ctx/512", goTarantool3Release, 1, 1, 1),
	}
	rows[5].Errors = 7
	var out bytes.Buffer
	if err := new(harness).Check(&out, rows); err != nil {
		t.Error(err)
	}
	want := `sync/8192: rps >= 0.9 of our best sync/N in this run: missed (600000 and 700000)
sync/1: 0 allocations for a typed result: missed (0.5000)
sync/1024: 0 allocations for a typed result: met (0.0020)
sync/8192: 0 allocations for a typed result: cannot tell, the generator's own are 0.0463 (0.0400)
async/16: 0 allocations for a typed result: missed (0.0200)
ctx/512: 7 requests of go-tarantool-v3-release failed
`
	if out.String() != want {
		t.Errorf("check wrote\n%swant\n%s", &out, want)
	}
	rows[3].Errors = 3
	if err := new(harness).Check(io.Discard, rows); err == nil || !strings.Contains(err.Error(), "3 requests failed") {
		t.Errorf("error %v", err)
	}
}

func TestWriteCurves(t *testing.T) {
	h := quick(t)
	dir := t.TempDir()
	results := filepath.Join(dir, "tarantool.json")
	if err := writeCurves(results, dir, io.Discard); err == nil {
		t.Error("a ladder was drawn without results")
	}
	var lines []string
	for i, r := range h.rounds() {
		for j, k := range kinds() {
			lines = append(lines, fmt.Sprintf(`{"scenario":%q,"subject":%q,"rps":%d,"client_us":%d.5,"allocs":0.25,"errors":%d}`, r.scenario, k.name, 1000*(i+1), j+1, j%2))
		}
	}
	if err := os.WriteFile(results, []byte("["+strings.Join(lines, ",")+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := writeCurves(results, dir, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"![Waiting callers: requests a second](images/tarantool-sync-rate.svg)", "**Waiting callers**", "**A server with default settings**",
		"| sync/1 | 3,000 | 4.50 | - | 0.250 (1 failed) | 3,000 | 3.50 | - | 0.250 | 3,000 | 2.50 | - | 0.250 (1 failed) | 3,000 | 1.50 | - | 0.250 |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	for _, p := range pictures {
		svg, err := os.ReadFile(filepath.Join(dir, p.file))
		if err != nil || !bytes.Contains(svg, []byte(">v3-release")) {
			t.Errorf("%s: %v", p.file, err)
		}
	}
}

func TestFlags(t *testing.T) {
	t.Setenv("SCENARIO", "")
	for _, c := range []struct {
		args []string
		want string // scenario; if empty, refused
	}{
		{[]string{"-profile", "slipstream", "sync/512"}, "sync/512"},
		{[]string{"-scenario", "async/16", "-profile", "slipstream"}, "async/16"},
		{[]string{"-scenario", "async/"}, "async/"},
		{[]string{"-profile", "slipstream"}, ""},
		{[]string{"-profile", "slipstream", "sync/512", "async/16"}, ""},
		{[]string{"sync/512"}, ""},
	} {
		f, err := suite().Parse(c.args, io.Discard)
		if (err == nil) != (c.want != "") || err == nil && f.Scenario != c.want {
			t.Errorf("%q: scenario %q, %v; want %q", c.args, f.Scenario, err, c.want)
		}
	}
}

// A profile describes the requested process.
func TestProfile(t *testing.T) {
	h := quick(t)
	h.options.profile, h.options.Scenario = goTarantool3, "async/4"
	h.options.out = filepath.Join(t.TempDir(), "x.pprof")
	var out strings.Builder
	if err := h.profile(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "go-tarantool-v3 in async/4: ") {
		t.Errorf("printed %q", &out)
	}
	file, err := os.Open(h.options.out)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p, err := profile.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(p.Function, func(f *profile.Function) bool {
		return strings.HasPrefix(f.Name, "github.com/tarantool/go-tarantool/v3.")
	}) {
		t.Errorf("a profile of %d functions, none of the client's", len(p.Function))
	}
	h.options.profile = "nobody"
	if err := h.profile(t.Context(), io.Discard); err == nil {
		t.Error("no subject has a profile")
	}
}
