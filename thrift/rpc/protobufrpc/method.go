package protobufrpc

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// A Method is a method of a service with its messages, which are pointers to types that protoc-gen-go has generated. Make
// it with [MustMethod], or as a literal if there is no descriptor. It must not be copied after the first call.
type Method[Req, Resp proto.Message] struct {
	// Function has the names of the service, which is that in the .proto file without the package, and of the method.
	// Oneway methods have no reply; Kitex generates none.
	rpc.Function
}

// MustMethod returns a method of a file, by the names of service and method, such as "Catalog.Find". It is idempotent if its
// option idempotency_level is IDEMPOTENT or NO_SIDE_EFFECTS. It panics if the file has no such method, if that
// has other messages, or if it is a stream.
func MustMethod[Req, Resp proto.Message](file protoreflect.FileDescriptor, name string) *Method[Req, Resp] {
	m, err := newMethod[Req, Resp](file, name)
	if err != nil {
		panic(err)
	}
	return m
}

func newMethod[Req, Resp proto.Message](file protoreflect.FileDescriptor, name string) (*Method[Req, Resp], error) {
	serviceName, methodName, _ := strings.Cut(name, ".")
	var declared protoreflect.MethodDescriptor
	if s := file.Services().ByName(protoreflect.Name(serviceName)); s != nil {
		declared = s.Methods().ByName(protoreflect.Name(methodName))
	}
	if declared == nil {
		return nil, fmt.Errorf("protobufrpc: %s has no method %q; expected the names of a service and of a method, such as Catalog.Find", file.Path(), name)
	}
	if declared.IsStreamingClient() || declared.IsStreamingServer() {
		return nil, fmt.Errorf("protobufrpc: %s of %s is a stream; streams are not supported", name, file.Path())
	}
	var req Req
	var resp Resp
	takes, returns := req.ProtoReflect().Descriptor().FullName(), resp.ProtoReflect().Descriptor().FullName()
	if takes != declared.Input().FullName() || returns != declared.Output().FullName() {
		return nil, fmt.Errorf("protobufrpc: %s of %s takes %s and returns %s; the program expects %s and %s",
			name, file.Path(), declared.Input().FullName(), declared.Output().FullName(), takes, returns)
	}
	m := &Method[Req, Resp]{rpc.Function{Service: serviceName, Name: methodName}}
	if options, ok := declared.Options().(*descriptorpb.MethodOptions); ok {
		m.Idempotent = options.GetIdempotencyLevel() != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
	}
	return m, nil
}

// Call calls the method. The caller is an *[rpc.Client] whose configuration has Protobuf, or wraps one. Errors are those of
// rpc.Client.Call. Of a oneway method the response is nil.
func (m *Method[Req, Resp]) Call(ctx context.Context, caller rpc.Caller, req Req) (resp Resp, err error) {
	in := rpc.Invocation{Service: m.Service, Function: &m.Function, Args: &Message[Req]{req}}
	if m.Oneway {
		return resp, caller.Call(ctx, in)
	}
	result := new(Message[Resp])
	in.Result = result
	if err := caller.Call(ctx, in); err != nil {
		return resp, err
	}
	return result.Value, nil
}

// Handle returns the method with a handler, for an [rpc.Service]. Calls run concurrently. Errors are answered as
// those of any handler: see [rpc.Exchange]. The response of a oneway method is ignored; of others, it must not be nil.
func (m *Method[Req, Resp]) Handle(handler func(ctx context.Context, req Req) (Resp, error)) rpc.Method {
	oneway := m.Oneway
	return rpc.Method{Name: m.Name, Oneway: oneway, New: func() rpc.Exchange {
		return &exchange[Req, Resp]{handler: handler, oneway: oneway}
	}}
}

// exchange is one call of a server. It is owned by the goroutine that calls its methods.
type exchange[Req, Resp proto.Message] struct {
	handler func(context.Context, Req) (Resp, error)
	oneway  bool
	args    Message[Req]
	result  Message[Resp]
}

// Arguments implements [rpc.Exchange].
func (x *exchange[Req, Resp]) Arguments() thrift.Struct { return &x.args }

// Handle implements [rpc.Exchange].
func (x *exchange[Req, Resp]) Handle(ctx context.Context) (thrift.Struct, error) {
	resp, err := x.handler(ctx, x.args.Value)
	if err != nil || x.oneway || !resp.ProtoReflect().IsValid() {
		return nil, err
	}
	x.result.Value = resp
	return &x.result, nil
}
