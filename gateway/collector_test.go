package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// describedNames returns the names of the metrics that a collector describes.
func describedNames(t *testing.T, c prometheus.Collector) (names []string) {
	t.Helper()
	descriptions := make(chan *prometheus.Desc)
	// Ends when Describe returns, which the loop waits for.
	go func() {
		defer close(descriptions)
		c.Describe(descriptions)
	}()
	for d := range descriptions {
		m := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("a description without a name: %v", d)
		}
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

// A gateway describes the metrics that it sends, whatever its configuration and its requests, so that
// a pedantic registry accepts them; and it describes no others.
//
// mutant: gateway-metric-not-described
func TestEveryMetricIsDescribed(t *testing.T) {
	testkit.NoLeaks(t)
	before := describedNames(t, unstarted(t, newDatabase(t, writeAhead+company), deptResource).Collector())
	s := everythingOn(t)
	if after := describedNames(t, s.gateway.Collector()); !slices.Equal(before, after) {
		t.Errorf("%v are described; another gateway describes %v", after, before)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s.gateway.Collector())
	end, ended := make(chan struct{}), make(chan struct{})
	defer func() {
		close(end)
		<-ended
	}()
	// Stopped by end and awaited above.
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
			}
			for _, path := range []string{fmt.Sprint("/depts/", i%300+1), fmt.Sprint("/staff/", i%300+1001), "/depts/x", "/depts?key=1&key=2"} {
				if _, err := s.try(t.Context(), "GET", s.http+path); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	var sent []string
	testkit.Eventually(t, patience, func() error {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		sent = sent[:0]
		hits := 0
		for _, f := range families {
			sent = append(sent, f.GetName())
			for _, m := range f.GetMetric() {
				if f.GetName() == "slipstream_hits_total" && m.GetCounter().GetValue() > 0 {
					hits++
				}
			}
		}
		if hits < 2 {
			return fmt.Errorf("%d resources have hits, expected 2", hits)
		}
		return nil
	})
	if !slices.Equal(sent, before) {
		t.Errorf("sent     %v\ndescribed %v", strings.Join(sent, " "), strings.Join(before, " "))
	}
}

// Only newMetric makes descriptions, so none can be missed.
func TestMetricsAreMadeInOnePlace(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") {
			found += strings.Count(string(text), "prometheus.NewDesc(")
		}
	}
	if found != 1 {
		t.Errorf("prometheus.NewDesc is called in %d places; expected newMetric only", found)
	}
}
