package apache

import (
	"context"
	"fmt"
	"math"

	lib "github.com/apache/thrift/lib/go/thrift"

	"github.com/slipstream-go/slipstream/thrift"
)

// WriteMessageBegin implements TProtocol.
func (p *Protocol) WriteMessageBegin(_ context.Context, name string, t lib.TMessageType, seq int32) error {
	p.out.begin()
	if p.compact {
		p.buf = thrift.AppendCompactMessage(p.buf, name, thrift.MessageType(t), seq)
	} else {
		p.buf = thrift.AppendMessage(p.buf, name, thrift.MessageType(t), seq)
	}
	return nil
}

// WriteMessageEnd implements TProtocol.
func (p *Protocol) WriteMessageEnd(context.Context) error { return nil }

// WriteStructBegin implements TProtocol.
func (p *Protocol) WriteStructBegin(context.Context, string) error {
	return p.out.enter(len(p.buf))
}

// WriteStructEnd implements TProtocol.
func (p *Protocol) WriteStructEnd(context.Context) error { return p.out.leave() }

// WriteFieldBegin implements TProtocol.
func (p *Protocol) WriteFieldBegin(_ context.Context, _ string, t lib.TType, id int16) error {
	if !isType(t) {
		return unknownType(t)
	}
	switch {
	case !p.compact:
		p.buf = append(p.buf, byte(t), byte(id>>8), byte(id))
	case t == lib.BOOL: // WriteBool writes both.
		p.pendingID, p.isPending = uint16(id), true
	default:
		p.buf = thrift.AppendCompactHead(p.buf, compactTypes[t], uint16(id), p.out.field(uint16(id)))
	}
	return nil
}

// WriteFieldEnd implements TProtocol.
func (p *Protocol) WriteFieldEnd(context.Context) error { return nil }

// WriteFieldStop implements TProtocol.
func (p *Protocol) WriteFieldStop(context.Context) error {
	p.buf = append(p.buf, lib.STOP)
	return nil
}

// WriteMapBegin implements TProtocol.
func (p *Protocol) WriteMapBegin(_ context.Context, k, v lib.TType, size int) error {
	if err := check(size, k, v); err != nil {
		return err
	}
	switch {
	case !p.compact:
		p.buf = thrift.AppendMap(p.buf, byte(k), byte(v), size)
	case size == 0:
		p.buf = thrift.AppendCompactMap(p.buf, 0, 0, 0)
	default:
		p.buf = thrift.AppendCompactMap(p.buf, compactTypes[k], compactTypes[v], size)
	}
	return nil
}

// WriteMapEnd implements TProtocol.
func (p *Protocol) WriteMapEnd(context.Context) error { return nil }

// WriteListBegin implements TProtocol.
func (p *Protocol) WriteListBegin(_ context.Context, elem lib.TType, size int) error {
	if err := check(size, elem); err != nil {
		return err
	}
	switch {
	case !p.compact:
		p.buf = thrift.AppendList(p.buf, byte(elem), size)
	case !isType(elem): // The list is empty.
		p.buf = thrift.AppendCompactList(p.buf, 0, 0)
	default:
		p.buf = thrift.AppendCompactList(p.buf, compactTypes[elem], size)
	}
	return nil
}

// WriteListEnd implements TProtocol.
func (p *Protocol) WriteListEnd(context.Context) error { return nil }

// WriteSetBegin implements TProtocol.
func (p *Protocol) WriteSetBegin(ctx context.Context, elem lib.TType, size int) error {
	return p.WriteListBegin(ctx, elem, size)
}

// WriteSetEnd implements TProtocol.
func (p *Protocol) WriteSetEnd(context.Context) error { return nil }

// check returns an error for a size that no container can have, or for invalid types of elements. A
// container without elements may have any type.
func check(size int, types ...lib.TType) error {
	if size < 0 {
		return lib.NewTProtocolExceptionWithType(lib.NEGATIVE_SIZE, fmt.Errorf("apache: invalid container size %d", size))
	}
	if size > math.MaxInt32 {
		return failure(thrift.CodeLength, 0)
	}
	for _, t := range types {
		if size > 0 && !isType(t) {
			return unknownType(t)
		}
	}
	return nil
}

func unknownType(t lib.TType) error {
	return lib.NewTProtocolExceptionWithType(lib.INVALID_DATA, fmt.Errorf("apache: %d is not a type of the protocol", t))
}

// WriteBool implements TProtocol.
func (p *Protocol) WriteBool(_ context.Context, v bool) error {
	switch {
	case !p.compact:
		p.buf = thrift.AppendBool(p.buf, v)
	case p.isPending:
		p.isPending = false
		p.buf = thrift.AppendCompactBoolHead(p.buf, v, p.pendingID, p.out.field(p.pendingID))
	default:
		p.buf = thrift.AppendCompactBool(p.buf, v)
	}
	return nil
}

// WriteByte implements TProtocol.
func (p *Protocol) WriteByte(_ context.Context, v int8) error {
	p.buf = thrift.AppendI8(p.buf, v)
	return nil
}

// WriteI16 implements TProtocol.
func (p *Protocol) WriteI16(_ context.Context, v int16) error {
	if p.compact {
		p.buf = thrift.AppendCompactInt(p.buf, v)
	} else {
		p.buf = thrift.AppendI16(p.buf, v)
	}
	return nil
}

// WriteI32 implements TProtocol.
func (p *Protocol) WriteI32(_ context.Context, v int32) error {
	if p.compact {
		p.buf = thrift.AppendCompactInt(p.buf, v)
	} else {
		p.buf = thrift.AppendI32(p.buf, v)
	}
	return nil
}

// WriteI64 implements TProtocol.
func (p *Protocol) WriteI64(_ context.Context, v int64) error {
	if p.compact {
		p.buf = thrift.AppendCompactInt(p.buf, v)
	} else {
		p.buf = thrift.AppendI64(p.buf, v)
	}
	return nil
}

// WriteDouble implements TProtocol.
func (p *Protocol) WriteDouble(_ context.Context, v float64) error {
	if p.compact {
		p.buf = thrift.AppendCompactDouble(p.buf, v)
	} else {
		p.buf = thrift.AppendDouble(p.buf, v)
	}
	return nil
}

// WriteString implements TProtocol.
func (p *Protocol) WriteString(_ context.Context, v string) error { return writeText(p, v) }

// WriteBinary implements TProtocol.
func (p *Protocol) WriteBinary(_ context.Context, v []byte) error { return writeText(p, v) }

func writeText[T string | []byte](p *Protocol, v T) error {
	if len(v) > math.MaxInt32 {
		return failure(thrift.CodeLength, len(p.buf))
	}
	if p.compact {
		p.buf = thrift.AppendCompactString(p.buf, v)
	} else {
		p.buf = thrift.AppendString(p.buf, v)
	}
	return nil
}

// WriteUUID implements TProtocol.
func (p *Protocol) WriteUUID(_ context.Context, v lib.Tuuid) error {
	p.buf = thrift.AppendUUID(p.buf, v)
	return nil
}
