package rpc

import (
	"context"

	"github.com/slipstream-go/slipstream/thrift"
)

// A Function is a function of a service, as clients call it. Generated code has a variable for each.
type Function struct {
	// Service is the name of the service that declares the function.
	Service string
	Name    string
	Oneway  bool
	// Idempotent says that executing a call twice is the same as executing it once. Such a call may be
	// repeated if its outcome is unknown, and may be sent to a server that answers in order while
	// others are unanswered. The annotation slipstream.idempotent of the function sets it.
	Idempotent bool
}

// An Invocation is a call of a function.
type Invocation struct {
	// Service is the name of the service that is called. It is not that of Function if the function is
	// inherited.
	Service  string
	Function *Function
	Args     thrift.Struct
	Result   thrift.Struct // nil for oneway functions
}

// A Caller calls functions. A [Client] is one; what wraps another Caller, to observe or change calls, is one
// too. It must be safe for concurrent use.
type Caller interface {
	// Call calls a function and waits for its result, which is in Result if the error is nil. An exception
	// that the function declares is in Result, and not an error.
	Call(ctx context.Context, in Invocation) error
}

// A Stub is what all generated clients have in common.
type Stub struct {
	Caller  Caller
	Service string // the name of the service that is called
}

// Invoke calls a function. Generated code uses it.
func (s *Stub) Invoke(ctx context.Context, f *Function, args, result thrift.Struct) error {
	return s.Caller.Call(ctx, Invocation{Service: s.Service, Function: f, Args: args, Result: result})
}

// NoResult returns the error of a call whose reply has neither a result nor an exception. Generated code uses it.
func NoResult(f *Function) error {
	return &thrift.ApplicationException{Kind: thrift.MissingResult, Message: "the reply of " + f.Name + " has no result"}
}
