package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/workshop"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/measure"
	"github.com/slipstream-go/slipstream/internal/load"
)

// The test program starts itself as the measuring process.
func TestMain(m *testing.M) {
	if os.Getenv(stub) == "" {
		os.Exit(m.Run())
	}
	subjects := measure.Subjects{}
	subjects.Add("encode", load.Ours, func(string) (measure.Work, error) {
		return measure.Work{Run: func() {}, Check: func() error { return nil }, Size: 7}, nil
	})
	subjects.Add("encode", "kitex", func(string) (measure.Work, error) {
		return measure.Work{Run: func() {}, Check: func() error { return errors.New("a field is missing") }}, nil
	})
	subjects.Main()
}

const stub = "THRIFT_CODEC_STUB"

func TestASubjectIsAProcess(t *testing.T) {
	t.Setenv(stub, "1")
	t.Setenv("GOGC", "off")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sample, err := step{"encode", load.Ours, "1KB", 400}.measure(t.Context(), program, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	f, ok := sample.Details.(measure.Finding)
	if !ok || f.Size != 7 || f.GOGC != 400 || f.Live < live<<20 || f.Runs == 0 {
		t.Errorf("found %+v", sample.Details)
	}
	for _, m := range []load.Metric{load.NsOp, load.Allocs, load.BytesOp} {
		if _, ok := sample.Values[m]; !ok {
			t.Errorf("no %s in %v", m, sample.Values)
		}
	}
	for subject, want := range map[string]string{"kitex": "a field is missing", "nobody": "nobody"} {
		if _, err := (step{"encode", subject, "1KB", 100}).measure(t.Context(), program, time.Millisecond); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one that contains %q", subject, err, want)
		}
	}
}

