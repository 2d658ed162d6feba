//go:build ignore

// Package pointers fills and reads the types of rivals that represent structs in lists as pointers.
// It is copied for each of them.
package pointers

import (
	p "github.com/slipstream-go/slipstream/bench/thrift-codec/gen/POINTERS"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/shapes"
)

// Message returns the message of v.
func Message(v shapes.Value) *p.Message {
	from := v.Message
	m := &p.Message{Key: from.Key, Name: from.Name, Payload: from.Payload, Tags: from.Tags}
	o := from.Origin
	m.Origin = &p.Origin{Host: o.Host, Port: o.Port,
		Place: &p.Place{Latitude: o.Place.Latitude, Longitude: o.Place.Longitude, City: o.Place.City}}
	if from.Items != nil {
		m.Items = make([]*p.Item, len(from.Items))
		for i := range from.Items {
			item := &from.Items[i]
			m.Items[i] = &p.Item{Key: item.Key, Name: item.Name, Price: item.Price, Tags: item.Tags}
		}
	}
	if from.Attributes != nil {
		m.Attributes = make(map[string]string, len(from.Attributes))
		for _, e := range from.Attributes {
			m.Attributes[e.Key] = e.Value
		}
	}
	return m
}

// Series returns the series of v.
func Series(v shapes.Value) *p.Series {
	from := v.Series
	return &p.Series{Number: from.Number, Head: &p.Head{Number: from.Head.Number}, Numbers: from.Numbers}
}

// SumMessage reads all fields of m.
func SumMessage(m *p.Message, s *shapes.Sum) {
	s.Number(m.Key)
	s.Text(m.Name)
	s.Bytes(m.Payload)
	if o := m.Origin; o != nil && o.Place != nil {
		s.Text(o.Host)
		s.Number(int64(o.Port))
		s.Double(o.Place.Latitude)
		s.Double(o.Place.Longitude)
		s.Text(o.Place.City)
	}
	s.Count(len(m.Items))
	for _, item := range m.Items {
		s.Number(item.Key)
		s.Text(item.Name)
		s.Double(item.Price)
		s.Count(len(item.Tags))
		for _, tag := range item.Tags {
			s.Text(tag)
		}
	}
	s.Count(len(m.Attributes))
	for k, v := range m.Attributes {
		s.Entry(k, v)
	}
	s.Count(len(m.Tags))
	for _, tag := range m.Tags {
		s.Text(tag)
	}
}

// SumSeries reads all fields of v.
func SumSeries(v *p.Series, s *shapes.Sum) {
	s.Number(v.Number)
	if v.Head != nil {
		s.Number(v.Head.Number)
	}
	s.Count(len(v.Numbers))
	for _, n := range v.Numbers {
		s.Number(n)
	}
}
