package command

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipstream-go/slipstream/internal/load"
)

func parse(args ...string) (Flags, error) {
	var s Flags
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	if err := s.Register(flags, "2s"); err != nil {
		return s, err
	}
	return s, Parse(flags, args, io.Discard)
}

func TestFlagsComeFromTheEnvironment(t *testing.T) {
	t.Setenv("SCENARIO", "memory-hit/64")
	t.Setenv("QUICK", "1")
	t.Setenv("ROUNDS", "9")
	s, err := parse()
	if err != nil || s.Scenario != "memory-hit/64" || !s.Quick || s.Rounds != 9 {
		t.Errorf("%+v, %v", s, err)
	}
	if got, want := s.Typed("gateway"), "make bench SUITE=gateway SCENARIO=memory-hit/64 QUICK=1 ROUNDS=9"; got != want {
		t.Errorf("command %q, want %q", got, want)
	}
	t.Setenv("QUICK", "")
	t.Setenv("ROUNDS", "")
	if s, err = parse("-scenario", "cold-key"); err != nil || s.Quick || s.Rounds != 0 || s.Scenario != "cold-key" {
		t.Errorf("%+v, %v", s, err)
	}
	t.Setenv("ROUNDS", "many")
	if _, err := parse(); err == nil {
		t.Error("ROUNDS=many accepted")
	}
	t.Setenv("ROUNDS", "")
	if _, err := parse("memory-hit/64"); err == nil {
		t.Error("a scenario that was not given as a flag was ignored")
	}
}

func TestRestrict(t *testing.T) {
	scenarios := func() []load.Scenario {
		return []load.Scenario{
			{Name: "a", Subjects: []load.Subject{{Name: "x"}, {Name: "y"}, {Name: "z"}}},
			{Name: "b", Subjects: []load.Subject{{Name: "x"}}},
		}
	}
	s := Flags{Subjects: "y,z"}
	if got := s.Restrict(scenarios()); len(got) != 1 || got[0].Name != "a" || len(got[0].Subjects) != 2 {
		t.Errorf("%+v", got)
	}
	s.Subjects = ""
	if got := s.Restrict(scenarios()); len(got) != 2 || len(got[0].Subjects) != 3 {
		t.Errorf("%+v", got)
	}
}

// Results of only some subjects must not replace the results of all.
func TestResultsOfSomeSubjectsAreNotStored(t *testing.T) {
	s := Flags{Subjects: "x"}
	p, err := s.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rel, err := filepath.Rel(p.Scratch, p.Results); err != nil || rel != "results" {
		t.Errorf("results in %s, want them below %s", p.Results, p.Scratch)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.Scratch); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", p.Scratch, err)
	}
}
