package tarantool

import (
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// Errors that are found in the chain of what calls return.
var (
	// ErrClosed: the client was closed.
	ErrClosed = pipe.ErrClosed
	// ErrOverloaded: Options.MaxCalls or MaxBytes is reached.
	ErrOverloaded = pipe.ErrOverloaded
	// ErrStalled: the server was silent for longer than Options.StallTimeout.
	ErrStalled = pipe.ErrStalled
	// ErrReleased: a [Future] was waited for twice.
	ErrReleased = errors.New("the future was waited for already")
	// ErrLimit: a reply exceeds Options.Limits.
	ErrLimit = iproto.ErrLimit
	// ErrNoSuchSpace: the schema has no space, or no index, of that name.
	ErrNoSuchSpace = errors.New("no such space or index")
)

// ErrNotSupported says that the server lacks what a request needs. The request was not sent:
// older servers would pass over what they do not know, and do something else.
type ErrNotSupported struct {
	// Feature is what is lacking.
	Feature string
	// Since is the version of Tarantool that has it first.
	Since string
	// Server is the version that was found.
	Server string
}

// Error says what is lacking.
func (e *ErrNotSupported) Error() string {
	return fmt.Sprintf("%s need Tarantool %s, the server is %s", e.Feature, e.Since, e.Server)
}

// ErrorCode is the number of an error of the server.
type ErrorCode = iproto.ErrorCode

// Codes of errors that programs ask for.
const (
	CodeTupleFound          = iproto.ErrTupleFound
	CodeReadOnly            = iproto.ErrReadOnly
	CodeNoSuchProcedure     = iproto.ErrNoSuchProcedure
	CodeNoSuchSpace         = iproto.ErrNoSuchSpace
	CodeAccessDenied        = iproto.ErrAccessDenied
	CodeTransactionConflict = iproto.ErrTransactionConflict
	CodeWALIO               = iproto.ErrWALIO
	CodeTimeout             = iproto.ErrTimeout
	CodeWrongSchemaVersion  = iproto.ErrWrongSchemaVersion
	CodeLoading             = iproto.ErrLoading
	CodeLua                 = iproto.ErrLua
)

// A ServerError is an error that the server answered with.
type ServerError struct {
	Code ErrorCode
	// Message is the server's.
	Message string
	// Stack is the error with its causes and where it arose. Servers before 2.4 send none
	// but message and code.
	Stack *BoxError
}

// Error returns the message and the name of the code.
func (e *ServerError) Error() string { return fmt.Sprintf("%s (%s)", e.Message, e.Code) }

// Unwrap returns the stack.
func (e *ServerError) Unwrap() error {
	if e.Stack == nil {
		return nil
	}
	return e.Stack
}

// IsCode reports whether the server answered err with that code.
func IsCode(err error, code ErrorCode) bool {
	var e *ServerError
	return errors.As(err, &e) && e.Code == code
}

// passing reports whether the same request may well succeed a moment later.
func (e *ServerError) passing() bool { return e.Code == iproto.ErrLoading }

// outcome says what an error of the server means for the request. A statement that fails
// changes nothing; a procedure may have done anything before it failed.
func (e *ServerError) outcome(code iproto.Code) slipstream.Outcome {
	switch e.Code {
	case iproto.ErrWALIO, iproto.ErrSyncQuorumTimeout, iproto.ErrSyncRollback, iproto.ErrTimeout:
		// What was written to a disk or to replicas may come back with them.
		return slipstream.MaybeExecuted
	case iproto.ErrNoSuchProcedure, iproto.ErrAccessDenied, iproto.ErrUnknownRequestType, iproto.ErrLoading, iproto.ErrWrongSchemaVersion:
		if code != iproto.CodeEval && code != iproto.CodeCall && code != iproto.CodeCall16 {
			return slipstream.Refused
		}
		if e.Code == iproto.ErrUnknownRequestType || e.Code == iproto.ErrWrongSchemaVersion {
			return slipstream.Refused
		}
	}
	switch code {
	case iproto.CodeCall, iproto.CodeCall16, iproto.CodeEval:
		return slipstream.Executed
	}
	return slipstream.Refused
}

// serverError makes the error of a reply with an error code. The body is parsed.
func serverError(code uint32, stack *BoxError) *ServerError {
	e := &ServerError{Code: ErrorCode(code &^ uint32(iproto.CodeError)), Stack: stack}
	if stack != nil {
		e.Message = stack.Message
		if stack.Code != 0 {
			e.Code = ErrorCode(stack.Code) // the head of the reply has room for 15 bits
		}
	}
	return e
}

// errNoReply: a call that failed has none.
var errNoReply = errors.New("there is no reply")

// replyOf cuts the reply of a call into what it is. A reply that was cut off before is whole.
func replyOf(frame []byte) (m iproto.Message, body []byte, err error) {
	if len(frame) == 0 {
		return m, nil, errNoReply
	}
	s := iproto.Scanner{MaxMessage: len(frame)}
	m, err = s.Scan(frame)
	if err != nil {
		return m, nil, err
	}
	return m, frame[m.BodyAt:m.Len], nil
}

func isPinLost(err error) bool { return errors.Is(err, ErrConnectionLost) }
