package thrift_test

import (
	"encoding/binary"
	"math"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
)

// The types in this file look like generated code. Their declaration:
//
//	enum Status { NEW, PAID }
//
//	struct Order {
//	  1: required i64 id
//	  2: bool paid
//	  3: i8 small
//	  4: i16 medium
//	  5: optional i32 quantity
//	  6: optional double price
//	  7: uuid key
//	  8: optional string name
//	  9: optional binary payload
//	  10: optional Status status
//	  11: list<i64> codes
//	  12: set<string> tags
//	  13: map<string, string> attrs
//	  14: optional Order parent
//	  15: list<Order> lines
//	  40: map<i32, list<Status>> states
//	}

type Status int32

type Order struct {
	ID       int64
	Paid     bool
	Small    int8
	Medium   int16
	Quantity thrift.Opt[int32]
	Price    thrift.Opt[float64]
	Key      thrift.UUID
	Name     thrift.Opt[string]
	Payload  []byte
	Status   thrift.Opt[Status]
	Codes    []int64
	Tags     []string
	Attrs    map[string]string
	Parent   *Order
	Lines    []Order
	States   map[int32][]Status

	unknown thrift.Unknown
}

var (
	_ thrift.CompactStruct = (*Order)(nil)
	_ thrift.BodyStruct    = (*Order)(nil)
)

// Reset clears p. Slices and maps keep their memory.
func (p *Order) Reset() {
	clear(p.Attrs)
	clear(p.States)
	*p = Order{Codes: p.Codes[:0], Tags: p.Tags[:0], Attrs: p.Attrs, Lines: p.Lines[:0], States: p.States}
}

func (p *Order) SizeThrift() int {
	n := 86 + 8*len(p.Codes) + 7*thrift.One(p.Quantity.Set) + 11*thrift.One(p.Price.Set) + 7*thrift.One(p.Status.Set) + thrift.SizeStrings(p.Tags) + thrift.SizeStringMap(p.Attrs) + len(p.unknown)
	if p.Name.Set {
		n += 7 + len(p.Name.V)
	}
	if p.Payload != nil {
		n += 7 + len(p.Payload)
	}
	if p.Parent != nil {
		n += 3 + p.Parent.SizeThrift()
	}
	for i := range p.Lines {
		n += p.Lines[i].SizeThrift()
	}
	for _, v := range p.States {
		n += 9 + 4*len(v)
	}
	return n
}

func (p *Order) AppendThrift(b []byte) []byte {
	b = thrift.Extend(b, 24)
	q := (*[24]byte)(b[len(b)-24:])[:]
	thrift.PutI64(q, 0, 1, p.ID)
	thrift.PutBool(q, 11, 2, p.Paid)
	thrift.PutI8(q, 15, 3, p.Small)
	thrift.PutI16(q, 19, 4, p.Medium)
	if p.Quantity.Set {
		b = thrift.AppendI32(append(b, thrift.TypeI32, 0, 5), p.Quantity.V)
	}
	if p.Price.Set {
		b = thrift.AppendDouble(append(b, thrift.TypeDouble, 0, 6), p.Price.V)
	}
	b = thrift.Extend(b, 19)
	q = (*[19]byte)(b[len(b)-19:])[:]
	thrift.PutUUID(q, 0, 7, p.Key)
	if p.Name.Set {
		b = append(b, thrift.TypeString, 0, 8)
		b = thrift.AppendString(b, p.Name.V)
	}
	if p.Payload != nil {
		b = append(b, thrift.TypeString, 0, 9)
		b = thrift.AppendString(b, p.Payload)
	}
	if p.Status.Set {
		b = thrift.AppendI32(append(b, thrift.TypeI32, 0, 10), int32(p.Status.V))
	}
	b = thrift.Extend(b, 8)
	q = (*[8]byte)(b[len(b)-8:])[:]
	thrift.PutList(q, 0, thrift.TypeList, 11, thrift.TypeI64, len(p.Codes))
	b = thrift.Extend(b, 8*len(p.Codes))
	if n := len(b) - 8*len(p.Codes); !thrift.PutFewI64s(b, n, p.Codes) {
		thrift.PutI64s(b, n, p.Codes)
	}
	b = thrift.Extend(b, 8)
	q = (*[8]byte)(b[len(b)-8:])[:]
	thrift.PutList(q, 0, thrift.TypeSet, 12, thrift.TypeString, len(p.Tags))
	b = thrift.AppendStrings(b, p.Tags)
	b = thrift.Extend(b, 9)
	q = (*[9]byte)(b[len(b)-9:])[:]
	thrift.PutMap(q, 0, 13, thrift.TypeString, thrift.TypeString, len(p.Attrs))
	b = thrift.AppendSortedStringMap(b, p.Attrs)
	if p.Parent != nil {
		b = append(b, thrift.TypeStruct, 0, 14)
		b = p.Parent.AppendThrift(b)
	}
	b = thrift.Extend(b, 8)
	q = (*[8]byte)(b[len(b)-8:])[:]
	thrift.PutList(q, 0, thrift.TypeList, 15, thrift.TypeStruct, len(p.Lines))
	for i := range p.Lines {
		b = p.Lines[i].AppendThrift(b)
	}
	b = append(b, thrift.TypeMap, 0, 40)
	b = appendStates(b, p.States)
	b = append(b, p.unknown...)
	return append(b, thrift.TypeStop)
}

