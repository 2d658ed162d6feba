package main

import (
	"context"
	"fmt"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	// batchGoal is the maximum cost of documents in one request, relative to the server's CPU time
	// with one request for each document.
	batchGoal = 0.15
	// single is the subject that requests each document separately.
	single = "single"
)

// batchHit compares one request for many documents with one request per document, over the same
// number of keep-alive connections. For both, all documents together count as one request.
func (h *harness) batchHit(documents, callers int, coding string) load.Scenario {
	name := fmt.Sprintf("batch-%d/%d", documents, callers)
	if coding != "" {
		name = fmt.Sprintf("batch-%d-%s/%d", documents, coding, callers)
	}
	sc := load.Scenario{
		Name: name, Primary: load.ServerUS,
		Goals: []load.Goal{{Metric: load.ServerUS, Rival: single, Ratio: batchGoal}},
	}
	for _, name := range []string{load.Ours, load.Control, single} {
		sc.Subjects = append(sc.Subjects, load.Subject{Name: name, Run: func(ctx context.Context, round int) (load.Sample, error) {
			program, err := h.program(ctx, load.Ours)
			if err != nil {
				return load.Sample{}, err
			}
			hit := subject.Hit{Callers: callers, WarmUp: h.warmUp, Window: h.window, Seed: uint64(round)}
			hit.Ask = func(s *loadproc.Spec) {
				s.Depts, s.Coding = true, coding
				if coding != "" {
					s.Fields = []string{"Accept-Encoding: " + coding + "\r\n"}
				}
				if name == single {
					s.Series = documents
				} else {
					s.Array = documents
				}
			}
			return hit.Run(ctx, program)
		}})
	}
	return sc
}
