package rpcsuite

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/rpcload"
	"github.com/slipstream-go/slipstream/bench/internal/workshop"
	"github.com/slipstream-go/slipstream/internal/load"
)

func TestScenarios(t *testing.T) {
	seen := make(map[string]int)
	for _, sc := range slices.Concat((&harness{plan: &calls}).Scenarios(), (&harness{plan: &messages}).Scenarios(), (&harness{plan: &services}).Scenarios()) {
		if _, twice := seen[sc.Name]; twice {
			t.Errorf("two scenarios are named %s", sc.Name)
		}
		var names []string
		for _, s := range sc.Subjects {
			if slices.Contains(names, s.Name) {
				t.Errorf("%s has two subjects %s", sc.Name, s.Name)
			}
			names = append(names, s.Name)
		}
		seen[sc.Name] = len(names)
		for _, s := range sc.Subjects {
			of := s.Goals
			if s.Name == load.Ours {
				of = sc.Goals
			} else if s.Goals != nil && !s.Variant {
				t.Errorf("%s: %s has goals, but is not a variant of ours", sc.Name, s.Name)
			}
			for _, g := range of {
				if !slices.Contains(names, g.Rival) || g.Ratio <= 0 {
					t.Errorf("%s: goal %v of %s", sc.Name, g, s.Name)
				}
			}
		}
		if !slices.Contains(names, load.Ours) || !slices.Contains(names, load.Control) {
			t.Errorf("%s has the subjects %q", sc.Name, names)
		}
	}
	for name, want := range map[string]int{
		"echo-100/1": 15, "echo-1k/100": 15, "echo-32k/1000": 15, "sleep-1ms/1000": 12, "sleep-10ms/100": 12, "slow-1pct/16": 12,
		"rate-1k/5k": 15, "rate-1k/40k": 15, "echo-1k-tls/100": 4, "mixed-1m/2k": 18, "message-1k/100": 5, "message-10m/4": 5,
		"chain/100": 3, "stream/1": 4, "stream-out/100": 4, "frontend/1": 3, "frontend-p16/64": 3,
	} {
		if seen[name] != want {
			t.Errorf("%s has %d subjects, want %d", name, seen[name], want)
		}
	}
}

func TestGoals(t *testing.T) {
	got := make(map[string][]string)
	for _, sc := range slices.Concat((&harness{plan: &calls}).Scenarios(), (&harness{plan: &services}).Scenarios()) {
		for _, g := range sc.Goals {
			got[sc.Name] = append(got[sc.Name], g.String())
		}
		for _, s := range sc.Subjects {
			for _, g := range s.Goals {
				got[sc.Name] = append(got[sc.Name], s.Name+" "+g.String())
			}
		}
	}
	for scenario, want := range map[string][]string{
		"echo-1k/1": {"reads <= 1.00x of kitex-pool", "sleeps <= 1.00x of kitex-mux"},
		"echo-100/100": {"both_us <= 0.20x of kitex-pool", "p99_us <= 1.00x of kitex-mux", "slipstream-on-kitex client_us <= 0.50x of kitex-pool",
			"slipstream-on-kitex-mux client_us <= 0.50x of kitex-mux", "slipstream-on-apache client_us <= 0.50x of apache", "kitex-pool-on-slipstream server_us <= 0.60x of kitex-pool"},
		"echo-1k/1000":   {"both_us <= 0.25x of kitex-mux", "p99_us <= 1.00x of kitex-pool"},
		"echo-32k/100":   {"both_us <= 0.60x of kitex-pool"},
		"sleep-1ms/100":  {"slipstream-on-kitex p99_us <= 1.10x of kitex-pool", "slipstream-on-apache p99_us <= 1.10x of apache"},
		"sleep-10ms/100": {"slipstream-on-kitex-mux p99_us <= 1.10x of kitex-mux"},
		"mixed-1m/2k":    {"p99_us <= 3.00x of slipstream-alone"},
		"stream/1":       {"both_us <= 0.50x of kitex", "both_us <= 0.50x of grpc-go"},
		"stream-out/100": {"both_us <= 0.50x of kitex", "both_us <= 0.50x of grpc-go"},
		"frontend/64":    {"server_us <= 1.20x of redis-frontend"},
	} {
		for _, goal := range want {
			if !slices.Contains(got[scenario], goal) {
				t.Errorf("%s has no goal %q, but %q", scenario, goal, got[scenario])
			}
		}
	}
}

