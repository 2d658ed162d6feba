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
	// ErrNull is in the chain of the error if a reply is null and the destination cannot represent
	// that. If null is expected, decode into a pointer, such as **string.
	ErrNull = errors.New("the reply is null")
	// ErrReleased is returned if the result of a [Future] has already been taken.
	ErrReleased = errors.New("redis: Wait was already called on this future")
	// ErrShared is in the chain of the error of a command that cannot be sent on a
	// shared connection. It was not sent.
	ErrShared = errors.New("cannot be sent on a shared connection")
)

// A ServerError is an error reply of the server.
type ServerError struct {
	// Code is the first word, such as WRONGTYPE or ERR.
	Code string
	// Message is the rest of the reply.
	Message string
}

// Error returns the error as the server wrote it.
func (e *ServerError) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + " " + e.Message
}

// StatusCode returns Code as a label for metrics and traces, which must have few values. Scripts
// can reply with any text, so a Code that does not consist of at most 32 upper-case letters,
// digits, - and _ becomes ERR.
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
	// Path is the part of the reply that could not be decoded, such as "[3].name". It is empty for
	// the whole reply.
	Path string
	// Reply describes what the server sent, such as "an integer".
	Reply string
	// Type is the type of the destination.
	Type reflect.Type
	// Err is the cause.
	Err error
}

// Error says what the reply contains, what was expected, and where.
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

// refusedCodes are the errors with which a server says that it has not executed a command. The code
// of a script's error proves nothing: the script may already have written data, and
// redis.error_reply returns any text, exactly as if the server had refused the script. So each code
// has the texts of servers, and the error of a script must contain one of them. DENIED, MISCONF,
// NOPERM, NOREPLICAS, OOM, READONLY and UNBLOCKED have none, because the error of a command within
// a script becomes the error of the script. MOVED and ASK are checked against the slot of the
// script instead.
//
// Redis 7.0 and 8.0 send the errors that redis.error_reply makes exactly like their own errors (a
// single word is prefixed with ERR). Only an error that ends a script at one of its lines has "
// script: ..., on @user_script:1." appended. Commands within a script never return MOVED or ASK;
// for a key at another node they return ERR. So a redirect of a script must have its slot, an
// address and nothing after it, and other refusals must have the text of a server. An error within
// the reply to EXEC is the result of its command and is not examined. A string is not an error.
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

// passingCodes are the refusals whose causes go away on their own within a short time, so that
// repeating the command makes sense.
var passingCodes = map[string]bool{"BUSY": true, "CLUSTERDOWN": true, "LOADING": true, "MASTERDOWN": true, "TRYAGAIN": true}

// outcome returns whether the server has executed the command whose reply this error is. Frame is
// the command.
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

// redirects reports whether the error is a redirect as a server writes it, for the slot of an
// encoded command, with nothing after the address.
func (e *ServerError) redirects(in *commandInfo, frame []byte) bool {
	to, err := cluster.ParseRedirect(e.Code, e.Message)
	if err != nil || strings.Count(e.Message, " ") != 1 {
		return false
	}
	of, err := slotOf(in, frame)
	return err == nil && of == int32(to.Slot)
}

// passing reports whether the cause of the refusal goes away on its own.
func (e *ServerError) passing() bool { return passingCodes[e.Code] }
