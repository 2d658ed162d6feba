package httpfront

import (
	"context"
	"net/http"
	"strings"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
)

// dress adds to a complete answer the fields that do not depend on its document.
func (s *Service) dress(req *Request, rsp *Response) {
	if rsp.Vary == nil {
		rsp.Vary = s.vary
	}
	if req.Ranged {
		rsp.AcceptRanges = noRanges
	}
	if s.cors != nil && rsp.CORS == nil {
		rsp.CORS = s.cors.answer(req.Origin)
	}
}

// options answers OPTIONS: the allowed methods, and, for a request that a browser
// sends on behalf of a page of another origin, whether the page may use them.
func (s *Service) options(req *Request, rsp *Response) {
	rsp.Status = http.StatusNoContent
	rsp.Allow = allowed
	if s.cors != nil && isPreflight(req.Origin, req.RequestMethod) {
		rsp.CORS = s.cors.preflight(req.Origin)
	}
}

// Busy replaces an answer for which there is no memory at present.
func (s *Service) Busy(req *Request, rsp *Response) {
	s.problem(rsp, http.StatusServiceUnavailable, "too many large answers wait for clients to read them")
	rsp.RetryAfter = retrySoon
	s.dress(req, rsp)
}

// Crowded answers a request for which there is no slot among those that wait for loads.
func (s *Service) Crowded(req *Request, rsp *Response) {
	s.problem(rsp, http.StatusServiceUnavailable, "too many requests wait for documents to be loaded")
	rsp.RetryAfter = retrySoon
	s.dress(req, rsp)
}

// describe answers with the description of what the client may read. Invalid credentials count
// as none here.
func (s *Service) describe(ctx context.Context, req *Request, rsp *Response) {
	var caller *access.Caller
	certificate := req.certificate()
	private := s.protected && s.config.Gate != nil
	if private {
		var proceed bool
		if caller, _, proceed = s.identify(ctx, req, rsp); !proceed {
			return
		}
	}
	private = private || s.certified
	known := caller
	text := s.config.OpenAPI(func(i int) bool {
		by, refusal := s.resources.List[i].Access.Admit(caller, certificate)
		if known == nil && refusal == nil {
			known = by
		}
		return refusal == nil
	})
	if known != nil {
		rsp.Caller = known.Name()
	}
	if len(text) == 0 {
		s.problem(rsp, http.StatusServiceUnavailable, "the database has not been reached yet")
		rsp.RetryAfter = retrySoon
		return
	}
	h := s.descriptionHead(text)
	rsp.Status = http.StatusOK
	rsp.ETag = h.etag[:]
	rsp.CacheControl = noCache
	if private {
		rsp.CacheControl = privateNoCache
	}
	if req.IfNoneMatch != "" && tagListed(req.IfNoneMatch, h.etag[0], true) {
		rsp.Status = http.StatusNotModified
		return
	}
	rsp.ContentType = jsonType
	rsp.ContentLength = h.length[:]
	rsp.Size = len(text)
	if req.Method != http.MethodHead {
		rsp.Body = text
	}
}

// maxDescribed is how many descriptions have their head remembered.
const maxDescribed = 8

// descriptionHead returns the head of a description, made once for each text, except for those
// of many callers with different rights.
func (s *Service) descriptionHead(text []byte) *head {
	var last []describedText
	if p := s.described.Load(); p != nil {
		last = *p
	}
	for _, d := range last {
		if &d.text[0] == &text[0] {
			return d.head
		}
	}
	now := append([]describedText{{text: text, head: newHead(text, nil)}}, last[:min(len(last), maxDescribed-1)]...)
	s.described.Store(&now)
	return now[0].head
}

// describedText is a description with its head.
type describedText struct {
	text []byte
	head *head
}

// varyOf lists the fields of a request that choose among answers (RFC 9110, section
// 12.5.5). Credentials are not among them: answers that depend on them are private.
func varyOf(encodings, origins bool) []string {
	var names []string
	if encodings {
		names = append(names, "Accept-Encoding")
	}
	if origins {
		names = append(names, "Origin")
	}
	if names == nil {
		return nil
	}
	return []string{strings.Join(names, ", ")}
}
