// Package otel sends the spans of answered requests to an OpenTelemetry collector,
// by OTLP over HTTP.
//
// A span is made from a [trace.Span] when its request has been answered, and not while
// it is in flight: a request that is not sampled costs one comparison, and one that is
// costs a copy into a queue. Tracers and span processors of the OpenTelemetry SDK must
// be involved from the start and draw the ids themselves, its queue neither reports
// what it dropped nor ends with the context of its Shutdown, and its exporter needs
// gRPC even to send over HTTP. So this package implements all of it: about ten
// messages of protobuf, and a POST.
//
// Sources: OpenTelemetry protocol 1.x, https://opentelemetry.io/docs/specs/otlp/;
// semantic conventions for HTTP spans 1.43.
package otel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/trace"
)

// Config configures an [Exporter].
type Config struct {
	// Endpoint is the base address of the collector, http://host:4318; /v1/traces
	// is added to its path. Headers that the collector requires are taken from the
	// environment (OTEL_EXPORTER_OTLP_HEADERS), so that they need not be in a file; so
	// are the compression (OTEL_EXPORTER_OTLP_COMPRESSION, gzip or none) and further
	// resource attributes (OTEL_RESOURCE_ATTRIBUTES).
	Endpoint string
	// Service is the attribute service.name. If empty, it is slipstream.
	Service string
	// Ratio is the share of requests without a traceparent that is sampled, 0 to 1.
	Ratio float64
	// Log receives a line about spans that could not be delivered, at most once a
	// minute. If nil, nothing is logged.
	Log *slog.Logger
}

const (
	// maxQueue bounds the queue: about 1.2 MB of spans with their ids.
	maxQueue = 4096
	// maxBatch bounds the spans of one request: 512 are about 250 kB.
	maxBatch = 512
	// maxResponse bounds how much of the collector's answer is read.
	maxResponse = 64 << 10
	// maxErrorText is logged of it.
	maxErrorText = 300
)

// timing holds the times that tests shorten.
type timing struct {
	gather  time.Duration // the maximum time that a span waits for others
	attempt time.Duration // the timeout of one request to the collector
	first   time.Duration // pause after the first failure; it doubles
	pause   time.Duration // the longest pause
	give    time.Duration // the time after which a batch is dropped
	log     time.Duration // from one line of the log to the next
}

var usual = timing{
	gather: 2 * time.Second, attempt: 10 * time.Second,
	first: time.Second, pause: 5 * time.Second, give: 30 * time.Second,
	log: time.Minute,
}

// Exporter sends spans. All methods are safe for concurrent use.
type Exporter struct {
	// Immutable after New.
	timing    timing
	collector *poster
	resource  []attribute
	below     uint64 // trace ids whose second half, halved, is below it are sampled
	log       *slog.Logger
	queue     chan trace.Span
	quit      chan struct{}      // closed by Shutdown
	ended     chan struct{}      // closed when run has ended
	cancel    context.CancelFunc // ends what run waits for
	stop      sync.Once

	// Owned by run; read by Shutdown when that has ended.
	lastError error
	reported  int64 // of dropped
	loggedAt  time.Time

	// Atomics. dropped is written by run and Request, stopping by Shutdown.
	dropped  atomic.Int64
	stopping atomic.Bool
}

// New starts an exporter, and does not wait for the collector, which may start later.
// The context only bounds New. Shutdown stops the exporter.
func New(ctx context.Context, cfg Config) (*Exporter, error) {
	return newExporter(ctx, cfg, usual)
}

