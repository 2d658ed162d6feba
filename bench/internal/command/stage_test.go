package command

import (
	"errors"
	"slices"
	"testing"
)

// props is a stage that records whether it was closed.
type props struct {
	name string
	log  *[]string
}

func (p props) Close() error {
	*p.log = append(*p.log, "close "+p.name)
	return nil
}

func TestStageIsSharedByTheSubjectsOfAScenario(t *testing.T) {
	var log []string
	var s Stage[props]
	build := func(name string, err error) func() (props, error) {
		return func() (props, error) {
			log = append(log, "build "+name)
			return props{name, &log}, err
		}
	}
	failure := errors.New("no server")
	if _, err := s.Open(build("a", failure)); !errors.Is(err, failure) {
		t.Errorf("error %v, want %v", err, failure)
	}
	for _, name := range []string{"b", "c"} { // two subjects of one scenario
		if got, err := s.Open(build(name, nil)); err != nil || got.name != "b" {
			t.Errorf("subject %s has stage %q, %v", name, got.name, err)
		}
	}
	for range 2 { // by the scenario and by the harness
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if got, err := s.Open(build("d", nil)); err != nil || got.name != "d" {
		t.Errorf("the next scenario has stage %q, %v", got.name, err)
	}
	want := []string{"build a", "close a", "build b", "close b", "build d"}
	if !slices.Equal(log, want) {
		t.Errorf("%q, want %q", log, want)
	}
}
