package tarantool

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// Errors that are wrapped by errors of calls.
var (
	// ErrClosed means that the client was closed.
	ErrClosed = pipe.ErrClosed
	// ErrOverloaded means that Options.MaxCalls or MaxBytes was reached.
	ErrOverloaded = pipe.ErrOverloaded
	// ErrStalled means that the server was silent for longer than Options.StallTimeout.
	ErrStalled = pipe.ErrStalled
	// ErrReleased means that the result of a [Future] was already taken.
	ErrReleased = errors.New("the result of the future was already taken")
	// ErrLimit means that a reply exceeds Options.Limits.
	ErrLimit = iproto.ErrLimit
	// ErrNoSuchSpace means that the schema has no space or index with that name.
	ErrNoSuchSpace = errors.New("no such space or index")
)

// An UnsupportedError is returned if the server lacks a feature that a request needs. The request
// was not sent: older servers ignore unknown parts, and would do something else.
type UnsupportedError struct {
	// Feature is the missing feature.
	Feature string
	// Since is the first version of Tarantool that has it.
	Since string
	// Server is the version of the server.
	Server string
}

// Error names the missing feature.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s need Tarantool %s, the server is %s", e.Feature, e.Since, e.Server)
}

// A ServerError is an error reply of the server.
type ServerError struct {
	Code iproto.ErrorCode
	// Message is the server's message.
	Message string
	// Stack is the error with its causes and the places where they arose. Servers before 2.4 send
	// only the message and the code.
	Stack *iproto.BoxError
}

// Error returns the message and the name of the code.
func (e *ServerError) Error() string { return fmt.Sprintf("%s (%s)", e.Message, e.Code) }

// StatusCode returns the number of the code, as a label for metrics and traces.
func (e *ServerError) StatusCode() string { return strconv.FormatUint(uint64(e.Code), 10) }

// Unwrap returns the stack.
func (e *ServerError) Unwrap() error {
	if e.Stack == nil {
		return nil
	}
	return e.Stack
}

// IsCode reports whether err is an error reply of the server with the given code.
func IsCode(err error, code iproto.ErrorCode) bool {
	var e *ServerError
	return errors.As(err, &e) && e.Code == code
}

// passing reports whether the same request may succeed a moment later.
func (e *ServerError) passing() bool { return e.Code == iproto.CodeLoading }

// outcome returns the outcome of a request for which the server returned the error. A statement
// that fails changes nothing; a procedure may have done anything before it failed.
func (e *ServerError) outcome(code box.Code) slipstream.Outcome {
	switch e.Code {
	case iproto.CodeWALIO, iproto.CodeSyncQuorumTimeout, iproto.CodeSyncRollback, iproto.CodeTimeout:
		// These are errors of writing to a disk or to replicas.
		return slipstream.MaybeExecuted
	case iproto.CodeNoSuchProcedure, iproto.CodeAccessDenied, iproto.CodeUnknownRequestType, iproto.CodeLoading, iproto.CodeWrongSchemaVersion:
		if code != box.CodeEval && code != box.CodeCall && code != box.CodeCall16 {
			return slipstream.Refused
		}
		if e.Code == iproto.CodeUnknownRequestType || e.Code == iproto.CodeWrongSchemaVersion {
			return slipstream.Refused
		}
	}
	switch code {
	case box.CodeCall, box.CodeCall16, box.CodeEval:
		return slipstream.Executed
	}
	return slipstream.Refused
}

// serverError makes the error for a reply with an error code. The body has been parsed.
func serverError(code uint32, stack *iproto.BoxError) *ServerError {
	e := &ServerError{Code: iproto.ErrorCode(code &^ uint32(box.CodeError)), Stack: stack}
	if stack != nil {
		e.Message = stack.Message
		if stack.Code != 0 {
			e.Code = iproto.ErrorCode(stack.Code) // the head of the reply has room for 15 bits
		}
	}
	return e
}

// errNoReply is the error of a call that failed without a reply.
var errNoReply = errors.New("there is no reply")

// replyOf parses the complete reply of a call.
func replyOf(frame []byte) (m box.Message, body []byte, err error) {
	if len(frame) == 0 {
		return m, nil, errNoReply
	}
	s := box.Scanner{MaxMessage: len(frame)}
	m, err = s.Scan(frame)
	if err != nil {
		return m, nil, err
	}
	return m, frame[m.BodyAt:m.Len], nil
}

func isPinLost(err error) bool { return errors.Is(err, ErrConnectionLost) }
