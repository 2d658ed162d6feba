package httpfront

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// handler is the adapter of net/http: it fills a Request and writes a Response.
type handler struct {
	// Immutable after NewServer.
	service     *Service
	timeout     time.Duration
	bodyTimeout time.Duration
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// net/http has read the head of the request by now, so the clock is read
	// after it: see the package comment of cache.
	req := Request{
		Method:      r.Method,
		Target:      target(r),
		IfMatch:     field(r.Header["If-Match"]),
		IfNoneMatch: field(r.Header["If-None-Match"]),
		Start:       h.service.cache.Now(),
	}
	if r.ContentLength != 0 {
		// net/http reads a body to its end before the answer leaves, even one
		// that nobody looked at; without a deadline it would wait for ever.
		// An error means that the connection is broken, which writing will find.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.bodyTimeout))
	}
	var rsp Response
	if !h.service.Peek(&req, &rsp) {
		ctx, cancel := context.WithTimeout(r.Context(), h.timeout)
		h.service.Answer(ctx, &req, &rsp)
		cancel()
	}
	h.service.count(rsp.Status)
	write(w, &rsp)
}

// target returns the request target in origin form. A client that speaks to a
// proxy sends the absolute form (RFC 9112, section 3.2.2), of which the path counts.
func target(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		return r.RequestURI
	}
	return r.URL.EscapedPath()
}

// field joins the lines of a list field (RFC 9110, section 5.3).
func field(lines []string) string {
	switch len(lines) {
	case 0:
		return ""
	case 1:
		return lines[0]
	}
	return strings.Join(lines, ", ")
}

func write(w http.ResponseWriter, rsp *Response) {
	// The keys are in canonical form already; Set would check that each time.
	fields := w.Header()
	set := func(name string, values []string) {
		if values != nil {
			fields[name] = values
		}
	}
	set("Content-Type", rsp.ContentType)
	set("Content-Length", rsp.ContentLength)
	set("Etag", rsp.ETag)
	set("Cache-Control", rsp.CacheControl)
	set("Cache-Status", rsp.CacheStatus)
	set("Allow", rsp.Allow)
	set("Retry-After", rsp.RetryAfter)
	w.WriteHeader(rsp.Status)
	if len(rsp.Body) == 0 {
		return
	}
	_, _ = w.Write(rsp.Body) // a client that has gone cannot be told
}
