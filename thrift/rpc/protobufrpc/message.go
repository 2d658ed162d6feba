package protobufrpc

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/slipstream-go/slipstream/thrift"
)

// A Message is the arguments or the result of a call in an [rpc.Invocation]: what wraps an [rpc.Caller] finds it in Args and
// Result. The type of M is that of the [Method]. It is a thrift.Struct in name only, because it has no encoding of Thrift.
type Message[M proto.Message] struct {
	// Value is the message. In a result it is new for each reply.
	Value M
}

// mostDepth is how deep messages may be nested: the limit of the libraries of other languages.
const mostDepth = 100

// Errors of messages that are not decoded.
var (
	// ErrMemory means that a message would take more memory than rpc.ServerConfig.MaxMemory or rpc.ClientConfig.MaxMemory
	// allows. If that is 0, the limit is 4 MiB and 64 times the size of the message.
	ErrMemory = errors.New("protobufrpc: the message needs more memory than MaxMemory allows")
	// ErrThrift means that the other side, or the client, uses Thrift for a method that has messages of Protobuf.
	ErrThrift = errors.New("protobufrpc: the method has messages of Protobuf, and the call is one of Thrift; a client needs rpc.ClientConfig.Protobuf")
)

var (
	errDeep  = errors.New("protobufrpc: messages are nested too deeply")
	errGroup = errors.New("protobufrpc: the message ends inside of a group")
)

// AppendProtobuf appends the encoding of the message to b and returns it.
func (m *Message[M]) AppendProtobuf(b []byte) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend(b, m.Value)
}

// ReadProtobuf sets Value to a new message, which it reads from b. maxMemory is about how many bytes it may take; 0 means
// the default limit of [ErrMemory].
func (m *Message[M]) ReadProtobuf(b []byte, maxMemory int) (err error) {
	defer func() { // code that is generated does not panic, but types may have code of their own
		if v := recover(); v != nil {
			err = fmt.Errorf("protobufrpc: the message cannot be decoded: %v", v)
		}
	}()
	to := m.Value.ProtoReflect().New()
	if err := shapeOf(to).check(b, maxMemory); err != nil {
		return err
	}
	value := to.Interface().(M)
	if err := (proto.UnmarshalOptions{RecursionLimit: mostDepth}).Unmarshal(b, value); err != nil {
		return err
	}
	m.Value = value
	return nil
}

// SizeThrift implements [thrift.Struct]. It returns the size of the message.
func (m *Message[M]) SizeThrift() int { return proto.Size(m.Value) }

// AppendThrift implements [thrift.Struct]. It panics with [ErrThrift]; clients of package rpc make that an error of the call,
// which is not sent.
func (m *Message[M]) AppendThrift([]byte) []byte { panic(ErrThrift) }

// ReadThrift implements [thrift.Struct]. It reads nothing.
func (m *Message[M]) ReadThrift(*thrift.Reader, []byte, int, int) int { return thrift.CodeVersion }

// OpenThrift returns [ErrThrift]: it makes package rpc report a call of Thrift by that.
func (m *Message[M]) OpenThrift([]byte) error { return ErrThrift }
