package proto

import (
	"encoding/binary"
	"math"

	rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"
)

// SizeStraight returns the size of the encoding.
func (p *Order) SizeStraight() int {
	n := 11 + 4 + 8 + 8*len(p.Codes) + 8 + 9 + 8 + 1
	if p.Quantity.Set {
		n += 7
	}
	if p.Price.Set {
		n += 11
	}
	if p.Name.Set {
		n += 7 + len(p.Name.V)
	}
	if p.Payload != nil {
		n += 7 + len(p.Payload)
	}
	if p.Status.Set {
		n += 7
	}
	for _, v := range p.Tags {
		n += 4 + len(v)
	}
	for k, v := range p.Attrs {
		n += 8 + len(k) + len(v)
	}
	if p.Parent != nil {
		n += 3 + p.Parent.SizeStraight()
	}
	for i := range p.Lines {
		n += p.Lines[i].SizeStraight()
	}
	return n
}

// WriteStraight writes the encoding to b, which must have SizeStraight bytes.
func (p *Order) WriteStraight(b []byte) int { return len(p.AppendStraight(b[:0])) }

// AppendStraight appends the encoding to b.
func (p *Order) AppendStraight(b []byte) []byte {
	b = append(b, rt.I64, 0, 1)
	b = binary.BigEndian.AppendUint64(b, uint64(p.ID))
	b = append(b, rt.Bool, 0, 2, rt.Bit(p.Paid))
	if p.Quantity.Set {
		b = append(b, rt.I32, 0, 3)
		b = binary.BigEndian.AppendUint32(b, uint32(p.Quantity.V))
	}
	if p.Price.Set {
		b = append(b, rt.Double, 0, 4)
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(p.Price.V))
	}
	if p.Name.Set {
		b = append(b, rt.String, 0, 5)
		b = binary.BigEndian.AppendUint32(b, uint32(len(p.Name.V)))
		b = append(b, p.Name.V...)
	}
	if p.Payload != nil {
		b = append(b, rt.String, 0, 6)
		b = binary.BigEndian.AppendUint32(b, uint32(len(p.Payload)))
		b = append(b, p.Payload...)
	}
	if p.Status.Set {
		b = append(b, rt.I32, 0, 7)
		b = binary.BigEndian.AppendUint32(b, uint32(p.Status.V))
	}
	b = append(b, rt.List, 0, 8, rt.I64)
	b = binary.BigEndian.AppendUint32(b, uint32(len(p.Codes)))
	for _, v := range p.Codes {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	b = append(b, rt.List, 0, 9, rt.String)
	b = binary.BigEndian.AppendUint32(b, uint32(len(p.Tags)))
	for _, v := range p.Tags {
		b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
		b = append(b, v...)
	}
	b = append(b, rt.Map, 0, 10, rt.String, rt.String)
	b = binary.BigEndian.AppendUint32(b, uint32(len(p.Attrs)))
	for k, v := range p.Attrs {
		b = binary.BigEndian.AppendUint32(b, uint32(len(k)))
		b = append(b, k...)
		b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
		b = append(b, v...)
	}
	if p.Parent != nil {
		b = append(b, rt.Struct, 0, 11)
		b = p.Parent.AppendStraight(b)
	}
	b = append(b, rt.List, 0, 12, rt.Struct)
	b = binary.BigEndian.AppendUint32(b, uint32(len(p.Lines)))
	for i := range p.Lines {
		b = p.Lines[i].AppendStraight(b)
	}
	return append(b, rt.Stop)
}

// ReadStraight reads the struct that b begins with and returns its size.
func (p *Order) ReadStraight(b []byte) (int, error) {
	off := p.readStraight(b, 0, rt.MaxDepth)
	return max(off, 0), rt.Err(off)
}