func appendStates(b []byte, v map[int32][]Status) []byte {
	b = thrift.AppendMap(b, thrift.TypeI32, thrift.TypeList, len(v))
	for _, k := range thrift.SortedKeys(v) {
		e := v[k]
		b = thrift.AppendI32(b, k)
		b = thrift.AppendList(b, thrift.TypeI32, len(e))
		b = thrift.Extend(b, 4*len(e))
		thrift.PutI32s(b, len(b)-4*len(e), e)
	}
	return b
}

// BodyThrift implements thrift.BodyStruct.
func (p *Order) BodyThrift(body *slipstream.Body) {
	if p.SizeThrift() < thrift.LinkFrom {
		body.B = p.AppendThrift(body.B)
		return
	}
	body.B = thrift.Extend(body.B, 24)
	q := (*[24]byte)(body.B[len(body.B)-24:])[:]
	thrift.PutI64(q, 0, 1, p.ID)
	thrift.PutBool(q, 11, 2, p.Paid)
	thrift.PutI8(q, 15, 3, p.Small)
	thrift.PutI16(q, 19, 4, p.Medium)
	if p.Quantity.Set {
		body.B = thrift.AppendI32(append(body.B, thrift.TypeI32, 0, 5), p.Quantity.V)
	}
	if p.Price.Set {
		body.B = thrift.AppendDouble(append(body.B, thrift.TypeDouble, 0, 6), p.Price.V)
	}
	body.B = thrift.Extend(body.B, 19)
	q = (*[19]byte)(body.B[len(body.B)-19:])[:]
	thrift.PutUUID(q, 0, 7, p.Key)
	if p.Name.Set {
		body.B = append(body.B, thrift.TypeString, 0, 8)
		thrift.LinkText(body, p.Name.V)
	}
	if p.Payload != nil {
		body.B = append(body.B, thrift.TypeString, 0, 9)
		thrift.LinkText(body, p.Payload)
	}
	if p.Status.Set {
		body.B = thrift.AppendI32(append(body.B, thrift.TypeI32, 0, 10), int32(p.Status.V))
	}
	body.B = thrift.Extend(body.B, 8)
	q = (*[8]byte)(body.B[len(body.B)-8:])[:]
	thrift.PutList(q, 0, thrift.TypeList, 11, thrift.TypeI64, len(p.Codes))
	body.B = thrift.Extend(body.B, 8*len(p.Codes))
	if n := len(body.B) - 8*len(p.Codes); !thrift.PutFewI64s(body.B, n, p.Codes) {
		thrift.PutI64s(body.B, n, p.Codes)
	}
	body.B = thrift.Extend(body.B, 8)
	q = (*[8]byte)(body.B[len(body.B)-8:])[:]
	thrift.PutList(q, 0, thrift.TypeSet, 12, thrift.TypeString, len(p.Tags))
	thrift.LinkTexts(body, p.Tags)
	body.B = thrift.Extend(body.B, 9)
	q = (*[9]byte)(body.B[len(body.B)-9:])[:]
	thrift.PutMap(q, 0, 13, thrift.TypeString, thrift.TypeString, len(p.Attrs))
	thrift.LinkSortedStringMap(body, p.Attrs)
	if p.Parent != nil {
		body.B = append(body.B, thrift.TypeStruct, 0, 14)
		p.Parent.BodyThrift(body)
	}
	body.B = thrift.Extend(body.B, 8)
	q = (*[8]byte)(body.B[len(body.B)-8:])[:]
	thrift.PutList(q, 0, thrift.TypeList, 15, thrift.TypeStruct, len(p.Lines))
	for i := range p.Lines {
		p.Lines[i].BodyThrift(body)
	}
	body.B = append(body.B, thrift.TypeMap, 0, 40)
	body.B = appendStates(body.B, p.States)
	body.B = append(body.B, p.unknown...)
	body.B = append(body.B, thrift.TypeStop)
}

