package gateway

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// Metrics of the frontends, of the engine below them, and of the log of requests.
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
	handedOver          = prometheus.NewDesc("slipstream_http_handed_over_total", "Requests that the event loop handed over to net/http with their connection, by reason.", []string{"reason"}, nil)
	closes              = prometheus.NewDesc("slipstream_engine_closes_total", "Connections that left an engine, by reason.", []string{"frontend", "reason"}, nil)
	redisCommands       = prometheus.NewDesc("slipstream_redis_commands_total", "Commands that the Redis frontend answered, by group.", []string{"group"}, nil)
	redisErrors         = prometheus.NewDesc("slipstream_redis_errors_total", "Commands that the Redis frontend answered with an error, by kind; wrongpass counts failed logins.", []string{"kind"}, nil)
	redisDurations      = prometheus.NewDesc("slipstream_redis_command_duration_seconds", "Time from the end of reading a command to its answer, by the source of the answer; a hit counts with the time of all commands of the same read. Buckets are accurate to 3.2 %.", []string{"source"}, nil)
	redisBytes          = prometheus.NewDesc("slipstream_redis_body_bytes_total", "Bytes of documents in answers of the Redis frontend.", nil, nil)
	redisStale          = prometheus.NewDesc("slipstream_redis_stale_answers_total", "Answers of the Redis frontend with a document that may be older than promised, which the policy of its resource allows.", nil, nil)
	redisWaiting        = prometheus.NewDesc("slipstream_redis_waiting_documents", "Documents that commands wait for.", nil, nil)
	redisHeld           = prometheus.NewDesc("slipstream_redis_held_bytes", "Bytes of loaded documents that wait for their turn in an answer.", nil, nil)
	redisSpokeHTTP      = prometheus.NewDesc("slipstream_redis_spoke_http_total", "Connections of the Redis frontend that were closed because they spoke HTTP.", nil, nil)
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
	if g.http != nil {
		send(connections, prometheus.GaugeValue, float64(g.http.Connections()))
		send(frontendConnections, prometheus.GaugeValue, float64(g.http.Connections()), "http")
		send(connectionLimit, prometheus.GaugeValue, float64(g.bounds.httpPlaces), "http")
		send(largePending, prometheus.GaugeValue, float64(g.http.LargePending()), "http")
		send(largePendingLimit, prometheus.GaugeValue, float64(maxPending(g.config)), "http")
		g.http.EachHandover(func(reason string, n int64) {
			send(handedOver, prometheus.CounterValue, float64(n), reason)
		})
		if s, looped := g.http.EngineStats(); looped {
			collectEngine(&s, "http", send)
		} else {
			collectCloses(&s, "http", send)
		}
		g.http.EachBudget(func(name string, used, limit int64) {
			send(budgetUsed, prometheus.GaugeValue, float64(used), "http", name)
			send(budgetLimit, prometheus.GaugeValue, float64(limit), "http", name)
		})
		g.http.EachThrottled(func(rule string, n int64) {
			send(throttled, prometheus.CounterValue, float64(n), "http", rule)
		})
	}
	if g.redis != nil {
		g.collectRedis(send, out)
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

// collectRedis shows the figures of the Redis frontend.
func (g *Gateway) collectRedis(send sender, out chan<- prometheus.Metric) {
	s := g.redis.EngineStats()
	send(frontendConnections, prometheus.GaugeValue, float64(s.Connections), "redis")
	send(connectionLimit, prometheus.GaugeValue, float64(g.bounds.redisPlaces), "redis")
	send(largePending, prometheus.GaugeValue, float64(g.redis.LargePending()), "redis")
	send(largePendingLimit, prometheus.GaugeValue, float64(maxPending(g.config)), "redis")
	collectEngine(&s, "redis", send)
	g.redis.EachBudget(func(name string, used, limit int64) {
		send(budgetUsed, prometheus.GaugeValue, float64(used), "redis", name)
		send(budgetLimit, prometheus.GaugeValue, float64(limit), "redis", name)
	})
	g.redis.EachThrottled(func(rule string, n int64) {
		send(throttled, prometheus.CounterValue, float64(n), "redis", rule)
	})
	g.redis.EachGroup(func(group string, n int64) {
		send(redisCommands, prometheus.CounterValue, float64(n), group)
	})
	g.redis.EachFailure(func(kind string, n int64) {
		send(redisErrors, prometheus.CounterValue, float64(n), kind)
	})
	for _, name := range sources {
		out <- durationsOf(redisDurations, g.redis.Latency(name).Snapshot(), name)
	}
	send(redisBytes, prometheus.CounterValue, float64(g.redis.BodyBytes()))
	send(redisStale, prometheus.CounterValue, float64(g.redis.StaleAnswers()))
	send(redisWaiting, prometheus.GaugeValue, float64(g.redis.Waiting()))
	send(redisHeld, prometheus.GaugeValue, float64(g.redis.Held()))
	send(redisSpokeHTTP, prometheus.CounterValue, float64(g.redis.SpokeHTTP()))
}

// collectEngine shows the figures of the engine below a frontend.
func collectEngine(s *loop.Stats, frontend string, send sender) {
	for _, m := range perEngine {
		send(m.desc, m.kind, m.value(s), frontend)
	}
	send(throttled, prometheus.CounterValue, float64(s.Postponed), frontend, "turn")
	collectCloses(s, frontend, send)
}

// collectCloses shows why connections ended.
func collectCloses(s *loop.Stats, frontend string, send sender) {
	s.EachClose(func(reason string, n uint64) {
		send(closes, prometheus.CounterValue, float64(n), frontend, reason)
	})
}