func (p *Order) readStraight(b []byte, off, depth int) int {
	if depth <= 0 {
		return rt.Deep
	}
	seenID := false
	for {
		if len(b)-off < 3 || b[off] == rt.Stop {
			if off >= len(b) || b[off] != rt.Stop {
				return rt.Short
			}
			if !seenID {
				return rt.Missing
			}
			return off + 1
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
		case 2<<8 | rt.Bool:
			if len(b)-off < 1 {
				return rt.Short
			}
			p.Paid = b[off] != 0
			off++
		case 3<<8 | rt.I32:
			if len(b)-off < 4 {
				return rt.Short
			}
			p.Quantity = rt.Some(int32(binary.BigEndian.Uint32(b[off:])))
			off += 4
		case 4<<8 | rt.Double:
			if len(b)-off < 8 {
				return rt.Short
			}
			p.Price = rt.Some(math.Float64frombits(binary.BigEndian.Uint64(b[off:])))
			off += 8
		case 5<<8 | rt.String:
			if len(b)-off < 4 {
				return rt.Short
			}
			n := int(int32(binary.BigEndian.Uint32(b[off:])))
			off += 4
			if uint(n) > uint(len(b)-off) {
				return rt.Length
			}
			p.Name = rt.Some(string(b[off : off+n]))
			off += n
		case 6<<8 | rt.String:
			if len(b)-off < 4 {
				return rt.Short
			}
			n := int(int32(binary.BigEndian.Uint32(b[off:])))
			off += 4
			if uint(n) > uint(len(b)-off) {
				return rt.Length
			}
			p.Payload = append(make([]byte, 0, n), b[off:off+n]...)
			off += n
		case 7<<8 | rt.I32:
			if len(b)-off < 4 {
				return rt.Short
			}
			p.Status = rt.Some(Status(binary.BigEndian.Uint32(b[off:])))
			off += 4
		case 8<<8 | rt.List:
			if len(b)-off < 5 {
				return rt.Short
			}
			t, n := b[off], int(int32(binary.BigEndian.Uint32(b[off+1:])))
			off += 5
			if t != rt.I64 && n != 0 {
				return rt.Elem
			}
			if uint(n) > uint(len(b)-off)/8 {
				return rt.Length
			}
			p.Codes = make([]int64, n)
			for i := range p.Codes {
				p.Codes[i] = int64(binary.BigEndian.Uint64(b[off:]))
				off += 8
			}
		case 9<<8 | rt.List:
			if len(b)-off < 5 {
				return rt.Short
			}
			t, n := b[off], int(int32(binary.BigEndian.Uint32(b[off+1:])))
			off += 5
			if t != rt.String && n != 0 {
				return rt.Elem
			}
			if uint(n) > uint(len(b)-off)/4 {
				return rt.Length
			}
			p.Tags = make([]string, n)
			for i := range p.Tags {
				if len(b)-off < 4 {
					return rt.Short
				}
				n := int(int32(binary.BigEndian.Uint32(b[off:])))
				off += 4
				if uint(n) > uint(len(b)-off) {
					return rt.Length
				}
				p.Tags[i] = string(b[off : off+n])
				off += n
			}
		case 10<<8 | rt.Map:
			if len(b)-off < 6 {
				return rt.Short
			}
			tk, tv, n := b[off], b[off+1], int(int32(binary.BigEndian.Uint32(b[off+2:])))
			off += 6
			if (tk != rt.String || tv != rt.String) && n != 0 {
				return rt.Elem
			}
			if uint(n) > uint(len(b)-off)/8 {
				return rt.Length
			}
			p.Attrs = make(map[string]string, n)
			for range n {
				if len(b)-off < 4 {
					return rt.Short
				}
				n := int(int32(binary.BigEndian.Uint32(b[off:])))
				off += 4
				if uint(n) > uint(len(b)-off) {
					return rt.Length
				}
				k := string(b[off : off+n])
				off += n
				if len(b)-off < 4 {
					return rt.Short
				}
				n = int(int32(binary.BigEndian.Uint32(b[off:])))
				off += 4
				if uint(n) > uint(len(b)-off) {
					return rt.Length
				}
				p.Attrs[k] = string(b[off : off+n])
				off += n
			}
		case 11<<8 | rt.Struct:
			p.Parent = new(Order)
			if off = p.Parent.readStraight(b, off, depth-1); off < 0 {
				return off
			}
		case 12<<8 | rt.List:
			if len(b)-off < 5 {
				return rt.Short
			}
			t, n := b[off], int(int32(binary.BigEndian.Uint32(b[off+1:])))
			off += 5
			if t != rt.Struct && n != 0 {
				return rt.Elem
			}
			if uint(n) > uint(len(b)-off)/12 {
				return rt.Length
			}
			p.Lines = make([]Order, n)
			for i := range p.Lines {
				if off = p.Lines[i].readStraight(b, off, depth-1); off < 0 {
					return off
				}
			}
		default:
			if off = rt.Skip(b, off, t, depth); off < 0 {
				return off
			}
		}
	}
}
