package bench

import (
	"context"

	"github.com/slipstream-go/slipstream/internal/bench/httpload"
	"github.com/slipstream-go/slipstream/internal/load"
)

// HTTP is the workload of HTTP requests.
type HTTP struct{ *httpload.Target }

// Describe adds the statuses and sizes of responses, and the phases of connections.
func (w HTTP) Describe(r *Report) {
	tally := w.Tally()
	r.HTTP = &HTTPReport{Statuses: tally.Statuses, Bytes: tally.Bytes, Opened: tally.Opened, Duplicates: tally.Duplicates, Phases: phaseReports(w.Phases())}
	r.Replay = newReplayReport(w.Replayed())
	r.Operations = operationReports(w.Figures())
}

// Costs implements [Workload]. HTTP servers do not report their CPU time.
func (w HTTP) Costs(context.Context) []load.Counter { return nil }

// Close implements [Workload]. The run has closed all connections.
func (w HTTP) Close() error { return nil }
