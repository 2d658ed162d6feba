package httpfront

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/klauspost/compress/flate"

	"github.com/slipstream-go/slipstream/internal/gateway/trace"
)

// forced sends a request of a client that refuses identity.
func forced(t *testing.T, f *fixture, ctx ctx, key string) *Response {
	t.Helper()
	req := &Request{Method: http.MethodGet, Target: "/depts/" + key, AcceptEncoding: "gzip, identity;q=0", Start: f.cache.Now()}
	f.service.Identify(req, "", new([trace.RequestIDLength]byte))
	rsp := new(Response)
	if !f.service.Peek(req, rsp) {
		f.service.Answer(ctx, req, rsp)
	}
	return rsp
}

// TestForcedForms: a client that refuses identity cannot make the server compress the same
// document for each request.
func TestForcedForms(t *testing.T) {
	f := newConfigured(t, jsonOrigin, ServiceConfig{Compression: []string{"gzip"}}, nil)

	// Compressing does not pay, which the first client has found out.
	if r := f.serve(f.handler(), "GET", "/depts/-9000", "Accept-Encoding", "gzip"); r.Header.Get("Content-Encoding") != "" {
		t.Fatalf("noise is sent in %q", r.Header.Get("Content-Encoding"))
	}
	first := forced(t, f, t.Context(), "-9000")
	if first.Status != http.StatusOK || len(first.ContentEncoding) == 0 || first.ContentEncoding[0] != "gzip" {
		t.Fatalf("%d, %v, want gzip", first.Status, first.ContentEncoding)
	}
	for range 3 {
		if next := forced(t, f, t.Context(), "-9000"); &next.Body[0] != &first.Body[0] {
			t.Fatal("the document was compressed again")
		}
	}
	// The number of remembered forms is bounded, and the oldest is dropped.
	for i := range forcedKept {
		f.service.compressor.forced.keep(string(rune('a'+i)), new(encoded))
	}
	if n := len(f.service.compressor.forced.by); n != forcedKept {
		t.Errorf("%d forms are remembered, want %d", n, forcedKept)
	}
	if next := forced(t, f, t.Context(), "-9000"); &next.Body[0] == &first.Body[0] {
		t.Error("the oldest form is still remembered")
	}

	// It is too large to be compressed for each request.
	if r := f.serve(f.handler(), "GET", "/depts/-300000", "Accept-Encoding", "gzip"); r.StatusCode != http.StatusOK {
		t.Fatalf("%d", r.StatusCode)
	}
	if r := forced(t, f, t.Context(), "-300000"); r.Status != http.StatusNotAcceptable {
		t.Errorf("%d for a large document that compressing does not pay for, want 406", r.Status)
	}
	// It is not known yet that there is no room for its form.
	for i, want := range []int{http.StatusOK, http.StatusNotAcceptable, http.StatusNotAcceptable} {
		if r := forced(t, f, t.Context(), "-5000000"); r.Status != want {
			t.Errorf("request %d for a form that there is no room for: %d, want %d", i, r.Status, want)
		}
	}
	// A form for which there is room is kept with its document.
	one, two := forced(t, f, t.Context(), "300000"), forced(t, f, t.Context(), "300000")
	if one.Status != http.StatusOK || &one.Body[0] != &two.Body[0] {
		t.Errorf("%d: a large form that fits was compressed again", one.Status)
	}
}

// TestForcedFormsWaitWithTheRequest: a request that waits for a slot for compressing ends at
// its deadline.
func TestForcedFormsWaitWithTheRequest(t *testing.T) {
	f := newConfigured(t, jsonOrigin, ServiceConfig{Compression: []string{"gzip"}}, nil)
	free := f.service.compressor.free
	var taken []*flate.Writer
	for range cap(free) {
		taken = append(taken, <-free)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	answered := make(chan *Response, 1)
	go func() { answered <- forced(t, f, ctx, "2000") }() // ends with ctx
	select {
	case r := <-answered:
		if r.Status != http.StatusGatewayTimeout {
			t.Errorf("%d, want 504", r.Status)
		}
	case <-time.After(patience):
		t.Error("the request waits beyond its deadline")
	}
	for _, w := range taken {
		free <- w
	}
	if r := forced(t, f, t.Context(), "2000"); r.Status != http.StatusOK {
		t.Errorf("%d once there are slots again, want 200", r.Status)
	}
}
