package rpc

import (
	"context"

	"github.com/slipstream-go/slipstream/thrift"
)

// A Function describes a function of a service to clients. Generated code has a variable for each.
type Function struct {
	// Service is the name of the service that declares the function.
	Service string
	Name    string
	Oneway  bool
	// Idempotent means that executing a call twice has the same effect as executing it once. Such a call may be retried if
	// its outcome is unknown, and may be sent to a server that answers in order before earlier ones have been answered.
	// The annotation slipstream.idempotent sets it.
	Idempotent bool
}

// An Invocation is a call of a function.
type Invocation struct {
	// Service is the name of the called service. It differs from Function.Service if the function is inherited.
	Service  string
	Function *Function
	Args     thrift.Struct
	Result   thrift.Struct // nil for oneway functions
}

// A Caller calls functions. It is a [Client], or middleware that wraps another Caller to observe or change calls.
// Implementations must be safe for concurrent use.
type Caller interface {
	// Call calls a function and waits for its result, which is in Result if the error is nil. A declared exception is
	// stored in Result and is not returned as an error.
	Call(ctx context.Context, in Invocation) error
}

// A Stub is the common part of all generated clients.
type Stub struct {
	Caller  Caller
	Service string // name of the called service
}

// Invoke calls a function. Generated code uses it.
func (s *Stub) Invoke(ctx context.Context, f *Function, args, result thrift.Struct) error {
	return s.Caller.Call(ctx, Invocation{Service: s.Service, Function: f, Args: args, Result: result})
}

// NoResult returns the error of a call whose reply has neither a result nor an exception. Generated code uses it.
func NoResult(f *Function) error {
	return &thrift.ApplicationException{Kind: thrift.MissingResult, Message: "the reply of " + f.Name + " has no result"}
}
