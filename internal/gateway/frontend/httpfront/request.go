package httpfront

import (
	"net/netip"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/recent"
	"github.com/slipstream-go/slipstream/internal/gateway/trace"
)

// Request has everything that the answer may depend on. Field values are as they
// were sent, several lines of a list field joined by commas (RFC 9110, section 5.3);
// "" for a missing field.
type Request struct {
	Method string
	// Target is the request target in origin form, as it was sent.
	Target string
	// WrongHost is the Host of a request that is refused for it: see [Hosts].
	WrongHost      string
	IfMatch        string
	IfNoneMatch    string
	AcceptEncoding string

	Authorization string
	APIKey        string // X-API-Key
	// Repeated says that Authorization or X-API-Key came more than once: it is
	// unknown which of them a proxy in front has checked.
	Repeated bool
	// Certificate is that of the peer of the connection, or nil if it has none.
	Certificate *access.Certificate

	Origin        string
	RequestMethod string // Access-Control-Request-Method, of a preflight

	// Client is the address for rate limits and the log of requests; behind trusted
	// proxies, the one that they name. It, Referer and UserAgent are only filled in
	// if they are needed: see Service.WantsClient and Service.WantsNames.
	Client             netip.Addr
	Referer, UserAgent string
	// ID names the request in logs and in the answer.
	ID string
	// Trace is the span of this request, not valid if it would not be recorded.
	Trace trace.Context

	// Start is when the request had been read, on the cache's clock.
	Start time.Duration
	// AtOnce says that Peek must not check signatures, which takes 50 to 240 us:
	// Answer does.
	AtOnce bool
	// Ranged says that a Range was requested; ranges are not supported.
	Ranged bool

	// Set by Identify.
	began  time.Time
	parent [8]byte // the client's span
	traced bool    // the client sent one

	// recent are the lane's documents, or nil if there are none.
	recent *recent.Table[*served]

	// Set by Peek, read by Answer.
	question question
	// work is the work of Peek beyond a plain hit, in units of 1 us: it is charged to
	// the turn. Set by Peek.
	work int
}

// Response is an answer. Slices are shared with other answers and must not be
// changed. A nil slice is a field that is not sent.
type Response struct {
	Status          int
	ContentType     []string
	ContentLength   []string
	ContentEncoding []string
	ETag            []string
	CacheControl    []string
	CacheStatus     []string
	Vary            []string
	Allow           []string
	RetryAfter      []string
	Challenge       []string // WWW-Authenticate
	AcceptRanges    []string
	CORS            *corsFields

	// own are fields that the configuration sets for the documents of a resource.
	own *ownFields

	// Body is the representation; a HEAD answer has the length but not the body.
	Body []byte
	// Parts are the consecutive parts of the representation if Body is nil.
	Parts [][]byte
	// Size is the length of the representation in bytes, sent or not.
	Size int

	// Fields for metrics and logs.
	Source   frontend.Source
	Resource string
	Caller   string
	Keys     int

	// fields are the header lines of a hit that is sent without content coding,
	// otherwise "": all of the fields above in one piece, which then need not be filled
	// in.
	fields string
}
