package gateway

import "time"

// Metrics of credentials.
var (
	keyExpiry     = newMetric("api_key_expiry_timestamp_seconds", "When the next API key expires, in seconds since 1970. Absent while no key expires.")
	jwksAge       = newMetric("jwks_age_seconds", "Seconds since the key set of tokens was fetched; -1 before the first fetch. Absent for a set that is read from a file.")
	fetches       = newMetric("jwks_fetches_total", "Attempts to fetch the key set of tokens.")
	fetchFailures = newMetric("jwks_fetch_failures_total", "Attempts to fetch the key set of tokens that failed.")
)

// collectAccess collects the metrics of credentials.
func (g *Gateway) collectAccess(to sink) {
	gate := g.now().surface.gate
	if gate == nil {
		return
	}
	s := gate.Stats()
	if !s.NextExpiry.IsZero() {
		to.send(keyExpiry, float64(s.NextExpiry.Unix()))
	}
	if !s.Remote {
		return
	}
	age := -1.0
	if !s.Fetched.IsZero() {
		age = max(0, time.Since(s.Fetched).Seconds())
	}
	to.send(jwksAge, age)
	to.send(fetches, float64(s.Fetches))
	to.send(fetchFailures, float64(s.FetchFailures))
}
