package httpfront

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
)

// Request is what the answer depends on; nothing else of a request may change it.
type Request struct {
	Method string
	// Target is the request target in origin form, as it was sent.
	Target      string
	IfMatch     string
	IfNoneMatch string
	// Start is when the request had been read, on the cache's clock.
	Start time.Duration
}

// Response is an answer. Slices are shared with other answers and must not be
// changed. A nil slice is a field that is not sent.
type Response struct {
	Status        int
	ContentType   []string
	ContentLength []string
	ETag          []string
	CacheControl  []string
	CacheStatus   []string
	Allow         []string
	RetryAfter    []string
	// Body is the representation; a HEAD answer has the length but not the body.
	Body []byte
}

// Resource is what the frontend knows of a resource.
type Resource struct {
	Name string
	// CacheControl is sent with documents. The default is "no-cache": a
	// downstream cache that answered by itself would break the promise.
	CacheControl string
}

// Service answers requests. Its methods may be called at once.
type Service struct {
	// Immutable after NewService.
	cache  *cache.Cache
	byName map[string]*served
	list   []*served
	log    *slog.Logger

	// Atomics. answered has one a status from 200 to 599, written by every
	// answer, read by EachStatus; the others are written and read by warn.
	answered [400]atomic.Int64
	warnedAt atomic.Int64 // on the cache's clock, 0: never
	unwarned atomic.Int64
}

// EachStatus calls visit with every status that was answered and how often.
func (s *Service) EachStatus(visit func(status string, n int64)) {
	for i := range s.answered {
		if n := s.answered[i].Load(); n > 0 {
			visit(strconv.Itoa(200+i), n)
		}
	}
}

// count is called by the adapters with each answer that they write.
func (s *Service) count(status int) {
	if i := status - 200; i >= 0 && i < len(s.answered) {
		s.answered[i].Add(1)
	}
}

// served is a resource as the service keeps it.
type served struct {
	// Immutable after NewService.
	id           cache.ResourceID
	cacheControl []string

	// columns of the key, nil until the origin was reached. Written by
	// SetColumns, read by every request.
	columns atomic.Pointer[[]resource.KeyColumn]
}

// NewService returns a service for resources in the order of the cache's.
func NewService(c *cache.Cache, resources []Resource, log *slog.Logger) *Service {
	s := &Service{cache: c, byName: make(map[string]*served), log: log}
	for i, r := range resources {
		v := &served{id: cache.ResourceID(i), cacheControl: []string{"no-cache"}}
		if r.CacheControl != "" {
			v.cacheControl = []string{r.CacheControl}
		}
		s.byName[r.Name] = v
		s.list = append(s.list, v)
	}
	return s
}

// SetColumns says what the key of a resource looks like. Until then its
// documents are answered with 503.
func (s *Service) SetColumns(id cache.ResourceID, columns []resource.KeyColumn) error {
	if len(columns) == 0 || len(columns) > maxColumns {
		return errors.New("http: a key has 1 to " + strconv.Itoa(maxColumns) + " columns")
	}
	s.list[id].columns.Store(&columns)
	return nil
}

// Field values that never change.
var (
	jsonType    = []string{"application/json"}
	noStore     = []string{"no-store"}
	allowed     = []string{"GET, HEAD, OPTIONS"}
	retrySoon   = []string{"1"}
	statusHit   = []string{"slipstream; hit"}
	statusMiss  = []string{"slipstream; fwd=uri-miss"}
	statusStore = []string{"slipstream; fwd=uri-miss; stored"}
	statusJoin  = []string{"slipstream; fwd=uri-miss; collapsed"}
	statusStale = []string{"slipstream; fwd=stale"}
)

// Peek fills rsp if that takes no waiting: a hit, a bad request. False means that
// Answer must be called. It is the function that event loops call.
func (s *Service) Peek(req *Request, rsp *Response) bool {
	v, key, done := s.route(req, rsp)
	if done {
		return true
	}
	a, ok := s.cache.Peek(key, req.Start)
	if !ok {
		return false
	}
	s.document(v, req, a, rsp)
	return true
}

// Answer fills rsp, and loads the document if it must. It returns early when ctx
// ends: with 504 at a deadline.
func (s *Service) Answer(ctx context.Context, req *Request, rsp *Response) {
	v, key, done := s.route(req, rsp)
	if done {
		return
	}
	a, err := s.cache.Get(ctx, key, req.Start)
	if err != nil {
		s.failure(err, req, rsp)
		return
	}
	s.document(v, req, a, rsp)
}