func (p *Order) ReadThrift(r *thrift.Reader, b []byte, off, depth int) int {
	if r.Refuses(depth) {
		return r.Refusal(off, depth)
	}
	seenID := false
	p.unknown = nil
	for {
		if len(b)-off < 3 || b[off] == thrift.TypeStop {
			return r.End(b, off, seenID)
		}
		t, id := b[off], binary.BigEndian.Uint16(b[off+1:])
		off += 3
		switch uint32(id)<<8 | uint32(t) {
		case 1<<8 | thrift.TypeI64:
			if len(b)-off < 8 {
				return thrift.CodeShort
			}
			p.ID = int64(binary.BigEndian.Uint64(b[off:]))
			off += 8
			seenID = true
			continue
		case 2<<8 | thrift.TypeBool:
			if len(b)-off < 1 {
				return thrift.CodeShort
			}
			p.Paid = b[off] != 0
			off++
			continue
		case 3<<8 | thrift.TypeI8:
			off = thrift.ReadI8(b, off, &p.Small)
		case 4<<8 | thrift.TypeI16:
			off = thrift.ReadI16(b, off, &p.Medium)
		case 5<<8 | thrift.TypeI32:
			if len(b)-off < 4 {
				return thrift.CodeShort
			}
			p.Quantity = thrift.Some(int32(binary.BigEndian.Uint32(b[off:])))
			off += 4
			continue
		case 6<<8 | thrift.TypeDouble:
			if len(b)-off < 8 {
				return thrift.CodeShort
			}
			p.Price = thrift.Some(math.Float64frombits(binary.BigEndian.Uint64(b[off:])))
			off += 8
			continue
		case 7<<8 | thrift.TypeUUID:
			off = thrift.ReadUUID(b, off, &p.Key)
		case 8<<8 | thrift.TypeString:
			off = r.OptString(b, off, &p.Name)
		case 9<<8 | thrift.TypeString:
			off = r.Binary(b, off, &p.Payload)
		case 10<<8 | thrift.TypeI32:
			p.Status.Set = true
			off = thrift.ReadI32(b, off, &p.Status.V)
		case 11<<8 | thrift.TypeList:
			off = r.I64s(b, off, &p.Codes)
		case 12<<8 | thrift.TypeSet:
			off = r.Strings(b, off, &p.Tags)
		case 13<<8 | thrift.TypeMap:
			off = r.StringMap(b, off, &p.Attrs)
		case 14<<8 | thrift.TypeStruct:
			p.Parent = thrift.Make[Order](r, nil)
			off = p.Parent.ReadThrift(r, b, off, depth-1)
		case 15<<8 | thrift.TypeList:
			var old int
			old, off = thrift.List(r, b, off, thrift.TypeStruct, 12, &p.Lines)
			outer := r.Left
			for i := 0; off >= 0 && i < len(p.Lines); i++ {
				if i < old {
					p.Lines[i].Attrs, p.Lines[i].States = nil, nil
					p.Lines[i].Reset()
				}
				r.Left = len(p.Lines) - i
				off = p.Lines[i].ReadThrift(r, b, off, depth-2)
			}
			r.Left = outer
		case 40<<8 | thrift.TypeMap:
			off = p.readStates(r, b, off)
		default:
			off = r.Keep(b, off, t, depth-1, &p.unknown)
		}
		if off < 0 {
			return off
		}
	}
}

