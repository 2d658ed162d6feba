package apache

import (
	"context"
	"encoding/binary"

	lib "github.com/apache/thrift/lib/go/thrift"

	"github.com/slipstream-go/slipstream/thrift"
)

// pass advances to the offset next, or returns an error if next is a code.
func (p *Protocol) pass(next int) error {
	if next < 0 {
		return failure(next, p.off)
	}
	p.off = next
	return nil
}

// ReadMessageBegin implements TProtocol.
func (p *Protocol) ReadMessageBegin(context.Context) (name string, t lib.TMessageType, seq int32, err error) {
	p.in.begin()
	var m thrift.Message
	if p.compact {
		err = p.pass(thrift.ReadCompactMessage(p.buf, p.off, &m))
	} else {
		err = p.pass(thrift.ReadMessage(p.buf, p.off, &m))
	}
	return string(m.Name), lib.TMessageType(m.Type), m.Seq, err
}

// ReadMessageEnd implements TProtocol.
func (p *Protocol) ReadMessageEnd(context.Context) error { return nil }

// ReadStructBegin implements TProtocol. Neither protocol contains the name.
func (p *Protocol) ReadStructBegin(context.Context) (name string, err error) {
	return "", p.in.enter(p.off)
}

// ReadStructEnd implements TProtocol.
func (p *Protocol) ReadStructEnd(context.Context) error { return p.in.leave() }

// ReadFieldBegin implements TProtocol. Neither protocol contains the name.
func (p *Protocol) ReadFieldBegin(context.Context) (name string, t lib.TType, id int16, err error) {
	if p.compact {
		return p.readCompactField()
	}
	b := p.buf[p.off:]
	switch {
	case len(b) > 0 && b[0] == lib.STOP:
		p.off++
		return "", lib.STOP, 0, nil
	case len(b) < 3:
		return "", lib.STOP, 0, failure(thrift.CodeShort, p.off)
	case !isType(lib.TType(b[0])):
		return "", lib.STOP, 0, failure(thrift.CodeType, p.off)
	}
	p.off += 3
	return "", lib.TType(b[0]), int16(binary.BigEndian.Uint16(b[1:])), nil
}

func (p *Protocol) readCompactField() (name string, t lib.TType, id int16, err error) {
	key, next := thrift.CompactField(p.buf, p.off, p.in.lastID())
	if err := p.pass(next); err != nil || key == 0 {
		return "", lib.STOP, 0, err
	}
	p.in.field(uint16(key >> 8))
	if t = fromCompact(byte(key)); t == lib.BOOL {
		p.pendingBool = byte(key)
	}
	return "", t, int16(key >> 8), nil
}

// ReadFieldEnd implements TProtocol.
func (p *Protocol) ReadFieldEnd(context.Context) error { return nil }

// ReadMapBegin implements TProtocol. The number of entries that it returns fits into the rest of
// the input.
func (p *Protocol) ReadMapBegin(context.Context) (k, v lib.TType, size int, err error) {
	next := thrift.CodeShort
	b := p.buf[p.off:]
	if p.compact {
		if _, n := binary.Uvarint(b); n > 0 && n < len(b) {
			k, v = fromCompact(b[n]>>4), fromCompact(b[n]&15)
			size, next = p.reader.CompactCountMap(p.buf, p.off, b[n]>>4, b[n]&15)
		} else { // The head is incomplete, or the map has no entries or too many.
			size, next = p.reader.CompactCountMap(p.buf, p.off, 0, 0)
		}
		if size == 0 {
			k, v = lib.STOP, lib.STOP
		}
	} else if len(b) > 1 {
		k, v = lib.TType(b[0]), lib.TType(b[1])
		if size, next = p.reader.CountMap(p.buf, p.off, b[0], b[1], leastOf(k)+leastOf(v)); size > 0 && !(isType(k) && isType(v)) {
			next = thrift.CodeType
		}
	}
	if err = p.pass(next); err != nil {
		return lib.STOP, lib.STOP, 0, err
	}
	return k, v, size, nil
}

// ReadMapEnd implements TProtocol.
func (p *Protocol) ReadMapEnd(context.Context) error { return nil }

// ReadListBegin implements TProtocol. The number of elements that it returns fits into the rest of
// the input.
func (p *Protocol) ReadListBegin(context.Context) (elem lib.TType, size int, err error) {
	next := thrift.CodeShort
	if b := p.buf[p.off:]; len(b) > 0 && p.compact {
		elem = fromCompact(b[0] & 15)
		size, next = p.reader.CompactCount(p.buf, p.off, b[0]&15)
	} else if len(b) > 0 {
		elem = lib.TType(b[0])
		if size, next = p.reader.Count(p.buf, p.off, b[0], leastOf(elem)); size > 0 && !isType(elem) {
			next = thrift.CodeType
		}
	}
	if err = p.pass(next); err != nil {
		return lib.STOP, 0, err
	}
	return elem, size, nil
}

