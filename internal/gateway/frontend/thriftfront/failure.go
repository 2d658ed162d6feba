package thriftfront

import (
	"context"
	"errors"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/gateway/thriftdoc"
)

// failure is an answer that is an exception. It is immutable.
type failure struct {
	exception thriftdoc.Exception
	code      string // in the request log
	text      string // for the client
	wait      int32  // for Overloaded, seconds after which the client may retry; 0 if unknown
}

// errLater means that a step needs a worker. It is never sent.
var errLater = &failure{}

// Answers without details.
var (
	failNotFound   = &failure{exception: thriftdoc.NotFound, code: "NOT_FOUND", text: "there is no document with this key"}
	failArguments  = &failure{exception: thriftdoc.Invalid, code: "INVALID", text: "the arguments do not match the method; expected field 1, with the key or the list of keys"}
	failKeys       = &failure{exception: thriftdoc.Invalid, code: "INVALID", text: "a call must have 1 to 1000 keys"}
	failLongKey    = &failure{exception: thriftdoc.Invalid, code: "INVALID", text: "a key is longer than 8192 bytes"}
	failTogether   = &failure{exception: thriftdoc.Invalid, code: "INVALID", text: "the documents exceed 15728640 bytes in total: request fewer keys"}
	failTooLarge   = &failure{exception: thriftdoc.Unavailable, code: "UNAVAILABLE", text: "the document is larger than 67108864 bytes"}
	failPending    = &failure{exception: thriftdoc.Overloaded, code: "OVERLOADED", text: "too many bytes of documents wait for clients to read them"}
	failLoads      = &failure{exception: thriftdoc.Overloaded, code: "OVERLOADED", text: "too many documents are being loaded"}
	failNotReached = &failure{exception: thriftdoc.Unavailable, code: "LOADING", text: "the database has not been reached yet"}
	failNoShape    = &failure{exception: thriftdoc.Unavailable, code: "UNAVAILABLE", text: "the shape of the documents is currently unknown"}
	failCanceled   = &failure{exception: thriftdoc.Unavailable, code: "UNAVAILABLE", text: "the call was canceled"}
	failTimeout    = &failure{exception: thriftdoc.Unavailable, code: "TIMEOUT", text: "the document could not be loaded in time"}
	failStale      = &failure{exception: thriftdoc.Stale, code: "STALE", text: "the document's freshness cannot be promised at present"}
	failClosed     = &failure{exception: thriftdoc.Unavailable, code: "UNAVAILABLE", text: "the server is shutting down"}
	failDatabase   = &failure{exception: thriftdoc.Unavailable, code: "UNAVAILABLE", text: "the database cannot be reached"}
	failLimit      = &failure{exception: thriftdoc.Unavailable, code: "UNAVAILABLE", text: "the document is larger than the configured limit"}
	failOrigin     = &failure{exception: thriftdoc.Unavailable, code: "ORIGIN", text: "the document could not be loaded"}
)

// loadFailure converts an error of the cache to an answer. The answer says only what concerns the client; told reports
// whether the cause must be logged.
func loadFailure(err error) (f *failure, told bool) {
	switch {
	case errors.Is(err, context.Canceled):
		return failCanceled, false // the client has disconnected and will not read the answer
	case errors.Is(err, context.DeadlineExceeded):
		return failTimeout, false
	case errors.Is(err, cache.ErrStale):
		return failStale, false
	case errors.Is(err, cache.ErrOverloaded):
		return failLoads, false
	case errors.Is(err, cache.ErrClosed):
		return failClosed, false
	case errors.Is(err, cache.ErrUnavailable):
		return failDatabase, true
	case errors.Is(err, cache.ErrTooLarge):
		return failLimit, true
	}
	return failOrigin, true
}

// tooMany returns the answer to a call that exceeds a limit, and logs it.
func (k *call) tooMany(wait time.Duration, what string) *failure {
	k.session.server.warnThrottled(k, what)
	if wait == limit.Never {
		return &failure{exception: thriftdoc.Invalid, code: "INVALID", text: "too many " + what + " at a time: request fewer"}
	}
	seconds := max(int64((wait+time.Second-1)/time.Second), 1)
	return &failure{exception: thriftdoc.Overloaded, code: "LIMITED", text: "too many " + what, wait: int32(min(seconds, 1<<30))}
}
