package generic

import (
	"strconv"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// Message is a call of a function of a service, or the reply to a call.
type Message struct {
	Function *idl.Function
	Type     thrift.MessageType
	Seq      int32
	// Value holds the arguments of a call or its result: the fields of Function.ArgsStruct or
	// Function.ResultStruct. A result contains the field success, or the exception that was thrown,
	// or no field if the function is void.
	Value map[string]any
	// Exception is set in place of Value if Type is thrift.Exception.
	Exception *thrift.ApplicationException
}

// AppendMessage appends the encoding of a message to b. Errors of Value are of type *ValueError.
func (c Codec) AppendMessage(b []byte, m *Message) ([]byte, error) {
	out := b
	if c.Compact {
		out = thrift.AppendCompactMessage(out, m.Function.Name, m.Type, m.Seq)
	} else {
		out = thrift.AppendMessage(out, m.Function.Name, m.Type, m.Seq)
	}
	var err error
	switch s := m.structure(); {
	case s != nil:
		out, err = c.Append(out, s, m.Value)
	case m.Type != thrift.Exception || m.Exception == nil:
		err = &ValueError{Problem: "a message of type " + m.Type.String() + " has neither a value nor an exception"}
	case c.Compact:
		out = m.Exception.AppendCompact(out)
	default:
		out = m.Exception.AppendThrift(out)
	}
	if err != nil {
		return b, err
	}
	return out, nil
}

// structure returns the struct whose fields Value holds, or nil.
func (m *Message) structure() *idl.Struct {
	switch m.Type {
	case thrift.Call, thrift.Oneway:
		return m.Function.ArgsStruct()
	case thrift.Reply:
		return m.Function.ResultStruct()
	}
	return nil
}

// ReadMessage reads the message of a service at b[off:] and returns the offset after it. If the
// service does not have the function, the error is a *thrift.ApplicationException, which can be
// sent as the reply, and only Type and Seq of the message are set. Other errors are of type
// *thrift.Error; the message is nil if its header cannot be read, and has no Value otherwise.
func (c Codec) ReadMessage(b []byte, off int, s *idl.Service) (m *Message, next int, err error) {
	var head thrift.Message
	if c.Compact {
		next = thrift.ReadCompactMessage(b, off, &head)
	} else {
		next = thrift.ReadMessage(b, off, &head)
	}
	if next < 0 {
		return nil, off, thrift.Err(next, off)
	}
	m = &Message{Function: s.Function(string(head.Name)), Type: head.Type, Seq: head.Seq}
	if m.Function == nil {
		name := head.Name[:min(len(head.Name), 100)]
		return m, off, &thrift.ApplicationException{Kind: thrift.UnknownMethod, Message: "the service " + s.Name + " has no function " + strconv.QuoteToASCII(string(name))}
	}
	if of := m.structure(); of != nil {
		m.Value, next, err = c.Read(b, next, of)
		return m, next, err
	}
	var r thrift.Reader
	exception := new(thrift.ApplicationException)
	if c.Compact {
		next, err = r.ReadCompact(b, next, exception)
	} else {
		next, err = r.Read(b, next, exception)
	}
	if err == nil {
		m.Exception = exception
	}
	return m, next, err
}
