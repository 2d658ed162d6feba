package gateway

import (
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream/internal/gateway/admin"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// collects is a collector of some metrics, which it describes as a gateway does.
type collects func(to sink)

func (f collects) Describe(out chan<- *prometheus.Desc) { collector{}.Describe(out) }

func (f collects) Collect(out chan<- prometheus.Metric) { f(sink(out)) }

func originOnly(n origin.Stats) prometheus.Collector {
	return collects(func(to sink) { collectOrigin(n, to) })
}

// gathered returns counters and gauges by name and label value, and the buckets,
// count and sum of histograms.
func gathered(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			found[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if h := m.GetHistogram(); h != nil {
				found[name] = h.GetSampleSum()
				found[name+" count"] = float64(h.GetSampleCount())
				for _, b := range h.GetBucket() {
					found[name+" "+time.Duration(b.GetUpperBound()*float64(time.Second)).String()] = float64(b.GetCumulativeCount())
				}
			}
		}
	}
	return found
}

// The dashboard shows turns that were postponed, and every reason for a close.
func TestEngineFigures(t *testing.T) {
	got := admin.Frontend{Name: "http"}
	engineFigures(&got, &loop.Stats{Backend: "epoll", Connections: 1, Unwritten: 2, Postponed: 3, Closes: map[string]uint64{"memory": 4, "end": 5}})
	want := admin.Frontend{Name: "http", Engine: "epoll", Connections: 1, Unwritten: 2,
		Throttled: []admin.Throttle{{Rule: "turn", Count: 3}}, Closes: []admin.Close{{Reason: "end", Count: 5}, {Reason: "memory", Count: 4}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOriginMetrics(t *testing.T) {
	got := gathered(t, originOnly(origin.Stats{
		Polls: 1, PollErrors: 2, Events: 3, LastPoll: 4 * time.Second, Voids: 5, Trimmed: 6, Wakes: 7, Surveys: 8, OwnerFaults: 9, ClockJumps: 10, DerivationsFailed: 11,
		Retention: &origin.Retention{Bytes: 21, Kept: 22, KeepBytes: 23, Reach: 24 * time.Second, Bound: origin.BoundBytes, Holders: []origin.Holder{
			{Kind: "transaction", PID: 25, XID: "26", Name: "report", Age: 27 * time.Second, Deletes: true},
			{Kind: "replication slot", XID: "28", Name: "standby", Age: 29 * time.Second},
		}},
		ToFresh: origin.Histogram{Bounds: []time.Duration{10 * time.Millisecond, 100 * time.Millisecond}, Counts: []uint64{10, 20, 5}, Sum: 12500 * time.Millisecond},
	}))
	want := map[string]float64{
		"slipstream_origin_polls_total":                                              1,
		"slipstream_origin_poll_errors_total":                                        2,
		"slipstream_origin_events_total":                                             3,
		"slipstream_origin_last_poll_seconds":                                        4,
		"slipstream_origin_history_breaks_total":                                     5,
		"slipstream_origin_trimmed_rows_total":                                       6,
		"slipstream_origin_wakes_total":                                              7,
		"slipstream_origin_surveys_total":                                            8,
		"slipstream_origin_owner_faults":                                             9,
		"slipstream_origin_clock_jumps_total":                                        10,
		"slipstream_origin_derivations_failed_total":                                 11,
		"slipstream_origin_changes_bytes":                                            21,
		"slipstream_origin_changes_kept_bytes":                                       22,
		"slipstream_origin_changes_keep_bytes":                                       23,
		"slipstream_origin_changes_reach_seconds":                                    24,
		"slipstream_origin_changes_bound time":                                       0,
		"slipstream_origin_changes_bound bytes":                                      1,
		"slipstream_origin_changes_bound transaction":                                0,
		"slipstream_origin_changes_held_seconds deletion transaction report 25 26":   27,
		"slipstream_origin_changes_held_seconds vacuum replication slot standby  28": 29,
		"slipstream_change_to_fresh_seconds":                                         12.5,
		"slipstream_change_to_fresh_seconds count":                                   35,
		"slipstream_change_to_fresh_seconds 10ms":                                    10,
		"slipstream_change_to_fresh_seconds 100ms":                                   30,
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %d values", got, len(want))
	}
	// An origin that does not measure the distribution does not show one.
	if got := gathered(t, originOnly(origin.Stats{})); len(got) != 11+8 || got["slipstream_origin_changes_held_seconds     "] != 0 {
		t.Errorf("without a distribution: %v", got)
	}
}
