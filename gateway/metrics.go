package gateway

import (
	"regexp"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/measure"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// collectorTime are the metrics of package runtime that say what the garbage
// collector takes, and what of it nobody else wanted.
var collectorTime = regexp.MustCompile(`^/cpu/classes/gc/(total|mark/idle):cpu-seconds$`)

// newMetrics returns the registry of a gateway. The hit path keeps plain striped
// counters; they are turned into metrics when somebody asks.
func newMetrics(g *Gateway) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: collectorTime})),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&collector{g},
		g.canary,
	)
	return registry
}

// collector shows the figures of the gateway's parts.
type collector struct{ gateway *Gateway }

// constHistogram returns the histogram as Prometheus wants it, in seconds: counts that include
// those of the buckets below.
func constHistogram(desc *prometheus.Desc, h origin.Histogram) (prometheus.Metric, error) {
	buckets := make(map[float64]uint64, len(h.Bounds))
	total := uint64(0)
	for i, n := range h.Counts {
		total += n
		if i < len(h.Bounds) {
			buckets[h.Bounds[i].Seconds()] = total
		}
	}
	return prometheus.NewConstHistogram(desc, total, h.Sum.Seconds(), buckets)
}

// perResource are the metrics with the label "resource".
var perResource = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*cache.ResourceStats) int64
}{
	{resourceMetric("hits_total", "Answers from a tier."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Hits }},
	{resourceMetric("misses_total", "Answers that needed a load."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Misses }},
	{resourceMetric("joined_total", "Misses that shared the load of another request."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Joined }},
	{resourceMetric("load_statements_total", "Statements sent to the origin."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Statements }},
	{resourceMetric("loaded_documents_total", "Documents loaded from the origin, including missing rows."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Loaded }},
	{resourceMetric("load_failures_total", "Keys that failed to load."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Failed }},
	{resourceMetric("load_halved_total", "Statements that failed and were retried in halves."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Halved }},
	{resourceMetric("stores_refused_total", "Loaded documents that were not stored because a newer change was known."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Refused }},
	{resourceMetric("stale_answers_total", "Answers served marked stale."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Stale }},
	{resourceMetric("verified_answers_total", "Hits that waited until the stream confirmed them."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Verified }},
	{resourceMetric("reloaded_answers_total", "GETs that loaded because an answer from the cache could not keep the promise."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Reloaded }},
	{resourceMetric("unavailable_answers_total", "Answers refused because the promise could not be kept."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Unavailable }},
	{resourceMetric("overloaded_answers_total", "Answers refused because too many keys waited for a load."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Overloaded }},
	{resourceMetric("invalidations_total", "Invalidations of single documents."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Events }},
	{resourceMetric("flushes_total", "Invalidations of the whole resource."), prometheus.CounterValue, func(r *cache.ResourceStats) int64 { return r.Flushes }},
	{resourceMetric("load_queue", "Keys that wait for a statement now."), prometheus.GaugeValue, func(r *cache.ResourceStats) int64 { return r.Queued }},
	{resourceMetric("load_queue_limit", "Maximum of slipstream_load_queue, load.queue in the configuration: past it the client with the most is refused."), prometheus.GaugeValue, func(r *cache.ResourceStats) int64 { return r.QueueLimit }},
	{resourceMetric("loads_in_flight", "Keys being loaded now."), prometheus.GaugeValue, func(r *cache.ResourceStats) int64 { return r.InFlight }},
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// perTier are the metrics with the label "tier".
var perTier = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*cache.TierStats) int64
}{
	{tierMetric("documents", "Cached documents, including missing rows."), prometheus.GaugeValue, func(t *cache.TierStats) int64 { return t.Documents }},
	{tierMetric("missing_rows", "Cached missing rows."), prometheus.GaugeValue, func(t *cache.TierStats) int64 { return t.Missing }},
	{tierMetric("bytes", "Bytes charged for cached documents."), prometheus.GaugeValue, func(t *cache.TierStats) int64 { return t.Bytes }},
	{tierMetric("form_bytes", "Bytes charged for forms of documents made for frontends; part of slipstream_tier_bytes."), prometheus.GaugeValue, func(t *cache.TierStats) int64 { return t.FormBytes }},
	{tierMetric("budget_bytes", "Maximum of slipstream_tier_bytes."), prometheus.GaugeValue, func(t *cache.TierStats) int64 { return t.Budget }},
	{tierMetric("evicted_total", "Documents evicted to make room for others."), prometheus.CounterValue, func(t *cache.TierStats) int64 { return t.Evicted }},
}

