package genericrpc

import (
	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// Exception is the error of a call whose function has thrown an exception that it declares.
type Exception struct {
	Function *idl.Function
	Field    *idl.Field // an element of Function.Throws
	JSON     []byte     // the fields of the exception
}

// Error returns the names of the function and of the exception, without its fields.
func (e *Exception) Error() string {
	return e.Function.Service.Name + "." + e.Function.Name + " has thrown " + e.Field.Type.String()
}

// DeliveryOutcome returns [slipstream.Executed].
func (e *Exception) DeliveryOutcome() slipstream.Outcome { return slipstream.Executed }

// notSent returns the error of a call that cannot be sent.
func notSent(function string, err error) error {
	return &slipstream.Error{Op: function, Outcome: slipstream.NotSent, Err: err}
}

// executed returns the error of a call whose reply does not match the function.
func executed(function string, err error) error {
	return &slipstream.Error{Op: function, Outcome: slipstream.Executed, Err: err}
}