func (p *Order) readStates(r *thrift.Reader, b []byte, off int) int {
	n, next := r.CountMap(b, off, thrift.TypeI32, thrift.TypeList, 9)
	if next < 0 {
		return next
	}
	p.States, off = thrift.MakeMap(r, p.States, n, off, next)
	for ; n > 0 && off >= 0; n-- {
		var k int32
		var v []Status
		if off = thrift.ReadI32(b, off, &k); off < 0 {
			break
		}
		if off = thrift.ReadI32s(r, b, off, &v); off >= 0 {
			p.States[k] = v
		}
	}
	return off
}

func (p *Order) AppendCompact(b []byte) []byte {
	b = thrift.AppendCompactHead(b, thrift.CompactTypeI64, 1, 0)
	b = thrift.AppendCompactInt(b, p.ID)
	b = thrift.AppendCompactBoolHead(b, p.Paid, 2, 1)
	b = thrift.AppendCompactHead(b, thrift.CompactTypeI8, 3, 2)
	b = thrift.AppendI8(b, p.Small)
	b = thrift.AppendCompactHead(b, thrift.CompactTypeI16, 4, 3)
	b = thrift.AppendCompactInt(b, p.Medium)
	last := uint16(4)
	if p.Quantity.Set {
		b = thrift.AppendCompactHead(b, thrift.CompactTypeI32, 5, last)
		b = thrift.AppendCompactInt(b, p.Quantity.V)
		last = 5
	}
	if p.Price.Set {
		b = thrift.AppendCompactHead(b, thrift.CompactTypeDouble, 6, last)
		b = thrift.AppendCompactDouble(b, p.Price.V)
		last = 6
	}
	b = thrift.AppendCompactHead(b, thrift.CompactTypeUUID, 7, last)
	b = thrift.AppendUUID(b, p.Key)
	last = 7
	if p.Name.Set {
		b = thrift.AppendCompactHead(b, thrift.CompactTypeString, 8, last)
		b = thrift.AppendCompactString(b, p.Name.V)
		last = 8
	}
	if p.Payload != nil {
		b = thrift.AppendCompactHead(b, thrift.CompactTypeString, 9, last)
		b = thrift.AppendCompactString(b, p.Payload)
		last = 9
	}
	if p.Status.Set {
		b = thrift.AppendCompactHead(b, thrift.CompactTypeI32, 10, last)
		b = thrift.AppendCompactInt(b, p.Status.V)
		last = 10
	}
	b = thrift.AppendCompactHead(b, thrift.CompactTypeList, 11, last)
	b = thrift.AppendCompactInts(b, thrift.CompactTypeI64, p.Codes)
	b = thrift.AppendCompactHead(b, thrift.CompactTypeSet, 12, 11)
	b = thrift.AppendCompactStrings(b, p.Tags)
	b = thrift.AppendCompactHead(b, thrift.CompactTypeMap, 13, 12)
	b = thrift.AppendCompactSortedStringMap(b, p.Attrs)
	last = 13
	if p.Parent != nil {
		b = thrift.AppendCompactHead(b, thrift.CompactTypeStruct, 14, last)
		b = p.Parent.AppendCompact(b)
		last = 14
	}
	b = thrift.AppendCompactHead(b, thrift.CompactTypeList, 15, last)
	b = thrift.AppendCompactList(b, thrift.CompactTypeStruct, len(p.Lines))
	for i := range p.Lines {
		b = p.Lines[i].AppendCompact(b)
	}
	b = thrift.AppendCompactHead(b, thrift.CompactTypeMap, 40, 15)
	b = thrift.AppendCompactMap(b, thrift.CompactTypeI32, thrift.CompactTypeList, len(p.States))
	for _, k := range thrift.SortedKeys(p.States) {
		b = thrift.AppendCompactInt(b, k)
		b = thrift.AppendCompactInts(b, thrift.CompactTypeI32, p.States[k])
	}
	b = thrift.AppendCompactUnknown(b, p.unknown, 40)
	return append(b, thrift.TypeStop)
}

