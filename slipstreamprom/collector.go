// Package slipstreamprom exports metrics of the Redis, Tarantool and Thrift clients to Prometheus: of calls,
// as an observer, and of connections, hedges and ejections, from the statistics of clients. Programs that do not import
// it do not need the Prometheus library.
package slipstreamprom

import (
	"fmt"
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream"
)

// defaultBuckets are the buckets of latencies, from 100 us to 3 s.
var defaultBuckets = []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3}

// maxOps bounds the values of the label op: programs may send commands with arbitrary names.
const maxOps = 256

// otherOp is the label op of operations beyond maxOps.
const otherOp = "other"

// Options configure a [Collector]. The zero value works.
type Options struct {
	// Namespace is the prefix of names. If empty, it is slipstream_client.
	Namespace string
	// Buckets are the upper bounds of the latency histogram in seconds. If empty, they are ten
	// from 100 us to 3 s.
	Buckets []float64
	// ConstLabels are added to every metric.
	ConstLabels prometheus.Labels
}

// A Collector is a [slipstream.Observer] that counts calls and a [prometheus.Collector] that
// exports them. One can observe several clients. All methods are safe for concurrent use.
type Collector struct {
	// Immutable.
	duration *prometheus.HistogramVec
	attempts *prometheus.CounterVec
	requests *prometheus.CounterVec
	stats    []statMetric

	mu sync.Mutex
	// Guarded by mu.
	ops     map[string]struct{}
	clients map[string]func() slipstream.Stats
}

// statMetric is a metric that is a field of [slipstream.Stats].
type statMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*slipstream.Stats) float64
}

// New returns a collector, which must be registered.
func New(o Options) *Collector {
	if o.Namespace == "" {
		o.Namespace = "slipstream_client"
	}
	if len(o.Buckets) == 0 {
		o.Buckets = defaultBuckets
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: o.Namespace, Name: name, Help: help, ConstLabels: o.ConstLabels,
		}, []string{"system", "op"})
	}
	return &Collector{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: o.Namespace, Name: "call_duration_seconds", Buckets: o.Buckets, ConstLabels: o.ConstLabels,
			Help: "Time from the start of a call to its end, repetitions included. The outcome of a call that succeeded is ok.",
		}, []string{"system", "op", "outcome"}),
		attempts: counter("attempts_total", "Attempts of calls: more than calls if some were repeated."),
		requests: counter("requests_total", "Requests in calls: more than calls if some were batches."),
		stats:    statMetrics(o),
		ops:      make(map[string]struct{}),
		clients:  make(map[string]func() slipstream.Stats),
	}
}

