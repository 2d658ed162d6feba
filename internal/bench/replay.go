package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/internal/bench/replay"
	"github.com/slipstream-go/slipstream/internal/load"
)

// ReplayReport describes a file whose requests are sent again.
type ReplayReport struct {
	File     string `json:"file"`
	Format   string `json:"format"` // list, access log or request log
	Requests int    `json:"requests"`
	// Skipped counts lines of a log that cannot be sent again, by reason.
	Skipped map[string]uint64 `json:"skipped,omitempty"`
}

func newReplayReport(f *replay.File) *ReplayReport {
	if f == nil {
		return nil
	}
	return &ReplayReport{File: f.Name, Format: f.Format, Requests: f.Len(), Skipped: f.Skipped}
}

// open reports whether the requests of a run were planned beforehand.
func (r *Report) open() bool { return r.Plan.Rate > 0 || r.Loop == string(load.Replay) }

// writeReplay writes what was read from the file.
func (r *Report) writeReplay(b *strings.Builder) {
	f := r.Replay
	if f == nil {
		return
	}
	fmt.Fprintf(b, "%-8s %s in %s (%s)", "replay", counted(uint64(f.Requests), "request"), f.File, f.Format)
	for i, reason := range f.reasons() {
		word := ","
		if i == 0 {
			word = "; skipped:"
		}
		fmt.Fprintf(b, "%s %s %s", word, grouped(f.Skipped[reason]), reason)
	}
	b.WriteByte('\n')
}

func (f *ReplayReport) reasons() []string { return slices.Sorted(maps.Keys(f.Skipped)) }

// replayRows returns the same for a page.
func (r *Report) replayRows() (rows [][]string) {
	f := r.Replay
	if f == nil {
		return nil
	}
	rows = append(rows, []string{"in the file", grouped(uint64(f.Requests))})
	for _, reason := range f.reasons() {
		rows = append(rows, []string{"skipped, " + reason, grouped(f.Skipped[reason])})
	}
	return rows
}
