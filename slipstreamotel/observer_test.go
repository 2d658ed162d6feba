package slipstreamotel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/redis/redistest"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
	"github.com/slipstream-go/slipstream/tarantool/tarantooltest"
)

// probe is an observer with an SDK that keeps what it exports.
type probe struct {
	*Observer
	tracer trace.Tracer // of the program that is traced
	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
}

func newProbe(t testing.TB, o ...sdktrace.TracerProviderOption) *probe {
	t.Helper()
	p := &probe{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	tracers := sdktrace.NewTracerProvider(append(o, sdktrace.WithSpanProcessor(p.spans))...)
	var err error
	p.Observer, err = New(Options{TracerProvider: tracers, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(p.reader))})
	if err != nil {
		t.Fatal(err)
	}
	p.tracer = tracers.Tracer("program")
	return p
}

// calls returns the spans of calls that have ended.
func (p *probe) calls() (calls []sdktrace.ReadOnlySpan) {
	for _, s := range p.spans.Ended() {
		if s.InstrumentationScope().Name == scope {
			calls = append(calls, s)
		}
	}
	return calls
}

// durations returns the points of the metric by their attributes.
func (p *probe) durations(t *testing.T) map[string]metricdata.HistogramDataPoint[float64] {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := p.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	points := make(map[string]metricdata.HistogramDataPoint[float64])
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if s.Scope.Name != scope || m.Name != "db.client.operation.duration" || m.Unit != "s" {
				t.Errorf("metric %s %s of %s", m.Name, m.Unit, s.Scope.Name)
			}
			for _, point := range m.Data.(metricdata.Histogram[float64]).DataPoints {
				points[text(point.Attributes.ToSlice())] = point
			}
		}
	}
	return points
}

// text returns attributes in a fixed order.
func text(attributes []attribute.KeyValue) string {
	set := attribute.NewSet(attributes...)
	return set.Encoded(attribute.DefaultEncoder())
}

// call returns an observation of 3 ms.
func call(ctx context.Context, change func(*slipstream.Observation)) slipstream.Observation {
	start := time.Now()
	o := slipstream.Observation{Context: ctx, System: "redis", Namespace: "0", Op: "GET", Addr: "cache.example:6379",
		Start: start, End: start.Add(3 * time.Millisecond), Requests: 1, Attempts: 1}
	if change != nil {
		change(&o)
	}
	return o
}

