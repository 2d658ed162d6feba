package httpfront

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/recent"
	"github.com/slipstream-go/slipstream/internal/gateway/measure"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/http1"
)

// front is the adapter of the event loop, with the state that its sessions share.
type front struct {
	// Immutable after newFront.
	config Config
	cache  *cache.Cache
	// workers are the goroutines that answer: those of Config.Workers if it is not nil, otherwise
	// its own, which Shutdown ends.
	workers *loop.Workers
	own     *loop.Workers

	// live answers new requests. Atomic: written by swap, read with every call of Data.
	live atomic.Pointer[view]

	date      dateField
	answering sync.WaitGroup                  // requests that workers answer; Shutdown waits for them
	waiting   atomic.Int64                    // requests that workers answer, written by sessions and workers
	crowded   atomic.Int64                    // requests that were refused because too many wait
	engine    *loop.Server                    // set before it serves
	handed    [http1.ReasonCount]atomic.Int64 // requests handed over, by reason
	closed    measure.Ration                  // warnings about connections that ended
	panics    measure.Ration                  // lines about requests that panicked

	recent recent.Lanes[*served]
}

func newFront(service *Service, config Config) *front {
	f := &front{config: config, cache: service.cache, workers: config.Workers}
	if f.workers == nil {
		f.own = loop.NewWorkers(0)
		f.workers = f.own
	}
	f.swap(service)
	return f
}

// finish waits until all requests are answered. The engine has shut down, so none
// begins.
func (f *front) finish() {
	f.answering.Wait()
	if f.own != nil {
		f.own.Close()
	}
}

// view is a service and the fields that it needs.
type view struct {
	// Immutable.
	*Service
	wantClient bool // the client's address is needed
	wantNames  bool // User-Agent and Referer are needed
	inSum      bool // hits need not be reported one by one
}

// swap makes another service answer new requests.
func (f *front) swap(s *Service) {
	f.live.Store(&view{Service: s, wantClient: s.WantsClient(), wantNames: s.WantsNames(), inSum: s.config.Requests == nil})
}

// session answers the requests of one connection that are strict GETs, HEADs and OPTIONS without
// a body, and hands the connection over at the first that is not.
type session struct {
	// Immutable after New.
	front *front
	// Owned by the connection's turn. certificate is set once, by Secured; nil if the client has
	// none. taken counts requests; rest says that more bytes were read than those requests.
	certificate *access.Certificate
	scanner     http1.Scanner
	taken       uint64
	rest        bool
	// host was accepted with the last request; nil if none was, or if Host is not checked.
	// Owned by the connection's turn.
	host *knownHost

	// Atomic: bytes of large answers that wait for earlier ones. Written by goroutines
	// that answer and by the connection's turn, read by surveys.
	complete atomic.Int64
}

// HoldsLarge implements [loop.LargeHolder].
func (s *session) HoldsLarge() int64 { return s.complete.Load() }

// Data implements [loop.Session].
func (s *session) Data(c *loop.Conn, in []byte) (consumed int) {
	t := s.front.borrow(c.Lane())
	t.now, t.certificate = time.Now(), s.certificate
	for consumed < len(in) && !c.Full() {
		n, again := s.head(c, t, in[consumed:])
		if n == 0 {
			break
		}
		s.taken++
		c.Prove()
		s.front.answer(c, s, t, again)
		c.Spend(1 + t.request.work + t.response.copied()>>9)
		consumed += n
	}
	s.rest = consumed < len(in)
	if t.hits > 0 || t.again > 0 {
		t.tell(t.view.Service)
	}
	s.front.giveBack(c.Lane(), t)
	return consumed
}

// head reads the head of the next request into t.head and returns its length, or 0 if the request is
// incomplete or not for the session. again says that the last request was a plain hit, and that its
// head was the same except for the target.
func (s *session) head(c *loop.Conn, t *turn, in []byte) (n int, again bool) {
	limit := s.front.config.MaxHeader
	if t.counted {
		if n, ok := http1.Again(in, limit, &t.head); ok {
			return n, true
		}
	}
	n, verdict, why := s.scanner.Scan(in, limit, &t.head)
	if verdict == http1.Other {
		s.front.handed[why].Add(1)
		c.Detach()
	}
	return n, false
}

