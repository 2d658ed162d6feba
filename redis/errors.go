package redis

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/redis/internal/cluster"
)

var (
	// ErrClosed is in the chain of the error of a call after Close or Shutdown.
	ErrClosed = pipe.ErrClosed
	// ErrOverloaded is in the chain of the error of a call that exceeds Options.MaxCalls,
	// MaxBytes or MaxExclusive.
	ErrOverloaded = pipe.ErrOverloaded
	// ErrStalled is in the chain if the server was silent for longer than
	// Options.StallTimeout.
	ErrStalled = pipe.ErrStalled
	// ErrNull is in the chain of the error of a reply that is null where the
	// destination cannot represent null. Decode into a pointer, such as **string,
	// where null is expected.
	ErrNull = errors.New("the reply is null")
	// ErrReleased is returned if the result of a [Future] was taken before.
	ErrReleased = errors.New("redis: the future was waited for already")
	// ErrShared is in the chain of the error of a command that cannot be sent on a
	// shared connection. It was not sent.
	ErrShared = errors.New("cannot be sent on a shared connection")
)

// ServerError is an error that the server answered with.
type ServerError struct {
	// Code is the first word, such as WRONGTYPE or ERR.
	Code string
	// Message is the rest.
	Message string
}

// Error returns the error as the server wrote it.
func (e *ServerError) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + " " + e.Message
}

// StatusCode returns Code for labels of metrics and traces, whose values must be few: scripts can
// reply with any text, and a Code that is not of at most 32 upper-case letters, digits, - and _ is
// ERR.
func (e *ServerError) StatusCode() string {
	if e.Code == "" || len(e.Code) > 32 || strings.ContainsFunc(e.Code, isNotOfCode) {
		return "ERR"
	}
	return e.Code
}

func isNotOfCode(r rune) bool {
	return (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// parseServerError copies the text of an error reply, without its marker.
func parseServerError(text []byte) *ServerError {
	code, message, _ := strings.Cut(string(text), " ")
	return &ServerError{Code: code, Message: message}
}

// DecodeError says why a reply could not be decoded into the destination. The
// command was executed.
type DecodeError struct {
	// Path is the part of the reply, such as "[3].name". It is empty for the
	// whole reply.
	Path string
	// Reply describes what the server sent, such as "an integer".
	Reply string
	// Type is the type of the destination.
	Type reflect.Type
	// Err is the cause.
	Err error
}

// Error returns what the reply has, what was expected, and where.
func (e *DecodeError) Error() string {
	var b strings.Builder
	b.WriteString("reply")
	b.WriteString(e.Path)
	b.WriteString(": ")
	if e.Reply != "" && e.Type != nil {
		fmt.Fprintf(&b, "%s into %v: ", e.Reply, e.Type)
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

// refusedCodes are the errors with which a server says that it has not executed a command. An error
// of a script proves nothing by its code: the script may have written before, and redis.error_reply
// makes any text its reply, exactly as if the server had refused the script. So with each code are
// the texts of servers, of which the error of a script must contain one. DENIED, MISCONF, NOPERM,
// NOREPLICAS, OOM, READONLY and UNBLOCKED have none: the error of a command within a script becomes
// that of the script. MOVED and ASK are compared with the slot of the script instead.
//
// Redis 7.0 and 8.0 send what redis.error_reply makes exactly as their own errors (a single word gets
// ERR before it); only an error that ends a script at a line has " script: ..., on @user_script:1."
// appended. Commands within a script never answer MOVED or ASK: a key elsewhere is ERR. So a redirect
// of a script must have its slot, an address and nothing after it, and other refusals the text of a
// server. An error within the reply to EXEC is the result of its command and is never judged. A string
// is no error.
var refusedCodes = map[string][]string{
	"ASK": nil, "MOVED": nil, "UNBLOCKED": nil,
	"DENIED": nil, "MISCONF": nil, "NOPERM": nil, "NOREPLICAS": nil, "OOM": nil, "READONLY": nil,
	"BUSY":        {" is busy running a script", " is busy running a module command"},
	"CLUSTERDOWN": {"Hash slot not served", "The cluster is down"},
	"LOADING":     {" is loading the dataset in memory"},
	"MASTERDOWN":  {"Link with MASTER is down"},
	"NOAUTH":      {"Authentication required"},
	"NOSCRIPT":    {"No matching script"},
	"TRYAGAIN":    {"Multiple keys request during rehashing of slot"},
}

// raisedByScript is in the text of an error that ended a script at one of its lines.
const raisedByScript = ", on @user_"

// passingCodes are the refusals that end without action within a short time, so
// that repeating the command makes sense.
var passingCodes = map[string]bool{"BUSY": true, "CLUSTERDOWN": true, "LOADING": true, "MASTERDOWN": true, "TRYAGAIN": true}

// outcome returns whether the server executed the command that it answers. Frame is the command.
func (e *ServerError) outcome(in *commandInfo, frame []byte) slipstream.Outcome {
	texts, known := refusedCodes[e.Code]
	switch {
	case !known:
		return slipstream.Executed
	case in.flags&flagScript == 0:
		return slipstream.Refused
	case strings.Contains(e.Message, raisedByScript):
		return slipstream.Executed
	case e.redirects(in, frame):
		return slipstream.Refused
	}
	for _, text := range texts {
		if strings.Contains(e.Message, text) {
			return slipstream.Refused
		}
	}
	return slipstream.Executed
}

// redirects reports whether the error is a redirect as a server writes it, for the slot of an encoded
// command: nothing follows the address.
func (e *ServerError) redirects(in *commandInfo, frame []byte) bool {
	to, err := cluster.ParseRedirect(e.Code, e.Message)
	if err != nil || strings.Count(e.Message, " ") != 1 {
		return false
	}
	of, err := slotOf(in, frame)
	return err == nil && of == int32(to.Slot)
}

// passing reports whether the refusal ends without action.
func (e *ServerError) passing() bool { return passingCodes[e.Code] }
