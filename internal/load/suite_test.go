package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// madeUp returns a subject whose server cost is base plus some noise.
func madeUp(name string, base, noise float64, log *[]string) Subject {
	rng := rand.New(rand.NewPCG(uint64(len(name)), 4))
	return Subject{Name: name, Run: func(context.Context, int) (Sample, error) {
		if log != nil {
			*log = append(*log, name)
		}
		cost := base * math.Exp(noise*rng.NormFloat64())
		s := Sample{Values: map[Metric]float64{ServerUS: cost, RPS: 1e6 / cost}}
		if name == "article" {
			s.Doubts = []string{"generator starved"}
		}
		return s, nil
	}}
}

func comparison(name string, noise float64, log *[]string) Scenario {
	return Scenario{
		Name: name, Primary: ServerUS,
		Subjects: []Subject{
			madeUp(Ours, 16, noise, log), madeUp(Control, 16, noise, log),
			madeUp("net/http", 30, noise, log), madeUp("article", 40, noise, log),
		},
		Goals: []Goal{{ServerUS, "article", 0.85}, {RPS, "", 1}},
	}
}

func TestSuiteInterleavesAndStores(t *testing.T) {
	dir := t.TempDir()
	var log []string
	var progress bytes.Buffer
	suite := Suite{Name: "fake", Scenarios: []Scenario{comparison("hit/1", 0.01, &log), comparison("hit/16", 0.01, nil)}}
	report, err := suite.Run(t.Context(), Options{Directory: dir, Command: "make bench SUITE=fake", Progress: &progress, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	orders := map[string]bool{}
	for round := 0; round*4 < len(log); round++ {
		of := log[round*4 : round*4+4]
		orders[strings.Join(of, " ")] = true
		seen := map[string]bool{}
		for _, name := range of {
			seen[name] = true
		}
		if len(seen) != 4 {
			t.Errorf("round %d ran %v, want every subject once", round, of)
		}
	}
	if len(log) != 4*minRounds {
		t.Errorf("%d rounds with a stable control, want %d", len(log)/4, minRounds)
	}
	if len(orders) < 2 {
		t.Error("every round had the same order")
	}
	rows, err := ReadRows(filepath.Join(dir, "fake.json"))
	if err != nil || len(rows) != 8 {
		t.Fatalf("%d rows, %v, want 8", len(rows), err)
	}
	ours := rows[0]
	if ours.Subject != Ours || ours.Rounds != minRounds || math.Abs(*ours.ServerUS-16) > 0.5 || ours.P50US != nil {
		t.Errorf("row of ours: %+v", ours)
	}
	if ours.RatioLo == nil || *ours.RatioLo > 16.0/30 || *ours.RatioHi < 16.0/30 || *ours.RatioHi > 0.6 {
		t.Errorf("ratio of ours %v to %v, want about %.3f: net/http is the best rival", *ours.RatioLo, *ours.RatioHi, 16.0/30)
	}
	for _, row := range rows[1:4] {
		if row.RatioLo != nil || row.RatioHi != nil {
			t.Errorf("%s has a ratio", row.Subject)
		}
	}
	for _, v := range report.Verdicts {
		if v.Outcome != Met {
			t.Error(v)
		}
	}
	if len(report.Verdicts) != 4 || len(report.Ratios) != 6 {
		t.Errorf("%d verdicts and %d ratios, want 4 and 6", len(report.Verdicts), len(report.Ratios))
	}
	var text bytes.Buffer
	if err := report.WriteText(&text); err != nil || !strings.Contains(text.String(), "hit/1: questionable latency: article (6 of 6 rounds); for example: generator starved") {
		t.Errorf("%v, text\n%s", err, &text)
	}
	if !strings.Contains(progress.String(), "round 6 of 6 to 31") || !strings.Contains(progress.String(), "seed 3") {
		t.Errorf("progress:\n%s", &progress)
	}
}

// The names of the columns must not change, because programs read them.
func TestRowColumns(t *testing.T) {
	data, err := json.Marshal(newRow("s", "c/1", Ours, []Sample{{Values: map[Metric]float64{RPS: 10}, Errors: 2}, {Errors: 1}}, RPS))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"suite":"s","scenario":"c/1","subject":"slipstream","rounds":2,"rps":10,"client_us":null,"server_us":null,` +
		`"p50_us":null,"p99_us":null,"p999_us":null,"ns_op":null,"bytes_op":null,"allocs":null,"errors":3,"spread":null,"ratio_lo":null,"ratio_hi":null}`
	if string(data) != want {
		t.Errorf("row\n%s, want\n%s", data, want)
	}
}

func TestPartOfASuiteReplacesItsRowsOnly(t *testing.T) {
	dir := t.TempDir()
	suite := Suite{Name: "fake", Scenarios: []Scenario{comparison("hit/1", 0.01, nil), comparison("hit/16", 0.01, nil), comparison("miss/1", 0.01, nil)}}
	opts := Options{Directory: dir, Progress: new(bytes.Buffer), Seed: 1, Rounds: 6}
	if _, err := suite.Run(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	opts.Filter, opts.Rounds = "hit/1", 7
	if _, err := suite.Run(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	rows, err := ReadRows(filepath.Join(dir, "fake.json"))
	if err != nil || len(rows) != 12 {
		t.Fatalf("%d rows, %v, want 12", len(rows), err)
	}
	for i, row := range rows {
		want, rounds := suite.Scenarios[i/4].Name, 6
		if want == "hit/1" {
			rounds = 7
		}
		if row.Scenario != want || row.Rounds != rounds {
			t.Errorf("row %d is %s with %d rounds, want %s with %d", i, row.Scenario, row.Rounds, want, rounds)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "raw", "fake.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range bytes.Lines(raw) {
		var l struct {
			Scenario, Subject, Commit, Command, Go, Kernel, CPU string
			Values                                              map[string]float64
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if l.Go == "" || l.Kernel == "" || l.Commit == "" || l.CPU == "" {
			t.Fatalf("line without its origin: %s", line)
		}
		if l.Subject != "" {
			counts[l.Scenario]++
		}
	}
	if counts["hit/1"] != 28 || counts["hit/16"] != 24 || counts["miss/1"] != 24 {
		t.Errorf("raw rounds %v, want 28, 24 and 24", counts)
	}

	// The rows of a scenario that the suite no longer has are removed from the file.
	suite.Scenarios = suite.Scenarios[:2]
	opts.Filter = "hit/16"
	if _, err := suite.Run(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	if rows, _ = ReadRows(filepath.Join(dir, "fake.json")); len(rows) != 8 {
		t.Errorf("%d rows after a scenario was removed, want 8", len(rows))
	}
}

func TestChoose(t *testing.T) {
	suite := Suite{Name: "s", Scenarios: []Scenario{{Name: "hit/1"}, {Name: "hit/16"}, {Name: "miss/1"}}}
	for filter, want := range map[string]string{
		"": "hit/1 hit/16 miss/1", "hit/1": "hit/1", "hit": "hit/1 hit/16", "miss/1, hit/16": "hit/16 miss/1",
		"/1": "hit/1 miss/1", "/1,hit": "hit/1 hit/16 miss/1",
	} {
		chosen, err := suite.choose(filter)
		var names []string
		for _, sc := range chosen {
			names = append(names, sc.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%q chose %q, %v, want %q", filter, got, err, want)
		}
	}
	if _, err := suite.choose("cold"); err == nil || !strings.Contains(err.Error(), "hit/16") {
		t.Errorf("unknown scenario: %v, want an error that lists the names", err)
	}
}

// A variant has its own goals, but the control of ours.
func TestGoalsOfAVariant(t *testing.T) {
	sc := comparison("hit/1", 0.01, nil)
	v := madeUp("slipstream-slow", 36, 0.01, nil)
	v.Variant, v.Goals = true, []Goal{{ServerUS, "", 1.1}, {ServerUS, "article", 1}, {ServerUS, "net/http", 1.1}}
	sc.Subjects = append(sc.Subjects, v)
	report, err := Suite{Name: "fake", Scenarios: []Scenario{sc}}.Run(t.Context(), Options{Directory: t.TempDir(), Progress: new(bytes.Buffer), Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range report.Verdicts {
		got = append(got, v.Subject+" "+v.Goal.Rival+" "+string(v.Outcome))
	}
	const want = "slipstream article met, slipstream net/http met, slipstream-slow net/http missed, slipstream-slow article met"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("verdicts %s, want %s", s, want)
	}
	if text := report.Verdicts[2].String(); !strings.HasPrefix(text, "hit/1: slipstream-slow server_us <= 1.10x of net/http: missed (ratio 1.2") {
		t.Errorf("verdict %q", text)
	}
}

// If the control never becomes stable, all rounds are used, and the verdict is "cannot tell".
func TestNoisyControl(t *testing.T) {
	suite := Suite{Name: "fake", Scenarios: []Scenario{comparison("hit/1", 0.8, nil)}}
	report, err := suite.Run(t.Context(), Options{Directory: t.TempDir(), Progress: new(bytes.Buffer), Seed: 9, MaxRounds: 12})
	if err != nil {
		t.Fatal(err)
	}
	if report.Rows[0].Rounds != 12 || len(report.Verdicts) != 2 {
		t.Fatalf("%d rounds, %d verdicts", report.Rows[0].Rounds, len(report.Verdicts))
	}
	for _, v := range report.Verdicts {
		if v.Outcome != CannotTell {
			t.Error(v)
		}
	}
}

func TestSuiteWithoutRivals(t *testing.T) {
	closed := 0
	suite := Suite{Name: "fake", Scenarios: []Scenario{{
		Name: "cold/10", Primary: RPS, Rounds: 2, Subjects: []Subject{madeUp(Ours, 5, 0, nil)},
		Close: func() error { closed++; return nil },
	}}}
	report, err := suite.Run(t.Context(), Options{Directory: t.TempDir(), Progress: new(bytes.Buffer), Rounds: 9})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != 1 || report.Rows[0].Rounds != 2 || report.Rows[0].RatioLo != nil || closed != 1 {
		t.Errorf("rows %+v, closed %d times", report.Rows, closed)
	}
	var text, table bytes.Buffer
	if err := report.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := WriteMarkdown(&table, report.Rows); err != nil {
		t.Fatal(err)
	}
	const want = "**cold/10**\n\n| subject | requests/s | server us | spread | errors | rounds |\n|---|---:|---:|---:|---:|---:|\n| slipstream | 200000 | 5 | 0 | 0 | 2 |\n\n"
	if table.String() != want {
		t.Errorf("table\n%s, want\n%s", &table, want)
	}
	if !strings.Contains(text.String(), "cold/10") {
		t.Errorf("text\n%s", &text)
	}
}

func TestSuiteReportsASubjectThatFails(t *testing.T) {
	broken := errors.New("no such server")
	suite := Suite{Name: "fake", Scenarios: []Scenario{{
		Name: "hit/1", Primary: RPS,
		Subjects: []Subject{{Name: Ours, Run: func(context.Context, int) (Sample, error) { return Sample{}, broken }}},
	}}}
	if _, err := suite.Run(t.Context(), Options{Directory: t.TempDir(), Progress: new(bytes.Buffer)}); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}
