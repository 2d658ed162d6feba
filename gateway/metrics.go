package gateway

import (
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// collectorTime are the metrics of package runtime for the CPU time of the garbage
// collector, and for the part of it that would have been idle.
var collectorTime = regexp.MustCompile(`^/cpu/classes/gc/(total|mark/idle):cpu-seconds$`)

// newMetrics returns the registry of a gateway. The hit path keeps plain striped
// counters; they are turned into metrics when the page is requested.
func newMetrics(g *Gateway) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: collectorTime})),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collector{g},
	)
	return registry
}

// A metric describes values that a gateway sends to a registry. Only newMetric makes one.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType // if it is not a histogram
}

// allMetrics are those that a gateway may send. It is written only while the package is
// initialized.
var allMetrics []metric

// newMetric describes a metric, whose name begins with slipstream_: a counter if the name ends in
// _total, otherwise a gauge or a histogram. It is called only while the package is initialized.
func newMetric(name, help string, labels ...string) metric {
	m := metric{prometheus.NewDesc("slipstream_"+name, help, labels, nil), prometheus.GaugeValue}
	if strings.HasSuffix(name, "_total") {
		m.kind = prometheus.CounterValue
	}
	allMetrics = append(allMetrics, m)
	return m
}

// A sink receives the values of metrics for a registry.
type sink chan<- prometheus.Metric

func (to sink) send(m metric, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
}

// sendHistogram sends a histogram of durations. The buckets are counts by their upper bound in
// seconds, which include the counts of all smaller bounds.
func (to sink) sendHistogram(m metric, count uint64, sum time.Duration, buckets map[float64]uint64, labels ...string) {
	to <- prometheus.MustNewConstHistogram(m.desc, count, sum.Seconds(), buckets, labels...)
}

// collector collects the metrics of the gateway's parts.
type collector struct{ gateway *Gateway }

