package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pages"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// The load process is another process of the test program.
func TestMain(m *testing.M) {
	loadproc.Child(pages.Targets())
	m.Run()
}

// Every subject of every scenario serves the same documents and has all figures.
func TestSubjectsAnswer(t *testing.T) {
	module, err := proc.BenchModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(&command.Flags{}, command.Place{Module: module, Scratch: t.TempDir()}, io.Discard)
	h.window, h.warmUp = 150*time.Millisecond, 50*time.Millisecond
	for _, sc := range h.Scenarios() {
		for _, s := range sc.Subjects {
			if s.Name == load.Control {
				continue
			}
			t.Run(sc.Name+"/"+s.Name, func(t *testing.T) {
				sample, err := s.Run(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				if sample.Errors > 0 {
					t.Errorf("%d errors: %s", sample.Errors, sample.ErrorSample)
				}
				for _, m := range []load.Metric{load.RPS, load.ClientUS, load.ServerUS, load.P50US, load.P99US} {
					if !(sample.Values[m] > 0) {
						t.Errorf("%s is %v", m, sample.Values[m])
					}
				}
			})
		}
	}
}

// A server that lacks a document is not measured.
func TestVerifyLooksAtEveryDocument(t *testing.T) {
	dir := t.TempDir()
	r, err := newRedisServer(dir)
	if err != nil {
		t.Fatal(err)
	}
	server, err := r.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	if err := pages.Verify(t.Context(), server.Redis, 1); err != nil {
		t.Fatal(err)
	}
	target, err := pages.Open(t.Context(), server.Redis, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if err := target.Client.Set(t.Context(), pages.Key(999), "other"); err != nil {
		t.Fatal(err)
	}
	if err := pages.Verify(t.Context(), server.Redis, 1); err == nil || !strings.Contains(err.Error(), "000000000999") {
		t.Errorf("error %v, want one that names document 999", err)
	}
}

func TestCalibration(t *testing.T) {
	for _, tc := range []struct {
		rate  float64
		depth int
		d     time.Duration
		want  uint64
	}{{100_000, 1, time.Second, 99_968}, {100_000, 16, 2 * time.Second, 199_680}, {1, 16, time.Second, 1024}} {
		if got := calibration(tc.rate, tc.depth, tc.d); got != tc.want {
			t.Errorf("%v: %d requests, want %d", tc, got, tc.want)
		}
	}
}
