package gateway

import "time"

// Metrics of credentials.
var (
	keyExpiry     = newMetric("api_key_expiry_timestamp_seconds", "When the next API key expires, in seconds since 1970. There is no such metric while none does.")
	jwksAge       = newMetric("jwks_age_seconds", "How long ago the key set of tokens was fetched; -1 before the first time. A set out of a file has no such metric.")
	fetches       = newMetric("jwks_fetches_total", "Attempts to fetch the key set of tokens.")
	fetchFailures = newMetric("jwks_fetch_failures_total", "Attempts to fetch the key set of tokens that failed.")
)

// collectAccess shows what becomes of credentials.
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
