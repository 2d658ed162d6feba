package gateway

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	front "github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// Metrics of all frontends, of the engines below them, and of the log of requests.
var (
	frontendConnections = frontendMetric("frontend_connections", "Open connections of a frontend.")
	connectionLimit     = frontendMetric("frontend_connections_limit", "Open connections that a frontend may have; for one more an idle one is closed.")
	certificateExpiry   = frontendMetric("certificate_expiry_timestamp_seconds", "When the first certificate in use expires, in seconds since 1970. Frontends without TLS do not have this metric.")
	clientMemoryUsed    = prometheus.NewDesc("slipstream_client_memory_bytes", "Memory that connections of all frontends hold: small answers that wait for clients, requests that wait, input.", nil, nil)
	clientMemoryLimit   = prometheus.NewDesc("slipstream_client_memory_limit_bytes", "Maximum of slipstream_client_memory_bytes: above half of it slow readers are throttled, above it connections are closed.", nil, nil)
	clientsThrottled    = prometheus.NewDesc("slipstream_client_memory_throttled_total", "Connections that got fewer answers at a time because client memory was above half of its limit.", nil, nil)
	clientsClosed       = prometheus.NewDesc("slipstream_client_memory_closed_total", "Connections that were closed because client memory was above its limit.", nil, nil)
	largePending        = frontendMetric("frontend_large_pending_bytes", "Bytes of answers of 64 KiB and more that wait for clients or for their turn.")
	largePendingLimit   = frontendMetric("frontend_large_pending_limit_bytes", "Maximum of slipstream_frontend_large_pending_bytes, above which connections of the address that owes most are closed; at one and a half of it such answers are refused.")
	budgetUsed          = prometheus.NewDesc("slipstream_frontend_budget", "What clients have taken of a bound that they share: waiting (HTTP: requests, Redis: documents that are waited for), loading (bytes of batches that load, as estimated), streams (requests of HTTP/2), checks (tokens that wait for their signature to be checked), large_commands (connections).", []string{"frontend", "budget"}, nil)
	budgetLimit         = prometheus.NewDesc("slipstream_frontend_budget_limit", "Maximum of slipstream_frontend_budget.", []string{"frontend", "budget"}, nil)
	closes              = prometheus.NewDesc("slipstream_engine_closes_total", "Connections that left an engine, by reason.", []string{"frontend", "reason"}, nil)
	throttled           = prometheus.NewDesc("slipstream_throttled_total", "What was refused or delayed because a client does too much, by rule: client and caller are rate limits; signature and login are failed attempts of an address; check is tokens of the client with the most waiting; turn is connections with more work than others wait for; large is large answers that were refused and connections that got no other one; waiting and streams are requests past the bounds of slipstream_frontend_budget.", []string{"frontend", "rule"}, nil)
	logLines            = prometheus.NewDesc("slipstream_request_log_lines_total", "Lines written to the request log.", nil, nil)
	logDropped          = prometheus.NewDesc("slipstream_request_log_dropped_lines_total", "Lines of the request log that were lost because the disk or the reader did not keep up.", nil, nil)
)

// perEngine are the metrics of an engine, with the label "frontend".
var perEngine = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*loop.Stats) float64
}{
	{frontendMetric("engine_accepted_total", "Connections that were accepted."), prometheus.CounterValue, func(s *loop.Stats) float64 { return float64(s.Accepted) }},
	{frontendMetric("engine_accept_errors_total", "Failures to accept a connection, mostly for lack of file descriptors."), prometheus.CounterValue, func(s *loop.Stats) float64 { return float64(s.AcceptErrors) }},
	{frontendMetric("engine_wakes_total", "Times that a loop woke up with something to do."), prometheus.CounterValue, func(s *loop.Stats) float64 { return float64(s.Wakes) }},
	{frontendMetric("engine_events_total", "Connections that were ready when a loop woke up."), prometheus.CounterValue, func(s *loop.Stats) float64 { return float64(s.Events) }},
	{frontendMetric("engine_reads_total", "System calls that read from connections."), prometheus.CounterValue, func(s *loop.Stats) float64 { return float64(s.Reads) }},
	{frontendMetric("engine_writes_total", "System calls that wrote to connections."), prometheus.CounterValue, func(s *loop.Stats) float64 { return float64(s.Writes) }},
	{frontendMetric("engine_unwritten_bytes", "Bytes of answers that wait for clients to read."), prometheus.GaugeValue, func(s *loop.Stats) float64 { return float64(s.Unwritten) }},
	{frontendMetric("engine_owed_answers", "Requests that wait for their answer."), prometheus.GaugeValue, func(s *loop.Stats) float64 { return float64(s.Owed) }},
}

func frontendMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("slipstream_"+name, help, []string{"frontend"}, nil)
}

// sender gives a metric to the registry.
type sender func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string)

// collectFrontends shows what carries the requests.
func (g *Gateway) collectFrontends(send sender, out chan<- prometheus.Metric) {
	m := g.bounds.memory.Stats()
	send(clientMemoryUsed, prometheus.GaugeValue, float64(m.Used))
	send(clientMemoryLimit, prometheus.GaugeValue, float64(m.Limit))
	send(clientsThrottled, prometheus.CounterValue, float64(m.Throttled))
	send(clientsClosed, prometheus.CounterValue, float64(m.Closed))
	for _, f := range g.frontends {
		g.collectFrontend(f, send, out)
	}
	g.collectCertificates(send)
	if l := g.now().surface.requests; l != nil {
		send(logLines, prometheus.CounterValue, float64(l.Lines()))
		send(logDropped, prometheus.CounterValue, float64(l.Dropped()))
	}
}

// collectCertificates shows when the first certificate of each frontend ends.
func (g *Gateway) collectCertificates(send sender) {
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
			send(certificateExpiry, prometheus.GaugeValue, float64(first.Unix()), name)
		}
	}
}

// collectFrontend shows the figures of a frontend.
func (g *Gateway) collectFrontend(f opened, send sender, out chan<- prometheus.Metric) {
	is := f.Figures()
	send(frontendConnections, prometheus.GaugeValue, float64(is.Engine.Connections), f.name)
	send(connectionLimit, prometheus.GaugeValue, float64(g.bounds.places[f.name]), f.name)
	send(largePending, prometheus.GaugeValue, float64(is.Large), f.name)
	send(largePendingLimit, prometheus.GaugeValue, float64(maxPending(g.config)), f.name)
	if is.Looped {
		collectEngine(&is.Engine, f.name, send)
	}
	is.Engine.EachClose(func(reason string, n uint64) {
		send(closes, prometheus.CounterValue, float64(n), f.name, reason)
	})
	for _, b := range is.Budgets {
		send(budgetUsed, prometheus.GaugeValue, float64(b.Used), f.name, b.Name)
		send(budgetLimit, prometheus.GaugeValue, float64(b.Limit), f.name, b.Name)
	}
	for _, t := range is.Throttled {
		send(throttled, prometheus.CounterValue, float64(t.N), f.name, t.Name)
	}
	f.collect(&is, send, out)
}

// collectDurations shows the latency of answers by their source.
func collectDurations(desc *prometheus.Desc, a *front.Answers, out chan<- prometheus.Metric) {
	for _, source := range front.Sources {
		out <- durationsOf(desc, a.Latency(source).Snapshot(), source.String())
	}
}

// collectEngine shows the figures of the engine below a frontend.
func collectEngine(s *loop.Stats, frontend string, send sender) {
	for _, m := range perEngine {
		send(m.desc, m.kind, m.value(s), frontend)
	}
	send(throttled, prometheus.CounterValue, float64(s.Postponed), frontend, "turn")
}
