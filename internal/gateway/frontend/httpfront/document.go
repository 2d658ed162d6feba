package httpfront

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/recent"
)

// document fills rsp with the answer of the cache. A nil ctx means that the caller must not
// block; then false means that it would have to wait.
func (s *Service) document(ctx context.Context, req *Request, a cache.Answer, rsp *Response) bool {
	v := req.question.of
	if a.Doc.Missing() {
		s.problem(rsp, http.StatusNotFound, "there is no document with this key")
		rsp.CacheStatus = cacheStatus(a)
		rsp.CacheControl = v.missing
		rsp.Source, rsp.Keys = frontend.SourceOf(a), 1
		return true
	}
	c, must, ok := s.weigh(req, s.compressor.offered)
	if !ok {
		s.notAcceptable(rsp)
		return true
	}
	w := workOf(a.Doc, c, must)
	if ctx == nil && !w.onLoop() {
		return false
	}
	req.work += w.units()
	h := s.headOf(a.Doc)
	tag, length, body := h.etag[:], h.length[:], a.Doc.Body()
	if c != identity {
		e, err := s.encodedOf(ctx, a.Doc, c, must)
		switch {
		case errors.Is(err, errLater):
			return false
		case errors.Is(err, errForced):
			s.problem(rsp, http.StatusNotAcceptable, "Accept-Encoding excludes identity, and the document is too large to be compressed for each request")
			return true
		case err != nil:
			s.failure(err, req, rsp)
			return true
		case e != nil:
			tag, length, body = e.etag[:], e.length[:], e.body
		default:
			c = identity
		}
	}
	failed := s.conditions(req, rsp, v, tag)
	rsp.Source, rsp.Keys = frontend.SourceOf(a), 1
	if failed {
		return true
	}
	rsp.CacheStatus = cacheStatus(a)
	if rsp.Status != http.StatusOK {
		return true
	}
	rsp.ContentType = jsonType
	rsp.ContentLength = length
	rsp.ContentEncoding = codingNames[c]
	rsp.Size = len(body)
	if c == identity && a.Source == cache.FromTier && !a.FromStore {
		rsp.fields = h.fields
	}
	if req.Method != http.MethodHead {
		rsp.Body = body
	}
	return true
}

// repeat fills rsp with the recent answer for the same target. It returns false if other
// fields of the request matter, too.
func (s *Service) repeat(req *Request, e *recent.Entry[*served], rsp *Response) bool {
	if req.AcceptEncoding != "" || req.IfNoneMatch != "" || req.IfMatch != "" {
		return false
	}
	rsp.Status, rsp.Source, rsp.Keys = http.StatusOK, frontend.SourceHit, 1
	rsp.fields, rsp.Size = e.Head(), len(e.Body)
	if req.Method != http.MethodHead {
		rsp.Body = e.Body
	}
	return true
}

// conditions evaluates the preconditions (RFC 9110, section 13.2.2) against the tag of the chosen
// representation, and sets status, tag and the resource's own fields. If it returns true, rsp is
// complete: If-Match failed.
func (s *Service) conditions(req *Request, rsp *Response, v *served, tag []string) bool {
	if req.IfMatch != "" && !tagListed(req.IfMatch, tag[0], false) {
		s.problem(rsp, http.StatusPreconditionFailed, "the entity tag of the document does not match If-Match")
		return true
	}
	rsp.Status = http.StatusOK
	rsp.ETag = tag
	rsp.own = &v.own
	if req.IfNoneMatch != "" && tagListed(req.IfNoneMatch, tag[0], true) {
		rsp.Status = http.StatusNotModified
	}
	return false
}

// weigh chooses the coding of the answer.
func (s *Service) weigh(req *Request, offered []coding) (c coding, must, ok bool) {
	if req.AcceptEncoding == "" {
		return identity, false, true
	}
	a := parseAccept(req.AcceptEncoding)
	return a.choose(offered)
}

func (s *Service) notAcceptable(rsp *Response) {
	s.problem(rsp, http.StatusNotAcceptable, "Accept-Encoding excludes identity and every coding that is offered")
}

// cacheStatus says where the answer came from (RFC 9211).
func cacheStatus(a cache.Answer) []string {
	switch {
	case a.FromStore && a.Tier == "disk":
		return statusDisk
	case a.FromStore:
		return []string{"slipstream; hit; detail=" + a.Tier}
	case a.Source == cache.FromTier:
		return statusHit
	case a.Source == cache.Stale:
		return []string{"slipstream; hit; ttl=-" + strconv.FormatInt(secondsBehind(a), 10) + "; detail=unverified"}
	case a.Superseded:
		return statusStale
	case a.Source == cache.Joined:
		return statusJoin
	case a.Stored:
		return statusStore
	}
	return statusMiss
}

// secondsBehind is how much older than promised the document may be, rounded up.
func secondsBehind(a cache.Answer) int64 { return 1 + int64(a.Behind/time.Second) }

// failure turns an error of the cache into an answer. The client is told what to
// do, the log has the cause.
func (s *Service) failure(err error, req *Request, rsp *Response) {
	unavailable := func(detail string) {
		s.problem(rsp, http.StatusServiceUnavailable, detail)
		rsp.RetryAfter = retrySoon
	}
	switch {
	case errors.Is(err, context.Canceled):
		unavailable("the request was given up") // the client has left and will not read it
	case errors.Is(err, context.DeadlineExceeded):
		s.problem(rsp, http.StatusGatewayTimeout, "the document could not be loaded in time")
	case errors.Is(err, cache.ErrStale):
		unavailable("the document's freshness cannot be promised at present")
	case errors.Is(err, cache.ErrOverloaded):
		unavailable("too many documents are being loaded")
	case errors.Is(err, cache.ErrClosed):
		unavailable("the server is shutting down")
	case errors.Is(err, cache.ErrUnavailable):
		s.warn("load failed", req, err)
		unavailable("the database cannot be reached")
	case errors.Is(err, cache.ErrTooLarge):
		s.warn("document refused", req, err)
		s.problem(rsp, http.StatusBadGateway, "the document is larger than the configured limit")
	default:
		s.warn("load failed", req, err)
		s.problem(rsp, http.StatusBadGateway, "the document could not be loaded")
	}
}
