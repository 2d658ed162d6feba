package demo

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestWriter(t *testing.T) {
	path := prepared(t)
	db := open(t, path)
	budget := "SELECT budget FROM dept WHERE deptno = 42"
	before, rows := column(t, db, budget)[0], column(t, db, "SELECT row FROM ("+allRows+")")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := &Writer{Path: path, Rate: 200, Seed: testSeed}
	done := make(chan error, 1)
	start := time.Now()
	go func() { done <- w.Run(ctx) }() // stopped by cancel, awaited below
	for w.Changes() < 300 {
		if time.Since(start) > 30*time.Second {
			t.Fatalf("%d changes in %v", w.Changes(), time.Since(start))
		}
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(start); took < time.Second {
		t.Errorf("300 changes in %v: faster than 200 a second", took)
	}
	cancel()
	stopping := time.Now()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if took := time.Since(stopping); took > time.Second {
		t.Errorf("stopped after %v", took)
	}
	if after := column(t, db, budget)[0]; after == before {
		t.Errorf("dept 42 did not change: budget %s", after)
	}
	if after := column(t, db, "SELECT row FROM ("+allRows+")"); strings.Join(after, "\n") == strings.Join(rows, "\n") {
		t.Error("nothing changed")
	}
	if bad := column(t, db, "SELECT 1 FROM pragma_foreign_key_check"); len(bad) > 0 {
		t.Errorf("%d rows without their parent", len(bad))
	}
}

// TestEveryKindOfChange: none fails, the database does not grow without bound,
// and each kind has an effect.
func TestEveryKindOfChange(t *testing.T) {
	db := open(t, prepared(t))
	if err := db.Exec("PRAGMA foreign_keys = ON; PRAGMA synchronous = OFF"); err != nil {
		t.Fatal(err)
	}
	c, err := newChanger(db, testSeed)
	if err != nil {
		t.Fatal(err)
	}
	idle := 0
	for n := range 3000 {
		before := db.TotalChanges()
		if err := c.change(n, 20); err != nil {
			t.Fatalf("seed %d, change %d: %v", testSeed, n, err)
		}
		if db.TotalChanges() == before {
			idle++
		}
	}
	if idle > 150 { // mostly orders without a shipment
		t.Errorf("%d of 3,000 changes had no effect", idle)
	}
	if n := column(t, db, "SELECT count(*) FROM emp"); n[0] < "10000" || n[0] > "10050" || len(n[0]) != 5 {
		t.Errorf("%s employees; expected 10,000 to 10,050", n[0])
	}
}

// TestWriterAgain: a second writer continues where the first one stopped.
func TestWriterAgain(t *testing.T) {
	path := prepared(t)
	for run := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		w := &Writer{Path: path, Rate: 1000, Seed: testSeed}
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }() // stopped by cancel, awaited below
		for deadline := time.Now().Add(30 * time.Second); w.Changes() < 200 && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
		if err := <-done; err != nil || w.Changes() < 200 {
			t.Errorf("run %d: %d changes, %v", run, w.Changes(), err)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	if err := (&Writer{Path: prepared(t), Rate: 5000}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "expected 1 to 1000") {
		t.Errorf("rate 5000: %v", err)
	}
	if err := (&Writer{Path: t.TempDir() + "/none.db"}).Run(t.Context()); err == nil {
		t.Error("a missing database was written to")
	}
}
