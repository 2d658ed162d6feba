package slipstream

import (
	"context"
	"errors"
	"strings"
)

// Outcome says whether the server may have executed a request that failed. It
// is the one thing a caller must know before it sends the request again.
type Outcome uint8

const (
	// MaybeExecuted: bytes of the request were handed to the system and no
	// answer came back. It is the zero value because it is the safe
	// assumption.
	MaybeExecuted Outcome = iota
	// NotSent: no byte of the request left this process.
	NotSent
	// Refused: the server answered that it did not execute the request.
	Refused
	// Overloaded: the request was turned away because a bound of this client,
	// of calls or of bytes, was reached. No byte of it was sent.
	Overloaded
	// Closed: the client was closed before the request was sent.
	Closed
	// Executed: the server executed the request and its answer says what was
	// wrong, or the answer could not be converted to what the caller
	// requested.
	Executed
)

// String returns the outcome in words, as errors print it.
func (o Outcome) String() string {
	switch o {
	case NotSent:
		return "not sent"
	case Refused:
		return "refused"
	case Overloaded:
		return "overloaded"
	case Closed:
		return "client closed"
	case Executed:
		return "executed"
	default:
		return "maybe executed"
	}
}

// Error is the error of a call. It wraps its cause, so errors.Is finds
// context.Canceled, context.DeadlineExceeded, net.ErrClosed and the like.
type Error struct {
	// Op is the operation, such as "GET"; it never contains keys or values.
	Op string
	// Addr is the server's address, empty where no server was chosen.
	Addr    string
	Outcome Outcome
	Err     error
}

// Error returns "op addr: cause (outcome)".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Addr != "" {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(e.Addr)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if e.Err != nil {
		b.WriteString(e.Err.Error())
	} else {
		b.WriteString("failed")
	}
	b.WriteString(" (" + e.Outcome.String() + ")")
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether the cause is a deadline that passed.
func (e *Error) Timeout() bool {
	if errors.Is(e.Err, context.DeadlineExceeded) {
		return true
	}
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}

// OutcomeOf returns the outcome that err carries. An error that carries none
// counts as MaybeExecuted: nothing is known. OutcomeOf(nil) is Executed.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Executed
	}
	var e interface{ DeliveryOutcome() Outcome }
	if errors.As(err, &e) {
		return e.DeliveryOutcome()
	}
	return MaybeExecuted
}

// DeliveryOutcome returns e.Outcome. [OutcomeOf] uses this method of any error in
// a chain, so drivers can have their own error types.
func (e *Error) DeliveryOutcome() Outcome { return e.Outcome }

// SafeToRetry reports whether the request of err was certainly not executed, so
// that sending it again cannot execute it twice: NotSent, Refused, Overloaded.
func SafeToRetry(err error) bool {
	if err == nil {
		return false
	}
	switch OutcomeOf(err) {
	case NotSent, Refused, Overloaded:
		return true
	}
	return false
}
