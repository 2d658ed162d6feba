// Package slipstreamotel exports the calls of the Redis, Tarantool and Thrift clients to OpenTelemetry, as spans
// and as the metric db.client.operation.duration. It is a separate module: programs that do not import
// it do not need OpenTelemetry.
//
//	o, err := slipstreamotel.New(slipstreamotel.Options{})
//	...
//	client, err := redis.Connect(ctx, redis.Options{Addr: addr, Observer: o})
//
// One observer serves several clients. [slipstream.Observers] combines it with others.
//
// # Spans
//
// A call has a span if its context has a span of this process that is recorded or sampled. The call's
// span is a child of that span, also if that span has ended: calls with a completion function may end
// later than their caller. Calls without such a span, for example of background jobs, have none, and a
// context that has only the span of a remote caller counts as none.
//
// The span has the times of the call, with all repetitions and the pauses between them; a request to a
// tarantool.Pool has a span for each instance that it went to. Spans are created when the call has
// ended, with all attributes, so a sampler sees all of them.
//
// # Attributes
//
// Names and values are those of the semantic conventions for database clients, version 1.43.0:
//
//	db.system.name           redis, tarantool or thrift
//	db.namespace             redis.Options.DB, also if a session has selected another database
//	db.operation.name        the command or request; PIPELINE or BATCH if several were sent together
//	db.operation.batch.size  their number; only of spans
//	server.address           the host or the path of the Unix socket; absent if a call went to several servers
//	server.port              the port, if there is one
//	db.response.status_code  StatusCode of the server's error, such as WRONGTYPE or 3
//	error.type               the same, if the server answered with an error, or else timeout, canceled,
//	                         not_sent, refused, overloaded, client_closed, executed or maybe_executed
//
// Spans of calls that were retried or hedged have slipstream.attempts. The status of spans of calls that failed
// has the [slipstream.Outcome] as its description. Keys, values and texts of errors, which may have
// parts of both, are not exported.
package slipstreamotel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/slipstream-go/slipstream"
)

// scope is the name of the instrumentation.
const scope = "github.com/slipstream-go/slipstream/slipstreamotel"

// durationBounds are the bounds of the buckets that the semantic conventions require, in seconds. A
// view of the program's MeterProvider replaces them.
var durationBounds = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10}

// maxSeries bounds the memory of an observer. Beyond it attributes are made for each call.
const maxSeries = 1024

// Options configure an [Observer]. The zero value works.
type Options struct {
	// TracerProvider makes spans. If nil, it is the global one.
	TracerProvider trace.TracerProvider
	// MeterProvider receives the metric. If nil, it is the global one.
	MeterProvider metric.MeterProvider
}

// An Observer is a [slipstream.Observer] that exports calls to OpenTelemetry. All methods are safe for
// concurrent use.
type Observer struct {
	// Immutable.
	tracer   trace.Tracer
	duration metric.Float64Histogram

	mu sync.RWMutex
	// Guarded by mu.
	known map[series]*described
}

// series identifies the calls that have the same attributes, except for the sizes of batches.
type series struct {
	system, namespace, op, addr string
	status                      string // of the server's error, or empty
	failure                     string // the error.type, or empty
}

// described has the attributes of a series. It is immutable.
type described struct {
	name       string // of spans
	attributes []attribute.KeyValue
	labels     metric.MeasurementOption
}

// New returns an observer for the options of clients. It returns an error if the MeterProvider
// rejects the metric.
func New(o Options) (*Observer, error) {
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	duration, err := o.MeterProvider.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL)).Float64Histogram(
		"db.client.operation.duration", metric.WithUnit("s"), metric.WithDescription("Duration of database client operations."),
		metric.WithExplicitBucketBoundaries(durationBounds...))
	if err != nil {
		return nil, fmt.Errorf("slipstreamotel: metric db.client.operation.duration: %w", err)
	}
	return &Observer{
		tracer:   o.TracerProvider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
		duration: duration,
		known:    make(map[series]*described),
	}, nil
}

// Observe implements [slipstream.Observer].
func (o *Observer) Observe(call slipstream.Observation) {
	d := o.describe(seriesOf(&call))
	ctx := call.Context
	if isTraced(trace.SpanFromContext(ctx)) {
		ctx = o.span(&call, d)
	}
	// The context of the span makes it the exemplar.
	o.duration.Record(ctx, call.Duration().Seconds(), d.labels)
}

// isTraced reports whether a call that began within a span gets a span, too. A span that has ended is
// no longer recording, but its context still says that it was sampled.
func isTraced(parent trace.Span) bool {
	c := parent.SpanContext()
	return parent.IsRecording() || c.IsSampled() && !c.IsRemote()
}

// span makes the span of a call and returns its context.
func (o *Observer) span(call *slipstream.Observation, d *described) context.Context {
	attributes := d.attributes[:len(d.attributes):len(d.attributes)] // appending copies
	if call.Requests > 1 {
		attributes = append(attributes, semconv.DBOperationBatchSize(call.Requests))
	}
	if call.Attempts > 1 {
		attributes = append(attributes, attribute.Int("slipstream.attempts", call.Attempts))
	}
	ctx, span := o.tracer.Start(call.Context, d.name, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithTimestamp(call.Start), trace.WithAttributes(attributes...))
	if call.Err != nil {
		span.SetStatus(codes.Error, slipstream.OutcomeOf(call.Err).String())
	}
	span.End(trace.WithTimestamp(call.End))
	return ctx
}

func seriesOf(call *slipstream.Observation) series {
	s := series{system: call.System, namespace: call.Namespace, op: call.Op, addr: call.Addr}
	if s.system == "redis" && s.op == "BATCH" {
		s.op = "PIPELINE" // the term of the conventions
	}
	if call.Err != nil {
		s.status, s.failure = failureOf(call.Err)
	}
	return s
}

// failureOf returns the status code, if the server answered, and the error.type.
func failureOf(err error) (status, failure string) {
	var answered interface{ StatusCode() string }
	if errors.As(err, &answered) {
		status = answered.StatusCode()
		return status, status
	}
	var slow interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.Canceled):
		return "", "canceled"
	case errors.As(err, &slow) && slow.Timeout():
		return "", "timeout"
	}
	return "", strings.ReplaceAll(slipstream.OutcomeOf(err).String(), " ", "_")
}

// describe returns the attributes of a series, which it remembers.
func (o *Observer) describe(s series) *described {
	o.mu.RLock()
	d := o.known[s]
	o.mu.RUnlock()
	if d != nil {
		return d
	}
	d = s.describe()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.known) < maxSeries {
		o.known[s] = d
	}
	return d
}

// describe makes the attributes of a series.
func (s series) describe() *described {
	all := []attribute.KeyValue{semconv.DBSystemNameKey.String(s.system), semconv.DBOperationName(s.op)}
	if s.namespace != "" {
		all = append(all, semconv.DBNamespace(s.namespace))
	}
	address := s.addr
	if host, port, err := net.SplitHostPort(s.addr); err == nil && !strings.HasPrefix(s.addr, "/") {
		if number, err := strconv.Atoi(port); err == nil {
			address = host
			all = append(all, semconv.ServerPort(number))
		}
	}
	name := s.op
	if address != "" {
		name += " " + s.addr
		all = append(all, semconv.ServerAddress(address))
	}
	if s.status != "" {
		all = append(all, semconv.DBResponseStatusCode(s.status))
	}
	if s.failure != "" {
		all = append(all, semconv.ErrorTypeKey.String(s.failure))
	}
	return &described{name: name, attributes: all, labels: metric.WithAttributeSet(attribute.NewSet(all...))}
}
