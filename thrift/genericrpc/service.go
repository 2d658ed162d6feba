package genericrpc

import (
	"context"
	"fmt"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// A Handler answers a call of any function of a service. args contains the arguments as the client
// sent them: the fields of f.ArgsStruct, in the protocol of the client. The handler may keep it.
// result contains the fields of f.ResultStruct, in the same protocol: the field 0, or the field of
// an exception that the function declares. It is ignored if the function is oneway. Errors are
// handled like those of any handler: see [rpc.Exchange]. Calls run concurrently.
type Handler func(ctx context.Context, f *idl.Function, args Raw) (result Raw, err error)

// NewService returns a service for [rpc.NewServer] that calls handler for each call.
func NewService(service *idl.Service, handler Handler) (*rpc.Service, error) {
	if service == nil {
		return nil, errNoService
	}
	s := &rpc.Service{Name: service.Name}
	for _, f := range Functions(service) {
		s.Methods = append(s.Methods, rpc.Method{Name: f.Name, Oneway: f.Oneway, New: func() rpc.Exchange {
			return &exchange{handler: handler, function: f}
		}})
	}
	return s, nil
}

// exchange is one call. It is owned by the goroutine that calls its methods.
type exchange struct {
	handler      Handler
	function     *idl.Function
	args, result Raw
}

// Arguments implements [rpc.Exchange].
func (x *exchange) Arguments() thrift.Struct { return &x.args }

// Handle implements [rpc.Exchange].
func (x *exchange) Handle(ctx context.Context) (thrift.Struct, error) {
	result, err := x.handler(ctx, x.function, x.args)
	if err != nil || x.function.Oneway {
		return nil, err
	}
	if len(result.Bytes) > 0 && result.Compact != x.args.Compact {
		return nil, errProtocol
	}
	if err := result.check(); err != nil {
		return nil, fmt.Errorf("the result of %s: %w", x.function.Name, err)
	}
	x.result = result
	return &x.result, nil
}
