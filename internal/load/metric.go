package load

import "math"

// A Metric is the name of a figure of one round, as in the columns of the results file.
type Metric string

const (
	RPS      Metric = "rps"       // completed requests a second
	ClientUS Metric = "client_us" // CPU microseconds of the client per request
	ServerUS Metric = "server_us" // CPU microseconds of the server per request
	MeanUS   Metric = "mean_us"   // mean latency; only in the raw results
	P50US    Metric = "p50_us"
	P99US    Metric = "p99_us"
	P999US   Metric = "p999_us"
	NsOp     Metric = "ns_op"    // of micro-benchmarks
	BytesOp  Metric = "bytes_op" // bytes allocated per request by the side that the suite measures
	Allocs   Metric = "allocs"   // objects allocated per request by that side
	PerRead  Metric = "per_read" // commands that the server receives per read
)

// MoreIsBetter reports whether a higher value is better, which is so for rates and commands per
// read.
func (m Metric) MoreIsBetter() bool { return m == RPS || m == PerRead }

// A Sample holds the figures of one subject in one round. A metric that does not apply is absent.
type Sample struct {
	Values      map[Metric]float64
	Errors      uint64
	ErrorSample string
	Doubts      []string // reasons why the latencies are questionable
	// Partial is the reason why the round was not finished, or empty if it was. A Suite never mixes
	// such figures with those of complete rounds.
	Partial string
	// Details are written to the raw results unchanged.
	Details any
}

// Sample returns the figures of a run: the rate, latency quantiles, and the CPU time that each
// request cost the client and, if servers were metered, the servers.
func (r *Result) Sample() Sample {
	s := Sample{
		Values: map[Metric]float64{
			RPS:      r.Rate(),
			ClientUS: r.PerRequest(micros(r.Cost.Client)),
		},
		Errors:      r.Errors + r.Unsent + r.WarmUpErrors,
		ErrorSample: r.ErrorSample,
		Doubts:      r.Doubts(),
		Partial:     r.Partial,
		Details: runDetails{
			Elapsed: r.Elapsed.Seconds(), Completed: r.Completed, Cost: r.Cost,
			PlannedRate: r.PlannedRate, Dispersion: r.Dispersion, ServiceP99: micros(r.Service.Quantile(0.99)),
		},
	}
	if r.Pacing != nil {
		d := s.Details.(runDetails)
		d.PacingP50, d.PacingP99 = micros(r.Pacing.Quantile(0.50)), micros(r.Pacing.Quantile(0.99))
		if r.Release != nil { // missing in results of older versions
			d.ReleaseP99 = micros(r.Release.Quantile(0.99))
		}
		s.Details = d
	}
	if r.Completed > 0 {
		l := r.Latency()
		s.Values[MeanUS] = micros(l.Mean())
		s.Values[P50US] = micros(l.Quantile(0.50))
		s.Values[P99US] = micros(l.Quantile(0.99))
		s.Values[P999US] = micros(l.Quantile(0.999))
	}
	if r.Cost.Server > 0 {
		s.Values[ServerUS] = r.PerRequest(micros(r.Cost.Server))
	}
	return s
}

// runDetails are the details of a run that the raw results contain in addition to its figures.
type runDetails struct {
	Elapsed     float64 `json:"elapsed_s"`
	Completed   uint64  `json:"completed"`
	Cost        Cost    `json:"cost"`
	PlannedRate float64 `json:"planned_rate,omitempty"`
	Dispersion  float64 `json:"dispersion,omitempty"`
	ServiceP99  float64 `json:"service_p99_us"`
	PacingP50   float64 `json:"pacing_p50_us,omitempty"`
	PacingP99   float64 `json:"pacing_p99_us,omitempty"`
	ReleaseP99  float64 `json:"release_p99_us,omitempty"`
}

// column returns the values of one metric over the rounds, with NaN for those that are absent.
func column(rounds []Sample, m Metric) []float64 {
	values := make([]float64, len(rounds))
	for i, s := range rounds {
		v, ok := s.Values[m]
		if !ok {
			v = math.NaN()
		}
		values[i] = v
	}
	return values
}

// present returns the values that are numbers.
func present(values []float64) []float64 {
	var out []float64
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out = append(out, v)
		}
	}
	return out
}
