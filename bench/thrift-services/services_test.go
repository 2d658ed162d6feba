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
	"github.com/slipstream-go/slipstream/bench/internal/rpcsuite"
	"github.com/slipstream-go/slipstream/internal/load"
)

// The load process is another process of the test program.
func TestMain(m *testing.M) {
	loadproc.Child(pages.Targets())
	m.Run()
}

// Both frontends answer with the right documents, and every figure is there. The other scenarios
// need the code of rivals: see TestSubjects of package rpcsuite.
func TestFrontendsAnswer(t *testing.T) {
	module, err := proc.BenchModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	flags := &command.Flags{Measurement: command.Measurement{Duration: 100 * time.Millisecond}, Quick: true}
	h := rpcsuite.Services().Open(flags, command.Place{Module: module, Scratch: t.TempDir()}, io.Discard)
	defer h.Close()
	for _, sc := range h.Scenarios() {
		if !strings.HasPrefix(sc.Name, "frontend") {
			continue
		}
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
				for _, m := range []load.Metric{load.RPS, load.ServerUS, load.P50US} {
					if !(sample.Values[m] > 0) {
						t.Errorf("%s is %v", m, sample.Values[m])
					}
				}
			})
		}
	}
}