// perResource are the metrics with the label "resource".
var perResource = []struct {
	metric
	value func(*cache.ResourceStats) int64
}{
	{resourceMetric("hits_total", "Answers from a tier."), func(r *cache.ResourceStats) int64 { return r.Hits }},
	{resourceMetric("misses_total", "Answers that needed a load."), func(r *cache.ResourceStats) int64 { return r.Misses }},
	{resourceMetric("joined_total", "Misses that shared the load of another request."), func(r *cache.ResourceStats) int64 { return r.Joined }},
	{resourceMetric("load_statements_total", "Statements sent to the origin."), func(r *cache.ResourceStats) int64 { return r.Statements }},
	{resourceMetric("loaded_documents_total", "Documents loaded from the origin, including missing rows."), func(r *cache.ResourceStats) int64 { return r.Loaded }},
	{resourceMetric("load_failures_total", "Keys that failed to load."), func(r *cache.ResourceStats) int64 { return r.Failed }},
	{resourceMetric("load_halved_total", "Statements that failed and were retried in halves."), func(r *cache.ResourceStats) int64 { return r.Halved }},
	{resourceMetric("stores_refused_total", "Loaded documents that were not stored because a newer change was known."), func(r *cache.ResourceStats) int64 { return r.Refused }},
	{resourceMetric("stale_answers_total", "Answers served marked stale."), func(r *cache.ResourceStats) int64 { return r.Stale }},
	{resourceMetric("verified_answers_total", "Hits that waited until the stream confirmed them."), func(r *cache.ResourceStats) int64 { return r.Verified }},
	{resourceMetric("reloaded_answers_total", "GETs that loaded because an answer from the cache could not keep the promise."), func(r *cache.ResourceStats) int64 { return r.Reloaded }},
	{resourceMetric("unavailable_answers_total", "Answers refused because the promise could not be kept."), func(r *cache.ResourceStats) int64 { return r.Unavailable }},
	{resourceMetric("overloaded_answers_total", "Answers refused because too many keys waited for a load."), func(r *cache.ResourceStats) int64 { return r.Overloaded }},
	{resourceMetric("invalidations_total", "Invalidations of single documents."), func(r *cache.ResourceStats) int64 { return r.Events }},
	{resourceMetric("flushes_total", "Invalidations of the whole resource."), func(r *cache.ResourceStats) int64 { return r.Flushes }},
	{resourceMetric("load_queue", "Keys that wait for a statement now."), func(r *cache.ResourceStats) int64 { return r.Queued }},
	{resourceMetric("load_queue_limit", "Maximum of slipstream_load_queue, load.queue in the configuration: beyond it the client with the most queued keys loses one."), func(r *cache.ResourceStats) int64 { return r.QueueLimit }},
	{resourceMetric("loads_in_flight", "Keys being loaded now."), func(r *cache.ResourceStats) int64 { return r.InFlight }},
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// perTier are the metrics with the label "tier".
var perTier = []struct {
	metric
	value func(*cache.TierStats) int64
}{
	{tierMetric("documents", "Cached documents, including missing rows."), func(t *cache.TierStats) int64 { return t.Documents }},
	{tierMetric("missing_rows", "Cached missing rows."), func(t *cache.TierStats) int64 { return t.Missing }},
	{tierMetric("bytes", "Bytes charged for cached documents."), func(t *cache.TierStats) int64 { return t.Bytes }},
	{tierMetric("form_bytes", "Bytes charged for forms of documents made for frontends; part of slipstream_tier_bytes."), func(t *cache.TierStats) int64 { return t.FormBytes }},
	{tierMetric("budget_bytes", "Maximum of slipstream_tier_bytes."), func(t *cache.TierStats) int64 { return t.Budget }},
	{tierMetric("evicted_total", "Documents evicted to make room for others."), func(t *cache.TierStats) int64 { return t.Evicted }},
}

var (
	promised          = resourceMetric("promised", "1 while the stream receives every change of the resource. Resources without a promise do not have this metric.")
	noPromise         = resourceMetric("no_promise", "1 if the resource is declared without a promise: documents are served by age.")
	bound             = resourceMetric("freshness_seconds", "Configured maximum age of an answer of the resource.")
	horizonAge        = newMetric("horizon_age_seconds", "Age of the horizon, up to which all invalidations are known; -1 if there is none.")
	tombstones        = newMetric("tombstones", "Recent invalidations kept for loads in flight.")
	voids             = newMetric("voids_total", "Times that everything cached was dropped because the history of the database broke.")
	polls             = newMetric("origin_polls_total", "Polls of the invalidation stream.")
	pollErrors        = newMetric("origin_poll_errors_total", "Polls of the invalidation stream that failed.")
	pollEvents        = newMetric("origin_events_total", "Changes that the invalidation stream delivered.")
	pollTime          = newMetric("origin_last_poll_seconds", "Duration of the last poll of the invalidation stream.")
	wakeups           = newMetric("origin_wakes_total", "Polls of the invalidation stream ahead of schedule: for notifications, for answers to verify, and for loads that saw a change before the stream.")
	clockJumps        = newMetric("origin_clock_jumps_total", "Times that the clocks of the gateway and of the database server diverged between two polls: one of the machines was paused or restored, or its clock was set.")
	breaks            = newMetric("origin_history_breaks_total", "Times that the database was found to have another history.")
	surveys           = newMetric("origin_surveys_total", "Times that the invalidation stream read the catalogs of the database.")
	derivationsFailed = newMetric("origin_derivations_failed_total", "Times that a resource lost its promise because the documents that its changed rows belong to could not be found: the tables were locked, the statement failed or took longer than an eighth of the promise.")
	ownerFaults       = newMetric("origin_owner_faults", "Objects of the change record that belong to the wrong role: trigger functions of a superuser, and objects of a role that is neither the schema's owner nor the definer.")
	trimmed           = newMetric("origin_trimmed_rows_total", "Rows of the change table that the gateway deleted.")
	toFresh           = newMetric("change_to_fresh_seconds", "Time from a change until every answer includes it. For SQLite an upper bound, with one value per poll that read changes.")
)

// buildInfo lets dashboards show when another version began to serve.
var buildInfo = newMetric("build_info", "Always 1; the labels are the versions of slipstream and of Go.", "version", "go")

func resourceMetric(name, help string) metric {
	return newMetric(name, help, "resource")
}

func tierMetric(name, help string) metric {
	return newMetric("tier_"+name, help, "tier")
}

// Describe implements [prometheus.Collector].
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range allMetrics {
		out <- m.desc
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(out chan<- prometheus.Metric) {
	g, to := c.gateway, sink(out)
	now, s := g.now(), g.cache.Stats()
	age := s.HorizonAge.Seconds()
	if s.HorizonAge < 0 {
		age = -1
	}
	to.send(buildInfo, 1, version(), runtime.Version())
	to.send(horizonAge, age)
	to.send(tombstones, float64(s.Tombstones))
	to.send(voids, float64(s.Voids))
	for i := range s.Resources {
		for _, m := range perResource {
			to.send(m.metric, float64(m.value(&s.Resources[i])), s.Resources[i].Name)
		}
		r := &s.Resources[i]
		if at := now.named(r.Name); at >= 0 {
			to.send(bound, now.config.Resources[at].Freshness.Seconds(), r.Name)
		}
		to.send(noPromise, truth(r.NoPromise), r.Name)
		if !r.NoPromise {
			to.send(promised, truth(r.Promised), r.Name)
		}
	}
	for i := range s.Tiers {
		for _, m := range perTier {
			to.send(m.metric, float64(m.value(&s.Tiers[i].TierStats)), s.Tiers[i].Name)
		}
	}
	g.collectDisk(to)
	g.collectFrontends(to)
	g.collectAccess(to)
	g.collectAudit(to)
	g.canary.collect(to)
	if o := g.origin.reached.Load(); o != nil {
		collectOrigin(o.stream.Stats(), to)
	}
}

// collectOrigin collects the metrics of the origin's stream.
func collectOrigin(n origin.Stats, to sink) {
	to.send(polls, float64(n.Polls))
	to.send(pollErrors, float64(n.PollErrors))
	to.send(pollEvents, float64(n.Events))
	to.send(pollTime, n.LastPoll.Seconds())
	to.send(wakeups, float64(n.Wakes))
	to.send(clockJumps, float64(n.ClockJumps))
	to.send(derivationsFailed, float64(n.DerivationsFailed))
	to.send(breaks, float64(n.Voids))
	to.send(trimmed, float64(n.Trimmed))
	to.send(surveys, float64(n.Surveys))
	to.send(ownerFaults, float64(n.OwnerFaults))
	collectRetention(n.Retention, to)
	if len(n.ToFresh.Bounds) == 0 {
		return
	}
	buckets := make(map[float64]uint64, len(n.ToFresh.Bounds))
	total := uint64(0)
	for i, count := range n.ToFresh.Counts {
		total += count
		if i < len(n.ToFresh.Bounds) {
			buckets[n.ToFresh.Bounds[i].Seconds()] = total
		}
	}
	to.sendHistogram(toFresh, total, n.ToFresh.Sum, buckets)
}