func TestWhatTheProgramIsBuiltFromIsThere(t *testing.T) {
	w := newWorkshop(t.TempDir())
	if err := begin(w, "/root/of/module/bench"); err != nil {
		t.Fatal(err)
	}
	for _, r := range allRivals {
		if err := w.Copy("program/" + r.name + ".go"); err != nil {
			t.Error(err)
		}
		if err := stamp(w, r.name); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]string{
		"go.mod":                      "=> /root/of/module\n",
		"gen/ours/ours_thrift.go":     "\npackage ours\n",
		"pointers/apache/pointers.go": `p "` + modulePath + `/gen/apache"`,
		"shapes/shapes.go":            "package shapes",
		"measure/measure.go":          "package measure",
		"program/capnproto.go":        "package main",
	} {
		text, err := os.ReadFile(filepath.Join(w.Dir, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, want text that contains %q", name, err, want)
		}
		if strings.Contains(string(text), workshop.Ignored) {
			t.Errorf("%s is still ignored by the go command", name)
		}
	}
}

func TestGoalsNameSubjectsOfTheirScenario(t *testing.T) {
	h := &harness{rivals: allRivals}
	seen := make(map[string]bool)
	for _, sc := range h.Scenarios() {
		if seen[sc.Name] {
			t.Errorf("two scenarios are named %s", sc.Name)
		}
		seen[sc.Name] = true
		names := []string{""}
		for _, s := range sc.Subjects {
			if slices.Contains(names, s.Name) {
				t.Errorf("%s has two subjects %s", sc.Name, s.Name)
			}
			names = append(names, s.Name)
		}
		for _, s := range sc.Subjects {
			for _, g := range append(slices.Clone(s.Goals), sc.Goals...) {
				if !slices.Contains(names, g.Rival) || g.Ratio <= 0 || g.Metric != load.NsOp {
					t.Errorf("%s: goal %v of %s", sc.Name, g, s.Name)
				}
			}
		}
		if !slices.Contains(names, load.Ours) || !slices.Contains(names, load.Control) {
			t.Errorf("%s has the subjects %q", sc.Name, names)
		}
	}
	for _, b := range allocationBounds {
		if b.shape != "" && !seen[b.operation+"/"+b.shape] {
			t.Errorf("no scenario %s/%s", b.operation, b.shape)
		}
	}
}

func TestAllocationBoundsAreJudged(t *testing.T) {
	of := func(scenario, subject string, allocs float64) load.Row {
		return load.Row{Scenario: scenario, Subject: subject, Allocs: &allocs}
	}
	rows := []load.Row{of("decode-gogc100/20KB", load.Ours, 8.2), of("decode-gogc100/20KB", reused, 0.7), of("encode/1KB", load.Ours, 0.1), of("encode/1KB", "kitex", 3)}
	var b strings.Builder
	for _, bound := range allocationBounds {
		bound.judge(&b, rows)
	}
	const want = `encode/1KB: slipstream allocs <= 0: met (0)
decode-gogc100/20KB: slipstream allocs <= 8: met (8)
decode-gogc100/20KB: slipstream-reused allocs <= 0: missed (1)
`
	if b.String() != want {
		t.Errorf("got\n%s, want\n%s", &b, want)
	}
}

func TestAShapeThatIsNotTheArticlesIsRefused(t *testing.T) {
	for _, c := range []struct {
		s      step
		allocs float64
		ok     bool
	}{
		{step{"decode", "apache", "20KB", 100}, 1320, true},
		{step{"decode", "apache", "20KB", 100}, 1450, false},
		{step{"decode", "apache", "6MB", 400}, 340_000, false},
		{step{"decode", "apache", "1KB", 100}, 5, true},
		{step{"decode", "kitex", "20KB", 100}, 5, true},
		{step{"whole", "apache", "20KB", 100}, 5, true},
	} {
		if err := c.s.likeTheArticle(c.allocs); (err == nil) != c.ok {
			t.Errorf("%+v with %.0f: got %v", c.s, c.allocs, err)
		}
	}
}

func TestTablesShowRatiosWithIntervals(t *testing.T) {
	dir := t.TempDir()
	var raw strings.Builder
	for i := range 6 {
		for subject, ns := range map[string]float64{load.Ours: 100, "kitex": 200, "fastgo": 50} {
			fmt.Fprintf(&raw, `{"scenario":"encode/1KB","subject":%q,"values":{"ns_op":%g,"allocs":%d},"details":{"gogc":100}}`+"\n",
				subject, ns*(1+float64(i)/100), int(ns/200))
		}
	}
	raw.WriteString(`{"scenario":"encode/1KB","verdict":"met"}` + "\n")
	if err := os.MkdirAll(filepath.Join(dir, "raw"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "raw", suiteName+".jsonl"), []byte(raw.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := writeTables(&b, command.Place{Results: dir}); err != nil {
		t.Fatal(err)
	}
	const want = `**encode**, GOGC=100, 64 MiB of live heap in addition to the subject's

| | 1KB |
|---|---:|
| slipstream | 102 ns |
| fastgo | 2.00 (2.00-2.00) |
| kitex | 0.50 (0.50-0.50); 1 |

`
	if b.String() != want {
		t.Errorf("got\n%s, want\n%s", &b, want)
	}
}

// Code that needs generated packages is compiled only when the suite runs. It must be formatted
// like the rest.
func TestCodeForTheProgramIsFormatted(t *testing.T) {
	out, err := exec.Command("gofmt", "-l", "program").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("gofmt: %v\n%s", err, out)
	}
}

// Every subject of every scenario returns right results. The test generates and builds the code of
// all rivals whose tools are installed:
//
//	cd bench && BENCH_GENERATE=1 go test ./thrift-codec
func TestSubjects(t *testing.T) {
	if os.Getenv("BENCH_GENERATE") == "" {
		t.Skip("BENCH_GENERATE is not set: building the code of all rivals takes minutes")
	}
	module, err := proc.BenchModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{window: time.Millisecond, place: command.Place{Module: module, Scratch: t.TempDir()}, progress: os.Stderr}
	h.rivals, h.missing = available()
	for _, err := range h.missing {
		t.Log(err)
	}
	for _, sc := range h.Scenarios() {
		for _, s := range sc.Subjects {
			sample, err := s.Run(t.Context(), 1)
			if err != nil {
				t.Errorf("%s: %s: %v", sc.Name, s.Name, err)
				if h.program == "" {
					return
				}
				continue
			}
			t.Logf("%s: %s: %.0f ns, %.1f allocations", sc.Name, s.Name, sample.Values[load.NsOp], sample.Values[load.Allocs])
		}
	}
}
