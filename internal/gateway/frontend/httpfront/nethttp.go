package httpfront

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/trace"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// handler is the adapter of net/http: it fills in a Request and writes a Response.
type handler struct {
	// Immutable after NewServer.
	timeout     time.Duration
	bodyTimeout time.Duration
	stall       time.Duration // a stream of HTTP/2 that is not read
	trusted     proxies       // proxies whose X-Forwarded-For is trusted
	large       *loop.Budget  // of large bodies that are being written

	// live answers new requests. Atomic: written by Server.Swap, read with every request.
	live atomic.Pointer[Service]

	// Atomics. draining is set by Shutdown: an answer is its connection's last from then
	// on.
	streams  atomic.Int64 // requests of HTTP/2 that are being answered
	crowded  atomic.Int64 // those that were refused because there were too many
	draining atomic.Bool
}

// maxStreams bounds the HTTP/2 requests of all connections that are answered concurrently, each
// with its own goroutine.
const maxStreams = 20_000

// largeBody is the size from which a body counts as pending while it is written: the
// cache may have dropped it, while a client that does not read keeps it in memory.
const largeBody = 64 << 10

var (
	lastAnswer = []string{"close"}
	noLength   = []string{"0"}
)

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.answer(w, r, target(r)) }

// answer answers a request for a target in origin form.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, target string) {
	c, _ := r.Context().Value(connKey{}).(*conn)
	if c != nil {
		c.proven.Store(true)
	}
	weight := int64(0) // of a request of HTTP/2
	if r.ProtoMajor == 2 {
		weight = weigh(r)
		if !h.beginStream(w, c, weight) {
			return
		}
		defer func() { h.endStream(w, c, weight) }()
	}
	// net/http has read the head of the request by now, so the clock is read
	// after it: see the package comment of cache.
	var req Request
	ids := new(idFields)
	service := h.live.Load()
	h.fill(service, &req, r, target, ids)
	if r.ContentLength != 0 {
		// net/http reads a body to its end before it sends the answer, even one
		// that the handler did not read; without a deadline it would wait forever.
		// An error means that the connection is broken, which writing will detect.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.bodyTimeout))
	}
	var rsp Response
	if !service.Peek(&req, &rsp) {
		if !req.Client.IsValid() {
			req.Client = h.client(r)
		}
		ctx, cancel := context.WithTimeout(r.Context(), h.timeout)
		service.Answer(ctx, &req, &rsp)
		cancel()
	}
	if n := int64(rsp.sent()); n >= largeBody {
		if h.large.Admits(n) {
			h.hold(c, n)
			defer h.hold(c, -n)
		} else {
			service.Busy(&req, &rsp)
		}
	} else if weight > 0 && c != nil { // the cache may have dropped the document
		weight += n
		c.streams.Add(n)
		c.of.budget.Add(n)
	}
	service.Note(&req, &rsp)
	if h.draining.Load() && c != nil {
		w.Header()["Connection"] = lastAnswer
	}
	write(w, &req, &rsp, ids)
}

// hold counts bytes of a large answer that is being written.
func (h *handler) hold(c *conn, n int64) {
	over := h.large.Add(n)
	if c != nil {
		c.large.Add(n)
		if over && n > 0 {
			c.of.wakeReview()
		}
	}
}

// beginStream counts an HTTP/2 request that holds weight bytes. If it returns false, there were too
// many, and the request was answered. The less memory is left, the fewer a connection may have, so
// that requests are refused before a connection with many is closed.
func (h *handler) beginStream(w http.ResponseWriter, c *conn, weight int64) bool {
	if c != nil {
		c.came.Store(0) // the bytes are of this request or an earlier one; weight counts them from here on
	}
	if h.streams.Add(1) > maxStreams || c != nil && c.requests.Load() >= int64(c.of.budget.Parallel(streamsAtOnce)) {
		h.streams.Add(-1)
		h.crowded.Add(1)
		w.Header()["Retry-After"] = retrySoon
		w.Header()["Content-Length"] = noLength // a body would wait for a window
		w.WriteHeader(http.StatusServiceUnavailable)
		return false
	}
	if c != nil {
		c.requests.Add(1)
		c.streams.Add(weight)
		c.of.budget.Add(weight)
	}
	// An error means that the stream is broken, which writing will detect.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.timeout + h.stall))
	return true
}

// endStream undoes beginStream once the answer has been sent. Otherwise a client without a
// window would keep the answer after the handler returns, where nothing counts it.
func (h *handler) endStream(w http.ResponseWriter, c *conn, weight int64) {
	_ = http.NewResponseController(w).Flush() // fails if the stream is broken
	if c != nil {
		c.requests.Add(-1)
		c.streams.Add(-weight)
		c.of.budget.Add(-weight)
	}
	h.streams.Add(-1)
}

