package thriftfront

import (
	"context"
	"errors"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/gateway/thriftdoc"
)

// failure is an answer that is an exception. It is not changed once made.
type failure struct {
	exception thriftdoc.Exception
	code      string // in the request log
	text      string // for the client
	wait      int32  // seconds after which the call may be repeated, with Overloaded; 0 if not known
}

// errLater says that a step needs a worker. It is never an answer.
var errLater = &failure{}

// Answers without details.
var (
	failNotFound   = &failure{exception: thriftdoc.NotFound, code: "NOT_FOUND", text: "there is no document with this key"}
	failArguments  = &failure{exception: thriftdoc.Invalid, code: "INVALID", text: "the arguments are not those of the method; expected the field 1, with the key or the list of keys"}
	failKeys       = &failure{exception: thriftdoc.Invalid, code: "INVALID", text: "a call has 1 to 1000 keys"}
	failLongKey    = &failure{exception: thriftdoc.Invalid, code: "INVALID", text: "a key is longer than 8192 bytes"}
	failTogether   = &failure{exception: thriftdoc.Invalid, code: "INVALID", text: "these documents are more than 15728640 bytes together: request fewer keys"}
	failTooLarge   = &failure{exception: thriftdoc.Unavailable, code: "UNAVAILABLE", text: "the document has more than 67108864 bytes"}
	failPending    = &failure{exception: thriftdoc.Overloaded, code: "OVERLOADED", text: "too many bytes of documents wait for clients to read them"}
	failLoads      = &failure{exception: thriftdoc.Overloaded, code: "OVERLOADED", text: "too many documents are being loaded"}
	failNotReached = &failure{exception: thriftdoc.Unavailable, code: "LOADING", text: "the database has not been reached yet"}
	failNoShape    = &failure{exception: thriftdoc.Unavailable, code: "UNAVAILABLE", text: "the form of the documents is not known at present"}
	failCanceled   = &failure{exception: thriftdoc.Unavailable, code: "UNAVAILABLE", text: "the call was given up"}
	failTimeout    = &failure{exception: thriftdoc.Unavailable, code: "TIMEOUT", text: "the document could not be loaded in time"}
	failStale      = &failure{exception: thriftdoc.Stale, code: "STALE", text: "the document's freshness cannot be promised at present"}
	failClosed     = &failure{exception: thriftdoc.Unavailable, code: "UNAVAILABLE", text: "the server is shutting down"}
	failDatabase   = &failure{exception: thriftdoc.Unavailable, code: "UNAVAILABLE", text: "the database cannot be reached"}
	failLimit      = &failure{exception: thriftdoc.Unavailable, code: "UNAVAILABLE", text: "the document is larger than the configured limit"}
	failOrigin     = &failure{exception: thriftdoc.Unavailable, code: "ORIGIN", text: "the document could not be loaded"}
)

// loadFailure turns an error of the cache into an answer. The client is told what to
// do, the log has the cause: told says that it should be logged.
func loadFailure(err error) (f *failure, told bool) {
	switch {
	case errors.Is(err, context.Canceled):
		return failCanceled, false // the client has left and will not read it
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

// tooMany is the answer to a call that exceeds a limit.
func (k *call) tooMany(wait time.Duration, what string) *failure {
	k.session.server.warnThrottled(k, what)
	if wait == limit.Never {
		return &failure{exception: thriftdoc.Invalid, code: "INVALID", text: "these are more " + what + " than are ever admitted together: request fewer"}
	}
	seconds := max(int64((wait+time.Second-1)/time.Second), 1)
	return &failure{exception: thriftdoc.Overloaded, code: "LIMITED", text: "too many " + what, wait: int32(min(seconds, 1<<30))}
}
