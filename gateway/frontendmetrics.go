package gateway

import (
	"time"

	front "github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// Metrics of all frontends, of their engines, and of the log of requests.
var (
	frontendConnections = frontendMetric("frontend_connections", "Open connections of a frontend.")
	connectionLimit     = frontendMetric("frontend_connections_limit", "Maximum number of open connections of a frontend; at the limit an idle one is closed for a new one.")
	certificateExpiry   = frontendMetric("certificate_expiry_timestamp_seconds", "When the first certificate in use expires, in seconds since 1970. Frontends without TLS do not have this metric.")
	clientMemoryUsed    = newMetric("client_memory_bytes", "Memory that connections of all frontends hold: small answers that wait for clients, requests that wait, input.")
	clientMemoryLimit   = newMetric("client_memory_limit_bytes", "Maximum of slipstream_client_memory_bytes: above half of it slow readers are throttled, above it connections are closed.")
	clientsThrottled    = newMetric("client_memory_throttled_total", "Connections that got fewer answers at a time because client memory was above half of its limit.")
	clientsClosed       = newMetric("client_memory_closed_total", "Connections that were closed because client memory was above its limit.")
	largePending        = frontendMetric("frontend_large_pending_bytes", "Bytes of answers of 64 KiB and more that wait for clients or for their turn to be sent.")
	largePendingLimit   = frontendMetric("frontend_large_pending_limit_bytes", "Maximum of slipstream_frontend_large_pending_bytes, above which connections of the address with the most pending bytes are closed; at one and a half times it such answers are refused.")
	budgetUsed          = newMetric("frontend_budget", "Usage of bounds that clients share: waiting (HTTP: requests, Redis and Thrift: documents that are waited for), loading (bytes of batches that load, as estimated), streams (requests of HTTP/2), checks (tokens that wait for their signature to be checked), large_commands (connections).", "frontend", "budget")
	budgetLimit         = newMetric("frontend_budget_limit", "Maximum of slipstream_frontend_budget.", "frontend", "budget")
	closes              = newMetric("engine_closes_total", "Connections that left an engine, by reason.", "frontend", "reason")
	throttled           = newMetric("throttled_total", "Requests and connections that were refused or delayed because a client does too much, by rule: client and caller are rate limits; signature and login are failed attempts of an address; check is tokens of the client with the most waiting; turn is connections with more work than others wait for; large is large answers that were refused and connections that got no other one; waiting and streams are requests past the bounds of slipstream_frontend_budget.", "frontend", "rule")
	logLines            = newMetric("request_log_lines_total", "Lines written to the request log.")
	logDropped          = newMetric("request_log_dropped_lines_total", "Lines of the request log that were lost because the disk or the reader did not keep up.")
)

// perEngine are the metrics of an engine, with the label "frontend".
var perEngine = []struct {
	metric
	value func(*loop.Stats) float64
}{
	{frontendMetric("engine_accepted_total", "Connections that were accepted."), func(s *loop.Stats) float64 { return float64(s.Accepted) }},
	{frontendMetric("engine_accept_errors_total", "Failures to accept a connection, usually for lack of file descriptors."), func(s *loop.Stats) float64 { return float64(s.AcceptErrors) }},
	{frontendMetric("engine_wakes_total", "Times that a loop woke up with something to do."), func(s *loop.Stats) float64 { return float64(s.Wakes) }},
	{frontendMetric("engine_events_total", "Connections that were ready when a loop woke up."), func(s *loop.Stats) float64 { return float64(s.Events) }},
	{frontendMetric("engine_late_events_total", "Connections that may have been ready for more than a millisecond while another loop slept."), func(s *loop.Stats) float64 { return float64(s.Late) }},
	{frontendMetric("engine_reads_total", "System calls that read from connections."), func(s *loop.Stats) float64 { return float64(s.Reads) }},
	{frontendMetric("engine_writes_total", "System calls that wrote to connections."), func(s *loop.Stats) float64 { return float64(s.Writes) }},
	{frontendMetric("engine_unwritten_bytes", "Bytes of answers that wait for clients to read."), func(s *loop.Stats) float64 { return float64(s.Unwritten) }},
	{frontendMetric("engine_owed_answers", "Requests that wait for their answer."), func(s *loop.Stats) float64 { return float64(s.Owed) }},
}

func frontendMetric(name, help string) metric {
	return newMetric(name, help, "frontend")
}

// collectFrontends collects the metrics of the frontends.
func (g *Gateway) collectFrontends(to sink) {
	m := g.bounds.memory.Stats()
	to.send(clientMemoryUsed, float64(m.Used))
	to.send(clientMemoryLimit, float64(m.Limit))
	to.send(clientsThrottled, float64(m.Throttled))
	to.send(clientsClosed, float64(m.Closed))
	for _, f := range g.frontends {
		g.collectFrontend(f, to)
	}
	g.collectCertificates(to)
	if l := g.now().surface.requests; l != nil {
		to.send(logLines, float64(l.Lines()))
		to.send(logDropped, float64(l.Dropped()))
	}
}

// collectCertificates collects when the first certificate of each frontend
// expires.
func (g *Gateway) collectCertificates(to sink) {
	now := g.now()
	for name, listeners := range listenersOf(g.config) {
		var first time.Time
		for _, l := range listeners {
			c := now.surface.certificates[tlsOf(g.config, name, l)]
			if c == nil {
				continue
			}
			if ends := c.expires(); first.IsZero() || ends.Before(first) {
				first = ends
			}
		}
		if !first.IsZero() {
			to.send(certificateExpiry, float64(first.Unix()), name)
		}
	}
}

// collectFrontend collects the metrics of a frontend.
func (g *Gateway) collectFrontend(f opened, to sink) {
	is := f.Figures()
	to.send(frontendConnections, float64(is.Engine.Connections), f.name)
	to.send(connectionLimit, float64(g.bounds.places[f.name]), f.name)
	to.send(largePending, float64(is.Large), f.name)
	to.send(largePendingLimit, float64(maxPending(g.config)), f.name)
	if is.Looped {
		collectEngine(&is.Engine, f.name, to)
	}
	is.Engine.EachClose(func(reason string, n uint64) {
		to.send(closes, float64(n), f.name, reason)
	})
	for _, b := range is.Budgets {
		to.send(budgetUsed, float64(b.Used), f.name, b.Name)
		to.send(budgetLimit, float64(b.Limit), f.name, b.Name)
	}
	for _, t := range is.Throttled {
		to.send(throttled, float64(t.N), f.name, t.Name)
	}
	f.collect(&is, to)
}

// durationBounds are the bounds of the buckets of the latencies, in seconds: from a quick hit to the
// request timeout.
var durationBounds = [...]float64{
	2.5e-6, 5e-6, 10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
}

// collectDurations collects the latency of answers by their source.
func collectDurations(m metric, a *front.Answers, to sink) {
	for _, source := range front.Sources {
		d := a.Latency(source).Snapshot()
		buckets := make(map[float64]uint64, len(durationBounds))
		for _, bound := range durationBounds {
			buckets[bound] = d.AtMost(seconds(bound))
		}
		to.sendHistogram(m, d.Count(), d.Sum(), buckets, source.String())
	}
}

// collectEngine collects the metrics of a frontend's engine.
func collectEngine(s *loop.Stats, frontend string, to sink) {
	for _, m := range perEngine {
		to.send(m.metric, m.value(s), frontend)
	}
	to.send(throttled, float64(s.Postponed), frontend, "turn")
}
