package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/slipstreamprom"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// metrics are the metrics of a service: the requests that it answered, and the calls of its client for the next service.
type metrics struct {
	registry *prometheus.Registry
	client   *slipstreamprom.Collector // an observer of the client
	requests *prometheus.HistogramVec  // of HTTP
	calls    *prometheus.HistogramVec  // of Thrift
}

func newMetrics() *metrics {
	buckets := []float64{.001, .003, .01, .03, .1, .3, 1, 3}
	m := &metrics{
		registry: prometheus.NewRegistry(), client: slipstreamprom.New(slipstreamprom.Options{}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "chain_http_request_duration_seconds", Help: "Time of requests of HTTP.", Buckets: buckets}, []string{"method", "code"}),
		calls:    prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "chain_call_duration_seconds", Help: "Time of calls of Thrift.", Buckets: buckets}, []string{"function", "result"}),
	}
	m.registry.MustRegister(m.client, m.requests, m.calls) // their names differ
	return m
}

// next exports the connections of the client for the next service.
func (m *metrics) next(name string, stats func() slipstream.Stats) error {
	_, err := m.client.Add(name, stats)
	return err
}

// called counts a Thrift call.
func (m *metrics) called(r rpc.CallReport) {
	result := "ok"
	if status, ok := errors.AsType[*rpc.StatusError](r.Err); ok {
		result = strconv.Itoa(int(status.Code))
	} else if r.Refused {
		result = "refused"
	} else if r.Err != nil {
		result = "error"
	}
	m.calls.WithLabelValues(r.Method, result).Observe(r.Took.Seconds())
}

// handler exposes the metrics to Prometheus.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// serveHTTP serves until ctx ends, and then answers the requests that it has received. It closes the listener.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: webTimeout}
	served := make(chan error, 1)
	// It ends with Shutdown, or if the listener fails; the function waits for it.
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := server.Shutdown(ctx)
	if failure := <-served; !errors.Is(failure, http.ErrServerClosed) {
		err = errors.Join(err, failure)
	}
	return err
}
