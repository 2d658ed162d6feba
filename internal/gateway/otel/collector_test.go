package otel

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/slipstream-go/slipstream/internal/gateway/trace"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// collector is an HTTP server that reads OTLP.
type collector struct {
	*httptest.Server

	mu       sync.Mutex
	instead  http.HandlerFunc // answers instead, if set
	requests []*collectorpb.ExportTraceServiceRequest
	wrong    []string
}

func newCollector(t *testing.T) *collector {
	c := new(collector)
	c.Server = httptest.NewServer(c)
	t.Cleanup(func() {
		c.Close()
		for _, w := range c.wrong {
			t.Error(w)
		}
	})
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	instead := c.instead
	c.mu.Unlock()
	if instead != nil {
		instead(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	request := new(collectorpb.ExportTraceServiceRequest)
	if err == nil {
		err = proto.Unmarshal(body, request)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.wrong = append(c.wrong, fmt.Sprintf("%s %s, %q: %v; want POST /v1/traces of protobuf", r.Method, r.URL, r.Header, err))
	}
	c.requests = append(c.requests, request)
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(http.StatusOK)
}

func (c *collector) answer(instead http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.instead = instead
}

func (c *collector) spans() (all []*tracepb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		for _, rs := range r.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				all = append(all, ss.Spans...)
			}
		}
	}
	return all
}

// await returns the spans when n have come.
func (c *collector) await(t *testing.T, n int) []*tracepb.Span {
	t.Helper()
	testkit.Eventually(t, 10*time.Second, func() error {
		if got := len(c.spans()); got != n {
			return fmt.Errorf("%d spans came, want %d", got, n)
		}
		return nil
	})
	return c.spans()
}

// quick are the times of tests: a hundredth of the usual ones.
var quick = timing{
	gather: 20 * time.Millisecond, attempt: 200 * time.Millisecond,
	first: 10 * time.Millisecond, pause: 50 * time.Millisecond, give: 300 * time.Millisecond,
	log: time.Minute,
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSuffix(l.text.String(), "\n"), "\n")
}

func start(t *testing.T, endpoint string, times timing) (*Exporter, *lines) {
	t.Helper()
	log := new(lines)
	e, err := newExporter(t.Context(), Config{Endpoint: endpoint, Log: slog.New(slog.NewTextHandler(log, nil))}, times)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // whoever wants more has called it
		_ = e.Shutdown(ctx)
	})
	return e, log
}

func someSpan(i int) trace.Span {
	return trace.Span{
		Context: trace.Context{}.Child().WithSampled(true), RequestID: fmt.Sprint("request-", i), Method: "GET",
		Route: "/depts/{deptno}", Resource: "depts", Source: "hit", Status: 200,
		Start: time.Now(), Duration: time.Millisecond, Bytes: 100, Keys: 1,
	}
}

func attributesOf(list []*commonpb.KeyValue) map[string]string {
	values := make(map[string]string)
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			values[kv.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			values[kv.Key] = fmt.Sprint(v.IntValue)
		default:
			values[kv.Key] = fmt.Sprintf("%T", v)
		}
	}
	return values
}
