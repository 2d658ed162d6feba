package otel

import (
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/slipstream-go/slipstream/internal/gateway/trace"
)

// otherMethod stands for every method that nobody has registered: what a client
// invents is not spread to other systems.
const otherMethod = "_OTHER"

// knownMethod returns the method, as a constant, or otherMethod.
func knownMethod(method string) string {
	for _, known := range [...]string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions, http.MethodPut,
		http.MethodDelete, http.MethodPatch, http.MethodConnect, http.MethodTrace, "QUERY",
	} {
		if method == known {
			return known
		}
	}
	return otherMethod
}

// span is a request in the form that exporters of the SDK read. The interface has
// a method that only the SDK can write, so it is embedded, and nil: every other
// method is ours.
type span struct {
	sdktrace.ReadOnlySpan
	of         trace.Span
	attributes []attribute.KeyValue
	exporter   *Exporter
}

func (e *Exporter) span(s trace.Span) *span {
	return &span{of: s, attributes: attributes(&s), exporter: e}
}

// attributes follow the semantic conventions of HTTP server spans, with one thing
// left out: url.path has the key of the document in it, which may be somebody's
// name, and spans go to places where documents do not. The route is the path
// without it. The client's address is left out for the same reason.
func attributes(s *trace.Span) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 11)
	list = append(list, semconv.HTTPRequestMethodKey.String(s.Method),
		semconv.HTTPResponseStatusCode(s.Status), semconv.HTTPResponseBodySize(s.Bytes))
	if s.Status >= 500 {
		list = append(list, semconv.ErrorTypeKey.String(strconv.Itoa(s.Status)))
	}
	if s.Keys > 0 {
		list = append(list, attribute.Int("slipstream.keys", s.Keys))
	}
	for _, a := range [...]struct {
		key   attribute.Key
		value string
	}{
		{semconv.HTTPRouteKey, s.Route},
		{"slipstream.request_id", s.RequestID},
		{"slipstream.resource", s.Resource},
		{"slipstream.source", s.Source},
		{"slipstream.caller", s.Caller},
	} {
		if a.value != "" {
			list = append(list, a.key.String(a.value))
		}
	}
	return list
}

// Name is the method and the route: few names, so that they can be counted.
func (s *span) Name() string {
	method := s.of.Method
	if method == otherMethod {
		method = "HTTP"
	}
	if s.of.Route == "" {
		return method
	}
	return method + " " + s.of.Route
}

func (s *span) SpanContext() oteltrace.SpanContext {
	return oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
		TraceID: s.of.Context.TraceID, SpanID: s.of.Context.SpanID, TraceFlags: oteltrace.FlagsSampled,
	})
}

// Parent is the client's span.
func (s *span) Parent() oteltrace.SpanContext {
	if s.of.Parent == [8]byte{} {
		return oteltrace.SpanContext{}
	}
	return oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
		TraceID: s.of.Context.TraceID, SpanID: s.of.Parent, TraceFlags: oteltrace.FlagsSampled, Remote: true,
	})
}

// Status is an error if it was the server's fault (5xx), and unset otherwise: a
// client's mistake is no error of the server's span.
func (s *span) Status() sdktrace.Status {
	if s.of.Status >= 500 {
		return sdktrace.Status{Code: codes.Error}
	}
	return sdktrace.Status{}
}

func (s *span) SpanKind() oteltrace.SpanKind                { return oteltrace.SpanKindServer }
func (s *span) StartTime() time.Time                        { return s.of.Start }
func (s *span) EndTime() time.Time                          { return s.of.Start.Add(s.of.Duration) }
func (s *span) Attributes() []attribute.KeyValue            { return s.attributes }
func (s *span) Resource() *resource.Resource                { return s.exporter.resource }
func (s *span) Links() []sdktrace.Link                      { return nil }
func (s *span) Events() []sdktrace.Event                    { return nil }
func (s *span) DroppedAttributes() int                      { return 0 }
func (s *span) DroppedLinks() int                           { return 0 }
func (s *span) DroppedEvents() int                          { return 0 }
func (s *span) ChildSpanCount() int                         { return 0 }
func (s *span) InstrumentationScope() instrumentation.Scope { return s.exporter.scope }

// InstrumentationLibrary is the former name of the scope.
func (s *span) InstrumentationLibrary() instrumentation.Scope { return s.exporter.scope }
