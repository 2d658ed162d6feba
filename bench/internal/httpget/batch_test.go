package httpget

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

func documentOf(key string) string {
	return fmt.Sprintf(`{"deptno":%s,"pad":"%s"}`, key, strings.Repeat("x", 50))
}

// zipped returns text compressed with gzip.
func zipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // a buffer returns no errors
	_ = w.Close()
	return b.Bytes()
}

// documents answers single requests and batches, in gzip if requested. spoil may change
// the documents of a batch.
func documents(spoil func(parts []string) []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text := ""
		if keys := r.URL.Query()["key"]; keys != nil {
			var parts []string
			for _, key := range keys {
				parts = append(parts, documentOf(key))
			}
			text = "[" + strings.Join(spoil(parts), ",") + "]"
		} else {
			text = documentOf(strings.TrimPrefix(r.URL.Path, "/depts/"))
		}
		body := []byte(text)
		if r.Header.Get("Accept-Encoding") == "gzip" {
			w.Header().Set("Content-Encoding", "gzip")
			body = zipped(text)
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body)
	}
}

func asIs(parts []string) []string { return parts }

const acceptGzip = "Accept-Encoding: gzip\r\n"

// run lets 3 callers make 16 requests each, only a few because there is a pause after each error.
func run(t *testing.T, target *Target) *load.Result {
	t.Helper()
	target.Document = func(key int64) []byte { return []byte(documentOf(fmt.Sprint(key))) }
	if err := target.Learn(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := load.Run(t.Context(), load.Config{Callers: 3, Duration: 20 * time.Second, Requests: 16}, target)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBatches(t *testing.T) {
	reversed := func(parts []string) []string {
		parts[0], parts[1] = parts[1], parts[0]
		return parts
	}
	for name, spoil := range map[string]func([]string) []string{
		"right":     asIs,
		"one less":  func(parts []string) []string { return parts[1:] },
		"one more":  func(parts []string) []string { return append(parts, "null") },
		"one wrong": func(parts []string) []string { parts[3] = "null"; return parts },
	} {
		for _, coding := range []string{"", "gzip"} {
			target := serve(t, documents(spoil))
			target.Batch, target.Coding = 5, coding
			if coding != "" {
				target.Fields = []string{acceptGzip}
			}
			r := run(t, target)
			if wantErrors := uint64(48); name == "right" && r.Errors != 0 || name != "right" && r.Errors != wantErrors {
				t.Errorf("%s, coding %q: got %d errors of %d: %s", name, coding, r.Errors, wantErrors, r.ErrorSample)
			}
		}
	}
	// Two swapped documents have the same length, so only the content reveals it; a
	// batch may request one key twice.
	target := serve(t, documents(reversed))
	target.Keys, target.Batch = 1000, 2
	if r := run(t, target); r.Errors < 40 {
		t.Errorf("got %d errors of arrays in the wrong order, want nearly 48", r.Errors)
	}
}

func TestCodingIsChecked(t *testing.T) {
	target := serve(t, documents(asIs))
	target.Coding, target.Fields = "gzip", []string{acceptGzip}
	if r := run(t, target); r.Errors != 0 || r.Completed != 48 {
		t.Errorf("gzip: got %d errors, %s", r.Errors, r.ErrorSample)
	}
	target = serve(t, documents(asIs))
	target.Coding = "gzip" // which was not requested
	if err := target.Learn(t.Context()); err == nil || !strings.Contains(err.Error(), "content coding") {
		t.Errorf("an uncompressed body was accepted as gzip: %v", err)
	}
	target = serve(t, documents(asIs))
	target.Fields = []string{acceptGzip}
	if err := target.Learn(t.Context()); err == nil || !strings.Contains(err.Error(), "content coding") {
		t.Errorf("gzip was accepted as an uncompressed body: %v", err)
	}
	target = serve(t, documents(asIs))
	target.Document = func(int64) []byte { return []byte("{}") }
	if err := target.Learn(t.Context()); err == nil || !strings.Contains(err.Error(), "want") {
		t.Errorf("a wrong document was accepted: %v", err)
	}
}

// Compressed answers do not show their key, so all of them are compared, and a changed document is
// detected.
func TestEveryCodedBodyIsCompared(t *testing.T) {
	var others atomic.Bool
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if others.Load() {
			r.URL.Path = "/depts/77"
		}
		documents(asIs)(w, r)
	})
	target.Coding, target.Fields = "gzip", []string{acceptGzip}
	if err := target.Learn(t.Context()); err != nil {
		t.Fatal(err)
	}
	others.Store(true)
	r, err := load.Run(t.Context(), load.Config{Callers: 1, Duration: 10 * time.Second, Requests: 10}, target)
	if err != nil {
		t.Fatal(err)
	}
	if r.Errors != 10 {
		t.Errorf("got %d errors, want 10", r.Errors)
	}
}

func TestFieldsAndSeries(t *testing.T) {
	var requests atomic.Int64
	seen := make(chan string, 1000)
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		seen <- r.Header.Get("X-Api-Key") + " " + r.Header.Get("Traceparent")
		documents(asIs)(w, r)
	})
	target.Fields, target.Traced, target.Series = []string{"X-API-Key: a\r\n", "X-API-Key: b\r\n"}, true, 7
	r, err := load.Run(t.Context(), load.Config{Callers: 2, Duration: 10 * time.Second, Requests: 2}, target)
	if err != nil {
		t.Fatal(err)
	}
	if r.Completed != 4 || requests.Load() != 28 {
		t.Errorf("got %d series of %d requests, want 4 of 28: %s", r.Completed, requests.Load(), r.ErrorSample)
	}
	by, traces := map[string]int{}, map[string]bool{}
	for range requests.Load() {
		key, traceparent, _ := strings.Cut(<-seen, " ")
		by[key]++
		traces[traceparent] = true
		if len(traceparent) != 55 || !strings.HasPrefix(traceparent, "00-") || !strings.HasSuffix(traceparent, "-00") {
			t.Fatalf("traceparent %q", traceparent)
		}
	}
	if by["a"] != 14 || by["b"] != 14 || len(traces) != 28 {
		t.Errorf("got requests by key %v and %d traces, want 14 each and 28", by, len(traces))
	}
}
