package load

import (
	"fmt"
	"math"
	"runtime"
	"time"
)

// Result is what one run measured.
type Result struct {
	Callers int           `json:"callers"`
	Elapsed time.Duration `json:"elapsed_ns"` // of the window, drain included
	Started time.Time     `json:"-"`          // when the window began

	// Completed counts requests with a right answer, Errors those with a wrong
	// or no answer; Unsent counts requests of an open loop that were due but not
	// sent when the drain limit passed or the run ended early. ErrorSample is the
	// first error.
	Completed   uint64 `json:"completed"`
	Errors      uint64 `json:"errors"`
	Unsent      uint64 `json:"unsent"`
	ErrorSample string `json:"error_sample,omitempty"`
	// ErrorKinds counts the Errors by [ErrorKind].
	ErrorKinds map[string]uint64 `json:"error_kinds,omitempty"`

	// Partial is the reason why the run ended early or lacks figures, or empty if it
	// is complete. A partial result covers the time until the end, and Elapsed is
	// that time. Figures that could not be read at the end are 0 in Cost, or absent.
	Partial string `json:"partial,omitempty"`
	// Cut counts the requests that failed after ctx had ended. They are neither
	// completed nor errors, since the end may be the reason.
	Cut uint64 `json:"cut,omitempty"`

	// WarmUpErrors counts the errors outside of the measured window.
	WarmUpErrors uint64 `json:"warmup_errors,omitempty"`
	// WarmUp is what was done before it.
	WarmUp WarmUp `json:"-"`

	// Service runs from sending to answer. The others belong to open loops.
	// Intended runs from the planned instant to the answer. Pacing is how late an
	// idle caller started its request: the generator's own error, which is part
	// of Intended. Release is how late the pacer released such callers: the part
	// of Pacing that is due to timers; the rest is the scheduler's.
	Service  *Histogram `json:"service"`
	Intended *Histogram `json:"intended,omitempty"`
	Pacing   *Histogram `json:"pacing,omitempty"`
	Release  *Histogram `json:"release,omitempty"`

	// PlannedRate (0: unknown) and Dispersion (variance over mean of the requests sent in
	// each millisecond) belong to open loops.
	PlannedRate float64 `json:"planned_rate,omitempty"`
	Dispersion  float64 `json:"dispersion,omitempty"`

	Cost Cost `json:"cost"`

	// Timeline is what was done each second of the window, if the Config asks for
	// it. A long run has at most 512 intervals, of several seconds each.
	Timeline []Interval `json:"timeline,omitempty"`
}

// Rate returns completed requests per second.
func (r *Result) Rate() float64 { return float64(r.Completed) / r.Elapsed.Seconds() }

// Latency returns the honest latency: intended-time in an open loop, service
// time in a closed one.
func (r *Result) Latency() *Histogram {
	if r.Intended != nil {
		return r.Intended
	}
	return r.Service
}

// PerRequest divides by completed requests; NaN if there were none. Suites that
// measure the client's side use it on Cost.Mallocs and Cost.Bytes.
func (r *Result) PerRequest(total float64) float64 {
	if r.Completed == 0 {
		return math.NaN()
	}
	return total / float64(r.Completed)
}

// Doubts says in words what makes the latencies of the run questionable.
func (r *Result) Doubts() []string {
	doubts := r.Limits()
	if r.PlannedRate > 0 {
		if rate := r.Rate(); rate < 0.95*r.PlannedRate {
			doubts = append(doubts, fmt.Sprintf("overloaded: %.0f requests a second of %.0f planned", rate, r.PlannedRate))
		}
	}
	return doubts
}

// busyShare is the share of all processors above which the generator has no room
// left: the rate is then its own.
const busyShare = 0.85

// Limits says in words in what the generator itself was the limit of the run.
func (r *Result) Limits() []string {
	var limits []string
	if s := r.Cost.starved(); s != "" {
		limits = append(limits, s)
	}
	if cpus := float64(runtime.NumCPU()); r.Elapsed > 0 {
		if share := r.Cost.Client.Seconds() / r.Elapsed.Seconds() / cpus; share > busyShare {
			limits = append(limits, fmt.Sprintf("generator busy: it used %.0f %% of all processors", share*100))
		}
	}
	if r.PlannedRate > 0 && r.Pacing != nil {
		if late := r.Pacing.Quantile(0.99); late > 5*time.Millisecond {
			limits = append(limits, fmt.Sprintf("coarse pacing: 1 %% of the idle callers started more than %v late", late))
		}
	}
	return limits
}
