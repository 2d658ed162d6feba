package proto

import (
	"strconv"

	rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"
)

// StringStraight returns p in a form for people.
func (p *Order) StringStraight() string {
	if p == nil {
		return "nil"
	}
	return string(p.appendStringStraight([]byte("Order")))
}

func (p *Order) appendStringStraight(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendInt(b, p.ID, 10)
	b = append(b, `,"paid":`...)
	b = strconv.AppendBool(b, p.Paid)
	if p.Quantity.Set {
		b = append(b, `,"quantity":`...)
		b = strconv.AppendInt(b, int64(p.Quantity.V), 10)
	}
	if p.Price.Set {
		b = append(b, `,"price":`...)
		b = rt.AppendJSONDouble(b, p.Price.V)
	}
	if p.Name.Set {
		b = append(b, `,"name":`...)
		b = rt.AppendJSONString(b, p.Name.V)
	}
	if p.Payload != nil {
		b = append(b, `,"payload":`...)
		b = rt.AppendJSONBinary(b, p.Payload)
	}
	if p.Status.Set {
		b = append(b, `,"status":`...)
		b = strconv.AppendInt(b, int64(p.Status.V), 10)
	}
	b = append(b, `,"codes":`...)
	b = rt.AppendJSONI64s(b, p.Codes)
	b = append(b, `,"tags":`...)
	b = rt.AppendJSONStrings(b, p.Tags)
	b = append(b, `,"attrs":`...)
	b = rt.AppendJSONStringMap(b, p.Attrs)
	if p.Parent != nil {
		b = append(b, `,"parent":`...)
		b = p.Parent.appendStringStraight(b)
	}
	b = append(b, `,"lines":[`...)
	for i := range p.Lines {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.Lines[i].appendStringStraight(b)
	}
	return append(b, ']', '}')
}
