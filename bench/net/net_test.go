package main

import (
	"io"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/echo"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// The load process is another process of the test program.
func TestMain(m *testing.M) {
	loadproc.Child(echo.Targets())
	m.Run()
}

// Every subject of every scenario echoes, and has a figure for its server.
func TestSubjectsEcho(t *testing.T) {
	module, err := proc.BenchModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(&command.Flags{}, command.Place{Module: module, Scratch: t.TempDir()}, io.Discard)
	h.window, h.warmUp = 100*time.Millisecond, 20*time.Millisecond
	for _, sc := range h.Scenarios() {
		if sc.Name != "echo/100" && sc.Name != "choices/100" {
			continue
		}
		for _, s := range sc.Subjects {
			t.Run(sc.Name+"/"+s.Name, func(t *testing.T) {
				sample, err := s.Run(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				if sample.Errors > 0 || !(sample.Values[load.ServerUS] > 0) || !(sample.Values[load.RPS] > 0) {
					t.Errorf("%d errors (%s), %v", sample.Errors, sample.ErrorSample, sample.Values)
				}
			})
		}
	}
}
