package foreign

import (
	"encoding/json"
	"fmt"
	"time"
)

// Limited is the exit code of slipstream bench if the generator was the limit. In a closed loop on
// the same processors as the server, it usually is.
const Limited = 5

// slipstreamSchema is the schema of the reports that ParseSlipstream reads.
const slipstreamSchema = "slipstream-bench/1"

// ParseSlipstream parses the output of slipstream bench with --json -. Wrong and stale answers are
// errors.
func ParseSlipstream(output string) (Run, error) {
	var report struct {
		Schema    string  `json:"schema"`
		Seconds   float64 `json:"seconds"`
		Completed uint64  `json:"completed"`
		Failed    uint64  `json:"failed"`
		First     string  `json:"first_failure"`
		Partial   string  `json:"partial"`
		Service   struct {
			P50 float64 `json:"p50_us"`
			P99 float64 `json:"p99_us"`
		} `json:"service"`
		Redis struct {
			Misses uint64 `json:"get_misses"`
			Wrong  uint64 `json:"wrong"`
			Stale  uint64 `json:"stale"`
		} `json:"redis"`
	}
	if err := json.Unmarshal([]byte(output), &report); err != nil {
		return Run{}, fmt.Errorf("output %.200q: %w", output, err)
	}
	switch {
	case report.Schema != slipstreamSchema:
		return Run{}, fmt.Errorf("a report of schema %q, want %s", report.Schema, slipstreamSchema)
	case report.Partial != "":
		return Run{}, fmt.Errorf("the report is partial: %s", report.Partial)
	}
	microseconds := func(v float64) time.Duration { return time.Duration(v * float64(time.Microsecond)) }
	r := Run{
		Completed: report.Completed, Errors: report.Failed, Problem: report.First,
		Elapsed: time.Duration(report.Seconds * float64(time.Second)),
		P50:     microseconds(report.Service.P50), P99: microseconds(report.Service.P99),
	}
	if bad := report.Redis.Misses + report.Redis.Wrong + report.Redis.Stale; bad > 0 {
		r.Errors += bad
		r.Problem = fmt.Sprintf("%d misses, %d wrong and %d stale answers", report.Redis.Misses, report.Redis.Wrong, report.Redis.Stale)
	}
	return r, nil
}
