package proto

import (
	"encoding/binary"
	"math"

	rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"
)

// SizeBits returns the size of the encoding.
func (p *BitsOrder) SizeBits() int {
	n := p.flatBits() + rt.SizeStrings(p.Tags) + rt.SizeStringMap(p.Attrs)
	if p.Parent != nil {
		n += p.Parent.SizeBits()
	}
	for i := range p.Lines {
		n += p.Lines[i].SizeBits()
	}
	return n
}

// flatBits returns the size without what lists of other than numbers, maps and
// structs contain.
func (p *BitsOrder) flatBits() int {
	n := 49 + 8*len(p.Codes) + 7*rt.One(p.set&1 != 0) + 11*rt.One(p.set&2 != 0) + 7*rt.One(p.set&8 != 0) + 3*rt.One(p.Parent != nil)
	if p.set&4 != 0 {
		n += 7 + len(p.Name)
	}
	if p.Payload != nil {
		n += 7 + len(p.Payload)
	}
	return n
}

// WriteBits writes the encoding to b, which must have SizeBits bytes.
func (p *BitsOrder) WriteBits(b []byte) int { return len(p.AppendBits(b[:0])) }

// AppendBits appends the encoding to b.
func (p *BitsOrder) AppendBits(b []byte) []byte {
	n := len(b)
	b = rt.Extend(b, p.flatBits())
	n = rt.PutI64(b, n, rt.I64, 1, uint64(p.ID))
	n = rt.PutBool(b, n, 2, p.Paid)
	if p.set&1 != 0 {
		n = rt.PutI32(b, n, 3, p.Quantity)
	}
	if p.set&2 != 0 {
		n = rt.PutI64(b, n, rt.Double, 4, math.Float64bits(p.Price))
	}
	if p.set&4 != 0 {
		n = rt.PutString(b, n, 5, p.Name)
	}
	if p.Payload != nil {
		n = rt.PutString(b, n, 6, p.Payload)
	}
	if p.set&8 != 0 {
		n = rt.PutI32(b, n, 7, int32(p.Status))
	}
	n = rt.PutList(b, n, 8, rt.I64, len(p.Codes))
	n = rt.PutI64s(b, n, p.Codes)
	n = rt.PutList(b, n, 9, rt.String, len(p.Tags))
	if len(p.Tags) > 0 {
		b, n = rt.PutStrings(b, n, p.Tags)
	}
	n = rt.PutMap(b, n, 10, rt.String, rt.String, len(p.Attrs))
	if len(p.Attrs) > 0 {
		b, n = rt.PutStringMap(b, n, p.Attrs)
	}
	if p.Parent != nil {
		n = rt.PutHead(b, n, rt.Struct, 11)
		b = p.Parent.AppendBits(b[:n])
		n = len(b)
		b = rt.Extend(b, 9)
	}
	n = rt.PutList(b, n, 12, rt.Struct, len(p.Lines))
	b = b[:n]
	for i := range p.Lines {
		b = p.Lines[i].AppendBits(b)
	}
	return append(b, rt.Stop)
}

// ReadBits reads the struct that b begins with and returns its size.
func (p *BitsOrder) ReadBits(b []byte) (int, error) {
	off := p.readBits(b, 0, rt.MaxDepth)
	return max(off, 0), rt.Err(off)
}

func (p *BitsOrder) readBits(b []byte, off, depth int) int {
	if depth <= 0 {
		return rt.Deep
	}
	seenID := false
	for {
		if len(b)-off < 3 || b[off] == rt.Stop {
			return rt.EndStruct(b, off, seenID)
		}
		t, id := b[off], binary.BigEndian.Uint16(b[off+1:])
		off += 3
		switch uint32(id)<<8 | uint32(t) {
		case 1<<8 | rt.I64:
			if len(b)-off < 8 {
				return rt.Short
			}
			p.ID = int64(binary.BigEndian.Uint64(b[off:]))
			off += 8
			seenID = true
			continue
		case 2<<8 | rt.Bool:
			if len(b)-off < 1 {
				return rt.Short
			}
			p.Paid = b[off] != 0
			off++
			continue
		case 3<<8 | rt.I32:
			if len(b)-off < 4 {
				return rt.Short
			}
			p.Quantity = int32(binary.BigEndian.Uint32(b[off:]))
			p.set |= 1
			off += 4
			continue
		case 4<<8 | rt.Double:
			if len(b)-off < 8 {
				return rt.Short
			}
			p.Price = math.Float64frombits(binary.BigEndian.Uint64(b[off:]))
			p.set |= 2
			off += 8
			continue
		case 5<<8 | rt.String:
			off = rt.ReadString(b, off, &p.Name)
			p.set |= 4
		case 6<<8 | rt.String:
			off = rt.ReadBinary(b, off, &p.Payload)
		case 7<<8 | rt.I32:
			if len(b)-off < 4 {
				return rt.Short
			}
			p.Status = Status(binary.BigEndian.Uint32(b[off:]))
			p.set |= 8
			off += 4
			continue
		case 8<<8 | rt.List:
			off = rt.ReadI64s(b, off, &p.Codes)
		case 9<<8 | rt.List:
			off = rt.ReadStrings(b, off, &p.Tags)
		case 10<<8 | rt.Map:
			off = rt.ReadStringMap(b, off, &p.Attrs)
		case 11<<8 | rt.Struct:
			p.Parent = new(BitsOrder)
			off = p.Parent.readBits(b, off, depth-1)
		case 12<<8 | rt.List:
			var n int
			n, off = rt.Count(b, off, rt.Struct, 12)
			p.Lines = make([]BitsOrder, n)
			for i := 0; i < n && off >= 0; i++ {
				off = p.Lines[i].readBits(b, off, depth-1)
			}
		default:
			off = rt.Skip(b, off, t, depth)
		}
		if off < 0 {
			return off
		}
	}
}