// leastOf returns the minimum size of an element, or 1 for an invalid type.
func leastOf(t lib.TType) int {
	if isType(t) {
		return least[t]
	}
	return 1
}

// ReadListEnd implements TProtocol.
func (p *Protocol) ReadListEnd(context.Context) error { return nil }

// ReadSetBegin implements TProtocol. The number of elements that it returns fits into the rest of
// the input.
func (p *Protocol) ReadSetBegin(ctx context.Context) (elem lib.TType, size int, err error) {
	return p.ReadListBegin(ctx)
}

// ReadSetEnd implements TProtocol.
func (p *Protocol) ReadSetEnd(context.Context) error { return nil }

// ReadBool implements TProtocol.
func (p *Protocol) ReadBool(context.Context) (v bool, err error) {
	switch {
	case !p.compact:
		err = p.pass(thrift.ReadBool(p.buf, p.off, &v))
	case p.pendingBool != 0:
		v = p.pendingBool == thrift.CompactTypeTrue
		p.pendingBool = 0
	default:
		err = p.pass(thrift.ReadCompactBool(p.buf, p.off, &v))
	}
	return v, err
}

// ReadByte implements TProtocol.
func (p *Protocol) ReadByte(context.Context) (v int8, err error) {
	err = p.pass(thrift.ReadI8(p.buf, p.off, &v))
	return v, err
}

// ReadI16 implements TProtocol.
func (p *Protocol) ReadI16(context.Context) (v int16, err error) {
	if p.compact {
		err = p.pass(thrift.ReadCompactInt(p.buf, p.off, &v))
	} else {
		err = p.pass(thrift.ReadI16(p.buf, p.off, &v))
	}
	return v, err
}

// ReadI32 implements TProtocol.
func (p *Protocol) ReadI32(context.Context) (v int32, err error) {
	if p.compact {
		err = p.pass(thrift.ReadCompactInt(p.buf, p.off, &v))
	} else {
		err = p.pass(thrift.ReadI32(p.buf, p.off, &v))
	}
	return v, err
}

// ReadI64 implements TProtocol.
func (p *Protocol) ReadI64(context.Context) (v int64, err error) {
	if p.compact {
		err = p.pass(thrift.ReadCompactInt(p.buf, p.off, &v))
	} else {
		err = p.pass(thrift.ReadI64(p.buf, p.off, &v))
	}
	return v, err
}

// ReadDouble implements TProtocol.
func (p *Protocol) ReadDouble(context.Context) (v float64, err error) {
	if p.compact {
		err = p.pass(thrift.ReadCompactDouble(p.buf, p.off, &v))
	} else {
		err = p.pass(thrift.ReadDouble(p.buf, p.off, &v))
	}
	return v, err
}

// ReadUUID implements TProtocol.
func (p *Protocol) ReadUUID(context.Context) (v lib.Tuuid, err error) {
	err = p.pass(thrift.ReadUUID(p.buf, p.off, (*thrift.UUID)(&v)))
	return v, err
}

// ReadString implements TProtocol.
func (p *Protocol) ReadString(context.Context) (string, error) {
	text, err := p.readText()
	return string(text), err
}

// ReadBinary implements TProtocol. The result is a copy and never nil.
func (p *Protocol) ReadBinary(context.Context) ([]byte, error) {
	text, err := p.readText()
	if err != nil {
		return nil, err
	}
	return append([]byte{}, text...), nil
}

// readText reads a string and returns it as a part of the input.
func (p *Protocol) readText() ([]byte, error) {
	head, end := 4, 0
	if p.compact {
		_, head = binary.Uvarint(p.buf[p.off:])
		end = thrift.SkipCompact(p.buf, p.off, thrift.CompactTypeString, 1)
	} else {
		end = thrift.SkipString(p.buf, p.off)
	}
	start := p.off + head
	if err := p.pass(end); err != nil {
		return nil, err
	}
	return p.buf[start:end], nil
}

// Skip implements TProtocol.
func (p *Protocol) Skip(ctx context.Context, t lib.TType) error {
	switch {
	case !isType(t):
		return unknownType(t)
	case !p.compact:
		return p.pass(thrift.Skip(p.buf, p.off, byte(t), thrift.MaxDepth-len(p.in)))
	case t == lib.BOOL: // a field or an element
		_, err := p.ReadBool(ctx)
		return err
	}
	return p.pass(thrift.SkipCompact(p.buf, p.off, compactTypes[t], thrift.MaxDepth-len(p.in)))
}