func statMetrics(o Options) []statMetric {
	metric := func(name, help string, kind prometheus.ValueType, value func(*slipstream.Stats) float64) statMetric {
		return statMetric{prometheus.NewDesc(prometheus.BuildFQName(o.Namespace, "", name), help, []string{"client"}, o.ConstLabels), kind, value}
	}
	const total, now = prometheus.CounterValue, prometheus.GaugeValue
	return []statMetric{
		metric("connections", "Open connections.", now, func(s *slipstream.Stats) float64 { return float64(s.Connected) }),
		metric("queued", "Calls that are not sent yet.", now, func(s *slipstream.Stats) float64 { return float64(s.Queued) }),
		metric("outstanding", "Calls that are sent and not answered yet.", now, func(s *slipstream.Stats) float64 { return float64(s.Outstanding) }),
		metric("held_bytes", "Memory of calls that counts for Options.MaxBytes.", now, func(s *slipstream.Stats) float64 { return float64(s.HeldBytes) }),
		metric("round_trip_seconds", "Shortest recent time from a request to its reply.", now, func(s *slipstream.Stats) float64 { return s.RoundTrip.Seconds() }),
		metric("overloaded_total", "Calls that were rejected because a limit was reached.", total, func(s *slipstream.Stats) float64 { return float64(s.Overloaded) }),
		metric("cancelled_total", "Calls that ended with their context or timeout.", total, func(s *slipstream.Stats) float64 { return float64(s.Cancelled) }),
		metric("failed_total", "Attempts that ended with their connection.", total, func(s *slipstream.Stats) float64 { return float64(s.Failed) }),
		metric("repeated_total", "Repetitions of calls that failed.", total, func(s *slipstream.Stats) float64 { return float64(s.Repeated) }),
		metric("hedges_total", "Second attempts of calls that were slow.", total, func(s *slipstream.Stats) float64 { return float64(s.Hedges) }),
		metric("hedges_won_total", "Second attempts that were answered first.", total, func(s *slipstream.Stats) float64 { return float64(s.HedgesWon) }),
		metric("ejections_total", "Ejections of members of a pool because calls to them failed.", total, func(s *slipstream.Stats) float64 { return float64(s.Ejections) }),
		metric("ejected", "Members of a pool that get no calls now because calls to them failed.", now, func(s *slipstream.Stats) float64 { return float64(s.Ejected) }),
		metric("moved_total", "Calls that left a connection that ended for another one before they were sent.", total, func(s *slipstream.Stats) float64 { return float64(s.Moved) }),
		metric("disconnects_total", "Connections that ended.", total, func(s *slipstream.Stats) float64 { return float64(s.Reconnects) }),
		metric("stalls_total", "Connections that were closed because the server was silent.", total, func(s *slipstream.Stats) float64 { return float64(s.Stalls) }),
		metric("writes_total", "Writes to connections.", total, func(s *slipstream.Stats) float64 { return float64(s.Writes) }),
		metric("sent_bytes_total", "Bytes written to connections.", total, func(s *slipstream.Stats) float64 { return float64(s.BytesOut) }),
		metric("hook_panics_total", "Contained panics of Observer, OnSlow and OnEvent.", total, func(s *slipstream.Stats) float64 { return float64(s.HookPanics) }),
	}
}

// Observe implements [slipstream.Observer].
func (c *Collector) Observe(o slipstream.Observation) {
	op, outcome := c.op(o.Op), "ok"
	if o.Err != nil {
		outcome = slipstream.OutcomeOf(o.Err).String()
	}
	c.duration.WithLabelValues(o.System, op, outcome).Observe(o.Duration().Seconds())
	c.attempts.WithLabelValues(o.System, op).Add(float64(o.Attempts))
	c.requests.WithLabelValues(o.System, op).Add(float64(o.Requests))
}

// op returns the label of an operation.
func (c *Collector) op(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.ops[name]; known {
		return name
	}
	if len(c.ops) >= maxOps {
		return otherOp
	}
	c.ops[name] = struct{}{}
	return name
}

// Add exports the statistics of a client with the label client, which must be new, until the
// returned function is called. For a tarantool.Pool it is the sum over its instances, and for a
// governance.Pool of Thrift clients that over its members:
//
//	collector.Add("users", func() slipstream.Stats { return pool.Stats().Stats.Stats })
//	collector.Add("catalog", func() slipstream.Stats { return catalog.Stats().Stats })
//	collector.Add("catalog retry", retry.Stats)
func (c *Collector) Add(client string, stats func() slipstream.Stats) (remove func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.clients[client]; known {
		return nil, fmt.Errorf("slipstreamprom: client %q has already been added; expected another name", client)
	}
	c.clients[client] = stats
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.clients, client)
	}, nil
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	c.duration.Describe(to)
	c.attempts.Describe(to)
	c.requests.Describe(to)
	for _, m := range c.stats {
		to <- m.desc
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.duration.Collect(to)
	c.attempts.Collect(to)
	c.requests.Collect(to)
	c.mu.Lock()
	clients := maps.Clone(c.clients)
	c.mu.Unlock()
	for name, stats := range clients {
		s := stats()
		for _, m := range c.stats {
			to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&s), name)
		}
	}
}