func TestCallsOfRedis(t *testing.T) {
	p := newProbe(t)
	server := redistest.NewServer()
	defer server.Close()
	options := server.Options()
	options.Observer, options.DB = p, 2
	client, err := redis.Connect(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	began := time.Now()
	ctx, parent := p.tracer.Start(t.Context(), "request")
	if err := client.Set(ctx, "secret-key", "secret-value"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Incr(ctx, "secret-key"); err == nil {
		t.Fatal("a text was incremented")
	}
	if err := client.DoMany(ctx, []redis.Command{redis.Cmd("PING"), redis.Cmd("GET", "secret-key")}, nil); err != nil {
		t.Fatal(err)
	}
	parent.End()
	const common = "db.namespace=2,db.operation.name="
	const server6379 = "db.system.name=redis,"
	want := []struct{ name, attributes, status string }{
		{"SET redistest:6379", common + "SET," + server6379 + "server.address=redistest,server.port=6379", ""},
		{"INCR redistest:6379", common + "INCR,db.response.status_code=ERR," + server6379 + "error.type=ERR,server.address=redistest,server.port=6379", "executed"},
		{"PIPELINE redistest:6379", "db.namespace=2,db.operation.batch.size=2,db.operation.name=PIPELINE," + server6379 + "server.address=redistest,server.port=6379", ""},
	}
	calls := p.calls()
	if len(calls) != len(want) {
		t.Fatalf("%d spans, expected %d", len(calls), len(want))
	}
	for i, s := range calls {
		w := want[i]
		if s.Name() != w.name || text(s.Attributes()) != w.attributes || s.SpanKind() != trace.SpanKindClient {
			t.Errorf("%s, %v, %s\nexpected %s, %s", s.Name(), s.SpanKind(), text(s.Attributes()), w.name, w.attributes)
		}
		if s.Parent().SpanID() != parent.SpanContext().SpanID() || s.SpanContext().TraceID() != parent.SpanContext().TraceID() {
			t.Errorf("%s is not a child of the caller's span", s.Name())
		}
		if failed := s.Status().Code == codes.Error; failed != (w.status != "") || s.Status().Description != w.status {
			t.Errorf("%s: status %+v, expected %q", s.Name(), s.Status(), w.status)
		}
		if s.StartTime().Before(began) || s.EndTime().Before(s.StartTime()) || s.EndTime().After(time.Now()) {
			t.Errorf("%s: from %v to %v", s.Name(), s.StartTime(), s.EndTime())
		}
		if strings.Contains(fmt.Sprint(s.Name(), s.Attributes(), s.Status(), s.Events()), "secret") {
			t.Errorf("%s shows a key or a value", s.Name())
		}
	}
	if points := p.durations(t); len(points) != 3 || points[want[0].attributes].Count != 1 || points[want[1].attributes].Count != 1 {
		t.Errorf("the metric has %v", points)
	}
}

func TestRequestsOfTarantool(t *testing.T) {
	p := newProbe(t)
	server := tarantooltest.Start(t, tarantooltest.Config{})
	server.Func("refuse", func(*tarantooltest.Request) ([]any, error) {
		return nil, tarantooltest.Error(iproto.CodeReadOnly, "secret")
	})
	client, err := tarantool.Connect(t.Context(), tarantool.Options{Addr: server.Addr(), Observer: p})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, parent := p.tracer.Start(t.Context(), "request")
	defer parent.End()
	if err := client.Do(ctx, nil, tarantool.Ping()); err != nil {
		t.Fatal(err)
	}
	if err := client.Do(ctx, nil, tarantool.Call("refuse")); err == nil {
		t.Fatal("the call was not refused")
	}
	host, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	at := "server.address=" + host + ",server.port=" + port
	want := []struct{ op, attributes string }{
		{"ping", "db.system.name=tarantool," + at},
		{"call", "db.response.status_code=7,db.system.name=tarantool,error.type=7," + at},
	}
	calls := p.calls()
	if len(calls) != len(want) {
		t.Fatalf("%d spans, expected %d", len(calls), len(want))
	}
	for i, s := range calls {
		op, _, _ := strings.Cut(s.Name(), " ")
		if !strings.EqualFold(op, want[i].op) || text(s.Attributes()) != "db.operation.name="+op+","+want[i].attributes {
			t.Errorf("%s: %s\nexpected %+v", s.Name(), text(s.Attributes()), want[i])
		}
		if s.Parent().SpanID() != parent.SpanContext().SpanID() {
			t.Errorf("%s is not a child of the caller's span", s.Name())
		}
		if strings.Contains(fmt.Sprint(s.Name(), s.Attributes(), s.Status(), s.Events()), "secret") {
			t.Errorf("%s shows the text of an error", s.Name())
		}
	}
}

// recordOnly is a sampler that records spans that are not sampled.
type recordOnly struct{}

func (recordOnly) ShouldSample(sdktrace.SamplingParameters) sdktrace.SamplingResult {
	return sdktrace.SamplingResult{Decision: sdktrace.RecordOnly}
}

func (recordOnly) Description() string { return "record only" }

// A call is traced if and only if its caller is, in this process.
//
// mutant: otel-no-child-of-an-ended-span
// mutant: otel-span-of-any-call
func TestWhichCallsHaveSpans(t *testing.T) {
	remote := func(ctx context.Context, _ trace.Tracer) context.Context {
		return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled,
		}))
	}
	begun := func(ctx context.Context, tracer trace.Tracer) context.Context {
		ctx, _ = tracer.Start(ctx, "parent")
		return ctx
	}
	ended := func(ctx context.Context, tracer trace.Tracer) context.Context {
		ctx, span := tracer.Start(ctx, "parent")
		span.End()
		return ctx
	}
	for _, c := range []struct {
		name    string
		sampler sdktrace.Sampler
		context func(context.Context, trace.Tracer) context.Context
		spans   int
	}{
		{"no span", sdktrace.AlwaysSample(), func(ctx context.Context, _ trace.Tracer) context.Context { return ctx }, 0},
		{"a span", sdktrace.AlwaysSample(), begun, 1},
		{"a span that has ended", sdktrace.AlwaysSample(), ended, 1},
		{"a span that is not sampled", sdktrace.NeverSample(), begun, 0},
		{"a span that is not sampled and has ended", sdktrace.NeverSample(), ended, 0},
		{"a span that is only recorded", recordOnly{}, begun, 1},
		{"a remote span", sdktrace.AlwaysSample(), remote, 0},
		{"a span below a remote one", sdktrace.ParentBased(sdktrace.NeverSample()),
			func(ctx context.Context, tracer trace.Tracer) context.Context {
				return begun(remote(ctx, tracer), tracer)
			}, 1},
	} {
		p := newProbe(t, sdktrace.WithSampler(c.sampler))
		ctx, cancel := context.WithCancel(c.context(t.Context(), p.tracer))
		cancel() // it may have ended
		p.Observe(call(ctx, nil))
		if got := p.calls(); len(got) != c.spans {
			t.Errorf("%s: %d spans, expected %d", c.name, len(got), c.spans)
		}
		if points := p.durations(t); len(points) != 1 {
			t.Errorf("%s: the metric has %v", c.name, points)
		}
	}
}

