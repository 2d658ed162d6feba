package proto

import rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"

// OrderEdit replaces fields of an encoded Order without decoding it.
type OrderEdit struct {
	View  OrderTableView
	edits rt.Edits
}

// Append appends the order with all changes.
func (e *OrderEdit) Append(b []byte) []byte { return e.edits.Append(b, e.View.b, e.View.at[:]) }

func (e *OrderEdit) SetID(v int64)                { e.edits.I64(0, 1, v) }
func (e *OrderEdit) SetPaid(v bool)               { e.edits.Bool(1, 2, v) }
func (e *OrderEdit) SetQuantity(v int32)          { e.edits.I32(2, 3, v) }
func (e *OrderEdit) SetPrice(v float64)           { e.edits.Double(3, 4, v) }
func (e *OrderEdit) SetName(v string)             { e.edits.String(4, 5, v) }
func (e *OrderEdit) SetPayload(v []byte)          { e.edits.Binary(5, 6, v) }
func (e *OrderEdit) SetStatus(v Status)           { e.edits.I32(6, 7, int32(v)) }
func (e *OrderEdit) SetCodes(v []int64)           { e.edits.I64s(7, 8, v) }
func (e *OrderEdit) SetTags(v []string)           { e.edits.Strings(8, 9, v) }
func (e *OrderEdit) SetAttrs(v map[string]string) { e.edits.StringMap(9, 10, v) }
func (e *OrderEdit) SetParent(v *Order) {
	e.edits.Set(10, func(b []byte) []byte { return v.AppendMixed(append(b, rt.Struct, 0, 11)) })
}
func (e *OrderEdit) SetLines(v []Order) {
	e.edits.Set(11, func(b []byte) []byte {
		b = rt.ListField(b, 12, rt.Struct, len(v))
		for i := range v {
			b = v[i].AppendMixed(b)
		}
		return b
	})
}
