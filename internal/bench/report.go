package bench

import (
	"encoding/json"
	"io"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/profiles"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Schema identifies the meaning of the fields of a Report. Its number changes with each
// incompatible change; docs/BENCH.md describes it.
const Schema = "slipstream-bench/1"

// A Report is the result of a run. It contains no secrets.
type Report struct {
	Schema string       `json:"schema"`
	Target string       `json:"target"`
	Loop   string       `json:"loop"` // closed, constant, poisson, bursts or replay
	Plan   PlanReport   `json:"plan"`
	On     load.Machine `json:"machine"`

	WarmUp WarmUpReport `json:"warm_up"`
	// Started is when the measured window began.
	Started time.Time `json:"started"`
	// Seconds is the length of the measured window, including the time in which the last requests
	// ended.
	Seconds   float64 `json:"seconds"`
	Completed uint64  `json:"completed"`
	Failed    uint64  `json:"failed"` // with a wrong answer or without one
	// Unsent counts requests of an open loop that were due and never sent, Cut those that were cut
	// off by the end of an interrupted run.
	Unsent uint64 `json:"unsent"`
	Cut    uint64 `json:"cut"`
	// Rate is the number of completed requests a second.
	Rate        float64           `json:"rate"`
	Failures    map[string]uint64 `json:"failures,omitempty"` // Failed by kind
	FirstFailed string            `json:"first_failure,omitempty"`

	// Latency is measured from the intended time of a request in an open loop, and is the same as
	// Service in a closed one. Service is measured from sending. Pacing is how late the generator
	// started requests whose caller was idle.
	Latency *load.Histogram `json:"latency"`
	Service *load.Histogram `json:"service"`
	Pacing  *load.Histogram `json:"pacing,omitempty"`
	// Dispersion is the variance divided by the mean of the number of requests begun in each
	// millisecond of an open loop.
	Dispersion float64 `json:"dispersion,omitempty"`

	Costs []CostReport `json:"costs"` // the first is the generator's own
	// Timeline is what was done in each second of the window. For a long run it has at most 512
	// intervals of several seconds.
	Timeline  []IntervalReport `json:"timeline,omitempty"`
	intervals []load.Interval  // the same
	HTTP      *HTTPReport      `json:"http,omitempty"`
	Replay    *ReplayReport    `json:"replay,omitempty"`
	Redis     *RedisReport     `json:"redis,omitempty"`

	// Profiles are the profiles of servers, each of which costs the server a little CPU time.
	Profiles []*profiles.Set `json:"profiles,omitempty"`
	base     *baseline       // nil if there is none

	// Raw describes the file with all requests; nil if there is none.
	Raw *RawReport `json:"raw,omitempty"`

	// Limits lists the ways in which the generator was the limit, so that the figures are its own.
	// Doubts lists other reasons why they are questionable.
	Limits []string `json:"generator_limits,omitempty"`
	Doubts []string `json:"doubts,omitempty"`
	// Partial says why the run ended early or lacks figures.
	Partial string `json:"partial,omitempty"`

	Tarantool *TarantoolReport `json:"tarantool,omitempty"`
	Thrift    *ThriftReport    `json:"thrift,omitempty"`
	// Operations are the operations of a mix.
	Operations []OperationReport `json:"operations,omitempty"`
}

// PlanReport describes what was requested.
type PlanReport struct {
	Callers int     `json:"callers"`
	Batch   int     `json:"batch"`
	Total   int64   `json:"requests,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Rate    float64 `json:"rate,omitempty"`
	Seed    uint64  `json:"seed"`
}

// CostReport is the CPU time that one process used in the window.
type CostReport struct {
	Of         string  `json:"of"`
	CPUSeconds float64 `json:"cpu_seconds"`
	// PerRequest is the number of nanoseconds for each completed request; it is absent if there was
	// none.
	PerRequest float64 `json:"cpu_ns_per_request,omitempty"`
	// WaitSeconds is how long threads were runnable without a processor. It is known only for the
	// generator on Linux.
	WaitSeconds float64 `json:"wait_seconds,omitempty"`
}

// IntervalReport is a part of the time line. A request belongs to the interval in which it ended.
type IntervalReport struct {
	At        float64 `json:"at_seconds"` // its start, from the start of the window
	Seconds   float64 `json:"seconds"`
	Completed uint64  `json:"completed"`
	Failed    uint64  `json:"failed"`
	// Quantiles of latency, at most 1.6 % too high. They are absent if no request was
	// completed.
	P50 float64 `json:"p50_us,omitempty"`
	P99 float64 `json:"p99_us,omitempty"`
	Max float64 `json:"max_us,omitempty"`
	// CPU is the CPU time that was used, by CostReport.Of. A time that could not be read is absent.
	CPU map[string]float64 `json:"cpu_seconds"`
}

// HTTPReport describes the HTTP responses.
type HTTPReport struct {
	Statuses map[int]uint64 `json:"statuses"` // of responses in the window
	Bytes    uint64         `json:"body_bytes"`
	Opened   uint64         `json:"connections_opened"` // in the window
	// Duplicates counts responses that belong to no request.
	Duplicates uint64 `json:"duplicates"`
	// Phases are DNS, connect and TLS of all connections, including those opened before the window,
	// and the first byte of the responses in the window. Those that did not occur are absent.
	Phases []PhaseReport `json:"phases,omitempty"`
}

// generator is the name of the cost of this process.
const generator = "generator"

func newReport(p *Plan, target string, result *load.Result, meters []load.Counter) *Report {
	r := &Report{
		Schema: Schema, Target: target, Loop: "closed", On: load.ThisMachine(),
		Plan:    PlanReport{Callers: p.Callers, Batch: max(p.Batch, 1), Total: p.Total, Seconds: p.Duration.Seconds(), Rate: result.PlannedRate, Seed: p.Seed},
		WarmUp:  newWarmUpReport(&result.WarmUp),
		Started: result.Started.UTC(), Seconds: result.Elapsed.Seconds(), Completed: result.Completed, Failed: result.Errors, Unsent: result.Unsent, Cut: result.Cut,
		Rate: result.Rate(), Failures: result.ErrorKinds, FirstFailed: result.ErrorSample,
		Latency: result.Latency(), Service: result.Service, Pacing: result.Pacing, Dispersion: result.Dispersion,
		Limits: result.Limits(), Partial: result.Partial,
	}
	if arrivals := p.config().Arrivals; arrivals.Process != "" {
		r.Loop = string(arrivals.Process)
	}
	r.Doubts = append(r.WarmUp.doubts(), result.Doubts()[len(r.Limits):]...)
	r.Costs = append(r.Costs, r.cost(generator, result.Cost.Client))
	r.Costs[0].WaitSeconds = result.Cost.Wait.Seconds()
	for _, m := range meters {
		if used, ok := result.Cost.Counters[m.Name]; ok {
			r.Costs = append(r.Costs, r.cost(m.Name, time.Duration(used)))
		}
	}
	r.intervals = result.Timeline
	for _, i := range result.Timeline {
		r.Timeline = append(r.Timeline, newIntervalReport(i))
	}
	return r
}

func newIntervalReport(i load.Interval) IntervalReport {
	in := IntervalReport{
		At: i.Start.Seconds(), Seconds: i.Width.Seconds(), Completed: i.Completed, Failed: i.Errors,
		P50: float64(i.P50) / 1e3, P99: float64(i.P99) / 1e3, Max: float64(i.Max) / 1e3,
		CPU: map[string]float64{generator: i.Client.Seconds()},
	}
	for name, ns := range i.Counters {
		in.CPU[name] = ns / 1e9
	}
	return in
}

// cost returns the cost of one process.
func (r *Report) cost(of string, cpu time.Duration) CostReport {
	c := CostReport{Of: of, CPUSeconds: cpu.Seconds()}
	if r.Completed > 0 {
		c.PerRequest = float64(cpu) / float64(r.Completed)
	}
	return c
}

// FailedShare is the share of requests that failed or were never sent.
func (r *Report) FailedShare() float64 {
	all := r.Completed + r.Failed + r.Unsent
	if all == 0 {
		return 0
	}
	return float64(r.Failed+r.Unsent) / float64(all)
}

// WriteJSON writes the report as indented JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	return writeJSON(w, r)
}

// WriteHDR writes the latencies in the log format of HdrHistogram, see [load.WriteHDRLog].
func (r *Report) WriteHDR(w io.Writer) error {
	return load.WriteHDRLog(w, r.Started, r.intervals, r.Latency)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
