package proto

import (
	"encoding/binary"

	rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"
)

// OrderStraightView reads fields of an encoded Order without decoding it.
type OrderStraightView struct {
	b  []byte
	at [12]uint32
}

// Index finds the fields of the Order that b begins with, and validates it.
func (v *OrderStraightView) Index(b []byte) error {
	return rt.Err(v.index(b))
}

func (v *OrderStraightView) index(b []byte) int {
	*v = OrderStraightView{b: b}
	off := 0
	if len(b) >= 15 && b[0] == rt.I64 && b[1] == 0 && b[2] == 1 && b[11] == rt.Bool && b[12] == 0 && b[13] == 2 {
		v.at[0], v.at[1], off = 3, 14, 15
	}
	for {
		if len(b)-off < 3 || b[off] == rt.Stop {
			return rt.EndStruct(b, off, v.at[0] != 0)
		}
		t, id, slot := b[off], binary.BigEndian.Uint16(b[off+1:]), 0
		off += 3
		switch uint32(id)<<8 | uint32(t) {
		case 1<<8 | rt.I64:
			slot = 0
		case 2<<8 | rt.Bool:
			slot = 1
		case 3<<8 | rt.I32:
			slot = 2
		case 4<<8 | rt.Double:
			slot = 3
		case 5<<8 | rt.String:
			slot = 4
		case 6<<8 | rt.String:
			slot = 5
		case 7<<8 | rt.I32:
			slot = 6
		case 8<<8 | rt.List:
			slot = 7
		case 9<<8 | rt.List:
			slot = 8
		case 10<<8 | rt.Map:
			slot = 9
		case 11<<8 | rt.Struct:
			slot = 10
		case 12<<8 | rt.List:
			slot = 11
		default:
			if off = rt.Skip(b, off, t, rt.MaxDepth); off < 0 {
				return off
			}
			continue
		}
		v.at[slot] = uint32(off)
		if off = rt.Skip(b, off, t, rt.MaxDepth); off < 0 {
			return off
		}
	}
}

func (v *OrderStraightView) ID() int64          { return rt.ViewI64(v.b, v.at[0]) }
func (v *OrderStraightView) Paid() bool         { return rt.ViewBool(v.b, v.at[1]) }
func (v *OrderStraightView) Quantity() int32    { return rt.ViewI32(v.b, v.at[2]) }
func (v *OrderStraightView) HasQuantity() bool  { return v.at[2] != 0 }
func (v *OrderStraightView) Price() float64     { return rt.ViewDouble(v.b, v.at[3]) }
func (v *OrderStraightView) HasPrice() bool     { return v.at[3] != 0 }
func (v *OrderStraightView) Name() string       { return rt.ViewString(v.b, v.at[4]) }
func (v *OrderStraightView) HasName() bool      { return v.at[4] != 0 }
func (v *OrderStraightView) Payload() []byte    { return rt.ViewBinary(v.b, v.at[5]) }
func (v *OrderStraightView) HasPayload() bool   { return v.at[5] != 0 }
func (v *OrderStraightView) Status() Status     { return Status(rt.ViewI32(v.b, v.at[6])) }
func (v *OrderStraightView) HasStatus() bool    { return v.at[6] != 0 }
func (v *OrderStraightView) Codes() rt.ListView { return rt.ViewList(v.b, v.at[7]) }
func (v *OrderStraightView) Tags() rt.ListView  { return rt.ViewList(v.b, v.at[8]) }
func (v *OrderStraightView) Attrs() rt.MapView  { return rt.ViewMap(v.b, v.at[9]) }
func (v *OrderStraightView) Parent() (w OrderStraightView, err error) {
	err = w.Index(rt.ViewBytes(v.b, v.at[10]))
	return w, err
}
func (v *OrderStraightView) HasParent() bool    { return v.at[10] != 0 }
func (v *OrderStraightView) Lines() rt.ListView { return rt.ViewList(v.b, v.at[11]) }
