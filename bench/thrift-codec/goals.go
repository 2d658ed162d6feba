package main

import (
	"fmt"
	"io"
	"math"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/shapes"
	"github.com/slipstream-go/slipstream/internal/load"
)

// thriftRivals are the codecs for Thrift's Binary protocol that goals name in addition to the best
// rival.
var thriftRivals = []string{"fastgo", "kitex", "frugal"}

// against returns goals of at most ratio against each of the rivals. An empty name is the best rival.
func against(ratio float64, rivals ...string) (goals []load.Goal) {
	for _, name := range rivals {
		goals = append(goals, load.Goal{Metric: load.NsOp, Rival: name, Ratio: ratio})
	}
	return goals
}

// againstAll is like against, for the Thrift rivals and for the best rival.
func againstAll(ratio float64) []load.Goal {
	return append(against(ratio, thriftRivals...), against(ratio, "")...)
}

func isIDs(s shapes.Shape) bool { return s.Name == "1MB-ids" }

func encodeGoals(s shapes.Shape) map[string][]load.Goal {
	if isIDs(s) {
		return map[string][]load.Goal{load.Ours: againstAll(0.3)}
	}
	goals := against(0.6, "kitex", "frugal")
	goals = append(goals, against(0.9, "fastgo")...)
	return map[string][]load.Goal{load.Ours: append(goals, against(1.1, "fastgo-append")...)}
}

// decodeGoals are for decoding a frame that ours may keep; the cost of allocating that frame is
// included only in the variant framed.
func decodeGoals(s shapes.Shape, gogc int) map[string][]load.Goal {
	if gogc == 400 {
		if s.Size < 1000 {
			return nil
		}
		return map[string][]load.Goal{load.Ours: againstAll(0.5)}
	}
	given, charged := 0.7, 1.0
	if s.Size < 600 {
		given = 0.9
	}
	if s.Size >= 20_000 {
		charged = 0.85
	}
	return map[string][]load.Goal{
		load.Ours: againstAll(given),
		framed:    againstAll(charged),
		reused:    againstAll(0.3),
	}
}

func listGoals(width, n int) map[string][]load.Goal {
	var goals []load.Goal
	switch {
	case width == 64 && n == 1024:
		goals = append(against(1/3.0, "loop"), against(1/5.0, "gopkg")...)
	case width == 64 && n > 8:
		goals = against(1/2.0, "loop")
	case width == 32 && n == 1024:
		goals = append(against(1/4.0, "loop", "loop-two"), against(1/12.0, "gopkg")...)
	}
	return map[string][]load.Goal{load.Ours: goals}
}

// An allocationBound is a target for the allocations of one subject.
type allocationBound struct {
	operation, shape, subject string
	most                      float64
}

// allocationBounds are in the order in which they are printed. An empty shape stands for all
// shapes.
var allocationBounds = []allocationBound{
	{"encode", "", load.Ours, 0},
	{"encode", "", written, 0},
	{"decode-gogc100", "20KB", load.Ours, 8},
	{"decode-gogc100", "6MB", load.Ours, 119},
	{"decode-gogc100", "6MB-without-map", load.Ours, 16},
	{"decode-gogc100", "", reused, 0},
}

// judge prints whether the bound is met in the rows to which it applies.
func (b allocationBound) judge(w io.Writer, rows []load.Row) {
	for _, s := range shapes.All {
		if b.shape != "" && b.shape != s.Name {
			continue
		}
		row, found := command.Find(rows, b.operation+"/"+s.Name, b.subject)
		if !found || row.Allocs == nil {
			continue
		}
		allocs := math.Round(*row.Allocs)
		fmt.Fprintf(w, "%s: %s allocs <= %.0f: %s (%.0f)\n", row.Scenario, b.subject, b.most, command.Verdict(allocs <= b.most), allocs)
	}
}
