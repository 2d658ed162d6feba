package otel

import (
	"bytes"
	"compress/gzip"
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

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/slipstream-go/slipstream/internal/gateway/trace"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// collector is an HTTP server that reads OTLP.
type collector struct {
	*httptest.Server

	mu       sync.Mutex
	instead  http.HandlerFunc // answers instead, if set
	requests []request
	headers  []http.Header // of the requests
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
	var decoded request
	body, err := readBody(r)
	if err == nil {
		err = decodeRequest(body, &decoded)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.wrong = append(c.wrong, fmt.Sprintf("%s %s, %q: %v; want POST /v1/traces of protobuf", r.Method, r.URL, r.Header, err))
	}
	c.requests = append(c.requests, decoded)
	c.headers = append(c.headers, r.Header)
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(http.StatusOK)
}

func (c *collector) answer(instead http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.instead = instead
}

func (c *collector) spans() (all []span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		all = append(all, r.spans...)
	}
	return all
}

// await returns the spans when n have come.
func (c *collector) await(t *testing.T, n int) []span {
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

// request is an ExportTraceServiceRequest. The messages that the OpenTelemetry
// project generates are asked in test/judges, of a running gateway.
type request struct {
	resource                      map[string]string
	scope, schema, resourceSchema string
	spans                         []span
}

type span struct {
	traceID, id, parent string
	name                string
	kind, status, flags uint64
	start, end          uint64
	attributes          map[string]string
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(unpacked)
	}
	return io.ReadAll(r.Body)
}

// message calls the function of every field of b: numbers come as they are, strings
// and messages as text. An unknown field is an error.
func message(b []byte, fields fields) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		var number uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			number, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var small uint32
			small, n = protowire.ConsumeFixed32(b)
			number = uint64(small)
		case protowire.BytesType:
			text, n = protowire.ConsumeBytes(b)
		}
		if n < 0 || fields[field] == nil {
			return fmt.Errorf("field %d of type %d: %w", field, kind, protowire.ParseError(n))
		}
		b = b[n:]
		if err := fields[field](number, text); err != nil {
			return fmt.Errorf("field %d: %w", field, err)
		}
	}
	return nil
}

type fields = map[protowire.Number]func(uint64, []byte) error

func text(into *string) func(uint64, []byte) error {
	return func(_ uint64, b []byte) error { *into = string(b); return nil }
}

func number(into *uint64) func(uint64, []byte) error {
	return func(n uint64, _ []byte) error { *into = n; return nil }
}

func keyValue(into map[string]string) func(uint64, []byte) error {
	return func(_ uint64, b []byte) error {
		var key, value string
		err := message(b, fields{1: text(&key), 2: func(_ uint64, b []byte) error {
			return message(b, fields{1: text(&value), 3: func(n uint64, _ []byte) error { value = fmt.Sprint(int64(n)); return nil }})
		}})
		if _, twice := into[key]; twice {
			return fmt.Errorf("attribute %q twice", key)
		}
		into[key] = value
		return err
	}
}

func decodeRequest(b []byte, r *request) error {
	r.resource = make(map[string]string)
	return message(b, fields{1: func(_ uint64, b []byte) error {
		return message(b, fields{
			1: func(_ uint64, b []byte) error { return message(b, fields{1: keyValue(r.resource)}) },
			2: func(_ uint64, b []byte) error {
				return message(b, fields{
					1: func(_ uint64, b []byte) error { return message(b, fields{1: text(&r.scope)}) },
					2: r.span,
					3: text(&r.schema),
				})
			},
			3: text(&r.resourceSchema),
		})
	}})
}

func (r *request) span(_ uint64, b []byte) error {
	s := span{attributes: make(map[string]string)}
	err := message(b, fields{
		1: text(&s.traceID), 2: text(&s.id), 4: text(&s.parent), 5: text(&s.name), 6: number(&s.kind),
		7: number(&s.start), 8: number(&s.end), 9: keyValue(s.attributes), 16: number(&s.flags),
		15: func(_ uint64, b []byte) error { return message(b, fields{3: number(&s.status)}) },
	})
	r.spans = append(r.spans, s)
	return err
}
