package slipstreamprom_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/slipstreamprom"
)

// gather returns the metrics of one name by their labels: the number of calls of a histogram,
// otherwise the value.
func gather(t *testing.T, r prometheus.Gatherer, name string) map[string]float64 {
	t.Helper()
	families, err := r.Gather() // a pedantic registry checks them
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, family := range families {
		if family.GetHelp() == "" {
			t.Errorf("%s has no help", family.GetName())
		}
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			values[strings.Join(labels, " ")] = float64(m.GetHistogram().GetSampleCount()) + m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return values
}

func TestCallsAndConnectionsAreExported(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	collector := slipstreamprom.New(slipstreamprom.Options{})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	client, err := redis.Connect(t.Context(), redis.Options{Addr: server.Addr, Observer: collector})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	remove, err := collector.Add("sessions", func() slipstream.Stats { return client.Stats().Stats })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collector.Add("sessions", func() slipstream.Stats { return slipstream.Stats{} }); err == nil {
		t.Error("one name was added twice without an error")
	}
	for range 3 {
		if err := client.Set(t.Context(), "k", "text"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Incr(t.Context(), "k"); err == nil {
		t.Fatal("a text was incremented")
	}
	got := gather(t, registry, "slipstream_client_call_duration_seconds")
	if got["SET ok redis"] != 3 || got["INCR executed redis"] != 1 || len(got) != 2 {
		t.Errorf("%v", got)
	}
	const connections = "slipstream_client_connections"
	if got := gather(t, registry, connections); got["sessions"] != 1 || len(got) != 1 {
		t.Errorf("connections %v", got)
	}
	if got := gather(t, registry, "slipstream_client_sent_bytes_total"); got["sessions"] < 100 {
		t.Errorf("sent bytes %v", got)
	}
	remove()
	if got := gather(t, registry, connections); len(got) != 0 {
		t.Errorf("connections %v after remove", got)
	}
}

// Programs may send commands with made-up names; the number of label values is bounded.
func TestMadeUpNamesDoNotGrowTheMetrics(t *testing.T) {
	collector := slipstreamprom.New(slipstreamprom.Options{Namespace: "app"})
	for i := range 1000 {
		collector.Observe(slipstream.Observation{System: "redis", Op: fmt.Sprint("OP", i), Start: time.Now(), End: time.Now(), Requests: 1, Attempts: 1, Err: errors.New("lost")})
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	if got := gather(t, registry, "app_attempts_total"); len(got) != 257 || got["other redis"] != 1000-256 {
		t.Errorf("%d label values, want 257", len(got))
	}
}

// The counters of a pool and of the callers around it are exported like those of clients.
func TestHedgesAndEjectionsAreExported(t *testing.T) {
	collector := slipstreamprom.New(slipstreamprom.Options{})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	if _, err := collector.Add("catalog", func() slipstream.Stats {
		return slipstream.Stats{Repeated: 1, Hedges: 2, HedgesWon: 3, Ejections: 4, Ejected: 5}
	}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"repeated_total": 1, "hedges_total": 2, "hedges_won_total": 3, "ejections_total": 4, "ejected": 5} {
		if got := gather(t, registry, "slipstream_client_"+name); got["catalog"] != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
