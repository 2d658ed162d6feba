package gateway

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of credentials.
var (
	keyExpiry     = prometheus.NewDesc("slipstream_api_key_expiry_timestamp_seconds", "When the next API key expires, in seconds since 1970. There is no such metric while none does.", nil, nil)
	jwksAge       = prometheus.NewDesc("slipstream_jwks_age_seconds", "How long ago the key set of tokens was fetched; -1 before the first time. A set out of a file has no such metric.", nil, nil)
	fetches       = prometheus.NewDesc("slipstream_jwks_fetches_total", "Attempts to fetch the key set of tokens.", nil, nil)
	fetchFailures = prometheus.NewDesc("slipstream_jwks_fetch_failures_total", "Attempts to fetch the key set of tokens that failed.", nil, nil)
)

// collectAccess shows what becomes of credentials.
func (g *Gateway) collectAccess(send sender) {
	gate := g.now().surface.gate
	if gate == nil {
		return
	}
	s := gate.Stats()
	if !s.NextExpiry.IsZero() {
		send(keyExpiry, prometheus.GaugeValue, float64(s.NextExpiry.Unix()))
	}
	if !s.Remote {
		return
	}
	age := -1.0
	if !s.Fetched.IsZero() {
		age = max(0, time.Since(s.Fetched).Seconds())
	}
	send(jwksAge, prometheus.GaugeValue, age)
	send(fetches, prometheus.CounterValue, float64(s.Fetches))
	send(fetchFailures, prometheus.CounterValue, float64(s.FetchFailures))
}
