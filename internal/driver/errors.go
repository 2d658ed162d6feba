package driver

import "github.com/slipstream-go/slipstream"

// An Errors value makes the errors of the calls to one server.
type Errors struct{ Addr string }

// With returns an error with the given outcome.
func (e Errors) With(op string, outcome slipstream.Outcome, err error) *slipstream.Error {
	return &slipstream.Error{Op: op, Addr: e.Addr, Outcome: outcome, Err: err}
}

// NotSent returns the error of a call that was found to be wrong before it was sent.
func (e Errors) NotSent(op string, err error) *slipstream.Error {
	return e.With(op, slipstream.NotSent, err)
}

// Executed returns the error of a call whose answer is not what the caller asked for.
func (e Errors) Executed(op string, err error) *slipstream.Error {
	return e.With(op, slipstream.Executed, err)
}

// Named returns a copy of an error of the engine with the name of the call, which the engine does
// not know.
func (e Errors) Named(op string, err error) *slipstream.Error {
	inner, ok := err.(*slipstream.Error) // the engine returns this type; errors.As would allocate
	if !ok {
		return e.With(op, slipstream.OutcomeOf(err), err)
	}
	copied := *inner
	copied.Op = op
	if copied.Addr == "" {
		copied.Addr = e.Addr
	}
	return &copied
}
