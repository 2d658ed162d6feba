package protobufrpc

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/slipstream-go/slipstream/thrift"
)

// A Message holds the arguments or the result of a call in an [rpc.Invocation]: middleware finds it in Args and Result.
// M is the message type of the [Method]. It implements thrift.Struct only formally, because it has no Thrift encoding.
type Message[M proto.Message] struct {
	// Value is the message. In a result, each reply gets a new one.
	Value M
}

// mostDepth is the maximum nesting depth of messages, the same as in the libraries of other languages.
const mostDepth = 100

// Errors for messages that are not decoded.
var (
	// ErrMemory means that a message would need more memory than rpc.ServerConfig.MaxMemory or rpc.ClientConfig.MaxMemory
	// allows. If that is 0, the limit is 4 MiB plus 64 times the size of the message.
	ErrMemory = errors.New("protobufrpc: the message needs more memory than MaxMemory allows")
	// ErrThrift means that the peer or the client uses Thrift for a method with Protobuf messages.
	ErrThrift = errors.New("protobufrpc: Thrift call of a method with Protobuf messages; the client needs rpc.ClientConfig.Protobuf")
)

var (
	errDeep  = errors.New("protobufrpc: messages are nested too deeply")
	errGroup = errors.New("protobufrpc: the message ends inside a group")
)

// AppendProtobuf appends the encoding of the message to b and returns it.
func (m *Message[M]) AppendProtobuf(b []byte) ([]byte, error) {
	return proto.MarshalOptions{}.MarshalAppend(b, m.Value)
}

// ReadProtobuf sets Value to a new message decoded from b. maxMemory is the approximate limit on its memory in bytes; 0
// means the default limit of [ErrMemory].
func (m *Message[M]) ReadProtobuf(b []byte, maxMemory int) (err error) {
	defer func() { // generated code does not panic, but types may have custom methods
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

// AppendThrift implements [thrift.Struct]. It panics with [ErrThrift]; clients of package rpc turn that into an error,
// and the call is not sent.
func (m *Message[M]) AppendThrift([]byte) []byte { panic(ErrThrift) }

// ReadThrift implements [thrift.Struct]. It reads nothing.
func (m *Message[M]) ReadThrift(*thrift.Reader, []byte, int, int) int { return thrift.CodeVersion }

// OpenThrift returns [ErrThrift], so that package rpc reports it for a Thrift call.
func (m *Message[M]) OpenThrift([]byte) error { return ErrThrift }
