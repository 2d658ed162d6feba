package proto

import rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"

// SizeCalls returns the size of the encoding.
func (p *Order) SizeCalls() int {
	n := 49 + 8*len(p.Codes) + rt.SizeStrings(p.Tags) + rt.SizeStringMap(p.Attrs)
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
	if p.Parent != nil {
		n += 3 + p.Parent.SizeCalls()
	}
	for i := range p.Lines {
		n += p.Lines[i].SizeCalls()
	}
	return n
}

// WriteCalls writes the encoding to b, which must have SizeCalls bytes.
func (p *Order) WriteCalls(b []byte) int { return len(p.AppendCalls(b[:0])) }

// AppendCalls appends the encoding to b.
func (p *Order) AppendCalls(b []byte) []byte {
	b = rt.I64Field(b, 1, p.ID)
	b = rt.BoolField(b, 2, p.Paid)
	if p.Quantity.Set {
		b = rt.I32Field(b, 3, p.Quantity.V)
	}
	if p.Price.Set {
		b = rt.DoubleField(b, 4, p.Price.V)
	}
	if p.Name.Set {
		b = rt.StringField(b, 5, p.Name.V)
	}
	if p.Payload != nil {
		b = rt.BinaryField(b, 6, p.Payload)
	}
	if p.Status.Set {
		b = rt.I32Field(b, 7, int32(p.Status.V))
	}
	b = rt.I64sField(b, 8, p.Codes)
	b = rt.StringsField(b, 9, p.Tags)
	b = rt.StringMapField(b, 10, p.Attrs)
	if p.Parent != nil {
		b = append(b, rt.Struct, 0, 11)
		b = p.Parent.AppendCalls(b)
	}
	b = rt.ListField(b, 12, rt.Struct, len(p.Lines))
	for i := range p.Lines {
		b = p.Lines[i].AppendCalls(b)
	}
	return append(b, rt.Stop)
}

// ReadCalls reads the struct that b begins with and returns its size.
func (p *Order) ReadCalls(b []byte) (int, error) {
	d := rt.NewDecoder(b)
	p.readCalls(d)
	return d.Result()
}

func (p *Order) readCalls(d *rt.Decoder) {
	var seen uint64
	d.Enter()
	for d.Next() {
		switch d.Field {
		case 1<<8 | rt.I64:
			p.ID = d.I64()
			seen |= 1
		case 2<<8 | rt.Bool:
			p.Paid = d.Bool()
		case 3<<8 | rt.I32:
			p.Quantity = rt.Some(d.I32())
		case 4<<8 | rt.Double:
			p.Price = rt.Some(d.Double())
		case 5<<8 | rt.String:
			p.Name.Set = true
			d.String(&p.Name.V)
		case 6<<8 | rt.String:
			d.Binary(&p.Payload)
		case 7<<8 | rt.I32:
			p.Status = rt.Some(Status(d.I32()))
		case 8<<8 | rt.List:
			d.I64s(&p.Codes)
		case 9<<8 | rt.List:
			d.Strings(&p.Tags)
		case 10<<8 | rt.Map:
			d.StringMap(&p.Attrs)
		case 11<<8 | rt.Struct:
			p.Parent = new(Order)
			p.Parent.readCalls(d)
		case 12<<8 | rt.List:
			p.Lines = make([]Order, d.Count(rt.Struct, 12))
			for i := 0; i < len(p.Lines) && d.OK(); i++ {
				p.Lines[i].readCalls(d)
			}
		default:
			d.Skip()
		}
	}
	d.Leave(seen, 1)
}
