package apache

import (
	"context"
	"errors"
	"fmt"

	lib "github.com/apache/thrift/lib/go/thrift"

	"github.com/slipstream-go/slipstream/thrift"
)

// Struct is a TStruct with a generated struct. With a Protocol it calls the methods of the struct.
// For any other TProtocol it encodes the struct in the Binary protocol and copies the encoding
// field by field: the encoding contains the types of all values, so neither a table nor reflection
// is needed, and copying works the same way in both directions. The encoding neither contains names
// nor distinguishes binaries from strings, so protocols that need these (JSON) are rejected. Values
// that are read from another protocol may take at most MaxMemory in the Binary protocol before they
// are decoded.
//
// vet mistakes ReadByte and WriteByte for the methods of the interfaces in package io; make
// check-vet disables that check for the module.

// Struct is a TStruct that holds a generated struct. With a [Protocol], it uses the methods of the
// struct. With any other TProtocol, it passes the fields one by one, without their names.
//
// All strings are written with WriteBinary and read with ReadBinary, which Apache's implementations of
// the Binary and Compact protocols do not distinguish from the methods for strings. Its JSON
// protocols do, and are rejected.
type Struct struct {
	// V is the struct. When it is read, fields that are missing in the message keep their values.
	V thrift.Struct
	// MaxMemory limits the memory of the values that are read, like Reader.MaxMemory. If they are
	// read from a TProtocol other than a Protocol, it also limits their size in the Binary
	// protocol. If it is 0, that limit is 100 MiB, and the limit for the values is that of a zero
	// Reader. The TConfiguration of the other protocol limits single strings.
	MaxMemory int
}

var _ lib.TStruct = (*Struct)(nil)

// Wrap returns a Struct that holds v, a pointer to a generated struct.
func Wrap(v thrift.Struct) *Struct { return &Struct{V: v} }

// errUnsupported returns the error for a protocol in which structs cannot be written.
func errUnsupported(p lib.TProtocol) error {
	return lib.NewTProtocolExceptionWithType(lib.NOT_IMPLEMENTED,
		fmt.Errorf("apache: %T distinguishes strings from binaries; expected the Binary or the Compact protocol", p))
}

// tellsBinaries reports whether a protocol distinguishes strings from binaries.
func tellsBinaries(p lib.TProtocol) bool {
	switch p.(type) {
	case *lib.TJSONProtocol, *lib.TSimpleJSONProtocol:
		return true
	}
	return false
}

// Write implements TStruct.
func (s *Struct) Write(ctx context.Context, p lib.TProtocol) error {
	if own, ok := p.(*Protocol); ok {
		return own.writeStruct(s.V)
	}
	if tellsBinaries(p) {
		return errUnsupported(p)
	}
	from := NewBinary(thrift.Append(make([]byte, 0, s.V.SizeThrift()), s.V))
	c := copier{ctx: ctx, from: from, to: p, own: from}
	c.structure()
	return c.err
}

// Read implements TStruct.
func (s *Struct) Read(ctx context.Context, p lib.TProtocol) error {
	reader := thrift.Reader{MaxMemory: s.MaxMemory}
	if own, ok := p.(*Protocol); ok {
		return own.readStruct(&reader, s.V)
	}
	if tellsBinaries(p) {
		return errUnsupported(p)
	}
	to := NewBinary(nil)
	c := copier{ctx: ctx, from: p, to: to, own: to, most: s.MaxMemory}
	if c.most == 0 {
		c.most = lib.DEFAULT_MAX_MESSAGE_SIZE
	}
	if c.structure(); c.err != nil {
		return c.err
	}
	return to.readStruct(&reader, s.V)
}

// errNoCompact returns the error for a struct without methods for the Compact protocol.
func errNoCompact(v thrift.Struct) error {
	return lib.NewTProtocolExceptionWithType(lib.NOT_IMPLEMENTED, fmt.Errorf("apache: %T has no methods for the Compact protocol", v))
}

func (p *Protocol) writeStruct(v thrift.Struct) error {
	if !p.compact {
		p.buf = v.AppendThrift(p.buf)
		return nil
	}
	c, ok := v.(thrift.CompactStruct)
	if !ok {
		return errNoCompact(v)
	}
	p.buf = c.AppendCompact(p.buf)
	return nil
}

func (p *Protocol) readStruct(r *thrift.Reader, v thrift.Struct) error {
	var next int
	var err error
	if !p.compact {
		next, err = r.Read(p.buf, p.off, v)
	} else if c, ok := v.(thrift.CompactStruct); ok {
		next, err = r.ReadCompact(p.buf, p.off, c)
	} else {
		return errNoCompact(v)
	}
	if bad, ok := errors.AsType[*thrift.Error](err); ok {
		return exception(bad)
	}
	p.off = next
	return err
}

