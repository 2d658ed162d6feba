package proto

import (
	"fmt"

	rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"
)

// Sample returns an order whose encoding has about size bytes. Small orders have no lines; larger
// ones have as many as necessary.
func Sample(size int) *Order {
	p := line(1)
	p.Payload = []byte("0123456789abcdef")
	p.Tags = []string{"new", "gift"}
	p.Attrs = map[string]string{"colour": "green"}
	if size > 300 {
		p.Parent = line(2)
	}
	for i := 3; p.SizeStraight() < size-60; i++ {
		p.Lines = append(p.Lines, *line(i))
	}
	return p
}

// line returns an order without lines.
func line(i int) *Order {
	p := &Order{
		ID: int64(i) << 33, Paid: i%2 == 0, Quantity: rt.Some(int32(i)), Status: rt.Some(StatusSent),
		Name: rt.Some(fmt.Sprintf("article %d", i)), Price: rt.Some(float64(i) / 4),
		Codes: make([]int64, i%8),
	}
	for k := range p.Codes {
		p.Codes[k] = int64(k) - 5
	}
	if i%3 == 0 {
		p.Tags = []string{"bulky", "fragile"}
	}
	return p
}
