package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// newTestHarness measures for a moment.
func newTestHarness(t *testing.T) *harness {
	t.Helper()
	module, err := proc.BenchModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(module, t.TempDir(), options{}, io.Discard)
	h.window, h.warmUp = 150*time.Millisecond, 50*time.Millisecond
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// A gateway without the features to be measured is refused.
func TestProofs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	h := newTestHarness(t)
	f, err := h.full(ctx)
	if err != nil {
		t.Fatal(err)
	}
	start := func(program subject.Program) string {
		server, err := program.Start(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		})
		return server.Address
	}
	on, without := start(f.on), start(f.off)
	for _, v := range variants {
		if err := f.proveOn(ctx, v, on); err != nil {
			t.Errorf("memory-hit-full%s: %v", v.name, err)
		}
		if err := f.proveOn(ctx, v, without); err == nil || !strings.Contains(err.Error(), "want 401") {
			t.Errorf("a gateway with everything off passed: %v", err)
		}
	}
	if err := proveOff(ctx, without); err != nil {
		t.Error(err)
	}
	if err := proveOff(ctx, on); err == nil {
		t.Error("a gateway with everything on passed for one with everything off")
	}
	f.collector.posts.Add(1)
	if err := f.proveOn(ctx, variants[0], on); err == nil || !strings.Contains(err.Error(), "sampled") {
		t.Errorf("traces at the collector: got error %v", err)
	}
}

// Each subject runs once completely, without a wrong answer.
func TestFullAndBatches(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	h := newTestHarness(t)
	all := []load.Scenario{h.batchHit(7, 3, ""), h.batchHit(7, 3, "gzip")}
	for _, v := range variants {
		all = append(all, h.fullScenario(v, 3))
	}
	for _, sc := range all {
		for _, s := range sc.Subjects {
			if s.Name == load.Control {
				continue
			}
			sample, err := s.Run(ctx, 1)
			if err != nil {
				t.Fatalf("%s of %s: %v", s.Name, sc.Name, err)
			}
			if sample.Errors != 0 || sample.Values[load.RPS] <= 0 || sample.Values[load.ServerUS] <= 0 {
				t.Errorf("%s of %s: got %d errors, %s, %v", s.Name, sc.Name, sample.Errors, sample.ErrorSample, sample.Values)
			}
		}
	}
}
