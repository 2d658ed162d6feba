package measure

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func job(t *testing.T, j Job) *strings.Reader {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReader(string(text))
}

var sink []byte

func TestPerformCountsRunsAndAllocations(t *testing.T) {
	runs := uint64(0)
	s := Subjects{}
	s.Add("make", "ours", func(string) (Work, error) {
		return Work{Run: func() { runs++; sink = make([]byte, 1000) }, Check: func() error { return nil }, Size: 7}, nil
	})
	f, err := s.perform(job(t, Job{Operation: "make", Subject: "ours", GOGC: 100, WarmUp: time.Millisecond, Window: 5 * time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	if f.Runs < least || runs <= f.Runs || f.CPU < 0 || f.Elapsed < 5*time.Millisecond || f.Size != 7 || f.GOGC != 100 {
		t.Errorf("got %+v after %d runs", f, runs)
	}
	if each := float64(f.Objects) / float64(f.Runs); each < 1 || each > 50 {
		t.Errorf("%.1f objects a run, want about 1", each)
	}
}

func TestPerformRefusesWrongResults(t *testing.T) {
	wrong := errors.New("wrong")
	runs := 0
	s := Subjects{}
	s.Add("x", "always", func(string) (Work, error) {
		return Work{Run: func() {}, Check: func() error { return wrong }}, nil
	})
	s.Add("x", "later", func(string) (Work, error) {
		return Work{Run: func() { runs++ }, Check: func() error {
			if runs > 1 {
				return wrong
			}
			return nil
		}}, nil
	})
	s.Add("x", "never", func(string) (Work, error) { return Work{}, wrong })
	for _, name := range []string{"always", "later", "never"} {
		if _, err := s.perform(job(t, Job{Operation: "x", Subject: name})); !errors.Is(err, wrong) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	if _, err := s.perform(job(t, Job{Operation: "x", Subject: "nobody"})); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("an unknown subject: got error %v", err)
	}
}
