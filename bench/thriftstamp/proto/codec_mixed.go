package proto

import (
	"encoding/binary"
	"math"

	rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"
)

// SizeMixed returns the size of the encoding.
func (p *Order) SizeMixed() int {
	n := p.flatMixed() + rt.SizeStrings(p.Tags) + rt.SizeStringMap(p.Attrs)
	if p.Parent != nil {
		n += p.Parent.SizeMixed()
	}
	for i := range p.Lines {
		n += p.Lines[i].SizeMixed()
	}
	return n
}

// flatMixed returns the size without what lists of other than numbers, maps and
// structs contain.
func (p *Order) flatMixed() int {
	n := 49 + 8*len(p.Codes) + 7*rt.One(p.Quantity.Set) + 11*rt.One(p.Price.Set) + 7*rt.One(p.Status.Set) + 3*rt.One(p.Parent != nil)
	if p.Name.Set {
		n += 7 + len(p.Name.V)
	}
	if p.Payload != nil {
		n += 7 + len(p.Payload)
	}
	return n
}

// WriteMixed writes the encoding to b, which must have SizeMixed bytes.
func (p *Order) WriteMixed(b []byte) int { return len(p.AppendMixed(b[:0])) }

// AppendMixed appends the encoding to b.
func (p *Order) AppendMixed(b []byte) []byte {
	n := len(b)
	b = rt.Extend(b, p.flatMixed())
	n = rt.PutI64(b, n, rt.I64, 1, uint64(p.ID))
	n = rt.PutBool(b, n, 2, p.Paid)
	if p.Quantity.Set {
		n = rt.PutI32(b, n, 3, p.Quantity.V)
	}
	if p.Price.Set {
		n = rt.PutI64(b, n, rt.Double, 4, math.Float64bits(p.Price.V))
	}
	if p.Name.Set {
		n = rt.PutString(b, n, 5, p.Name.V)
	}
	if p.Payload != nil {
		n = rt.PutString(b, n, 6, p.Payload)
	}
	if p.Status.Set {
		n = rt.PutI32(b, n, 7, int32(p.Status.V))
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
		b = p.Parent.AppendMixed(b[:n])
		n = len(b)
		b = rt.Extend(b, 9)
	}
	n = rt.PutList(b, n, 12, rt.Struct, len(p.Lines))
	b = b[:n]
	for i := range p.Lines {
		b = p.Lines[i].AppendMixed(b)
	}
	return append(b, rt.Stop)
}

// ReadMixed reads the struct that b begins with and returns its size.
func (p *Order) ReadMixed(b []byte) (int, error) {
	off := p.readMixed(b, 0, rt.MaxDepth)
	return max(off, 0), rt.Err(off)
}

func (p *Order) readMixed(b []byte, off, depth int) int {
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
			p.Quantity = rt.Some(int32(binary.BigEndian.Uint32(b[off:])))
			off += 4
			continue
		case 4<<8 | rt.Double:
			if len(b)-off < 8 {
				return rt.Short
			}
			p.Price = rt.Some(math.Float64frombits(binary.BigEndian.Uint64(b[off:])))
			off += 8
			continue
		case 5<<8 | rt.String:
			off = rt.ReadOptString(b, off, &p.Name)
		case 6<<8 | rt.String:
			off = rt.ReadBinary(b, off, &p.Payload)
		case 7<<8 | rt.I32:
			if len(b)-off < 4 {
				return rt.Short
			}
			p.Status = rt.Some(Status(binary.BigEndian.Uint32(b[off:])))
			off += 4
			continue
		case 8<<8 | rt.List:
			off = rt.ReadI64s(b, off, &p.Codes)
		case 9<<8 | rt.List:
			off = rt.ReadStrings(b, off, &p.Tags)
		case 10<<8 | rt.Map:
			off = rt.ReadStringMap(b, off, &p.Attrs)
		case 11<<8 | rt.Struct:
			p.Parent = new(Order)
			off = p.Parent.readMixed(b, off, depth-1)
		case 12<<8 | rt.List:
			var n int
			n, off = rt.Count(b, off, rt.Struct, 12)
			p.Lines = make([]Order, n)
			for i := 0; i < n && off >= 0; i++ {
				off = p.Lines[i].readMixed(b, off, depth-1)
			}
		default:
			off = rt.Skip(b, off, t, depth)
		}
		if off < 0 {
			return off
		}
	}
}