// route finds the resource and the key. True means that rsp is complete already.
func (s *Service) route(req *Request, rsp *Response) (*served, cache.Key, bool) {
	switch req.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		*rsp = Response{Status: http.StatusNoContent, Allow: allowed}
		return nil, cache.Key{}, true
	default:
		setProblem(rsp, http.StatusMethodNotAllowed, "documents can only be read: use GET or HEAD")
		rsp.Allow = allowed
		return nil, cache.Key{}, true
	}
	if len(req.Target) > maxTarget {
		setProblem(rsp, http.StatusRequestURITooLong, "the request target is longer than "+strconv.Itoa(maxTarget)+" bytes")
		return nil, cache.Key{}, true
	}
	name, path, ok := splitTarget(req.Target)
	v := s.byName[name]
	switch {
	case v == nil:
		setProblem(rsp, http.StatusNotFound, "there is no such resource; the path is /{resource}/{key}")
		return nil, cache.Key{}, true
	case !ok:
		setProblem(rsp, http.StatusNotFound, "the path names a resource but no key: /{resource}/{key}")
		return nil, cache.Key{}, true
	}
	columns := v.columns.Load()
	if columns == nil {
		setProblem(rsp, http.StatusServiceUnavailable, "the database has not been reached yet")
		rsp.RetryAfter = retrySoon
		return nil, cache.Key{}, true
	}
	id, err := parseKey(*columns, path)
	if err != nil {
		setProblem(rsp, http.StatusBadRequest, err.Error())
		return nil, cache.Key{}, true
	}
	return v, cache.Key{Resource: v.id, ID: id}, false
}

// document fills rsp with the answer that the cache gave.
func (s *Service) document(v *served, req *Request, a cache.Answer, rsp *Response) {
	if a.Doc.Missing() {
		setProblem(rsp, http.StatusNotFound, "there is no document with this key")
		rsp.CacheStatus = cacheStatus(a)
		rsp.CacheControl = v.cacheControl
		return
	}
	h := s.headOf(a.Doc)
	if req.IfMatch != "" && !tagListed(req.IfMatch, h.etag[0], false) {
		setProblem(rsp, http.StatusPreconditionFailed, "the document has another entity tag than If-Match asks for")
		return
	}
	rsp.ETag = h.etag[:]
	rsp.CacheControl = v.cacheControl
	rsp.CacheStatus = cacheStatus(a)
	if req.IfNoneMatch != "" && tagListed(req.IfNoneMatch, h.etag[0], true) {
		rsp.Status = http.StatusNotModified
		return
	}
	rsp.Status = http.StatusOK
	rsp.ContentType = jsonType
	rsp.ContentLength = h.length[:]
	if req.Method != http.MethodHead {
		rsp.Body = a.Doc.Body()
	}
}

// cacheStatus says how the answer was come by (RFC 9211).
func cacheStatus(a cache.Answer) []string {
	switch {
	case a.Source == cache.FromTier:
		return statusHit
	case a.Source == cache.Stale:
		behind := strconv.FormatInt(-1-int64(a.Behind/time.Second), 10)
		return []string{"slipstream; hit; ttl=" + behind + "; detail=unverified"}
	case a.Superseded:
		return statusStale
	case a.Source == cache.Joined:
		return statusJoin
	case a.Stored:
		return statusStore
	}
	return statusMiss
}

// failure turns an error of the cache into an answer. The client learns what to
// do, the log what went wrong.
func (s *Service) failure(err error, req *Request, rsp *Response) {
	unavailable := func(detail string) {
		setProblem(rsp, http.StatusServiceUnavailable, detail)
		rsp.RetryAfter = retrySoon
	}
	switch {
	case errors.Is(err, context.Canceled):
		unavailable("the request was given up") // the client has gone and will not read it
	case errors.Is(err, context.DeadlineExceeded):
		setProblem(rsp, http.StatusGatewayTimeout, "the document could not be loaded in time")
	case errors.Is(err, cache.ErrStale):
		unavailable("the document's freshness cannot be promised just now")
	case errors.Is(err, cache.ErrOverloaded):
		unavailable("too many documents are being loaded")
	case errors.Is(err, cache.ErrClosed):
		unavailable("the server is shutting down")
	case errors.Is(err, cache.ErrUnavailable):
		s.warn("load failed", req, err)
		unavailable("the database cannot be reached")
	case errors.Is(err, cache.ErrTooLarge):
		s.warn("document refused", req, err)
		setProblem(rsp, http.StatusBadGateway, "the document is larger than the configured limit")
	default:
		s.warn("load failed", req, err)
		setProblem(rsp, http.StatusBadGateway, "the database could not give this document")
	}
}

// Bounds of the log in an outage: every request of it would have its line.
const (
	warnInterval  = time.Second
	maxTargetText = 200
)

// warn logs a failure, at most one a second; the next line says how many were
// left out.
func (s *Service) warn(what string, req *Request, err error) {
	last := s.warnedAt.Load()
	if last != 0 && req.Start-time.Duration(last) < warnInterval || !s.warnedAt.CompareAndSwap(last, int64(req.Start)) {
		s.unwarned.Add(1)
		return
	}
	target := req.Target
	if len(target) > maxTargetText {
		target = target[:maxTargetText] + "..."
	}
	s.log.Warn(what, "target", target, "error", err, "left_out", s.unwarned.Swap(0))
}