func newExporter(ctx context.Context, cfg Config, t timing) (*Exporter, error) {
	endpoint, err := url.Parse(cfg.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	if endpoint.Scheme != "http" && endpoint.Scheme != "https" || endpoint.Host == "" ||
		endpoint.User != nil || endpoint.RawQuery != "" || endpoint.Fragment != "" {
		return nil, fmt.Errorf("endpoint %q, expected http://host:4318 or https://host:4318", endpoint.Redacted())
	}
	if cfg.Service == "" {
		cfg.Service = "slipstream"
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	attributes, err := resource(cfg.Service)
	if err != nil {
		return nil, fmt.Errorf("resource attributes: %w", err)
	}
	e := &Exporter{
		timing: t, resource: attributes, log: cfg.Log, below: threshold(cfg.Ratio),
		collector: newPoster(endpoint.JoinPath("v1", "traces").String(), cfg, t),
		queue:     make(chan trace.Span, maxQueue),
		quit:      make(chan struct{}), ended: make(chan struct{}),
	}
	// Not the context of New: the exporter lives until Shutdown.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e.cancel = cancel
	// Stopped by Shutdown, which waits for it.
	go e.run(work)
	return e, nil
}

// threshold returns the number below which the share of all 63-bit numbers is ratio.
func threshold(ratio float64) uint64 {
	switch {
	case !(ratio > 0): // NaN too
		return 0
	case ratio >= 1:
		return 1 << 63
	}
	return uint64(math.Round(ratio * (1 << 63)))
}

// Sample decides whether a request is sampled, before it is answered. If it had a
// valid traceparent, ctx is that, and its flag decides: a trace is complete or absent.
// Otherwise ctx is that of the new trace, and Ratio decides by its id, as the SDK's
// TraceIDRatioBased does, so that services with the same ratio agree; if ctx is not
// valid, the decision is random. A client can request that all of its requests are
// sampled; spans that do not fit into the queue are dropped.
func (e *Exporter) Sample(ctx trace.Context, had bool) bool {
	if had {
		return ctx.Sampled()
	}
	if !ctx.Valid() {
		return rand.Uint64()>>1 < e.below
	}
	return binary.BigEndian.Uint64(ctx.TraceID[8:])>>1 < e.below
}

// Request queues the span of a sampled request, for which Sample returned true. It
// never blocks: if the queue is full, the span is dropped, and counted. RequestID and
// Method may point into the memory of the request; the other strings are kept.
func (e *Exporter) Request(s trace.Span) {
	if e.stopping.Load() {
		e.dropped.Add(1)
		return
	}
	// A part of a request's head would keep all of the head alive.
	s.RequestID = strings.Clone(s.RequestID)
	s.Method = knownMethod(s.Method)
	select {
	case e.queue <- s:
	default:
		e.dropped.Add(1)
	}
}

// Dropped returns how many spans were not delivered, as far as is known: the queue
// was full, or the collector did not accept them. If it accepted only a part of a
// batch, all of its spans are counted.
func (e *Exporter) Dropped() int64 {
	n := e.dropped.Load()
	select {
	case <-e.ended:
		n += int64(len(e.queue)) // they will not be sent anymore
	default:
	}
	return n
}

// batch is encoded spans, and how many.
type batch struct {
	spans []byte
	n     int
}

// run sends the spans in the queue, until Shutdown.
func (e *Exporter) run(ctx context.Context) {
	defer close(e.ended)
	var b batch
	for {
		var stopping bool
		b, stopping = e.gather(batch{spans: b.spans[:0]})
		delivered := e.export(ctx, b)
		if stopping && (b.n == 0 || !delivered) {
			return
		}
	}
}

// gather fills a batch, or as much of it as arrives in time. It returns stopping if
// no more spans will follow.
func (e *Exporter) gather(b batch) (_ batch, stopping bool) {
	var full <-chan time.Time // set when the first has arrived
	quit := e.quit
	for b.n < maxBatch {
		if stopping && len(e.queue) == 0 {
			break
		}
		select {
		case s := <-e.queue:
			b.spans = appendSpan(b.spans, &s)
			b.n++
			if full == nil {
				full = time.After(e.timing.gather)
			}
		case <-full:
			return b, stopping
		case <-quit:
			stopping, quit = true, nil
		}
	}
	return b, stopping
}

// export delivers a batch, and reports whether it did.
func (e *Exporter) export(ctx context.Context, b batch) bool {
	if b.n == 0 {
		return true
	}
	// The buffer is not reused: an abandoned attempt may still read it.
	err := e.collector.post(ctx, appendRequest(nil, e.resource, b.spans))
	if err != nil {
		e.lastError = err
		e.dropped.Add(int64(b.n))
	}
	e.report(err)
	return err == nil
}

// report logs what was dropped since it last did. In an outage that is one line
// per minute, whatever the number of requests.
func (e *Exporter) report(err error) {
	dropped := e.dropped.Load()
	if dropped == e.reported || !e.loggedAt.IsZero() && time.Since(e.loggedAt) < e.timing.log {
		return
	}
	reason := "the queue was full"
	if err != nil {
		reason = err.Error()
	}
	if len(reason) > maxErrorText {
		reason = strings.ToValidUTF8(reason[:maxErrorText], "") + "..."
	}
	e.log.Warn("spans were dropped", "spans", dropped-e.reported, "reason", reason)
	e.reported, e.loggedAt = dropped, time.Now()
}

// Shutdown delivers the spans in the queue and stops the exporter. It gives up when
// ctx ends, or when the collector does not accept a batch. The error says how many
// spans were lost. Later calls wait for the same end.
func (e *Exporter) Shutdown(ctx context.Context) error {
	before := e.dropped.Load()
	e.stop.Do(func() {
		e.stopping.Store(true)
		close(e.quit)
	})
	var gaveUp error
	select {
	case <-e.ended:
	case <-ctx.Done():
		gaveUp = ctx.Err()
	}
	e.cancel()
	<-e.ended // soon: whatever run waits for ends with the cancellation
	e.collector.close()
	if n := e.Dropped() - before; n > 0 {
		return fmt.Errorf("%d spans were not delivered: %w", n, errors.Join(gaveUp, e.lastError))
	}
	return nil
}
