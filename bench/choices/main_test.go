package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// Like the command, the test program starts itself for the processes that measure.
func TestMain(m *testing.M) {
	children()
	os.Exit(m.Run())
}

// testBench has windows that are too short for meaningful results.
func testBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{
		options:     options{},
		path:        filepath.Join(t.TempDir(), "choices.jsonl"),
		environment: load.Environment{Commit: "c0ffee", Command: "make"},
		stage:       newStage(t.TempDir()),
		progress:    io.Discard,
	}
	b.options.Rounds, b.options.Seed, b.options.Duration = 2, 1, 10*time.Millisecond
	b.options.quick = true
	t.Cleanup(func() {
		if err := b.stage.close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// Every load and every variant of every question runs once, but not in all combinations.
func TestEveryQuestionRuns(t *testing.T) {
	b := testBench(t)
	for _, q := range questions() {
		t.Run(q.name, func(t *testing.T) {
			for i := range max(len(q.loads), len(q.variants)) {
				v, l := q.variants[i%len(q.variants)], q.loads[i%len(q.loads)]
				b.options.Duration = 10 * time.Millisecond
				if l.callers > 200 {
					b.options.Duration = 60 * time.Millisecond // every engine must have been started in this time
				}
				sample, err := b.measure(t.Context(), q, v, l, 1)
				for err != nil && strings.Contains(err.Error(), "no request was sent") && b.options.Duration < 10*time.Second {
					b.options.Duration *= 2 // a busy machine needs longer for the first request
					sample, err = b.measure(t.Context(), q, v, l, 1)
				}
				if err != nil {
					t.Fatalf("%s, %s: %v", v.name, l.name, err)
				}
				if sample.Errors > 0 {
					t.Errorf("%s, %s: %d errors: %s", v.name, l.name, sample.Errors, sample.ErrorSample)
				}
				wanted := []load.Metric{load.ClientUS, load.ServerUS, load.P50US, load.P99US, load.RPS}
				if q.micro != nil {
					wanted = []load.Metric{load.NsOp, load.ClientUS}
				}
				for _, m := range wanted {
					if !(sample.Values[m] > 0) {
						t.Errorf("%s, %s: %s is %v", v.name, l.name, m, sample.Values[m])
					}
				}
			}
			if err := b.stage.endDelays(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestQuestionsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, q := range questions() {
		if seen[q.name] || q.asks == "" {
			t.Errorf("question %q is listed twice or has no text", q.name)
		}
		seen[q.name] = true
		cells := map[place]bool{}
		for _, v := range q.variants {
			for _, l := range q.loads {
				cells[place{v.name, l.name}] = true
			}
		}
		if len(cells) != len(q.variants)*len(q.loads) {
			t.Errorf("%s: %d cells of %d variants and %d loads: names are not unique", q.name, len(cells), len(q.variants), len(q.loads))
		}
		if !cells[place{q.base, q.loads[0].name}] {
			t.Errorf("%s: no variant %q", q.name, q.base)
		}
		// 0.15 s is for the start and the end of a process.
		window, warmUp := options{}.times()
		if whole := time.Duration(usualRounds*len(cells)) * (window + warmUp + 150*time.Millisecond); whole > 3*time.Minute {
			t.Errorf("%s takes about %v", q.name, whole)
		}
	}
}

// counted returns the counters of the engines of one run.
func (b *bench) counted(t *testing.T, q question, v variant, l shape) (map[string]float64, error) {
	t.Helper()
	sample, err := b.measure(t.Context(), q, v, l, 1)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(sample.Details)
	if err != nil {
		return nil, err
	}
	var d struct {
		Load struct {
			Completed float64
			Cost      struct{ Counters map[string]float64 }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	d.Load.Cost.Counters["completed"] = d.Load.Completed
	return d.Load.Cost.Counters, nil
}

// The variants must reach the engine in the other process.
func TestVariantsTakeEffect(t *testing.T) {
	b := testBench(t)
	b.options.Duration = 50 * time.Millisecond
	count := func(question, variant, shape, counter string) float64 {
		t.Helper()
		q, err := selected(questions(), question)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range q[0].variants {
			for _, l := range q[0].loads {
				if v.name != variant || l.name != shape {
					continue
				}
				counters, err := b.counted(t, q[0], v, l)
				if err != nil {
					t.Fatal(err)
				}
				return counters[counter] / counters["completed"]
			}
		}
		t.Fatalf("%s has no %s under %s", question, variant, shape)
		return 0
	}
	for _, c := range []struct {
		question, variant, shape, counter string
		low, high                         float64
	}{
		{"yield", "never", "closed/128", countYields, 0, 0},
		{"yield", "always", "closed/16", countYields, 0.01, 2},
		{"solo", "never", "closed/1", countSolo, 0, 0},
		{"solo", "8", "closed/1", countSolo, 0.5, 2},
		{"k", "k=1", "closed/128", countWrites, 0, 0.25},
		{"decode", onReader, "closed/128", countSolo, 0, 0},
	} {
		if got := count(c.question, c.variant, c.shape, c.counter); got < c.low || got > c.high {
			t.Errorf("%s, %s, %s: %.3f %s a request, want %v to %v", c.question, c.variant, c.shape, got, c.counter, c.low, c.high)
		}
	}
}

func TestAskStoresEveryRound(t *testing.T) {
	b := testBench(t)
	q := question{
		name: "yield", base: "default", variants: []variant{{name: "default"}, {name: "never"}},
		loads: closed(1, 16),
	}
	old := []row{{Question: "yield", Variant: "gone", Load: "closed/1", Round: 1}, {Question: "solo", Variant: "64", Round: 1}, {Question: "none asks"}}
	if err := storeRows(b.path, "", old); err != nil {
		t.Fatal(err)
	}
	rows, err := b.ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := readRows(b.path)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 8 || len(stored) != 9 || stored[8].Question != "solo" {
		t.Fatalf("%d rows, %d stored, want 8 and 9: rows of another question must be kept", len(rows), len(stored))
	}
	cells := map[place]int{}
	for _, r := range stored[:8] {
		if r.Suite != suiteName || r.Commit != "c0ffee" || r.Command != "make" || r.Seed != 1 || r.Values[load.ClientUS] <= 0 {
			t.Errorf("row %+v", r)
		}
		cells[place{r.Variant, r.Load}] += r.Round
	}
	for p, sum := range cells {
		if sum != 3 {
			t.Errorf("%v has rounds that add up to %d, want 1 and 2", p, sum)
		}
	}
}

// A wrong value in the server must be reported, and must appear in the rows.
func TestWrongRepliesAreErrors(t *testing.T) {
	b := testBench(t)
	address, err := b.stage.open(t.Context(), smallValue, 0)
	if err != nil {
		t.Fatal(err)
	}
	e, err := setting{}.open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	// Every key gets its neighbor's value.
	for i := range keysOf(smallValue) {
		c := e.Acquire()
		c.Frame = appendSet(c.Frame[:0], keyName(smallValue, i), valueOf(keyName(smallValue, i+1), smallValue))
		if err := e.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		c.Release()
	}
	for _, decode := range []string{onCaller, onReader, byCompleter} {
		q := question{name: "decode", base: "x", variants: []variant{{name: "x", setting: setting{Decode: decode}}}, loads: closed(2)}
		rows, err := b.ask(t.Context(), q)
		if err == nil || !strings.Contains(err.Error(), "want 16 bytes") || len(rows) != 2 || rows[0].Errors == 0 {
			t.Errorf("decode %q: error %v, %d rows", decode, err, len(rows))
		}
	}
}

func TestFlags(t *testing.T) {
	o, err := parse([]string{"-question", "k", "-quick"}, io.Discard)
	if err != nil || o.Rounds != 1 || o.Seed == 0 || o.typed() != "make bench SUITE=choices SCENARIO=k QUICK=1 ROUNDS=1" {
		t.Errorf("%+v, %q, %v", o, o.typed(), err)
	}
	if o, err = parse([]string{"-question=k", "-duration", "2s"}, io.Discard); err != nil || o.typed() != "cd bench && go run ./choices -question=k -quick=false -rounds=3 -duration=2s" {
		t.Errorf("%q, %v", o.typed(), err)
	}
	if o, err = parse(nil, io.Discard); err != nil || o.Rounds != usualRounds {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{{"-rounds", "-1"}, {"-duration", "-1s"}, {"word"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
	if _, err := selected(questions(), "k,kk"); err == nil {
		t.Error("question kk was found")
	}
	if qs, err := selected(questions(), "k"); err != nil || len(qs) != 1 || qs[0].name != "k" {
		t.Errorf("%d questions are named k (%v)", len(qs), err)
	}
}
