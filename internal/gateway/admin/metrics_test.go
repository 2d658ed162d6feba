package admin

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func metricsOf(page http.HandlerFunc, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	page(w, r)
	return w
}

func twoMetrics() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	for _, name := range []string{"first_total", "second_total"} {
		registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: "A metric."}))
	}
	return registry
}

func TestMetricsPage(t *testing.T) {
	page := metricsPage(twoMetrics())
	w := metricsOf(page, "/metrics")
	const want = "# HELP first_total A metric.\n# TYPE first_total counter\nfirst_total 0\n# HELP second_total A metric.\n# TYPE second_total counter\nsecond_total 0\n"
	if w.Code != 200 || w.Body.String() != want || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("%d, %v\n%s", w.Code, w.Header(), w.Body)
	}
	w = metricsOf(page, "/metrics?name[]=second_total&name[]=third")
	if w.Code != 200 || strings.Contains(w.Body.String(), "first_total") || !strings.Contains(w.Body.String(), "second_total 0") {
		t.Errorf("one name: %d\n%s", w.Code, w.Body)
	}
	w = metricsOf(page, "/metrics", "Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "application/vnd.google.protobuf") {
		t.Errorf("protobuf: got %s", got)
	}
	w = metricsOf(page, "/metrics", "Accept-Encoding", "br, gzip;q=0.5")
	unpacked, err := gzip.NewReader(w.Body)
	if err != nil || w.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("gzip: %v, %v", err, w.Header())
	}
	if got, err := io.ReadAll(unpacked); string(got) != want {
		t.Errorf("gzip: %v\n%s", err, got)
	}
}

func TestTakesGzip(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "gzip": true, "br, GZIP": true, "gzip;q=0": false, "gzip; q=0.000": false, "gzip;q=0.1": true, "gzip;q=1": true,
		"*": true, "identity": false, "xgzip": false, "deflate,zstd": false,
	} {
		if got := takesGzip(http.Header{"Accept-Encoding": {accept}}); got != want {
			t.Errorf("%q: got %v, want %v", accept, got, want)
		}
	}
}

func TestMetricsThatCannotBeGathered(t *testing.T) {
	failing := prometheus.NewRegistry()
	failing.MustRegister(broken{prometheus.NewDesc("broken", "Fails.", nil, nil)})
	w := metricsOf(metricsPage(failing), "/metrics")
	if w.Code != 500 || !strings.Contains(w.Body.String(), "out of order") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

// Beyond a few concurrent requests, further ones are refused, but not later ones.
func TestMetricsForFew(t *testing.T) {
	hold := make(chan struct{})
	arrived := make(chan struct{}, maxGathering)
	slow := prometheus.NewRegistry()
	slow.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "slow", Help: "Waits."}, func() float64 {
		arrived <- struct{}{}
		<-hold
		return 1
	}))
	page := metricsPage(slow)
	var asking sync.WaitGroup
	for range maxGathering {
		// Ends when hold is closed; waited for below.
		asking.Go(func() {
			if w := metricsOf(page, "/metrics"); w.Code != 200 {
				t.Errorf("one of the first: %d %s", w.Code, w.Body)
			}
		})
	}
	for range maxGathering {
		<-arrived
	}
	if w := metricsOf(page, "/metrics"); w.Code != 503 {
		t.Errorf("one too many: %d %s", w.Code, w.Body)
	}
	close(hold)
	asking.Wait()
	if w := metricsOf(page, "/metrics"); w.Code != 200 {
		t.Errorf("after the others have ended: %d %s", w.Code, w.Body)
	}
}

// broken is a metric that fails.
type broken struct{ desc *prometheus.Desc }

func (b broken) Describe(to chan<- *prometheus.Desc) { to <- b.desc }
func (b broken) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(b.desc, errors.New("out of order"))
}
