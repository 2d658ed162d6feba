package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// Metrics of the frontends, of the engine below them, and of the log of requests.
var (
	frontendConnections = frontendMetric("frontend_connections", "Open connections of a frontend.")
	handedOver          = prometheus.NewDesc("slipstream_http_handed_over_total", "Requests that the event loop handed over to net/http with their connection, by what made them no plain ones.", []string{"reason"}, nil)
	closes              = prometheus.NewDesc("slipstream_engine_closes_total", "Connections that left an engine, by why.", []string{"frontend", "reason"}, nil)
	logLines            = prometheus.NewDesc("slipstream_request_log_lines_total", "Lines of the log of requests.", nil, nil)
	logDropped          = prometheus.NewDesc("slipstream_request_log_dropped_lines_total", "Lines of the log of requests that were lost because the disk or the reader did not keep up.", nil, nil)
)

// perEngine are the metrics of an engine, with the label "frontend".
var perEngine = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*loop.Stats) float64
}{
	{frontendMetric("engine_accepted_total", "Connections that were accepted."), prometheus.CounterValue, func(s *loop.Stats) float64 { return float64(s.Accepted) }},
	{frontendMetric("engine_accept_errors_total", "Failures to accept a connection, above all for want of descriptors."), prometheus.CounterValue, func(s *loop.Stats) float64 { return float64(s.AcceptErrors) }},
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
func (g *Gateway) collectFrontends(send sender) {
	if g.http != nil {
		send(connections, prometheus.GaugeValue, float64(g.http.Connections()))
		send(frontendConnections, prometheus.GaugeValue, float64(g.http.Connections()), "http")
		g.http.EachHandover(func(reason string, n int64) {
			send(handedOver, prometheus.CounterValue, float64(n), reason)
		})
		if s, ok := g.http.EngineStats(); ok {
			collectEngine(&s, "http", send)
		}
	}
	if l := g.surface.requests; l != nil {
		send(logLines, prometheus.CounterValue, float64(l.Lines()))
		send(logDropped, prometheus.CounterValue, float64(l.Dropped()))
	}
}

// collectEngine shows the figures of the engine below a frontend.
func collectEngine(s *loop.Stats, frontend string, send sender) {
	for _, m := range perEngine {
		send(m.desc, m.kind, m.value(s), frontend)
	}
	s.EachClose(func(reason string, n uint64) {
		send(closes, prometheus.CounterValue, float64(n), frontend, reason)
	})
}
