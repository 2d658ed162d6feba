package command

import (
	"context"
	"errors"
	"flag"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// scripted is a harness with one scenario, whose subjects fail the given number of requests.
type scripted struct {
	failed uint64
	closed *int
}

func (h scripted) Scenarios() []load.Scenario {
	run := func(context.Context, int) (load.Sample, error) {
		return load.Sample{Values: map[load.Metric]float64{load.RPS: 1}, Errors: h.failed}, nil
	}
	return []load.Scenario{{Name: "a/1", Primary: load.RPS, Subjects: []load.Subject{{Name: load.Ours, Run: run}, {Name: "rival", Run: run}}}}
}

func (h scripted) Check(_ io.Writer, rows []load.Row) error { return Failures(rows) }

func (h scripted) Close() error { *h.closed++; return nil }

// program is a suite with a scripted harness, with its own flag and an alternative action.
func program(failed uint64, closed *int, results *string) Suite {
	var other bool
	return Suite{
		Name: "scripted", Window: "2s", MaxRounds: 6,
		Register: func(flags *flag.FlagSet) { flags.BoolVar(&other, "other", false, "") },
		Open: func(_ *Flags, p Place, _ io.Writer) Harness {
			*results = p.Results
			return scripted{failed, closed}
		},
		Instead: func(_ context.Context, _ Place, stdout, _ io.Writer) (bool, error) {
			if other {
				_, err := io.WriteString(stdout, "something else")
				return true, err
			}
			return false, nil
		},
	}
}

func TestSuite(t *testing.T) {
	for _, name := range []string{"SCENARIO", "SUBJECTS", "QUICK", "ROUNDS"} {
		t.Setenv(name, "")
	}
	for _, c := range []struct {
		args       []string
		failed     uint64
		want       string // printed
		wantError  string
		wantOpened bool
	}{
		{[]string{"-rounds", "1", "-subjects", load.Ours}, 0, "a/1 ", "", true},
		{[]string{"-rounds", "1", "-subjects", load.Ours}, 3, "a/1 ", "3 requests failed", true},
		{[]string{"-subjects", "nobody"}, 0, "", "no scenario has a subject", true},
		{[]string{"-other", "-subjects", load.Ours}, 0, "something else", "", true},
		{[]string{"a/1"}, 0, "", "expected only flags", false},
	} {
		closed, results := 0, ""
		var out strings.Builder
		err := program(c.failed, &closed, &results).run(t.Context(), c.args, &out, io.Discard)
		if (err == nil) != (c.wantError == "") || err != nil && !strings.Contains(err.Error(), c.wantError) {
			t.Errorf("%q: error %v, want %q", c.args, err, c.wantError)
		}
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%q: printed %q, want output that contains %q", c.args, out.String(), c.want)
		}
		if (closed == 1) != c.wantOpened || filepath.Base(results) != "results" && c.wantOpened {
			t.Errorf("%q: closed %d times, results in %s", c.args, closed, results)
		}
	}
}

func TestSuiteParsesArguments(t *testing.T) {
	s := Suite{Name: "x", Window: "2s", Parsed: func(f *Flags, rest []string) error {
		if len(rest) != 1 {
			return errors.New("want one argument")
		}
		f.Scenario = rest[0]
		return nil
	}}
	if f, err := s.Parse([]string{"-quick", "a/1"}, io.Discard); err != nil || f.Scenario != "a/1" || !f.Quick {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := s.Parse(nil, io.Discard); err == nil {
		t.Error("a missing argument is accepted")
	}
}

func TestWindowsAndRounds(t *testing.T) {
	const usual, quick = 2 * time.Second, time.Second
	for want, f := range map[time.Duration]Flags{
		usual: {}, quick: {Quick: true}, 3 * time.Second: {Quick: true, Measurement: Measurement{Duration: 3 * time.Second}},
	} {
		if got := f.Window(usual, quick); got != want {
			t.Errorf("%+v: a window of %v, want %v", f, got, want)
		}
	}
	for _, c := range []struct {
		flags Flags
		want  int
	}{{Flags{}, 3}, {Flags{Quick: true}, 0}, {Flags{Measurement: Measurement{Rounds: 9}}, 0}} {
		if got := c.flags.Fixed(3); got != c.want {
			t.Errorf("%+v: %d rounds, want %d", c.flags, got, c.want)
		}
	}
}

// interrupted is a harness whose scenario is interrupted in a round.
type interrupted struct {
	scripted
	round  int
	cancel context.CancelFunc
}

func (h interrupted) Scenarios() []load.Scenario {
	scenarios := h.scripted.Scenarios()
	whole := scenarios[0].Subjects[0].Run
	scenarios[0].Subjects[0].Run = func(ctx context.Context, round int) (load.Sample, error) {
		sample, err := whole(ctx, round)
		if round == h.round {
			h.cancel()
			sample.Partial, err = "interrupted", ctx.Err()
		}
		return sample, err
	}
	return scenarios
}

// Check fails if there is anything to compare.
func (h interrupted) Check(_ io.Writer, rows []load.Row) error {
	if len(rows) > 0 {
		return errors.New("compared rows of a scenario that did not finish")
	}
	return nil
}

func TestAnInterruptedSuiteKeepsWhatItMeasured(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	place := Place{Results: t.TempDir()}
	var out strings.Builder
	s := Suite{Name: "scripted", MaxRounds: 6}
	err := s.measure(ctx, new(Flags), place, interrupted{round: 3, cancel: cancel}, &out, io.Discard)
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "compared") {
		t.Errorf("error %v, want the context's", err)
	}
	rows, err := load.ReadRows(filepath.Join(place.Results, load.PartialDirectory, "scripted.json"))
	if err != nil || len(rows) != 2 || rows[0].Partial == "" || rows[0].Rounds != 2 {
		t.Errorf("%v, rows %+v, want both subjects, marked", err, rows)
	}
	if whole, err := load.ReadRows(filepath.Join(place.Results, "scripted.json")); err != nil || whole != nil {
		t.Errorf("%v, rows %+v among the complete results", err, whole)
	}
	if got := strings.Count(out.String(), "(partial)"); got != 2 {
		t.Errorf("%d rows marked in\n%s", got, &out)
	}
}
