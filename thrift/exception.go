package thrift

import (
	"encoding/binary"
	"strconv"

	"github.com/slipstream-go/slipstream"
)

// Kinds of an ApplicationException.
const (
	UnknownApplicationException = 0
	UnknownMethod               = 1
	InvalidMessageType          = 2
	WrongMethodName             = 3
	BadSequenceID               = 4
	MissingResult               = 5
	InternalError               = 6
	ProtocolError               = 7
	InvalidTransform            = 8
	InvalidProtocol             = 9
	UnsupportedClientType       = 10
)

var exceptionTexts = [...]string{
	"application exception", "unknown method", "invalid message type", "wrong method name",
	"bad sequence ID", "missing result", "internal error", "protocol error", "invalid transform",
	"invalid protocol", "unsupported client type",
}

// ApplicationException is the struct of a message of type Exception: the server could not call the
// function, or the function failed with an error that is not declared in the IDL. It is an error.
type ApplicationException struct {
	Message string
	Kind    int32
}

var _ CompactStruct = (*ApplicationException)(nil)

// Error returns a description of the kind and the message.
func (e *ApplicationException) Error() string {
	s := "thrift: "
	if e.Kind >= 0 && int(e.Kind) < len(exceptionTexts) {
		s += exceptionTexts[e.Kind]
	} else {
		s += "application exception " + strconv.Itoa(int(e.Kind))
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Kinds that only Kitex uses. Its servers respond to calls of unknown functions with the first one.
const (
	kindUnknownService = 20
	kindNoServiceName  = 21
)

// DeliveryOutcome returns [slipstream.Refused] if the server did not know the function or did not
// understand the message, and [slipstream.Executed] otherwise.
func (e *ApplicationException) DeliveryOutcome() slipstream.Outcome {
	switch e.Kind {
	case UnknownMethod, InvalidMessageType, InvalidTransform, InvalidProtocol, UnsupportedClientType, kindUnknownService, kindNoServiceName:
		return slipstream.Refused
	}
	return slipstream.Executed
}

// SizeThrift implements Struct.
func (e *ApplicationException) SizeThrift() int { return 15 + len(e.Message) }

// AppendThrift implements Struct.
func (e *ApplicationException) AppendThrift(b []byte) []byte {
	b = AppendString(append(b, TypeString, 0, 1), e.Message)
	b = AppendI32(append(b, TypeI32, 0, 2), e.Kind)
	return append(b, TypeStop)
}

// ReadThrift implements Struct.
func (e *ApplicationException) ReadThrift(r *Reader, b []byte, off, depth int) int {
	if r.Refuses(depth) {
		return r.Refusal(off, depth)
	}
	for {
		if len(b)-off < 3 || b[off] == TypeStop {
			return r.End(b, off, true)
		}
		t, id := b[off], binary.BigEndian.Uint16(b[off+1:])
		off += 3
		switch uint32(id)<<8 | uint32(t) {
		case 1<<8 | TypeString:
			off = r.String(b, off, &e.Message)
		case 2<<8 | TypeI32:
			off = ReadI32(b, off, &e.Kind)
		default:
			off = Skip(b, off, t, depth-1)
		}
		if off < 0 {
			return off
		}
	}
}

// AppendCompact implements CompactStruct.
func (e *ApplicationException) AppendCompact(b []byte) []byte {
	b = AppendCompactHead(b, CompactTypeString, 1, 0)
	b = AppendCompactString(b, e.Message)
	b = AppendCompactHead(b, CompactTypeI32, 2, 1)
	b = AppendCompactInt(b, e.Kind)
	return append(b, TypeStop)
}

// ReadCompact implements CompactStruct.
func (e *ApplicationException) ReadCompact(r *Reader, b []byte, off, depth int) int {
	if r.Refuses(depth) {
		return r.Refusal(off, depth)
	}
	for last := uint16(0); ; {
		key, next := CompactField(b, off, last)
		if next < 0 || key == 0 {
			return next
		}
		off, last = next, uint16(key>>8)
		switch key {
		case 1<<8 | CompactTypeString:
			off = r.CompactString(b, off, &e.Message)
		case 2<<8 | CompactTypeI32:
			off = CompactInt(r, b, off, &e.Kind)
		default:
			off = SkipCompact(b, off, byte(key), depth-1)
		}
		if off < 0 {
			return off
		}
	}
}
