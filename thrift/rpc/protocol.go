package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// Transport is how a client delimits its messages. A server detects it.
type Transport uint8

// Transports.
const (
	// TTHeader puts a header before each message. Deadlines, metadata and application statuses are sent only with
	// TTHeader, and only with it do servers of this package answer in any order. Kitex supports it; Apache Thrift does
	// not.
	TTHeader Transport = iota
	// TTHeaderFramed is TTHeader with the length of the message after the header.
	TTHeaderFramed
	// Framed prefixes each message with its length.
	Framed
	// Buffered sends messages without any delimiter.
	Buffered
)

var transports = [...]frame.Transport{TTHeader: frame.Header, TTHeaderFramed: frame.HeaderFramed, Framed: frame.Framed, Buffered: frame.Buffered}

// String returns the name of the transport.
func (t Transport) String() string {
	if int(t) >= len(transports) {
		return fmt.Sprintf("unknown transport %d", uint8(t))
	}
	return transports[t].String()
}

// traits describes Thrift to the engine. The ticket is the sequence ID; ID 0 is used for control frames. A server may
// lose replies, so tickets have 32 bits.
var traits = pipe.Traits{
	Match: pipe.ByTicket, TicketBits: 32, FirstTicket: 1,
	PutTicket: func(b []byte, ticket uint64) { frame.PutSeq(b, uint32(ticket)) },
}

// protocol connects the codec to the engine.
type protocol struct{ lane *lane }

// Greet implements [pipe.Protocol]. Thrift has no greeting.
func (protocol) Greet(context.Context, net.Conn) ([]byte, error) { return nil, nil }

// AppendPing implements [pipe.Protocol]. Thrift has no ping.
func (protocol) AppendPing(b []byte) []byte { return b }

// NewScanner implements [pipe.Protocol].
func (p protocol) NewScanner() pipe.Scanner {
	return &conn{lane: p.lane, scanner: frame.Scanner{Max: p.lane.client.config.MaxMessage}}
}

// Scan implements [pipe.Scanner].
func (c *conn) Scan(b []byte) (f pipe.Frame, err error) {
	n, whole, err := c.scanner.Size(b)
	switch {
	case err != nil:
		return f, unreadable(err)
	case !whole:
		return pipe.Frame{Len: n, Verdict: pipe.More}, nil
	}
	m, err := frame.Open(b[:n])
	if err != nil {
		return f, unreadable(err)
	}
	var head thrift.Message
	body := readMessage(m.Payload, m.Format, &head)
	if body < 0 {
		return f, unreadable(thrift.Err(body, 0))
	}
	if head.Type != thrift.Reply && head.Type != thrift.Exception {
		return f, unreadable(fmt.Errorf("a message of type %v; expected a reply", head.Type))
	}
	c.batch.sizes.add(n)
	f.Len, f.Ticket = n, uint64(uint32(head.Seq))
	if f.Ticket == 0 { // some proxies answer with their own exceptions
		f.Ticket = uint64(uint32(m.Info.Seq))
	}
	if f.Ticket == 0 {
		f.Verdict = pipe.Push
	}
	if !m.HasHeader() && !m.Protobuf {
		f.Last = hasGoodbye(m.Payload, m.Compact)
	}
	if m.Info.HasKeys() {
		f.Last = string(m.Info.String(frame.KeyReset)) == "1"
		if f.Verdict == pipe.Push && m.Info.String(keyAnyOrder) != nil {
			c.announced()
		}
	}
	if head.Type == thrift.Exception && !c.anyOrder.Load() && endsConnection(m, body) {
		f.Last = true
	}
	if f.Last {
		c.told()
	}
	return f, nil
}

// Errors in the chain of a call's error if its connection was closed because of invalid data from the server.
var (
	// ErrUnreadable means that the server sent data that is not a reply.
	ErrUnreadable = errors.New("the server sent a message that is not a reply")
	// ErrUnsolicited means that the server sent a reply whose sequence ID does not belong to any call.
	ErrUnsolicited = pipe.ErrUnsolicited
)

func unreadable(err error) error { return fmt.Errorf("%w: %w", ErrUnreadable, err) }

// endsConnection reports whether a message is an exception after which some servers, such as Kitex, close the
// connection without reading more from it. Such exceptions do not come from handlers.
func endsConnection(m frame.Message, body int) bool {
	e, err := readException(m, body)
	return err != nil || e.Kind != thrift.InternalError && e.Kind != KindRefused
}

// readException decodes the exception in a message.
func readException(m frame.Message, body int) (e thrift.ApplicationException, err error) {
	var r thrift.Reader
	switch {
	case m.Compact:
		_, err = r.ReadCompact(m.Payload, body, &e)
	case m.Protobuf:
		err = readProtobufException(m.Payload[body:], &e)
	default:
		_, err = r.Read(m.Payload, body, &e)
	}
	return e, err
}
