package judges

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/slipstream-go/slipstream/internal/gateway/demo"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// collector keeps the requests of exporters, decoded with the message types of the OpenTelemetry
// project.
type collector struct {
	mu       sync.Mutex
	requests []*collectorpb.ExportTraceServiceRequest
	wrong    []string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := new(collectorpb.ExportTraceServiceRequest)
	if err == nil {
		err = proto.Unmarshal(body, request)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Authorization") != "Bearer x" || len(request.ProtoReflect().GetUnknown()) > 0 {
		c.wrong = append(c.wrong, fmt.Sprintf("%s %v: %v", r.URL, r.Header, err))
	}
	c.requests = append(c.requests, request)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// TestTraces: the message types of the OpenTelemetry project decode the spans of a gateway.
func TestTraces(t *testing.T) {
	c := new(collector)
	server := httptest.NewServer(c)
	defer server.Close()
	file, url, admin := blackbox.DemoConfig(t)
	if err := demo.Create(filepath.Join(filepath.Dir(file), blackbox.DemoFile), 1); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	blackbox.Write(t, file, string(text)+fmt.Sprintf("tracing: { endpoint: %q, sample: 1, service: shop }\n", server.URL))
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", file)
	testkit.Start(t, testkit.Command{
		Path: blackbox.Program(), Args: []string{"serve", "-c", file}, Ready: blackbox.Ready(admin),
		Env: []string{"OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20x"},
	})
	const traceID, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	if status, _, body, err := blackbox.Get(t.Context(), url+"/depts/42", "Traceparent", "00-"+traceID+"-"+parent+"-01"); err != nil || status != 200 {
		t.Fatalf("%d %s %v", status, body, err)
	}
	if status, _, _, err := blackbox.Get(t.Context(), url+"/depts/none"); err != nil || status != 400 {
		t.Fatalf("%d %v", status, err)
	}
	spans := make(map[string]*tracepb.Span)
	testkit.Eventually(t, 20*time.Second, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, r := range c.requests {
			rs := r.ResourceSpans[0]
			if got := attributes(rs.Resource.Attributes)["service.name"]; got != "shop" {
				t.Errorf("service %q", got)
			}
			for _, s := range rs.ScopeSpans[0].Spans {
				spans[attributes(s.Attributes)["http.response.status_code"]] = s
			}
		}
		if len(spans) < 2 {
			return fmt.Errorf("%d spans", len(spans))
		}
		return nil
	})
	for _, w := range c.wrong {
		t.Error(w)
	}
	s := spans["200"]
	if got := fmt.Sprintf("%x %x %s %s", s.TraceId, s.ParentSpanId, s.Name, s.Kind); got != traceID+" "+parent+" GET /depts/{key} SPAN_KIND_SERVER" {
		t.Errorf("got %s", got)
	}
	const sampled, remoteKnown, remote = 1, uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK), uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	if s.Flags != sampled|remoteKnown|remote || spans["400"].Flags != sampled|remoteKnown {
		t.Errorf("flags %x and %x", s.Flags, spans["400"].Flags)
	}
	began, ended := time.Unix(0, int64(s.StartTimeUnixNano)), time.Unix(0, int64(s.EndTimeUnixNano))
	if time.Since(began) > time.Minute || ended.Before(began) || s.Status.GetCode() != tracepb.Status_STATUS_CODE_UNSET {
		t.Errorf("from %v to %v, %v", began, ended, s.Status)
	}
	if got := attributes(s.Attributes); got["http.request.method"] != "GET" || got["slipstream.resource"] != "depts" || got["slipstream.keys"] != "1" {
		t.Errorf("attributes %v", got)
	}
}
