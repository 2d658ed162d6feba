package respfront

import (
	"context"
	"errors"

	"github.com/slipstream-go/slipstream/cache"
)

// Failure is a kind of error answer in metrics.
type Failure uint8

// Kinds of error answers.
const (
	FailUsage       Failure = iota // wrong arguments
	FailKey                        // a malformed key
	FailUnknown                    // a command that does not exist
	FailReadOnly                   // a command that writes
	FailNoAuth                     // a login is required
	FailWrongPass                  // a login that failed
	FailNoPerm                     // the user may not read this
	FailLimited                    // too many commands
	FailProtocol                   // bytes that are not a command
	FailVersion                    // a version of the protocol that does not exist
	FailLoading                    // the database has not been reached yet
	FailUnverified                 // the promise cannot be kept at present
	FailOverloaded                 // too much is in flight
	FailTimeout                    // the document could not be loaded in time
	FailUnavailable                // the database cannot be reached, or the server shuts down
	FailOrigin                     // the document could not be loaded

	failures
)

// failureWords are the names for metrics, and the first words of answers.
var failureWords = [failures]struct{ word, code string }{
	FailUsage:       {"usage", "ERR"},
	FailKey:         {"key", "ERR"},
	FailUnknown:     {"unknown", "ERR"},
	FailReadOnly:    {"readonly", "READONLY"},
	FailNoAuth:      {"noauth", "NOAUTH"},
	FailWrongPass:   {"wrongpass", "WRONGPASS"},
	FailNoPerm:      {"noperm", "NOPERM"},
	FailLimited:     {"limited", "ERR"},
	FailProtocol:    {"protocol", "ERR"},
	FailVersion:     {"version", "NOPROTO"},
	FailLoading:     {"loading", "LOADING"},
	FailUnverified:  {"unverified", "UNVERIFIED"},
	FailOverloaded:  {"overloaded", "OVERLOADED"},
	FailTimeout:     {"timeout", "TIMEOUT"},
	FailUnavailable: {"unavailable", "ERR"},
	FailOrigin:      {"origin", "ERR"},
}

// String returns the name of the kind in metrics.
func (f Failure) String() string { return failureWords[f].word }

// Code returns the first word of such an answer.
func (f Failure) Code() string { return failureWords[f].code }

// loadFailure turns an error of the cache into an answer. The client is told what to
// do, the log has the cause: told says that it should be logged.
func loadFailure(err error) (kind Failure, text string, told bool) {
	if e, ok := errors.AsType[*keyError](err); ok {
		return e.kind, e.problem, false
	}
	switch {
	case errors.Is(err, errTogether):
		return FailUsage, textTogether, false
	case errors.Is(err, errPending):
		return FailOverloaded, textPending, false
	case errors.Is(err, context.Canceled):
		return FailUnavailable, "the command was given up", false // the client has left and will not read it
	case errors.Is(err, context.DeadlineExceeded):
		return FailTimeout, "the document could not be loaded in time", false
	case errors.Is(err, cache.ErrStale):
		return FailUnverified, "the document's freshness cannot be promised at present", false
	case errors.Is(err, cache.ErrOverloaded):
		return FailOverloaded, textLoads, false
	case errors.Is(err, cache.ErrClosed):
		return FailUnavailable, "the server is shutting down", false
	case errors.Is(err, cache.ErrUnavailable):
		return FailUnavailable, "the database cannot be reached", true
	case errors.Is(err, cache.ErrTooLarge):
		return FailOrigin, "the document is larger than the configured limit", true
	}
	return FailOrigin, "the document could not be loaded", true
}

// ofOneKey reports whether an error of many keys may be caused by one of them, so that
// the others are worth a retry.
func ofOneKey(err error) bool {
	kind, _, _ := loadFailure(err)
	return kind == FailOrigin
}