// Every error has one of few types.
func TestTypesOfErrors(t *testing.T) {
	failed := func(outcome slipstream.Outcome, err error) error {
		return &slipstream.Error{Op: "GET", Outcome: outcome, Err: err}
	}
	lost := errors.New("lost")
	for _, c := range []struct {
		err             error
		status, failure string
	}{
		{failed(slipstream.Executed, &redis.ServerError{Code: "WRONGTYPE", Message: "secret"}), "WRONGTYPE", "WRONGTYPE"},
		{failed(slipstream.Executed, &redis.ServerError{Code: "user:17"}), "ERR", "ERR"},
		{failed(slipstream.Refused, &tarantool.ServerError{Code: iproto.CodeTupleFound, Message: "secret"}), "3", "3"},
		{failed(slipstream.MaybeExecuted, context.DeadlineExceeded), "", "timeout"},
		{failed(slipstream.NotSent, context.Canceled), "", "canceled"},
		{failed(slipstream.NotSent, lost), "", "not_sent"},
		{failed(slipstream.MaybeExecuted, lost), "", "maybe_executed"},
		{failed(slipstream.Refused, lost), "", "refused"},
		{failed(slipstream.Overloaded, lost), "", "overloaded"},
		{failed(slipstream.Closed, lost), "", "client_closed"},
		{failed(slipstream.Executed, lost), "", "executed"},
		{lost, "", "maybe_executed"},
	} {
		if status, failure := failureOf(c.err); status != c.status || failure != c.failure {
			t.Errorf("%v: status %q, type %q; expected %q, %q", c.err, status, failure, c.status, c.failure)
		}
	}
}

func TestZeroOptionsMeanTheGlobalProviders(t *testing.T) {
	spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	tracers, meters := otel.GetTracerProvider(), otel.GetMeterProvider()
	defer otel.SetTracerProvider(tracers)
	defer otel.SetMeterProvider(meters)
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	o, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, _ := otel.Tracer("program").Start(t.Context(), "parent")
	o.Observe(call(ctx, nil))
	p := probe{spans: spans, reader: reader}
	if len(p.calls()) != 1 || len(p.durations(t)) != 1 {
		t.Errorf("%d spans, %d series of the metric; expected one of each", len(p.calls()), len(p.durations(t)))
	}
}

func TestAddressesOfServers(t *testing.T) {
	for addr, want := range map[string]string{
		"cache.example:6379": "server.address=cache.example,server.port=6379",
		"[::1]:6379":         "server.address=::1,server.port=6379",
		"/run/redis.sock":    "server.address=/run/redis.sock",
		"/run/a:1":           "server.address=/run/a:1",
	} {
		got := text(series{system: "redis", op: "GET", addr: addr}.describe().attributes)
		if want = "db.operation.name=GET,db.system.name=redis," + want; got != want {
			t.Errorf("%s: %s, expected %s", addr, got, want)
		}
	}
}