// fill reads the fields that the answer depends on.
func (h *handler) fill(service *Service, req *Request, r *http.Request, target string, ids *idFields) {
	req.Method = r.Method
	req.Target = target
	if rule := service.hostRule(atLoopback(r)); rule != nil && !rule.accepts(r.Host) {
		req.WrongHost, req.Client = r.Host, h.client(r)
	}
	// The keys are in canonical form; Get would canonicalize each again.
	fields := r.Header
	req.IfMatch = field(fields["If-Match"])
	req.IfNoneMatch = field(fields["If-None-Match"])
	req.AcceptEncoding = field(fields["Accept-Encoding"])
	var twice bool
	req.Authorization, twice = single(fields["Authorization"])
	req.Repeated = twice
	req.APIKey, twice = single(fields["X-Api-Key"])
	req.Repeated = req.Repeated || twice
	if req.Origin, twice = single(fields["Origin"]); twice {
		req.Origin = "" // no browser sends two
	}
	if req.Method == http.MethodOptions {
		req.RequestMethod, _ = single(fields["Access-Control-Request-Method"])
	}
	req.Ranged = fields["Range"] != nil
	if c, _ := r.Context().Value(connKey{}).(*conn); c != nil {
		req.Certificate = c.identify(r.TLS)
	} else if r.TLS != nil { // another server
		req.Certificate, _ = access.NewCertificate(r.TLS)
	}
	if service.WantsClient() {
		req.Client = h.client(r)
	}
	if service.WantsNames() {
		req.Referer, _ = single(fields["Referer"])
		req.UserAgent, _ = single(fields["User-Agent"])
	}
	if req.ID, twice = single(fields["X-Request-Id"]); twice {
		req.ID = ""
	}
	traceparent, twice := single(fields["Traceparent"])
	if twice {
		traceparent = ""
	}
	req.AtOnce = true
	service.Identify(req, traceparent, &ids.requestText)
	req.Start = service.cache.Now()
}

// atLoopback reports whether the request came to a listener that is bound to a loopback address.
// For other servers the address of the connection counts.
func atLoopback(r *http.Request) bool {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		return c.local
	}
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && loop.AtLoopback(addr)
}

// client returns the client's address.
func (h *handler) client(r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr) // not valid for a unix socket
	return clientAddr(peer.Addr(), r.Header["X-Forwarded-For"], h.trusted)
}

// single returns the value of a field that may appear once.
func single(lines []string) (value string, twice bool) {
	if len(lines) == 0 {
		return "", false
	}
	return lines[0], len(lines) > 1
}

// target returns the request target in origin form. A client of a proxy sends the
// absolute form (RFC 9112, section 3.2.2), of which path and query are used.
func target(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		return r.RequestURI
	}
	if r.URL.RawQuery != "" {
		return r.URL.EscapedPath() + "?" + r.URL.RawQuery
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

func write(w http.ResponseWriter, req *Request, rsp *Response, ids *idFields) {
	// The keys are already in canonical form; Set would check that each time.
	fields := w.Header()
	common, rare := rsp.lines(), rsp.rareLines()
	var own []line
	if rsp.own != nil {
		own = rsp.own.lines
	}
	for _, all := range [...][]line{common[:], own, rare[:]} {
		for i := range all {
			if all[i].values != nil {
				fields[all[i].name.key] = all[i].values
			}
		}
	}
	ids.request[0] = req.ID
	fields["X-Request-Id"] = ids.request[:]
	if req.traced {
		req.Trace.AppendTraceparent(ids.traceText[:0])
		ids.trace[0] = unsafe.String(&ids.traceText[0], len(ids.traceText))
		fields["Traceresponse"] = ids.trace[:]
	}
	w.WriteHeader(rsp.Status)
	// A client that has left cannot be told: the result of Write is of no use.
	if len(rsp.Body) > 0 {
		_, _ = w.Write(rsp.Body)
	}
	writeParts(w, rsp.Parts)
}

// idFields are the values of the fields that differ for each answer, with their
// texts, in one allocation.
type idFields struct {
	request, trace [1]string
	requestText    [trace.RequestIDLength]byte
	traceText      [trace.TraceparentLength]byte
}

// gathered holds the parts of a batch on their way: net/http would send a buffer of
// 4 KiB at a time, 40 writes for 100 documents. In 64 KiB they cost a third of the
// CPU (batch-100/16).
var gathered = sync.Pool{New: func() any { return new([64 << 10]byte) }}

func writeParts(w http.ResponseWriter, parts [][]byte) {
	if parts == nil {
		return
	}
	buffer := gathered.Get().(*[64 << 10]byte)
	defer gathered.Put(buffer)
	held := buffer[:0]
	for _, part := range parts {
		for len(part) > 0 {
			if len(held) == 0 && len(part) >= len(buffer) {
				if _, err := w.Write(part); err != nil {
					return
				}
				break
			}
			n := copy(buffer[len(held):], part)
			held, part = buffer[:len(held)+n], part[n:]
			if len(held) == len(buffer) {
				if _, err := w.Write(held); err != nil {
					return
				}
				held = buffer[:0]
			}
		}
	}
	_, _ = w.Write(held)
}
