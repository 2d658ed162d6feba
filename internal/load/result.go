package load

import (
	"fmt"
	"math"
	"runtime"
	"time"
)

// Result holds what one run measured.
type Result struct {
	Callers int           `json:"callers"`
	Elapsed time.Duration `json:"elapsed_ns"` // of the window, including the drain
	Started time.Time     `json:"-"`          // when the window began

	// Completed counts requests with a right answer, and Errors those with a wrong answer or none.
	// Unsent counts requests of an open loop that were due but had not been sent when the drain
	// limit passed or the run ended early. ErrorSample is the first error.
	Completed   uint64 `json:"completed"`
	Errors      uint64 `json:"errors"`
	Unsent      uint64 `json:"unsent"`
	ErrorSample string `json:"error_sample,omitempty"`
	// ErrorKinds counts the Errors by [ErrorKind].
	ErrorKinds map[string]uint64 `json:"error_kinds,omitempty"`

	// Partial is the reason why the run ended early or lacks figures, or empty if it is complete. A
	// partial result covers the time until then, which is Elapsed. Figures that could not be read
	// at the end are 0 in Cost, or absent.
	Partial string `json:"partial,omitempty"`
	// Cut counts the requests that failed after ctx had ended. They count neither as completed nor
	// as errors, since the end of ctx may be the reason.
	Cut uint64 `json:"cut,omitempty"`

	// WarmUpErrors counts the errors outside of the measured window.
	WarmUpErrors uint64 `json:"warmup_errors,omitempty"`
	// WarmUp describes the warm-up before the window.
	WarmUp WarmUp `json:"-"`

	// Service is the time from sending to the answer. The others belong to open loops. Intended is
	// the time from the planned instant to the answer. Pacing is how late an idle caller started
	// its request: the generator's own error, which is part of Intended. Release is how late the
	// pacer released such callers: the part of Pacing that is due to timers; the rest is the
	// scheduler's.
	Service  *Histogram `json:"service"`
	Intended *Histogram `json:"intended,omitempty"`
	Pacing   *Histogram `json:"pacing,omitempty"`
	Release  *Histogram `json:"release,omitempty"`

	// PlannedRate (0 if unknown) and Dispersion (variance divided by mean of the number of requests
	// sent in each millisecond) belong to open loops.
	PlannedRate float64 `json:"planned_rate,omitempty"`
	Dispersion  float64 `json:"dispersion,omitempty"`

	Cost Cost `json:"cost"`

	// Timeline is what was done in each second of the window, if the Config requests it. A long run
	// has at most 512 intervals, of several seconds each.
	Timeline []Interval `json:"timeline,omitempty"`
}

// Rate returns the number of completed requests per second.
func (r *Result) Rate() float64 { return float64(r.Completed) / r.Elapsed.Seconds() }

// Latency returns the latency to report: intended-time latency of an open loop, service time of a
// closed one.
func (r *Result) Latency() *Histogram {
	if r.Intended != nil {
		return r.Intended
	}
	return r.Service
}

// PerRequest divides total by the number of completed requests; the result is NaN if there were
// none. Suites that measure the client's side use it with Cost.Mallocs and Cost.Bytes.
func (r *Result) PerRequest(total float64) float64 {
	if r.Completed == 0 {
		return math.NaN()
	}
	return total / float64(r.Completed)
}

// Doubts returns the reasons why the latencies of the run are questionable.
func (r *Result) Doubts() []string {
	doubts := r.Limits()
	if r.PlannedRate > 0 {
		if rate := r.Rate(); rate < 0.95*r.PlannedRate {
			doubts = append(doubts, fmt.Sprintf("overloaded: %.0f requests a second of %.0f planned", rate, r.PlannedRate))
		}
	}
	return doubts
}

// busyShare is the share of all processors above which the generator has no room left, and limits
// the rate.
const busyShare = 0.85

// Limits returns the ways in which the generator itself limited the run.
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
