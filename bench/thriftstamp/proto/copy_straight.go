package proto

import (
	"maps"
	"slices"
)

// CopyStraight returns a copy that shares no memory with p except strings.
func (p *Order) CopyStraight() *Order {
	if p == nil {
		return nil
	}
	q := new(Order)
	p.copyStraight(q)
	return q
}

func (p *Order) copyStraight(q *Order) {
	*q = *p
	q.Payload = slices.Clone(p.Payload)
	q.Codes = slices.Clone(p.Codes)
	q.Tags = slices.Clone(p.Tags)
	q.Attrs = maps.Clone(p.Attrs)
	q.Parent = p.Parent.CopyStraight()
	if p.Lines != nil {
		q.Lines = make([]Order, len(p.Lines))
		for i := range p.Lines {
			p.Lines[i].copyStraight(&q.Lines[i])
		}
	}
}
