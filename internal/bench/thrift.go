package bench

import (
	"context"

	"github.com/slipstream-go/slipstream/internal/bench/thriftload"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Thrift is the workload of calls to Thrift services.
type Thrift struct{ *thriftload.Target }

// Describe adds the counts of replies.
func (w Thrift) Describe(r *Report) {
	t := w.Tally()
	r.Thrift = &ThriftReport{Replies: t.Others, Wrong: t.Wrong}
	r.Operations = operationReports(w.Figures())
}

// Costs implements [Workload]. Thrift servers do not report their CPU time.
func (w Thrift) Costs(context.Context) []load.Counter { return nil }
