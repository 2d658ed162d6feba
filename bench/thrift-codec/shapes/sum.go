package shapes

import (
	"hash/maphash"
	"math"
)

// A Sum summarizes the content of a message, whatever the type of the message: code that reads all
// fields in the order of their IDs gets the same Sum from equal messages. The zero value is ready
// to use.
type Sum struct {
	// Exact makes the Sum depend on every byte. Without it, only the lengths of strings count, so
	// that adding costs little compared with reading.
	Exact bool

	n uint64
}

var seed = maphash.MakeSeed()

// Number adds a number.
func (s *Sum) Number(v int64) { s.n = s.n*31 + uint64(v) }

// Double adds a number.
func (s *Sum) Double(v float64) { s.n = s.n*31 + math.Float64bits(v) }

// Count adds the number of elements of a list, a map or a set.
func (s *Sum) Count(n int) { s.n = s.n*31 + uint64(n) }

// Text adds a string.
func (s *Sum) Text(v string) {
	s.n = s.n*31 + uint64(len(v))
	if s.Exact {
		s.n += maphash.String(seed, v)
	}
}

// Bytes adds a binary.
func (s *Sum) Bytes(v []byte) {
	s.n = s.n*31 + uint64(len(v))
	if s.Exact {
		s.n += maphash.Bytes(seed, v)
	}
}

// Entry adds an entry of a map. The order of entries does not matter.
func (s *Sum) Entry(key, value string) {
	s.n += uint64(len(key)) + uint64(len(value))<<32
	if s.Exact {
		s.n += 3 * maphash.String(seed, key) * (maphash.String(seed, value) | 1)
	}
}

// Value returns the Sum.
func (s *Sum) Value() uint64 { return s.n }

// Sum returns the Sum of the value.
func (v Value) Sum(exact bool) uint64 {
	s := Sum{Exact: exact}
	if v.Series != nil {
		v.Series.add(&s)
	} else {
		v.Message.add(&s)
	}
	return s.Value()
}

func (m *Message) add(s *Sum) {
	s.Number(m.Key)
	s.Text(m.Name)
	s.Bytes(m.Payload)
	o := m.Origin
	s.Text(o.Host)
	s.Number(int64(o.Port))
	s.Double(o.Place.Latitude)
	s.Double(o.Place.Longitude)
	s.Text(o.Place.City)
	s.Count(len(m.Items))
	for i := range m.Items {
		item := &m.Items[i]
		s.Number(item.Key)
		s.Text(item.Name)
		s.Double(item.Price)
		s.Count(len(item.Tags))
		for _, tag := range item.Tags {
			s.Text(tag)
		}
	}
	s.Count(len(m.Attributes))
	for _, entry := range m.Attributes {
		s.Entry(entry.Key, entry.Value)
	}
	s.Count(len(m.Tags))
	for _, tag := range m.Tags {
		s.Text(tag)
	}
}

func (v *Series) add(s *Sum) {
	s.Number(v.Number)
	s.Number(v.Head.Number)
	s.Count(len(v.Numbers))
	for _, n := range v.Numbers {
		s.Number(n)
	}
}
