package bench

import (
	"fmt"
	"strings"

	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/load"
)

// OperationReport holds the figures of one operation of a workload file.
type OperationReport struct {
	Name        string `json:"name"`
	Weight      int    `json:"weight"`
	Completed   uint64 `json:"completed"`
	Failed      uint64 `json:"failed"`
	FirstFailed string `json:"first_failure,omitempty"`
	// Service is measured from sending, like Report.Service.
	Service *load.Histogram `json:"service"`
}

func operationReports(all []mix.Figures) []OperationReport {
	var reports []OperationReport
	for i := range all {
		f := &all[i]
		reports = append(reports, OperationReport{f.Name, f.Weight, f.Completed, f.Failed, f.FirstFailed, &f.Service})
	}
	return reports
}

// writeOperations writes a row for each operation.
func (r *Report) writeOperations(b *strings.Builder) {
	if len(r.Operations) == 0 {
		return
	}
	width := len("operation")
	for _, o := range r.Operations {
		width = max(width, len(o.Name))
	}
	fmt.Fprintf(b, "\n%-*s %12s %10s %10s %10s %10s   from sending\n", width, "operation", "completed", "failed", "p50", "p99", "max")
	for _, o := range r.Operations {
		fmt.Fprintf(b, "%-*s %12s %10s", width, o.Name, grouped(o.Completed), grouped(o.Failed))
		if o.Completed == 0 {
			fmt.Fprintf(b, " %10s %10s %10s\n", "-", "-", "-")
			continue
		}
		fmt.Fprintf(b, " %10s %10s %10s\n", took(o.Service.Quantile(0.50)), took(o.Service.Quantile(0.99)), took(o.Service.Max()))
	}
	if r.Failed > 0 {
		b.WriteByte('\n')
	}
}
