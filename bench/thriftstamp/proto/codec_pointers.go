package proto

import (
	"encoding/binary"
	"math"

	rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"
)

// SizePointers returns the size of the encoding.
func (p *PointersOrder) SizePointers() int {
	n := p.flatPointers() + rt.SizeStrings(p.Tags) + rt.SizeStringMap(p.Attrs)
	if p.Parent != nil {
		n += p.Parent.SizePointers()
	}
	for i := range p.Lines {
		n += p.Lines[i].SizePointers()
	}
	return n
}

// flatPointers returns the size without what lists of other than numbers, maps and
// structs contain.
func (p *PointersOrder) flatPointers() int {
	n := 49 + 8*len(p.Codes) + 7*rt.One(p.Quantity != nil) + 11*rt.One(p.Price != nil) + 7*rt.One(p.Status != nil) + 3*rt.One(p.Parent != nil)
	if p.Name != nil {
		n += 7 + len(*p.Name)
	}
	if p.Payload != nil {
		n += 7 + len(p.Payload)
	}
	return n
}

// WritePointers writes the encoding to b, which must have SizePointers bytes.
func (p *PointersOrder) WritePointers(b []byte) int { return len(p.AppendPointers(b[:0])) }

// AppendPointers appends the encoding to b.
func (p *PointersOrder) AppendPointers(b []byte) []byte {
	n := len(b)
	b = rt.Extend(b, p.flatPointers())
	n = rt.PutI64(b, n, rt.I64, 1, uint64(p.ID))
	n = rt.PutBool(b, n, 2, p.Paid)
	if p.Quantity != nil {
		n = rt.PutI32(b, n, 3, *p.Quantity)
	}
	if p.Price != nil {
		n = rt.PutI64(b, n, rt.Double, 4, math.Float64bits(*p.Price))
	}
	if p.Name != nil {
		n = rt.PutString(b, n, 5, *p.Name)
	}
	if p.Payload != nil {
		n = rt.PutString(b, n, 6, p.Payload)
	}
	if p.Status != nil {
		n = rt.PutI32(b, n, 7, int32(*p.Status))
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
		b = p.Parent.AppendPointers(b[:n])
		n = len(b)
		b = rt.Extend(b, 9)
	}
	n = rt.PutList(b, n, 12, rt.Struct, len(p.Lines))
	b = b[:n]
	for i := range p.Lines {
		b = p.Lines[i].AppendPointers(b)
	}
	return append(b, rt.Stop)
}

// ReadPointers reads the struct that b begins with and returns its size.
func (p *PointersOrder) ReadPointers(b []byte) (int, error) {
	off := p.readPointers(b, 0, rt.MaxDepth)
	return max(off, 0), rt.Err(off)
}

func (p *PointersOrder) readPointers(b []byte, off, depth int) int {
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
			p.Quantity = new(int32(binary.BigEndian.Uint32(b[off:])))
			off += 4
			continue
		case 4<<8 | rt.Double:
			if len(b)-off < 8 {
				return rt.Short
			}
			p.Price = new(math.Float64frombits(binary.BigEndian.Uint64(b[off:])))
			off += 8
			continue
		case 5<<8 | rt.String:
			p.Name = new(string)
			off = rt.ReadString(b, off, p.Name)
		case 6<<8 | rt.String:
			off = rt.ReadBinary(b, off, &p.Payload)
		case 7<<8 | rt.I32:
			if len(b)-off < 4 {
				return rt.Short
			}
			p.Status = new(Status(binary.BigEndian.Uint32(b[off:])))
			off += 4
			continue
		case 8<<8 | rt.List:
			off = rt.ReadI64s(b, off, &p.Codes)
		case 9<<8 | rt.List:
			off = rt.ReadStrings(b, off, &p.Tags)
		case 10<<8 | rt.Map:
			off = rt.ReadStringMap(b, off, &p.Attrs)
		case 11<<8 | rt.Struct:
			p.Parent = new(PointersOrder)
			off = p.Parent.readPointers(b, off, depth-1)
		case 12<<8 | rt.List:
			var n int
			n, off = rt.Count(b, off, rt.Struct, 12)
			p.Lines = make([]PointersOrder, n)
			for i := 0; i < n && off >= 0; i++ {
				off = p.Lines[i].readPointers(b, off, depth-1)
			}
		default:
			off = rt.Skip(b, off, t, depth)
		}
		if off < 0 {
			return off
		}
	}
}
