package httpfront

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
)

// CORS says which web pages of other origins may read answers (Fetch standard,
// CORS protocol). The zero value permits none. Then a browser withholds the answer
// from the page, but still sends the request to the server.
type CORS struct {
	// Origins are "*", which matches every page, or scheme://host[:port] as
	// browsers send it, without the scheme's own port. They are compared without
	// regard to case.
	Origins []string
	// Headers are request fields that pages may send in addition to those that the
	// frontend itself reads.
	Headers []string
	// Credentials lets pages send cookies and the like. It does not apply to pages
	// that only "*" matches: browsers refuse that.
	Credentials bool
	// MaxAge is how long a browser may cache the answer to a preflight. If zero,
	// it defaults to 10 min; if negative, not at all.
	MaxAge time.Duration
}

const (
	defaultCORSAge = 10 * time.Minute
	// maxOrigin is the longest origin that is looked up: a name of 253 bytes, a
	// scheme and a port.
	maxOrigin = 300
)

// Fields of the requests that pages may send, and of the answers that they may read
// in addition to those that the standard permits.
var (
	corsRequestFields = []string{
		"Authorization", "X-API-Key", "X-Request-Id", "traceparent", "tracestate", "If-None-Match", "If-Match",
	}
	corsExposed = []string{"ETag", "Cache-Status", "X-Request-Id", "Traceresponse", "Retry-After", "WWW-Authenticate"}
	corsMethods = []string{"GET, HEAD"}
	corsTrue    = []string{"true"}
)

// corsFields are the fields of one answer. A nil slice is a field that is not sent.
// They are shared and must not be changed.
type corsFields struct {
	AllowOrigin      []string // Access-Control-Allow-Origin
	AllowCredentials []string // Access-Control-Allow-Credentials
	ExposeHeaders    []string // Access-Control-Expose-Headers
	AllowMethods     []string // Access-Control-Allow-Methods
	AllowHeaders     []string // Access-Control-Allow-Headers
	MaxAge           []string // Access-Control-Max-Age
}

// noCORS are the fields for a page that may not read.
var noCORS corsFields

// corsGrant has the fields for a page of one origin, made once.
type corsGrant struct {
	answer, preflight corsFields
}

// corsPolicy decides which pages may read. It is immutable; if nil, none may.
type corsPolicy struct {
	everybody *corsGrant // for "*"; nil if only those in byOrigin may read
	byOrigin  map[string]*corsGrant
}

// newCORSPolicy compiles the configuration. It returns nil if no page may read.
func newCORSPolicy(c CORS, resources []frontend.Resource) *corsPolicy {
	age := c.MaxAge
	switch {
	case age == 0:
		age = defaultCORSAge
	case age < 0:
		age = 0
	}
	maxAge := []string{strconv.FormatInt(int64((age+time.Second-1)/time.Second), 10)}
	names := slices.Clone(corsRequestFields)
	for _, name := range c.Headers {
		if !slices.ContainsFunc(names, func(known string) bool { return strings.EqualFold(known, name) }) {
			names = append(names, name)
		}
	}
	headers, exposed := []string{strings.Join(names, ", ")}, exposedOf(resources)
	grant := func(origin string, credentials []string) *corsGrant {
		allowed := []string{origin}
		return &corsGrant{
			answer:    corsFields{AllowOrigin: allowed, AllowCredentials: credentials, ExposeHeaders: exposed},
			preflight: corsFields{AllowOrigin: allowed, AllowCredentials: credentials, AllowMethods: corsMethods, AllowHeaders: headers, MaxAge: maxAge},
		}
	}
	p := &corsPolicy{byOrigin: make(map[string]*corsGrant)}
	var credentials []string
	if c.Credentials {
		credentials = corsTrue
	}
	for _, origin := range c.Origins {
		origin = strings.ToLower(origin)
		switch origin {
		case "*":
			p.everybody = grant("*", nil)
		case "", "null": // sandboxed pages and files, from any author: there is no origin to name
		default:
			p.byOrigin[origin] = grant(origin, credentials)
		}
	}
	if p.everybody != nil && !c.Credentials {
		clear(p.byOrigin) // "*" covers all others
	}
	if p.everybody == nil && len(p.byOrigin) == 0 {
		return nil
	}
	return p
}

// exposedOf returns the value of Access-Control-Expose-Headers, with the fields of resources
// that the standard does not let pages read anyway.
func exposedOf(resources []frontend.Resource) []string {
	names := slices.Clone(corsExposed)
	for _, r := range resources {
		for _, f := range r.Fields {
			if f.Name != fieldCacheControl.sent && !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return []string{strings.Join(names, ", ")}
}

// varies reports whether answers depend on the field Origin: then all of them list
// it in Vary, also those without CORS fields, or a cache would serve them to every
// page. If only "*" is configured, all pages get the same answer.
func (p *corsPolicy) varies() bool { return p != nil && len(p.byOrigin) > 0 }

// answer returns the fields of an answer that is not one to a preflight, for the
// value of the field Origin, or "" if there is none. It does not allocate.
func (p *corsPolicy) answer(origin string) *corsFields {
	if g := p.find(origin); g != nil {
		return &g.answer
	}
	return &noCORS
}

// isPreflight reports whether OPTIONS is sent on behalf of a page (Fetch standard,
// CORS-preflight request), for the values of Origin and Access-Control-Request-Method.
func isPreflight(origin, requestMethod string) bool { return origin != "" && requestMethod != "" }

// preflight returns the fields of an answer to a preflight, which has status 204
// in any case. It does not allocate.
//
// Allowed methods and fields are the same for every page that may read, and the
// browser compares them with what the page wants (Fetch standard, CORS-preflight
// fetch): nothing needs to be decided here, and the list in
// Access-Control-Request-Headers is not read. A page that may not read gets no
// fields, which is enough to make the browser refuse, whatever the status: a
// preflight only passes if the origin is allowed and the status is 200 to 299. So the
// status is 204, as for any other OPTIONS; with 403 the browser would complain about
// the status, and not about the missing field. Access-Control-Request-Private-Network
// gets no answer: pages of public sites do not reach servers in private networks
// through a visitor's browser.
func (p *corsPolicy) preflight(origin string) *corsFields {
	if g := p.find(origin); g != nil {
		return &g.preflight
	}
	return &noCORS
}

func (p *corsPolicy) find(origin string) *corsGrant {
	if p == nil {
		return nil
	}
	if len(p.byOrigin) == 0 || len(origin) > maxOrigin {
		return p.everybody
	}
	if g := p.byOrigin[origin]; g != nil {
		return g
	}
	// Browsers send lower case; others may not, and it means the same (RFC 6454, section
	// 4).
	var buf [maxOrigin]byte
	lower := buf[:copy(buf[:], origin)]
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	if g := p.byOrigin[string(lower)]; g != nil {
		return g
	}
	return p.everybody
}