func (p *Order) ReadCompact(r *thrift.Reader, b []byte, off, depth int) int {
	if r.Refuses(depth) {
		return r.Refusal(off, depth)
	}
	seenID := false
	p.unknown = nil
	for last := uint16(0); ; {
		key, next := thrift.CompactField(b, off, last)
		if next < 0 {
			return next
		}
		if key == 0 {
			return r.CompactEnd(next, seenID)
		}
		off, last = next, uint16(key>>8)
		switch key {
		case 1<<8 | thrift.CompactTypeI64:
			off = thrift.CompactInt(r, b, off, &p.ID)
			seenID = true
		case 2<<8 | thrift.CompactTypeTrue:
			p.Paid = true
		case 2<<8 | thrift.CompactTypeFalse:
			p.Paid = false
		case 3<<8 | thrift.CompactTypeI8:
			off = thrift.ReadI8(b, off, &p.Small)
		case 4<<8 | thrift.CompactTypeI16:
			off = thrift.CompactInt(r, b, off, &p.Medium)
		case 5<<8 | thrift.CompactTypeI32:
			p.Quantity.Set = true
			off = thrift.CompactInt(r, b, off, &p.Quantity.V)
		case 6<<8 | thrift.CompactTypeDouble:
			p.Price.Set = true
			off = thrift.ReadCompactDouble(b, off, &p.Price.V)
		case 7<<8 | thrift.CompactTypeUUID:
			off = thrift.ReadUUID(b, off, &p.Key)
		case 8<<8 | thrift.CompactTypeString:
			off = r.CompactOptString(b, off, &p.Name)
		case 9<<8 | thrift.CompactTypeString:
			off = r.CompactBinary(b, off, &p.Payload)
		case 10<<8 | thrift.CompactTypeI32:
			p.Status.Set = true
			off = thrift.CompactInt(r, b, off, &p.Status.V)
		case 11<<8 | thrift.CompactTypeList:
			off = thrift.CompactInts(r, b, off, thrift.CompactTypeI64, &p.Codes)
		case 12<<8 | thrift.CompactTypeSet:
			off = r.CompactStrings(b, off, &p.Tags)
		case 13<<8 | thrift.CompactTypeMap:
			off = r.CompactStringMap(b, off, &p.Attrs)
		case 14<<8 | thrift.CompactTypeStruct:
			p.Parent = thrift.Make[Order](r, nil)
			off = p.Parent.ReadCompact(r, b, off, depth-1)
		case 15<<8 | thrift.CompactTypeList:
			var old int
			old, off = thrift.CompactElems(r, b, off, thrift.CompactTypeStruct, &p.Lines)
			outer := r.Left
			for i := 0; off >= 0 && i < len(p.Lines); i++ {
				if i < old {
					p.Lines[i].Attrs, p.Lines[i].States = nil, nil
					p.Lines[i].Reset()
				}
				r.Left = len(p.Lines) - i
				off = p.Lines[i].ReadCompact(r, b, off, depth-2)
			}
			r.Left = outer
		case 40<<8 | thrift.CompactTypeMap:
			off = p.readCompactStates(r, b, off)
		default:
			off = r.KeepCompact(b, off, key, depth-1, &p.unknown)
		}
		if off < 0 {
			return off
		}
	}
}

func (p *Order) readCompactStates(r *thrift.Reader, b []byte, off int) int {
	n, next := r.CompactCountMap(b, off, thrift.CompactTypeI32, thrift.CompactTypeList)
	if next < 0 {
		return next
	}
	p.States, off = thrift.MakeMap(r, p.States, n, off, next)
	for ; n > 0 && off >= 0; n-- {
		var k int32
		var v []Status
		if off = thrift.CompactInt(r, b, off, &k); off < 0 {
			break
		}
		if off = thrift.CompactInts(r, b, off, thrift.CompactTypeI32, &v); off >= 0 {
			p.States[k] = v
		}
	}
	return off
}
