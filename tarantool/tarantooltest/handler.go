package tarantooltest

import (
	"context"

	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// A Request is a request from a client.
type Request struct {
	// Type is select, insert, replace, update, upsert, delete, call, eval, begin, commit,
	// rollback, ping, auth, id, watch, unwatch or watch_once.
	Type string
	// Space is the name of the space, if the request has one.
	Space string
	// Function is the name of the function of a call, or the text of an eval.
	Function string
	// Args are the arguments of a call, the fields of a tuple, or the parts of a key.
	Args []any

	sim *tarantoolsim.Request
}

// Context returns a context that ends when the connection ends.
func (r *Request) Context() context.Context { return r.sim.Context() }

// Push sends a message to the client before the answer.
func (r *Request) Push(v any) error { return r.sim.Push(v) }

// A Handler answers a request. The results are the values of the answer: the results of a call, or
// the tuples of a select, each a []any. The error is [Own], [HangUp], [Silence], a result of
// [Error], or any other error, which the client receives like a Lua error. A handler runs in its
// own goroutine, but the handlers of a stream run one after another. It may block, but must return
// when the context of the request ends.
type Handler func(r *Request) (results []any, err error)

// Errors that make the server do something other than send the answer of a [Handler].
var (
	// Own makes the server answer as if there were no handler.
	Own = tarantoolsim.Own
	// HangUp closes the connection.
	HangUp = tarantoolsim.HangUp
	// Silence leaves the client without an answer.
	Silence = tarantoolsim.Silence
)

// Error returns an error reply with the given code.
func Error(code iproto.ErrorCode, message string) error {
	return tarantoolsim.Error(uint32(code), message)
}

// Func defines a function that clients can call, or removes it if f is nil.
func (s *Server) Func(name string, f Handler) { s.sim.Func(name, f.adapted()) }

// Eval defines the result of evaluating an expression, which must have exactly this text, or
// removes the definition if f is nil.
func (s *Server) Eval(expression string, f Handler) { s.sim.Eval(expression, f.adapted()) }

// Handle makes f answer requests of a type, such as "insert". If f is nil, the server answers them
// again. A space or a function may follow the type: "insert users", "call f".
func (s *Server) Handle(request string, f Handler) { s.sim.Handle(request, f.adapted()) }

// adapted returns f for the simulator, or nil if f is nil.
func (f Handler) adapted() tarantoolsim.Handler {
	if f == nil {
		return nil
	}
	return func(r *tarantoolsim.Request) ([]any, error) {
		return f(&Request{Type: r.Type, Space: r.Space, Function: r.Function, Args: r.Args, sim: r})
	}
}