// Secured implements [loop.SecureSession]: net/http serves HTTP/2.
func (s *session) Secured(c *loop.Conn, state tls.ConnectionState) {
	certificate, err := access.NewCertificate(&state)
	if err != nil {
		c.Abort(err)
		return
	}
	s.certificate = certificate
	if state.NegotiatedProtocol == protocolHTTP2 {
		c.Detach()
	}
}

// protocolHTTP2 is the name of HTTP/2 over TLS in a handshake (RFC 9113, section 3.2).
const protocolHTTP2 = "h2"

// Closed implements [loop.Session].
func (s *session) Closed(*loop.Conn, error) {}

// answer answers the request in t.head, now or later. again says that the last one was a plain
// hit, and had the same head except for the target.
func (f *front) answer(c *loop.Conn, s *session, t *turn, again bool) {
	how := manner{minor: t.head.Minor, head: t.head.Method == http1.MethodHead, last: !t.head.KeepAlive || c.Draining()}
	if again {
		f.refill(t)
	} else {
		f.fill(c, t)
	}
	if rule := t.view.hostRule(c.AtLoopback()); rule != nil && !s.knows(rule, t) {
		t.request.WrongHost = text(t.head.Host)
		t.request.Client = f.client(c.RemoteAddr().Addr(), t) // for the log
	}
	t.response = Response{}
	v := t.view
	if v.Peek(&t.request, &t.response) {
		if t.request.question.again != nil {
			t.countHit(v.Service)
		}
		if n := t.response.sent(); n >= largeBody && !c.AdmitsLarge(n) {
			v.Busy(&t.request, &t.response)
		}
		if v.inSum && t.response.fields != "" && !t.request.Trace.Sampled() {
			t.count()
		} else {
			took := time.Since(t.now)
			v.note(&t.request, &t.response, took)
			t.now = t.now.Add(took) // the next request of this read begins at this time
			t.counted = false
		}
		f.write(c.Output(), &t.request, &t.response, how)
	} else {
		t.counted = false
		t.request.work += workOfLater
		f.later(c, t, how)
	}
	if how.last {
		c.End()
	}
}

// knows reports whether the rule accepts the Host of the request in t.head. On a connection in use
// it is usually that of the previous request.
func (s *session) knows(rule *hostRule, t *turn) bool {
	host := text(t.head.Host)
	if k := s.host; k != nil && k.rule == rule && k.text == host {
		return true
	}
	if !rule.accepts(host) {
		return false
	}
	s.host = rule.remember(host)
	return true
}

// fill reads the fields that the answer depends on. The strings are the connection's
// bytes: they are valid during the call of Data.
func (f *front) fill(c *loop.Conn, t *turn) {
	h, req := &t.head, &t.request
	*req = Request{
		Method: http.MethodGet, Target: text(h.Target), AtOnce: true,
		IfMatch: text(h.IfMatch), IfNoneMatch: text(h.IfNoneMatch), AcceptEncoding: text(h.AcceptEncoding),
		Authorization: text(h.Authorization), APIKey: text(h.APIKey), Repeated: h.RepeatedCredentials, Certificate: t.certificate,
		Origin: text(h.Origin), ID: text(h.RequestID), Ranged: h.Ranged,
		began: t.now, recent: t.recent,
	}
	switch h.Method {
	case http1.MethodHead:
		req.Method = http.MethodHead
	case http1.MethodOptions:
		req.Method, req.RequestMethod = http.MethodOptions, text(h.RequestMethod)
	}
	if t.view.wantClient {
		req.Client = f.client(c.RemoteAddr().Addr(), t)
	}
	if t.view.wantNames {
		req.UserAgent, req.Referer = text(h.UserAgent), text(h.Referer)
	}
	t.view.Identify(req, text(h.Traceparent), &t.requestID)
	req.Start = c.ReadAt()
}

// refill is fill for a request whose head is that of the last one except for the target.
func (f *front) refill(t *turn) {
	req := &t.request
	req.Target, req.ID = text(t.head.Target), text(t.head.RequestID)
	req.began, req.question, req.work = t.now, question{}, 0
	t.view.Identify(req, text(t.head.Traceparent), &t.requestID)
}

func (f *front) client(remote netip.Addr, t *turn) netip.Addr {
	lines := t.forwarded[:0]
	for _, line := range t.head.Forwarded {
		lines = append(lines, text(line))
	}
	return clientAddr(remote, lines, f.config.trusted())
}

// text is b as a string without a copy.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