// maxDepth is the maximum nesting depth of structs and containers that a copier copies. It is twice
// the limit for structs, because the readers of package thrift do not count all containers.
const maxDepth = 2 * thrift.MaxDepth

// copier copies a struct from one protocol to another.
type copier struct {
	ctx      context.Context
	from, to lib.TProtocol
	own      *Protocol
	most     int // maximum number of bytes in own, if it is written
	depth    int // of the current value
	err      error
}

// check records the first error, and reports whether there is none so far.
func (c *copier) check(err error) bool {
	if c.err == nil {
		c.err = err
	}
	if c.err == nil && c.most > 0 && len(c.own.buf) > c.most {
		c.err = failure(thrift.CodeMemory, len(c.own.buf))
	}
	return c.err == nil
}

func (c *copier) structure() {
	_, err := c.from.ReadStructBegin(c.ctx)
	if !c.check(err) || !c.check(c.to.WriteStructBegin(c.ctx, "")) {
		return
	}
	for {
		_, t, id, err := c.from.ReadFieldBegin(c.ctx)
		if !c.check(err) {
			return
		}
		if t == lib.STOP {
			break
		}
		if !c.check(c.to.WriteFieldBegin(c.ctx, "", t, id)) {
			return
		}
		if c.value(t); c.err != nil {
			return
		}
		if !c.check(c.from.ReadFieldEnd(c.ctx)) || !c.check(c.to.WriteFieldEnd(c.ctx)) {
			return
		}
	}
	_ = c.check(c.to.WriteFieldStop(c.ctx)) && c.check(c.from.ReadStructEnd(c.ctx)) && c.check(c.to.WriteStructEnd(c.ctx))
}

func (c *copier) value(t lib.TType) {
	switch t {
	case lib.BOOL:
		pass(c, c.from.ReadBool, c.to.WriteBool)
	case lib.BYTE:
		pass(c, c.from.ReadByte, c.to.WriteByte)
	case lib.I16:
		pass(c, c.from.ReadI16, c.to.WriteI16)
	case lib.I32:
		pass(c, c.from.ReadI32, c.to.WriteI32)
	case lib.I64:
		pass(c, c.from.ReadI64, c.to.WriteI64)
	case lib.DOUBLE:
		pass(c, c.from.ReadDouble, c.to.WriteDouble)
	case lib.STRING:
		pass(c, c.from.ReadBinary, c.to.WriteBinary)
	case lib.UUID:
		pass(c, c.from.ReadUUID, c.to.WriteUUID)
	case lib.STRUCT:
		c.inner(c.structure)
	case lib.LIST:
		elem, n, err := c.from.ReadListBegin(c.ctx)
		if c.check(err) && c.check(c.to.WriteListBegin(c.ctx, elem, n)) {
			c.elements(n, elem)
			_ = c.check(c.from.ReadListEnd(c.ctx)) && c.check(c.to.WriteListEnd(c.ctx))
		}
	case lib.SET:
		elem, n, err := c.from.ReadSetBegin(c.ctx)
		if c.check(err) && c.check(c.to.WriteSetBegin(c.ctx, elem, n)) {
			c.elements(n, elem)
			_ = c.check(c.from.ReadSetEnd(c.ctx)) && c.check(c.to.WriteSetEnd(c.ctx))
		}
	case lib.MAP:
		k, v, n, err := c.from.ReadMapBegin(c.ctx)
		if c.check(err) && c.check(c.to.WriteMapBegin(c.ctx, k, v, n)) {
			c.elements(n, k, v)
			_ = c.check(c.from.ReadMapEnd(c.ctx)) && c.check(c.to.WriteMapEnd(c.ctx))
		}
	default:
		c.check(unknownType(t))
	}
}

// elements copies n elements of a type, or n entries of two types.
func (c *copier) elements(n int, types ...lib.TType) {
	c.inner(func() {
		for range n {
			for _, t := range types {
				if c.value(t); c.err != nil {
					return
				}
			}
		}
	})
}

// inner calls f one level deeper.
func (c *copier) inner(f func()) {
	if c.depth++; c.depth > maxDepth {
		c.check(failure(thrift.CodeDeep, c.own.off))
		return
	}
	f()
	c.depth--
}

// pass copies a scalar or a string.
func pass[T any](c *copier, read func(context.Context) (T, error), write func(context.Context, T) error) {
	v, err := read(c.ctx)
	if c.check(err) {
		c.check(write(c.ctx, v))
	}
}