// mutant: otel-batch-size-stays
func TestRepetitionsAndBatchesAreShown(t *testing.T) {
	p := newProbe(t)
	ctx, _ := p.tracer.Start(t.Context(), "parent")
	p.Observe(call(ctx, func(o *slipstream.Observation) { o.Op, o.Requests, o.Attempts = "BATCH", 3, 2 }))
	p.Observe(call(ctx, func(o *slipstream.Observation) { o.Op, o.Attempts = "BATCH", 4 }))
	p.Observe(call(ctx, func(o *slipstream.Observation) { o.Op = "BATCH" }))
	var got []string
	for _, s := range p.calls() {
		shown := ""
		for _, a := range s.Attributes() {
			if a.Key == "db.operation.batch.size" || a.Key == "slipstream.attempts" {
				shown += fmt.Sprintf("%s=%d ", a.Key, a.Value.AsInt64())
			}
		}
		got = append(got, shown)
	}
	if want := []string{"db.operation.batch.size=3 slipstream.attempts=2 ", "slipstream.attempts=4 ", ""}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, expected %q", got, want)
	}
	if points := p.durations(t); len(points) != 1 {
		t.Errorf("the metric has %v, expected one series", points)
	}
}

func TestDurationsAreInSeconds(t *testing.T) {
	p := newProbe(t)
	p.Observe(call(t.Context(), nil))
	p.Observe(call(t.Context(), func(o *slipstream.Observation) { o.End = o.Start.Add(2 * time.Second) }))
	points := p.durations(t)
	if len(points) != 1 {
		t.Fatalf("the metric has %v, expected one series", points)
	}
	for _, point := range points {
		if point.Count != 2 || point.Sum < 2.002 || point.Sum > 2.004 || fmt.Sprint(point.Bounds) != fmt.Sprint(durationBounds) ||
			fmt.Sprint(point.BucketCounts) != "[0 1 0 0 0 0 0 1 0 0]" {
			t.Errorf("%+v", point)
		}
	}
}

// Programs may send commands with made-up names; the memory of the observer is bounded.
func TestMadeUpNamesDoNotGrowTheObserver(t *testing.T) {
	p := newProbe(t)
	ctx, _ := p.tracer.Start(t.Context(), "parent")
	for i := range 2 * maxSeries {
		p.Observe(call(ctx, func(o *slipstream.Observation) { o.Op = fmt.Sprint("OP", i) }))
	}
	if len(p.known) != maxSeries {
		t.Errorf("%d series are remembered, expected %d", len(p.known), maxSeries)
	}
	calls := p.calls()
	if last := calls[len(calls)-1]; len(calls) != 2*maxSeries || !strings.Contains(text(last.Attributes()), fmt.Sprint("db.operation.name=OP", 2*maxSeries-1)) {
		t.Errorf("%d spans, the last with %s", len(calls), text(last.Attributes()))
	}
}

func BenchmarkObserve(b *testing.B) {
	for name, sampler := range map[string]sdktrace.Sampler{"metric": sdktrace.NeverSample(), "span": sdktrace.AlwaysSample()} {
		b.Run(name, func(b *testing.B) {
			tracers := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler)) // spans go nowhere
			o, err := New(Options{TracerProvider: tracers, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))})
			if err != nil {
				b.Fatal(err)
			}
			ctx, _ := tracers.Tracer("program").Start(b.Context(), "parent")
			one := call(ctx, nil)
			b.ReportAllocs()
			for b.Loop() {
				o.Observe(one)
			}
		})
	}
}

// A call that went to several servers has the number of its attempts, and no address.
func TestCallOfSeveralServers(t *testing.T) {
	p := newProbe(t)
	ctx, parent := p.tracer.Start(t.Context(), "request")
	p.Observe(call(ctx, func(o *slipstream.Observation) {
		o.System, o.Namespace, o.Op, o.Addr, o.Attempts = "thrift", "", "find", "", 2
	}))
	parent.End()
	calls := p.calls()
	if len(calls) != 1 || calls[0].Name() != "find" {
		t.Fatalf("spans %v", calls)
	}
	if got, want := text(calls[0].Attributes()), "db.operation.name=find,db.system.name=thrift,slipstream.attempts=2"; got != want {
		t.Errorf("attributes %s, want %s", got, want)
	}
}
