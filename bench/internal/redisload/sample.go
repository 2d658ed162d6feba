package redisload

import (
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Details are stored in the raw results.
type Details struct {
	Load      any     `json:"load"`
	RoundTrip float64 `json:"round_trip_us"` // of a PING over a plain connection, when the scenario began
	// ProxyUS is the CPU time of nutcracker per request.
	ProxyUS float64 `json:"proxy_us,omitempty"`
	// IntendedP99 is measured from the planned instant of each burst.
	IntendedP99 float64 `json:"intended_p99_us,omitempty"`
	// Servers is what the servers of a cluster counted.
	Servers *redisserver.Statistics `json:"servers,omitempty"`
}

// Micros returns a time in microseconds.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Sample converts the result of a load process to the figures of a round. The program under test is
// the load process itself. Trip is the time of a PING. If sent is set, latency is measured from the
// sending of a request or burst, not from the planned instant.
func Sample(result *load.Result, trip time.Duration, sent bool) load.Sample {
	sample := result.Sample()
	d := Details{Load: sample.Details, RoundTrip: Micros(trip)}
	if result.Completed > 0 {
		sample.Values[load.Allocs] = result.PerRequest(float64(result.Cost.Mallocs))
		sample.Values[load.BytesOp] = result.PerRequest(float64(result.Cost.Bytes))
		d.ProxyUS = result.PerRequest(result.Cost.Counters[ProxyCPU]) / 1000
		if sent {
			sample.Values[load.P50US] = Micros(result.Service.Quantile(0.50))
			sample.Values[load.P99US] = Micros(result.Service.Quantile(0.99))
			sample.Values[load.P999US] = Micros(result.Service.Quantile(0.999))
			if result.Intended != nil {
				d.IntendedP99 = Micros(result.Intended.Quantile(0.99))
			}
		}
	}
	if s, ok := redisserver.StatisticsOf(result.Cost.Counters); ok {
		d.Servers = &s
		if s.Reads > 0 {
			sample.Values[load.PerRead] = s.Commands / s.Reads
		}
	}
	sample.Details = d
	return sample
}
