package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Like the harness, the test program starts itself as the measuring process.
func TestMain(m *testing.M) {
	child()
	os.Exit(m.Run())
}

// In one complete round, each subject serves the same values and has all figures.
func TestSubjects(t *testing.T) {
	const window = 20 * time.Millisecond
	for _, s := range append(scenario(window).Subjects, ladder(window).Subjects...) {
		sample, err := s.Run(t.Context(), 1)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		for _, m := range []load.Metric{load.NsOp, load.ServerUS, load.Allocs, load.BytesOp} {
			if !(sample.Values[m] > 0) {
				t.Errorf("%s: %s is %v", s.Name, m, sample.Values[m])
			}
		}
	}
	if _, err := measure(t.Context(), job{Subject: "nobody"}); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("a subject that does not exist: got error %v", err)
	}
}

func TestWrongAnswersAreErrors(t *testing.T) {
	right := func(w http.ResponseWriter, r *http.Request, change func(string) string) {
		var n int64
		if _, err := fmt.Sscanf(r.URL.Path, "/depts/%d", &n); err != nil {
			t.Error(err)
		}
		d := depts.Make(n)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(change(string(d.AppendJSON(nil)))))
	}
	for name, test := range map[string]struct {
		change func(string) string
		ok     bool
	}{
		"right":             {func(s string) string { return s }, true},
		"other white space": {func(s string) string { return " " + s + "\n" }, true},
		"another value":     {func(s string) string { return strings.Replace(s, `"mgr":1`, `"mgr":2`, 1) }, false},
		"not JSON":          {func(s string) string { return s[1:] }, false},
		"one member less":   {func(s string) string { return strings.Replace(s, `"loc":`, `"lod":`, 1) }, false},
	} {
		_, err := verified(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { right(w, r, test.change) }), nil, "")
		if (err == nil) != test.ok {
			t.Errorf("%s: got error %v, want one: %v", name, err, !test.ok)
		}
	}
	calls := 0
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		right(w, r, func(s string) string {
			if calls > 2*depts.Count {
				return s + " "
			}
			return s
		})
	})
	questions, err := verified(handler, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repeat(handler, questions, time.Second, false); err == nil {
		t.Error("answers that changed in the window passed")
	}
}
