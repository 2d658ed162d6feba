package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

func quick(t *testing.T) *options {
	t.Helper()
	o, err := parse([]string{"-quick", "-out", filepath.Join(t.TempDir(), "raw.jsonl")}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Faults under load from end to end: the row has all figures, and ours does not break its promises in any scenario.
func TestFaultsUnderLoad(t *testing.T) {
	type one struct{ scenario, subject string }
	all := []one{{"migrate", "rueidis"}}
	for i := range scenarios {
		all = append(all, one{scenarios[i].name, load.Ours})
	}
	// In these scenarios, the servers always serve the affected slots.
	served := []string{"migrate", "roll"}
	for _, c := range all {
		t.Run(c.scenario+"/"+c.subject, func(t *testing.T) {
			t.Parallel()
			r, err := quick(t).run(t.Context(), t.TempDir(), c.subject, &scenarios[place(c.scenario)])
			if err != nil {
				t.Fatal(err)
			}
			if r.Requests < 300 || r.OthersCalls == 0 || r.OthersP99MS <= 0 || r.Reached <= 0 {
				t.Errorf("row %+v", r)
			}
			if (r.FirstMS == nil) != slices.Contains(served, c.scenario) {
				t.Errorf("first success after %v", r.FirstMS)
			}
			// On a busy machine, servers are considered dead. What Redis then loses counts as lost.
			if r.Unresolved != 0 || r.Wrong != 0 || r.Twice != 0 || r.Lost != 0 && r.Unasked == 0 {
				t.Errorf("%d calls did not return, %d wrong, %d twice, %d lost", r.Unresolved, r.Wrong, r.Twice, r.Lost)
			}
			if c.subject == load.Ours && (r.Denied != 0 || r.Reordered != 0 || c.scenario == "migrate" && r.Share > 0) {
				t.Errorf("%d denied, %d reordered, errors %v", r.Denied, r.Reordered, r.Errors)
			}
		})
	}
}

// A run that ends before the load has begun returns an error and stores nothing.
func TestEndedBeforeTheLoad(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	scratch := t.TempDir()
	if r, err := quick(t).run(ctx, scratch, load.Ours, &scenarios[0]); err == nil || r != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestAnalyze(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	call := func(caller, seq, from, to int, f fate) op {
		return op{Caller: int32(caller), Seq: int32(seq), Sent: at(from).UnixNano(), Took: at(to).Sub(at(from)), Fate: f}
	}
	l := &ledger{Ops: []op{
		call(0, 1, 0, 1, succeeded),         // lost by Redis
		call(0, 2, 1000, 1500, notSent),     // denied
		call(0, 3, 1600, 3100, succeeded),   // sent before the servers had recovered
		call(0, 4, 3200, 3210, succeeded),   // twice
		call(0, 5, 3300, 3700, answered),    // a late error
		call(0, 6, 3800, 3801, succeeded),   // lost
		call(0, 7, 9000, 9001, cut),         //
		call(1, 0, 500, 501, succeeded),     // before the fault
		call(1, 0, 1100, 1140, succeeded),   // of another shard
		call(1, 0, 1200, 1210, unknown),     // of another shard
		call(1, 0, 9000, 9500, succeeded),   // long after
		call(1, 1, 9100, 9101, succeeded),   //
		call(1, 2, 9102, 9103, succeeded),   // before the first
		call(1, 0, 10_000, 10_001, missing), //
	}, Unresolved: 2}
	ts := &times{began: start, fault: at(1000), restored: at(3000), safe: at(3000), over: at(4000), ended: at(10_000)}
	r := new(row)
	r.analyze(l, ts, func(caller int) bool { return caller == 0 })
	r.audit(l, ts, [][]int32{{2, 3, 4, 4, 99}, {2, 1}})
	if r.Requests != 14 || r.NotSent != 1 || r.Unknown != 1 || r.Answered != 1 || r.Missing != 1 || r.Cut != 1 || r.Unresolved != 2 {
		t.Errorf("counts of %+v", r)
	}
	if r.Lost != 1 || r.LostByRedis != 1 || r.Twice != 1 || r.Denied != 1 || r.Reordered != 1 {
		t.Errorf("audit of %+v", r)
	}
	if *r.RestoredMS != 2000 || *r.FirstMS != 100 || *r.SteadyMS != 700 {
		t.Errorf("restored after %v, first %v, steady %v", *r.RestoredMS, *r.FirstMS, *r.SteadyMS)
	}
	if r.OthersCalls != 2 || r.OthersErrors != 1 || r.OthersMaxMS != 40 {
		t.Errorf("others of %+v", r)
	}
	if r.Reached != 1.4 {
		t.Errorf("%v calls a second", r.Reached)
	}
}

// The latest row of a scenario and subject is kept, in the order of the scenarios, and so is the head.
func TestResultsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raw", "x.jsonl")
	r, err := openResults(path)
	if err != nil {
		t.Fatal(err)
	}
	r.head = head{Command: "x", Note: "a busy machine"}
	first := 12.5
	for _, one := range []row{
		{Scenario: "roll", Subject: "radix", Twice: 7}, {Scenario: "kill", Subject: load.Ours, FirstMS: &first}, {Scenario: "roll", Subject: "radix", Twice: 3},
		{Scenario: "roll", Subject: "radix", Partial: "interrupted"},
	} {
		if err := r.add(&one); err != nil {
			t.Fatal(err)
		}
	}
	if r, err = openResults(path); err != nil {
		t.Fatal(err)
	}
	if len(r.rows) != 2 || r.rows[0].Scenario != "kill" || r.rows[1].Twice != 3 || r.head.Note != "a busy machine" {
		t.Errorf("%+v", r)
	}
	var out bytes.Buffer
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "| kill | slipstream |") || !strings.Contains(text, "| 12 |") {
		t.Error(text)
	}
}

func TestLedgerIsReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l := &ledger{Ops: []op{{Caller: 3, Seq: 4, Sent: 5, Took: 6, Fate: unknown}}, Unresolved: 1, Errors: map[string]int{"x": 2}}
	if err := l.write(path); err != nil {
		t.Fatal(err)
	}
	got, err := readLedger(path)
	if err != nil || len(got.Ops) != 1 || got.Ops[0] != l.Ops[0] || got.Unresolved != 1 || !maps.Equal(got.Errors, l.Errors) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestFlags(t *testing.T) {
	t.Setenv("SCENARIO", "")
	t.Setenv("QUICK", "")
	for _, c := range []struct {
		args string
		want string // scenarios and subjects; if empty, refused
	}{
		{"", "10 5"}, {"-scenario kill,roll -subjects radix", "2 1"}, {"-scenario none", ""}, {"-subjects redigo", ""},
		{"-slots 16384", ""}, {"-rate 0", ""}, {"-callers 0", ""}, {"kill", ""},
	} {
		o, err := parse(strings.Fields(c.args), io.Discard)
		var all []*scenario
		var subjects []string
		if err == nil {
			all, subjects, err = o.chosen()
		}
		if (err == nil) != (c.want != "") {
			t.Errorf("%q: %v", c.args, err)
			continue
		}
		if err == nil && c.want != fmt.Sprint(len(all), " ", len(subjects)) {
			t.Errorf("%q: %d scenarios, %d subjects", c.args, len(all), len(subjects))
		}
	}
}
