package bench

import (
	"github.com/slipstream-go/slipstream/internal/bench/tarantoolload"
)

// Tarantool is the workload of requests to a Tarantool instance.
type Tarantool struct{ *tarantoolload.Target }

// Describe adds the counts of replies.
func (w Tarantool) Describe(r *Report) {
	t := w.Tally()
	r.Tarantool = &TarantoolReport{Replaces: t.Writes, Hits: t.Hits, Misses: t.Misses, Others: t.Others, Wrong: t.Wrong, Stale: t.Stale, Untracked: !w.Tracks(), Foreign: t.Foreign}
	r.Operations = operationReports(w.Figures())
}
