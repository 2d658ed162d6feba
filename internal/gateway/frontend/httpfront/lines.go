package httpfront

import "net/http"

// headerName is the name of a field, as the loop sends it and as net/http needs it.
type headerName struct{ sent, key string }

func named(name string) *headerName { return &headerName{name, http.CanonicalHeaderKey(name)} }

// Names of the fields of answers, except those that an adapter makes for each one.
var (
	fieldContentType     = named("Content-Type")
	fieldContentLength   = named("Content-Length")
	fieldContentEncoding = named("Content-Encoding")
	fieldETag            = named("ETag")
	fieldCacheControl    = named("Cache-Control")
	fieldCacheStatus     = named("Cache-Status")
	fieldVary            = named("Vary")
	fieldAllow           = named("Allow")
	fieldRetryAfter      = named("Retry-After")
	fieldAcceptRanges    = named("Accept-Ranges")
	fieldChallenge       = named("WWW-Authenticate")

	fieldAllowOrigin      = named("Access-Control-Allow-Origin")
	fieldAllowCredentials = named("Access-Control-Allow-Credentials")
	fieldExposeHeaders    = named("Access-Control-Expose-Headers")
	fieldAllowMethods     = named("Access-Control-Allow-Methods")
	fieldAllowHeaders     = named("Access-Control-Allow-Headers")
	fieldMaxAge           = named("Access-Control-Max-Age")
)

// line is a field of a head: a line for each value.
type line struct {
	name   *headerName
	values []string
}

// ownFields are the fields that the configuration sets for the documents of a
// resource.
type ownFields struct {
	// Immutable.
	lines []line
	text  string // of lines, for the loop
}

// lines returns the fields that most answers have, without rsp.own.
func (rsp *Response) lines() [7]line {
	return [...]line{
		{fieldContentType, rsp.ContentType},
		{fieldContentLength, rsp.ContentLength},
		{fieldContentEncoding, rsp.ContentEncoding},
		{fieldETag, rsp.ETag},
		{fieldCacheControl, rsp.CacheControl},
		{fieldCacheStatus, rsp.CacheStatus},
		{fieldVary, rsp.Vary},
	}
}

// rareLines returns the fields that few answers have.
func (rsp *Response) rareLines() [10]line {
	c := rsp.CORS
	if c == nil {
		c = &noCORS
	}
	return [...]line{
		{fieldAllow, rsp.Allow},
		{fieldRetryAfter, rsp.RetryAfter},
		{fieldAcceptRanges, rsp.AcceptRanges},
		{fieldChallenge, rsp.Challenge},
		{fieldAllowOrigin, c.AllowOrigin},
		{fieldAllowCredentials, c.AllowCredentials},
		{fieldExposeHeaders, c.ExposeHeaders},
		{fieldAllowMethods, c.AllowMethods},
		{fieldAllowHeaders, c.AllowHeaders},
		{fieldMaxAge, c.MaxAge},
	}
}