var (
	promised          = resourceMetric("promised", "1 while the stream receives every change of the resource. Resources without a promise do not have this metric.")
	noPromise         = resourceMetric("no_promise", "1 if the resource is declared without a promise: documents are served by age.")
	bound             = resourceMetric("freshness_seconds", "Configured maximum age of an answer of the resource.")
	horizonAge        = prometheus.NewDesc("slipstream_horizon_age_seconds", "Age of the horizon, up to which all invalidations are known; -1 if there is none.", nil, nil)
	tombstones        = prometheus.NewDesc("slipstream_tombstones", "Recent invalidations kept for loads in flight.", nil, nil)
	voids             = prometheus.NewDesc("slipstream_voids_total", "Times that everything cached was dropped because the history of the database broke.", nil, nil)
	polls             = prometheus.NewDesc("slipstream_origin_polls_total", "Polls of the invalidation stream.", nil, nil)
	pollErrors        = prometheus.NewDesc("slipstream_origin_poll_errors_total", "Polls of the invalidation stream that failed.", nil, nil)
	pollEvents        = prometheus.NewDesc("slipstream_origin_events_total", "Changes that the invalidation stream delivered.", nil, nil)
	pollTime          = prometheus.NewDesc("slipstream_origin_last_poll_seconds", "Duration of the last poll of the invalidation stream.", nil, nil)
	wakeups           = prometheus.NewDesc("slipstream_origin_wakes_total", "Polls of the invalidation stream ahead of schedule: for notifications, for answers to verify, and for loads that met a change.", nil, nil)
	clockJumps        = prometheus.NewDesc("slipstream_origin_clock_jumps_total", "Times that the clocks of the gateway and of the database server diverged between two polls: one of the machines was paused or restored, or its clock was set.", nil, nil)
	breaks            = prometheus.NewDesc("slipstream_origin_history_breaks_total", "Times that the database was found to have another history.", nil, nil)
	surveys           = prometheus.NewDesc("slipstream_origin_surveys_total", "Times that the invalidation stream read the catalogs of the database.", nil, nil)
	derivationsFailed = prometheus.NewDesc("slipstream_origin_derivations_failed_total", "Times that a resource lost its promise because the documents that its changed rows belong to could not be found: the tables were locked, the statement failed or took longer than an eighth of the promise.", nil, nil)
	ownerFaults       = prometheus.NewDesc("slipstream_origin_owner_faults", "Objects of the change record that belong to the wrong role: trigger functions of a superuser, and objects of a role that is neither the schema's owner nor the definer.", nil, nil)
	trimmed           = prometheus.NewDesc("slipstream_origin_trimmed_rows_total", "Rows of the change table that the gateway deleted.", nil, nil)
	toFresh           = prometheus.NewDesc("slipstream_change_to_fresh_seconds", "Time from a change until every answer includes it. For SQLite an upper bound, with one value for each poll that read changes.", nil, nil)
)

// buildInfo tells dashboards when another version began to serve.
var buildInfo = prometheus.NewDesc("slipstream_build_info", "Always 1; the labels are the versions of slipstream and of Go.", []string{"version", "go"}, nil)

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
	now, s := g.now(), g.cache.Stats()
	age := s.HorizonAge.Seconds()
	if s.HorizonAge < 0 {
		age = -1
	}
	send(buildInfo, prometheus.GaugeValue, 1, version(), runtime.Version())
	send(horizonAge, prometheus.GaugeValue, age)
	send(tombstones, prometheus.GaugeValue, float64(s.Tombstones))
	send(voids, prometheus.CounterValue, float64(s.Voids))
	for i := range s.Resources {
		for _, m := range perResource {
			send(m.desc, m.kind, float64(m.value(&s.Resources[i])), s.Resources[i].Name)
		}
		r := &s.Resources[i]
		if at := now.named(r.Name); at >= 0 {
			send(bound, prometheus.GaugeValue, now.config.Resources[at].Freshness.Seconds(), r.Name)
		}
		send(noPromise, prometheus.GaugeValue, truth(r.NoPromise), r.Name)
		if !r.NoPromise {
			send(promised, prometheus.GaugeValue, truth(r.Promised), r.Name)
		}
	}
	for i := range s.Tiers {
		for _, m := range perTier {
			send(m.desc, m.kind, float64(m.value(&s.Tiers[i].TierStats)), s.Tiers[i].Name)
		}
	}
	g.collectDisk(send)
	g.collectFrontends(send, out)
	g.collectAccess(send)
	g.collectAudit(send)
	if o := g.origin.reached.Load(); o != nil {
		collectOrigin(o.stream.Stats(), send, out)
	}
}

// durationBounds are those of the buckets of slipstream_http_request_duration_seconds,
// in seconds: from a quick hit to the request timeout.
var durationBounds = [...]float64{
	2.5e-6, 5e-6, 10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
}

// durationsOf shows the latency of a source.
func durationsOf(desc *prometheus.Desc, d measure.Distribution, source string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(durationBounds))
	for _, bound := range durationBounds {
		buckets[bound] = d.AtMost(seconds(bound))
	}
	m, err := prometheus.NewConstHistogram(desc, d.Count(), d.Sum().Seconds(), buckets, source)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return m
}

// collectOrigin shows the figures of the origin's stream.
func collectOrigin(n origin.Stats, send sender, out chan<- prometheus.Metric) {
	send(polls, prometheus.CounterValue, float64(n.Polls))
	send(pollErrors, prometheus.CounterValue, float64(n.PollErrors))
	send(pollEvents, prometheus.CounterValue, float64(n.Events))
	send(pollTime, prometheus.GaugeValue, n.LastPoll.Seconds())
	send(wakeups, prometheus.CounterValue, float64(n.Wakes))
	send(clockJumps, prometheus.CounterValue, float64(n.ClockJumps))
	send(derivationsFailed, prometheus.CounterValue, float64(n.DerivationsFailed))
	send(breaks, prometheus.CounterValue, float64(n.Voids))
	send(trimmed, prometheus.CounterValue, float64(n.Trimmed))
	send(surveys, prometheus.CounterValue, float64(n.Surveys))
	send(ownerFaults, prometheus.GaugeValue, float64(n.OwnerFaults))
	collectRetention(n.Retention, send)
	if len(n.ToFresh.Bounds) == 0 {
		return
	}
	m, err := constHistogram(toFresh, n.ToFresh)
	if err != nil {
		m = prometheus.NewInvalidMetric(toFresh, err)
	}
	out <- m
}
