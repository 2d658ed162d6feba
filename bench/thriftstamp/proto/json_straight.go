package proto

import (
	"strconv"

	rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"
)

// AppendJSONStraight appends p as an object of JSON.
func (p *Order) AppendJSONStraight(b []byte) []byte {
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
		b = p.Parent.AppendJSONStraight(b)
	}
	b = append(b, `,"lines":[`...)
	for i := range p.Lines {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.Lines[i].AppendJSONStraight(b)
	}
	return append(b, ']', '}')
}

// ReadJSONStraight reads an object of JSON.
func (p *Order) ReadJSONStraight(b []byte) error {
	d := rt.NewJSON(b)
	p.readJSONStraight(d)
	return d.Err()
}

func (p *Order) readJSONStraight(d *rt.JSON) {
	var seen uint64
	d.Open('{')
	for first := true; d.More(&first, '}'); {
		switch d.Key() {
		case "id":
			p.ID = d.Int(64)
			seen |= 1
		case "paid":
			p.Paid = d.Bool()
		case "quantity":
			if !d.Null() {
				p.Quantity = rt.Some(int32(d.Int(32)))
			}
		case "price":
			if !d.Null() {
				p.Price = rt.Some(d.Double())
			}
		case "name":
			if !d.Null() {
				p.Name = rt.Some(d.Text())
			}
		case "payload":
			if !d.Null() {
				p.Payload = d.Binary()
			}
		case "status":
			if !d.Null() {
				p.Status = rt.Some(Status(d.Int(32)))
			}
		case "codes":
			p.Codes = d.I64s()
		case "tags":
			p.Tags = d.Strings()
		case "attrs":
			p.Attrs = d.StringMap()
		case "parent":
			if !d.Null() {
				p.Parent = new(Order)
				p.Parent.readJSONStraight(d)
			}
		case "lines":
			p.Lines = []Order{}
			d.Open('[')
			for first := true; d.More(&first, ']'); {
				p.Lines = append(p.Lines, Order{})
				p.Lines[len(p.Lines)-1].readJSONStraight(d)
			}
		default:
			d.Skip()
		}
	}
	d.Require(seen, 1)
}
