package httpfront

import (
	"net/netip"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/recent"
	"github.com/slipstream-go/slipstream/internal/gateway/trace"
)

// Request is what the answer depends on; nothing else of a request may change it.
// Field values are as they were sent, several lines of a list field joined by
// commas (RFC 9110, section 5.3); "" is a field that is not there.
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
	// Repeated says that Authorization or X-API-Key came more than once: which
	// of them a proxy in front has looked at is anybody's guess.
	Repeated bool
	// Certificate is that of the client at the other end of the connection; nil: it has none.
	Certificate *access.Certificate

	Origin        string
	RequestMethod string // Access-Control-Request-Method, of a preflight

	// Client is the address that rate limits count and the log of requests names;
	// behind proxies that are trusted, the one that they name. It, Referer and
	// UserAgent are filled only where somebody asks: see Service.WantsClient and
	// Service.WantsNames.
	Client             netip.Addr
	Referer, UserAgent string
	// ID names the request in logs and in the answer.
	ID string
	// Trace is the span of this request, not valid if nobody would see it.
	Trace trace.Context

	// Start is when the request had been read, on the cache's clock.
	Start time.Duration
	// AtOnce says that Peek may not check signatures either, which takes 50 to 240
	// us: Answer does.
	AtOnce bool
	// Ranged says that a part was asked for, which is not to be had.
	Ranged bool

	// Set by Identify.
	began  time.Time
	parent [8]byte // the client's span
	traced bool    // the client sent one

	// recent are the lane's documents, nil if there is none.
	recent *recent.Table[*served]

	// Set by Peek, read by Answer.
	question question
	// work is what Peek has done besides a plain hit, in units of 1 us: the turn is
	// charged for it. Set by Peek.
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
	// Parts are the representation, one after the other, if Body is nil.
	Parts [][]byte
	// Size is how long the representation is in bytes, sent or not.
	Size int

	// What figures and logs tell of the answer.
	Source   frontend.Source
	Resource string
	Caller   string
	Keys     int

	// fields are the lines of the head of a document that was hit and is sent in
	// identity, "" otherwise: what is said above of it in one piece. The fields above
	// need not be filled then.
	fields string
}
