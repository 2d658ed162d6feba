package otel

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Headers and compression from the environment of OTLP exporters are applied; the
// variables for traces take precedence.
func TestEnvironment(t *testing.T) {
	testkit.NoLeaks(t)
	for name, test := range map[string]struct {
		environment map[string]string
		want        map[string]string // headers
		logged      string
	}{
		"nothing": {nil, map[string]string{"Authorization": "", "Content-Encoding": "", "User-Agent": "Slipstream-OTLP-Exporter"}, ""},
		"headers": {
			map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Basic%20c2VjcmV0%3D, x-team = a b ,user-agent=ours,content-type=text/plain"},
			map[string]string{"Authorization": "Basic c2VjcmV0=", "X-Team": "a b", "User-Agent": "ours", "Content-Type": contentType}, "",
		},
		"headers of traces": {
			map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=1,b=2", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "b=3"},
			map[string]string{"A": "", "B": "3"}, "",
		},
		"wrong headers": {
			map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "secret,b c=secret,d=secret%zz,=secret,e=5"},
			map[string]string{"E": "5", "D": ""}, "position=4",
		},
		"gzip": {
			map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, map[string]string{"Content-Encoding": "gzip"}, "",
		},
		"no gzip of traces": {
			map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "none"},
			map[string]string{"Content-Encoding": ""}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range test.environment {
				t.Setenv(key, value)
			}
			c := newCollector(t)
			e, log := start(t, c.URL, quick)
			for i := range 10 {
				e.Request(someSpan(i))
			}
			if err := e.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := len(c.spans()); got != 10 {
				t.Fatalf("%d spans came, want 10", got)
			}
			for key, want := range test.want {
				if got := c.headers[0].Get(key); got != want {
					t.Errorf("header %s: got %q, want %q", key, got, want)
				}
			}
			got := strings.Join(log.list(), "\n")
			if test.logged == "" && got != "" || !strings.Contains(got, test.logged) || strings.Contains(got, "secret") {
				t.Errorf("logged %q, want %q", got, test.logged)
			}
		})
	}
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "a=1,b")
	if _, err := New(t.Context(), Config{Endpoint: "http://127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("an attribute without a value: got error %v", err)
	}
}

// A collector that says when to retry is not contacted before.
func TestRetryAfter(t *testing.T) {
	testkit.NoLeaks(t)
	c := newCollector(t)
	began := time.Now()
	var first, again atomic.Int64
	c.answer(func(w http.ResponseWriter, _ *http.Request) {
		if first.CompareAndSwap(0, int64(time.Since(began))) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		again.CompareAndSwap(0, int64(time.Since(began)))
	})
	patient := quick
	patient.give = time.Minute
	e, _ := start(t, c.URL, patient)
	e.Request(someSpan(1))
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if waited := time.Duration(again.Load() - first.Load()); waited < time.Second {
		t.Errorf("retried after %v, want a second", waited)
	}
	for value, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, "-1": 0, "soon": 0, "1.5": 0,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(value); got != want {
			t.Errorf("retryAfter(%q): got %v, want %v", value, got, want)
		}
	}
	if got := retryAfter(time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)); got < 59*time.Minute || got > time.Hour {
		t.Errorf("in an hour: got %v", got)
	}
	// A batch is dropped if the collector requests a pause longer than batches are kept.
	impatient, _ := start(t, c.URL, quick)
	first.Store(0)
	impatient.Request(someSpan(1))
	if err := impatient.Shutdown(t.Context()); err == nil || !strings.Contains(err.Error(), "gave up") || impatient.Dropped() != 1 {
		t.Errorf("got error %v, %d dropped; want it given up", err, impatient.Dropped())
	}
}

// A permanent refusal is not retried; its spans are lost, and counted.
func TestRefused(t *testing.T) {
	testkit.NoLeaks(t)
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		reason string
	}{
		"400": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "what is\nthis?"+strings.Repeat("x", 10_000), http.StatusBadRequest)
		}, "400 Bad Request"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, "307"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			for range 1000 {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}, "too large"},
		"not protobuf": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			fmt.Fprint(w, "\xff\xff\xffnonsense")
		}, "cannot parse"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCollector(t)
			c.answer(test.answer)
			e, log := start(t, c.URL, quick)
			for round := range int64(3) {
				e.Request(someSpan(1))
				testkit.Eventually(t, 10*time.Second, func() error {
					if got := e.Dropped(); got != round+1 {
						return fmt.Errorf("%d dropped, want %d", got, round+1)
					}
					return nil
				})
			}
			got := log.list()
			if len(got) != 1 || !strings.Contains(got[0], test.reason) || len(got[0]) > 2*maxErrorText {
				t.Errorf("logged %q, want one short line of %q", got, test.reason)
			}
		})
	}
}

// If a collector rejects part of a batch with only a message, all of its spans are
// counted.
func TestPartialSuccess(t *testing.T) {
	testkit.NoLeaks(t)
	c := newCollector(t)
	c.answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-protobuf")
		// partial_success { rejected_spans: 1, error_message: "one is bad" } and an unknown field
		fmt.Fprint(w, "\x0a\x0e\x08\x01\x12\x0aone is bad\x11\x00\x00\x00\x00\x00\x00\x00\x00")
	})
	e, log := start(t, c.URL, quick)
	for i := range 10 {
		e.Request(someSpan(i))
	}
	err := e.Shutdown(t.Context())
	if err == nil || !strings.Contains(err.Error(), "one is bad") || e.Dropped() != 10 {
		t.Errorf("got error %v, %d dropped; want the collector's reason, and the batch counted", err, e.Dropped())
	}
	if got := log.list(); len(got) != 1 || !strings.Contains(got[0], "1 spans rejected") {
		t.Errorf("logged %q, want one line with what was rejected", got)
	}
}