func TestFiguresOfBothSidesAreAdded(t *testing.T) {
	r := &load.Result{Completed: 10, Elapsed: time.Second, Service: new(load.Histogram)}
	r.Cost = load.Cost{Client: 10 * 3 * time.Microsecond, Server: 10 * 2 * time.Microsecond, Mallocs: 50, Bytes: 5000, Counters: map[string]float64{
		loadproc.Mallocs: 40, loadproc.AllocatedBytes: 4000,
		rpcload.ClientReads: 10, rpcload.ServerReads: 20, rpcload.ClientSleeps: 5, rpcload.ServerSleeps: 10,
	}}
	s := sampleOf(loadproc.Outcome{Result: r})
	for metric, want := range map[load.Metric]float64{
		load.ClientUS: 3, load.ServerUS: 2, bothUS: 5, clientAllocs: 5, serverAllocs: 4, load.Allocs: 9, load.BytesOp: 900, reads: 3, sleeps: 1.5,
	} {
		if got := s.Values[metric]; got != want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
	r.Completed = 0
	if s := sampleOf(loadproc.Outcome{Result: r}); s.Values[bothUS] != 0 {
		t.Errorf("without calls, both_us is %v", s.Values[bothUS])
	}
}

func TestCheckPrintsTheTableAndJudgesAllocations(t *testing.T) {
	dir := t.TempDir()
	raw := `{"scenario":"echo-1k/100","subject":"slipstream","values":{"rps":100000,"client_us":4,"server_us":3,"both_us":7,"p50_us":900,"client_allocs":5.2,"server_allocs":4.9,"reads":0.5}}
{"scenario":"echo-1k/100","subject":"kitex-pool","values":{"rps":50000,"client_us":10,"server_us":9,"both_us":19,"p50_us":1800,"client_allocs":20,"server_allocs":18,"reads":null}}
{"scenario":"echo-1k/100","verdict":"met"}
`
	if err := os.MkdirAll(filepath.Join(dir, "raw"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "raw", calls.name+".jsonl"), []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &harness{plan: &calls, place: command.Place{Results: dir}}
	rows := []load.Row{{Scenario: "echo-1k/100", Subject: load.Ours}, {Scenario: "echo-1k/100", Subject: kitexPool}}
	var b strings.Builder
	if err := h.Check(&b, rows); err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(b.String()) {
		found = append(found, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"scenario subject calls/s client us server us both us p50 us p90 us p99 us p999 us c.allocs s.allocs reads sleeps",
		"echo-1k/100 slipstream 100000 4.00 3.00 7.00 900 - - - 5.2 4.9 0.50 -",
		"echo-1k/100 kitex-pool 50000 10.00 9.00 19.00 1800 - - - 20.0 18.0 - -",
		"echo-1k/100: client_allocs <= 2 in addition to the user's values: met (2.20)",
		"echo-1k/100: server_allocs <= 2 in addition to the user's values: missed (2.90)",
	}
	if !slices.Equal(found, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
	b.Reset()
	if err := calls.writeMarkdown(&b, h.place); err != nil || !strings.Contains(b.String(), "kitex-pool") {
		t.Errorf("as Markdown: %v\n%s", err, &b)
	}
	rows[0].Errors = 3
	if err := h.Check(io.Discard, rows); err == nil || !strings.Contains(err.Error(), "3 requests failed") {
		t.Errorf("got error %v", err)
	}
}

func TestWhatTheProgramsAreBuiltFromIsThere(t *testing.T) {
	w := workshop.Workshop{Dir: t.TempDir(), Source: source}
	if err := w.Module("/root/of/module/bench"); err != nil {
		t.Fatal(err)
	}
	if err := generators["ours"](t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for _, name := range programs {
		if generators[name] == nil {
			t.Errorf("nothing generates the code of %s", name)
		}
		if err := w.CopyTo("program/"+name+".go", name+"/main.go"); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]string{
		"go.mod":                  "/bench => /root/of/module/bench\n",
		"gen/ours/ours_thrift.go": `Name: "sleep", Idempotent: true`,
		"kitex/main.go":           "package main",
	} {
		text, err := os.ReadFile(filepath.Join(w.Dir, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, want text that contains %q", name, err, want)
		}
		if strings.Contains(string(text), workshop.Ignored) {
			t.Errorf("%s is still ignored by the go command", name)
		}
	}
	for _, s := range slices.Concat(pairings, messagePairings, chainPairings, streamPairings) {
		for _, side := range []side{s.client, s.server} {
			if !slices.Contains(programs, side.program) {
				t.Errorf("%s needs a program %s", s.name, side.program)
			}
		}
	}
}

// Code that needs generated packages is compiled only when the suite runs. It must be formatted
// like the rest.
func TestCodeForTheProgramsIsFormatted(t *testing.T) {
	out, err := exec.Command("gofmt", "-l", "program").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("gofmt: %v\n%s", err, out)
	}
}

// Every subject of a scenario of each kind gets right answers. The test generates and builds the
// code of all programs whose tools are installed:
//
//	cd bench && BENCH_GENERATE=1 go test ./internal/rpcsuite
func TestSubjects(t *testing.T) {
	if os.Getenv("BENCH_GENERATE") == "" {
		t.Skip("BENCH_GENERATE is not set: building the code of all rivals takes minutes")
	}
	module, err := proc.BenchModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(&calls, new(command.Flags), command.Place{Module: module, Scratch: t.TempDir()}, os.Stderr)
	h.window, h.warmUp = 50*time.Millisecond, 50*time.Millisecond
	for _, err := range h.missing {
		t.Log(err)
	}
	chosen := []string{"echo-100/1", "sleep-1ms/100", "slow-1pct/16", "rate-1k/5k", "echo-1k-tls/1", "mixed-1m/2k", "message-1k/100", "message-10m/4",
		"chain/100", "stream/1", "stream/100", "stream-out/100"}
	messenger, server := *h, *h // with the same programs
	messenger.plan, server.plan = &messages, &services
	for _, sc := range slices.Concat(h.Scenarios(), messenger.Scenarios(), server.Scenarios()) {
		if !slices.Contains(chosen, sc.Name) {
			continue
		}
		for _, s := range sc.Subjects {
			t.Run(sc.Name+"/"+s.Name, func(t *testing.T) {
				sample, err := s.Run(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				if sample.Errors > 0 || !(sample.Values[load.RPS] > 0) || !(sample.Values[bothUS] > 0) {
					t.Errorf("%d errors (%s), %v", sample.Errors, sample.ErrorSample, sample.Values)
				}
			})
		}
	}
}
