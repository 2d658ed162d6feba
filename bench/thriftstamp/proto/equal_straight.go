package proto

import (
	"bytes"
	"maps"
	"slices"
)

// EqualStraight reports whether p and q are equal.
func (p *Order) EqualStraight(q *Order) bool {
	if p == nil || q == nil {
		return p == q
	}
	if p.ID != q.ID || p.Paid != q.Paid || p.Quantity != q.Quantity || p.Price != q.Price || p.Name != q.Name || p.Status != q.Status {
		return false
	}
	if (p.Payload == nil) != (q.Payload == nil) || !bytes.Equal(p.Payload, q.Payload) {
		return false
	}
	if !slices.Equal(p.Codes, q.Codes) || !slices.Equal(p.Tags, q.Tags) || !maps.Equal(p.Attrs, q.Attrs) {
		return false
	}
	if !p.Parent.EqualStraight(q.Parent) || len(p.Lines) != len(q.Lines) {
		return false
	}
	for i := range p.Lines {
		if !p.Lines[i].EqualStraight(&q.Lines[i]) {
			return false
		}
	}
	return true
}
