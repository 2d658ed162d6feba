package gateway

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of credentials.
var keyExpiry = prometheus.NewDesc("slipstream_api_key_expiry_timestamp_seconds", "When the next API key expires, in seconds since 1970. There is no such metric while none does.", nil, nil)

// collectAccess shows what becomes of credentials.
func (g *Gateway) collectAccess(send sender) {
	gate := g.now().surface.gate
	if gate == nil {
		return
	}
	if s := gate.Stats(); !s.NextExpiry.IsZero() {
		send(keyExpiry, prometheus.GaugeValue, float64(s.NextExpiry.Unix()))
	}
}
