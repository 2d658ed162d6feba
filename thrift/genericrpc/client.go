package genericrpc

import (
	"context"
	"fmt"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

//	JSON --> generic.Codec --> Raw --> rpc.Caller --> Raw --> generic.Codec --> JSON
//	                           Raw --> rpc.Caller --> Raw                                CallBinary
//
// Values are encoded before the call, so invalid values cause errors that name the field, and
// nothing is sent. The reply is copied from the memory of the connection before it is decoded.

// Config configures a [Client]. The zero value is ready to use.
type Config struct {
	// Compact must have the same value as in the rpc.ClientConfig of the caller. Otherwise calls
	// with arguments are not sent.
	Compact bool
	// AllowUnknown makes the client skip members of JSON objects that are not fields, as generated
	// types do. Otherwise they are errors.
	AllowUnknown bool
	// MaxMemory limits the approximate number of bytes that the values in JSON arguments and
	// results occupy: see [generic.Codec].MaxMemory.
	MaxMemory int
	// JSON holds options for writing results.
	JSON thrift.JSON
}

// A Client calls the functions of a service. Use [NewClient] to create one. All methods are safe
// for concurrent use.
type Client struct {
	// Immutable.
	caller    rpc.Caller
	service   *idl.Service
	codec     generic.Codec
	functions map[string]*function
}

// function is a function of the service. It is immutable; rpc.Client distinguishes functions by the
// address of their description.
type function struct {
	declared     *idl.Function
	rpc          rpc.Function
	args, result *idl.Struct
}

// NewClient returns a client of a service, which must come from a checked file, such as one that
// [idl.Load] returns. The caller is an *[rpc.Client] or a wrapper of one.
func NewClient(caller rpc.Caller, service *idl.Service, config Config) (*Client, error) {
	if service == nil {
		return nil, errNoService
	}
	c := &Client{caller: caller, service: service, functions: make(map[string]*function)}
	c.codec = generic.Codec{Compact: config.Compact, Strict: !config.AllowUnknown, MaxMemory: config.MaxMemory, JSON: config.JSON}
	for _, f := range Functions(service) {
		for _, thrown := range f.Throws {
			if thrown.Name == success {
				return nil, fmt.Errorf("genericrpc: %s.%s: an exception cannot be called %s, as the result is", f.Service.Name, f.Name, success)
			}
		}
		c.functions[f.Name] = &function{f, FunctionOf(f), f.ArgsStruct(), f.ResultStruct()}
	}
	return c, nil
}

// success is the name of the field of a result that holds the return value of the function.
const success = "success"

// function returns a function by its name.
func (c *Client) function(name string) (*function, error) {
	f := c.functions[name]
	if f == nil {
		return nil, notSent(c.service.Name, noFunction(c.service, name))
	}
	if mode, _ := f.declared.Streams(); mode != idl.NoStreams {
		return nil, notSent(name, fmt.Errorf("genericrpc: %s.%s is a streaming function; open a stream with a StreamClient", c.service.Name, name))
	}
	return f, nil
}

// noFunction returns the error for a name that the service does not have.
func noFunction(s *idl.Service, name string) error {
	return fmt.Errorf("genericrpc: the service %s has no function %.100q%s", s.Name, name, meantFunction(s, name))
}

// Call calls a function with arguments given as a JSON object, and returns its result as JSON: null
// for a void function, and nil for a oneway function, which has no reply.
func (c *Client) Call(ctx context.Context, function string, args []byte) ([]byte, error) {
	f, err := c.function(function)
	if err != nil {
		return nil, err
	}
	var encoded []byte
	values, err := c.codec.FromJSON(args, f.args)
	if err == nil {
		encoded, err = c.codec.Append(nil, f.args, values)
	}
	if err != nil {
		return nil, notSent(f.rpc.Name, err)
	}
	reply, err := c.call(ctx, f, Raw{encoded, c.codec.Compact})
	if err != nil || f.rpc.Oneway {
		return nil, err
	}
	return f.read(c.codec, reply)
}

// CallBinary calls a function with encoded arguments, and returns the encoded result: a struct with
// the field 0, or with the field of an exception that the function declares. Such an exception is
// not returned as an error. Arguments and result are in the protocol that Config.Compact selects.
// The result is nil for a oneway function.
func (c *Client) CallBinary(ctx context.Context, function string, args []byte) ([]byte, error) {
	f, err := c.function(function)
	if err != nil {
		return nil, err
	}
	raw := Raw{args, c.codec.Compact}
	if err := raw.check(); err != nil {
		return nil, notSent(f.rpc.Name, err)
	}
	reply, err := c.call(ctx, f, raw)
	if err == nil && reply.Compact != c.codec.Compact && !f.rpc.Oneway {
		err = executed(f.rpc.Name, errProtocol)
	}
	if err != nil {
		return nil, err
	}
	return reply.Bytes, nil
}

// call calls a function.
func (c *Client) call(ctx context.Context, f *function, args Raw) (reply Raw, err error) {
	in := rpc.Invocation{Service: c.service.Name, Function: &f.rpc, Args: &args}
	if !f.rpc.Oneway {
		in.Result = &reply
	}
	err = c.caller.Call(ctx, in)
	return reply, err
}

// read returns the result in a reply as JSON, or the exception as an error.
func (f *function) read(c generic.Codec, reply Raw) ([]byte, error) {
	c.Compact = reply.Compact
	values, _, err := c.Read(reply.Bytes, 0, f.result)
	if err != nil {
		return nil, executed(f.rpc.Name, err)
	}
	for _, thrown := range f.declared.Throws {
		if v := values[thrown.Name]; v != nil {
			text, err := c.AppendJSONValue(nil, thrown.Type, v)
			if err != nil {
				return nil, executed(f.rpc.Name, err)
			}
			return nil, &Exception{f.declared, thrown, text}
		}
	}
	if f.declared.Result.Kind == idl.Void {
		return []byte("null"), nil
	}
	v := values[success]
	if v == nil {
		return nil, executed(f.rpc.Name, rpc.NoResult(&f.rpc))
	}
	text, err := c.AppendJSONValue(nil, f.declared.Result, v)
	if err != nil {
		return nil, executed(f.rpc.Name, err)
	}
	return text, nil
}
