package mix

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mutant: mix-weights-are-equal
func TestOperationsAreChosenByWeight(t *testing.T) {
	w := WeightsOf([]Operation{{Weight: 1}, {Weight: 5}, {Weight: 4}})
	random := rand.New(rand.NewPCG(1, 2))
	var chosen [3]int
	for range 100_000 {
		chosen[w.Choose(random)]++
	}
	for i, share := range []int{10, 50, 40} {
		if got := chosen[i] / 1000; got < share-1 || got > share+1 {
			t.Errorf("operation %d has %d %%, want %d", i, got, share)
		}
	}
	if n := WeightsOf([]Operation{{Weight: 7}}).Choose(nil); n != 0 { // needs no random number
		t.Errorf("the only operation is %d", n)
	}
}

func TestDescriptions(t *testing.T) {
	a, b, c := Operation{Name: "a", Weight: 1}, Operation{Name: "b", Weight: 2}, Operation{Name: "c"}
	for want, all := range map[string][]Operation{
		"a":                          {a},
		"a and b, 1 to 2,":           Of(a, b, c),
		"a, b and a 2, 1 to 2 to 1,": {a, b, a},
		"5 operations":               {a, a, a, a, a},
	} {
		if got := Describe(all); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// mutant: mix-warm-up-counts
func TestFiguresOfTheWindow(t *testing.T) {
	r := NewRecorder([]Operation{{Name: "a", Weight: 3}, {Name: "b", Weight: 1}})
	read := func() {
		t.Helper()
		if _, err := r.Counters()[0].Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	one, two := r.New(), r.New()
	one.End(t.Context(), 0, time.Now(), nil)
	read()
	began := one.Begin()
	one.End(t.Context(), 0, began.Add(-time.Second), nil)
	two.EndBatch(t.Context(), []int{0, 1, 1}, began, []error{nil, errors.New("first"), errors.New("second")})
	two.End(ended, 1, began, errors.New("cut off"))
	read()
	all := r.Figures()
	if a := all[0]; a.Name != "a" || a.Weight != 3 || a.Completed != 2 || a.Failed != 0 || a.Service.Count() != 2 || a.Service.Max() < time.Second {
		t.Errorf("%+v", a)
	}
	if b := all[1]; b.Completed != 0 || b.Failed != 2 || b.FirstFailed != "first" || b.Service.Count() != 0 {
		t.Errorf("%+v", b)
	}
	var none *Recorder
	record := none.New()
	record.End(t.Context(), 0, record.Begin(), nil)
	record.EndBatch(t.Context(), nil, record.Begin(), nil)
	if none.Figures() != nil || none.Counters() != nil || record != nil {
		t.Error("a nil recorder has figures")
	}
}

func loadText(t *testing.T, text string, fields []string) ([]Operation, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mix.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path, fields)
}

func TestWorkloadFiles(t *testing.T) {
	all, err := loadText(t, `{"operations": [
		{"weight": 9, "command": ["GET", "__key__"]},
		{"command": ["DEL", "a b"], "name": "remove"}
	]}`, Commands)
	if err != nil || len(all) != 2 || all[0].Weight != 9 || all[1].Weight != 1 || all[1].Name != "remove" || strings.Join(all[1].Command, ";") != "DEL;a b" {
		t.Errorf("%+v, %v", all, err)
	}
	if err := all[1].Wrong(errors.New("no")); !strings.HasSuffix(err.Error(), "mix.json:3:15: no") {
		t.Errorf("%v", err)
	}
	all, err = loadText(t, `{"operations":[{"method":"POST","path":"/a?b","header":["A: b"],"body":"x","status":"2xx"},{}]}`, Requests)
	if err != nil || len(all) != 2 || all[0].Method != "POST" || all[0].Path != "/a?b" || all[0].Header[0] != "A: b" || all[0].Body != "x" || all[0].Status != "2xx" {
		t.Errorf("%+v, %v", all, err)
	}
	if err := (&Operation{}).Wrong(os.ErrNotExist); err != os.ErrNotExist {
		t.Errorf("the error of an operation without a file: %v", err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.json"), Commands); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// Errors name line and column, from 1, of what is wrong.
//
// mutant: mix-columns-from-zero
func TestMistakesOfWorkloadFiles(t *testing.T) {
	for _, tc := range []struct{ text, problem string }{
		{"", ":1:1: unexpected end of JSON input; expected JSON"},
		{"{\n  \"operations\": [}", ":2:18: invalid character '}'"},
		{`[]`, `:1:1: expected {"operations"`},
		{`{}`, `:1:1: no operations; expected {"operations"`},
		{`{"operations": 7}`, ":1:16: expected a list of operations"},
		{`{"operations": []}`, ":1:16: an empty list; expected at least one"},
		{`{"operation": []}`, `:1:2: the field "operation"; expected only operations`},
		{"{\"operations\": [\n{\"command\": [\"a\"]}], \"operations\": []}", ":2:22: the field \"operations\"; expected only operations, once"},
		{`{"operations": [7]}`, ":1:17: expected an operation in braces"},
		{`{"operations": [{"weight": 1}]}`, ":1:17: an operation without a command"},
		{"{\"operations\": [{\"command\": [\"é\"],\n \"wait\": 1}]}", `:2:2: the field "wait"; expected name, weight, command`},
		{`{"operations": [{"name": "é", "path": "/"}]}`, `:1:31: the field "path"`},
		{`{"operations": [{"command": ["a"], "command": ["b"]}]}`, `:1:36: the field "command"`},
		{`{"operations": [{"command": "a"}]}`, ":1:29: command: expected a list of words"},
		{`{"operations": [{"command": []}]}`, ":1:29: an empty command"},
		{`{"operations": [{"command": [""]}]}`, ":1:29: an empty command"},
		{`{"operations": [{"weight": 1.5}]}`, ":1:28: weight: expected a whole number"},
		{`{"operations": [{"weight": 0}]}`, ":1:28: weight 0; expected 1 to"},
		{`{"operations": [{"weight": 1000001}]}`, ":1:28: weight 1000001"},
		{`{"operations": [{"command": ["a"]}` + strings.Repeat(`,{"command": ["a"]}`, 1000) + `]}`, "more than 1000 operations"},
		{strings.Repeat(" ", maxFile+1), "the file has more than"},
	} {
		_, err := loadText(t, tc.text, Commands)
		if _, ok := errors.AsType[*FileError](err); !ok || !strings.Contains(err.Error(), tc.problem) {
			t.Errorf("%.80s: %v, want %q", tc.text, err, tc.problem)
		}
	}
}
