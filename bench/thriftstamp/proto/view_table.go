package proto

import rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"

// OrderTableView reads fields of an encoded Order without decoding it.
type OrderTableView struct {
	b  []byte
	at [12]uint32
}

var orderKeys = [...]uint32{
	1<<8 | rt.I64, 2<<8 | rt.Bool, 3<<8 | rt.I32, 4<<8 | rt.Double, 5<<8 | rt.String, 6<<8 | rt.String,
	7<<8 | rt.I32, 8<<8 | rt.List, 9<<8 | rt.List, 10<<8 | rt.Map, 11<<8 | rt.Struct, 12<<8 | rt.List,
}

// Index finds the fields of the Order that b begins with, and validates it.
func (v *OrderTableView) Index(b []byte) error {
	*v = OrderTableView{b: b}
	return rt.Err(rt.Index(b, v.at[:], orderKeys[:], 1))
}

func (v *OrderTableView) ID() int64          { return rt.ViewI64(v.b, v.at[0]) }
func (v *OrderTableView) Paid() bool         { return rt.ViewBool(v.b, v.at[1]) }
func (v *OrderTableView) Quantity() int32    { return rt.ViewI32(v.b, v.at[2]) }
func (v *OrderTableView) HasQuantity() bool  { return v.at[2] != 0 }
func (v *OrderTableView) Price() float64     { return rt.ViewDouble(v.b, v.at[3]) }
func (v *OrderTableView) HasPrice() bool     { return v.at[3] != 0 }
func (v *OrderTableView) Name() string       { return rt.ViewString(v.b, v.at[4]) }
func (v *OrderTableView) HasName() bool      { return v.at[4] != 0 }
func (v *OrderTableView) Payload() []byte    { return rt.ViewBinary(v.b, v.at[5]) }
func (v *OrderTableView) HasPayload() bool   { return v.at[5] != 0 }
func (v *OrderTableView) Status() Status     { return Status(rt.ViewI32(v.b, v.at[6])) }
func (v *OrderTableView) HasStatus() bool    { return v.at[6] != 0 }
func (v *OrderTableView) Codes() rt.ListView { return rt.ViewList(v.b, v.at[7]) }
func (v *OrderTableView) Tags() rt.ListView  { return rt.ViewList(v.b, v.at[8]) }
func (v *OrderTableView) Attrs() rt.MapView  { return rt.ViewMap(v.b, v.at[9]) }
func (v *OrderTableView) Parent() (w OrderTableView, err error) {
	err = w.Index(rt.ViewBytes(v.b, v.at[10]))
	return w, err
}
func (v *OrderTableView) HasParent() bool    { return v.at[10] != 0 }
func (v *OrderTableView) Lines() rt.ListView { return rt.ViewList(v.b, v.at[11]) }
