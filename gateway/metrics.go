package gateway

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/slipstream-go/slipstream/cache"
)

// newMetrics returns the registry of a gateway. The hit path keeps plain striped
// counters; they are turned into metrics when somebody asks.
func newMetrics(g *Gateway) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&collector{g},
	)
	return registry
}

// collector shows the figures of the gateway's parts.
type collector struct{ gateway *Gateway }

// perResource are the metrics with the label "resource".
var perResource = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*cache.ResourceStats) int64
}{
	{resourceMetric("hits_total", "Answers from a tier."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Hits }},
	{resourceMetric("misses_total", "Answers that needed a load."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Misses }},
	{resourceMetric("joined_total", "Misses that shared a load begun by another."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Joined }},
	{resourceMetric("load_statements_total", "Statements sent to the origin."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Statements }},
	{resourceMetric("loaded_documents_total", "Documents brought by statements, missing rows included."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Loaded }},
	{resourceMetric("load_failures_total", "Keys that failed to load."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Failed }},
	{resourceMetric("load_halved_total", "Statements that failed and were tried again in halves."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Halved }},
	{resourceMetric("stores_refused_total", "Loaded documents not stored, because a newer change was known."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Refused }},
	{resourceMetric("stale_answers_total", "Answers served marked stale."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Stale }},
	{resourceMetric("unavailable_answers_total", "Answers refused because the promise could not be kept."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Unavailable }},
	{resourceMetric("overloaded_answers_total", "Answers refused because too many keys waited for a load."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Overloaded }},
	{resourceMetric("invalidations_total", "Invalidations of single documents."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Events }},
	{resourceMetric("flushes_total", "Invalidations of the whole resource."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Flushes }},
	{resourceMetric("loads_in_flight", "Keys being loaded now."), prometheus.GaugeValue, func(r *cache.ResourceStats) int64 { return r.InFlight }},
	{resourceMetric("promised", "1 while the stream hears of every change of the resource."), prometheus.GaugeValue, func(r *cache.ResourceStats) int64 {
		if r.Promised {
			return 1
		}
		return 0
	}},
}

// perTier are the metrics with the label "tier".
var perTier = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*cache.TierStats) int64
}{
	{tierMetric("documents", "Documents held, missing rows included."), prometheus.GaugeValue, func(t *cache.TierStats) int64 { return t.Documents }},
	{tierMetric("missing_rows", "Missing rows held."), prometheus.GaugeValue, func(t *cache.TierStats) int64 { return t.Missing }},
	{tierMetric("bytes", "What the documents are charged."), prometheus.GaugeValue, func(t *cache.TierStats) int64 { return t.Bytes }},
	{tierMetric("form_bytes", "Of the bytes: forms made for frontends."), prometheus.GaugeValue, func(t *cache.TierStats) int64 { return t.FormBytes }},
	{tierMetric("budget_bytes", "What the documents may be charged at most."), prometheus.GaugeValue, func(t *cache.TierStats) int64 { return t.Budget }},
	{tierMetric("evicted_total", "Documents dropped for want of room."), prometheus.CounterValue, func(t *cache.TierStats) int64 { return t.Evicted }},
}

var (
	horizonAge  = prometheus.NewDesc("slipstream_horizon_age_seconds", "How far behind the present the invalidations are known to be complete; -1 without a horizon.", nil, nil)
	tombstones  = prometheus.NewDesc("slipstream_tombstones", "Recent invalidations remembered for loads under way.", nil, nil)
	voids       = prometheus.NewDesc("slipstream_voids_total", "How often everything was dropped because the history broke.", nil, nil)
	connections = prometheus.NewDesc("slipstream_http_connections", "Open connections of the HTTP frontend.", nil, nil)
	answers     = prometheus.NewDesc("slipstream_http_answers_total", "Answers of the HTTP frontend.", []string{"status"}, nil)
	polls       = prometheus.NewDesc("slipstream_origin_polls_total", "Rounds of the invalidation stream.", nil, nil)
	pollErrors  = prometheus.NewDesc("slipstream_origin_poll_errors_total", "Rounds of the invalidation stream that failed.", nil, nil)
	pollEvents  = prometheus.NewDesc("slipstream_origin_events_total", "Changes that the invalidation stream delivered.", nil, nil)
	pollTime    = prometheus.NewDesc("slipstream_origin_last_poll_seconds", "Duration of the last round of the invalidation stream.", nil, nil)
)

func resourceMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("slipstream_"+name, help, []string{"resource"}, nil)
}

func tierMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("slipstream_tier_"+name, help, []string{"tier"}, nil)
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect implements [prometheus.Collector].
func (c *collector) Collect(out chan<- prometheus.Metric) {
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	g := c.gateway
	s := g.cache.Stats()
	age := s.HorizonAge.Seconds()
	if s.HorizonAge < 0 {
		age = -1
	}
	send(horizonAge, prometheus.GaugeValue, age)
	send(tombstones, prometheus.GaugeValue, float64(s.Tombstones))
	send(voids, prometheus.CounterValue, float64(s.Voids))
	for i := range s.Resources {
		for _, m := range perResource {
			send(m.desc, m.kind, float64(m.value(&s.Resources[i])), s.Resources[i].Name)
		}
	}
	for i := range s.Tiers {
		for _, m := range perTier {
			send(m.desc, m.kind, float64(m.value(&s.Tiers[i].TierStats)), s.Tiers[i].Name)
		}
	}
	if g.http != nil {
		send(connections, prometheus.GaugeValue, float64(g.http.Connections()))
	}
	g.service.EachStatus(func(status string, n int64) {
		send(answers, prometheus.CounterValue, float64(n), status)
	})
	if o := g.origin.reached.Load(); o != nil {
		n := o.stats()
		send(polls, prometheus.CounterValue, float64(n.polls))
		send(pollErrors, prometheus.CounterValue, float64(n.pollErrors))
		send(pollEvents, prometheus.CounterValue, float64(n.events))
		send(pollTime, prometheus.GaugeValue, n.lastPoll.Seconds())
	}
}
