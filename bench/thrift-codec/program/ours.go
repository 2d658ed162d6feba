//go:build ignore

package main

import (
	"bytes"
	"fmt"

	"github.com/slipstream-go/slipstream/bench/thrift-codec/gen/ours"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/measure"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/shapes"
	"github.com/slipstream-go/slipstream/thrift"
)

func init() {
	for _, name := range []string{"slipstream", "slipstream-control"} {
		add(name, "edw", oursMessage(), oursSeries())
	}
	write, writeSeries := oursMessage(), oursSeries()
	write.encode, writeSeries.encode = writeOurs, writeOurs
	add("slipstream-write", "e", write, writeSeries)

	framed, framedSeries := oursMessage(), oursSeries()
	framed.decode, framedSeries.decode = decodeFramed, decodeFramed
	add("slipstream-framed", "d", framed, framedSeries)

	shared, sharedSeries := oursMessage(), oursSeries()
	shared.decode, sharedSeries.decode = decodeShared, decodeShared
	add("slipstream-shared", "d", shared, sharedSeries)

	subjects.Add("decode", "slipstream-reused", func(shape string) (measure.Work, error) {
		s, err := shapes.Find(shape)
		if err != nil {
			return measure.Work{}, err
		}
		v := s.Make()
		if v.Series != nil {
			return reuse(oursSeries(), v), nil
		}
		return reuse(oursMessage(), v), nil
	})
}

func oursMessage() codec[ours.Message] {
	return codec[ours.Message]{build: buildMessage, sum: sumMessage, encode: appendOurs[ours.Message], decode: decodeGiven[ours.Message],
		thrift: true, ordered: true, keeps: true}
}

func oursSeries() codec[ours.Series] {
	return codec[ours.Series]{build: buildSeries, sum: sumSeries, encode: appendOurs[ours.Series], decode: decodeGiven[ours.Series],
		thrift: true, ordered: true, keeps: true}
}

// A generated type is a pointer to a struct with generated methods.
type generated[T any] interface {
	*T
	thrift.Struct
	Reset()
}

func appendOurs[T any, P generated[T]](b []byte, p *T) []byte { return P(p).AppendThrift(b) }

// writeOurs computes the size first, and writes into a given buffer.
func writeOurs[T any, P generated[T]](b []byte, p *T) []byte {
	n := P(p).SizeThrift()
	if n > cap(b) {
		b = make([]byte, n)
	}
	b = b[:n]
	return b[:thrift.Write(b, P(p))]
}

// given decodes with strings that refer to the frame.
var given = thrift.Reader{Memory: thrift.MemoryFrame}

// decodeGiven reads a frame whose ownership the caller transfers: strings and binaries
// refer to it.
func decodeGiven[T any, P generated[T]](frame []byte, p *T) error {
	_, err := given.Read(frame, 0, P(p))
	return err
}

// decodeFramed is like decodeGiven, for a frame that must be allocated first.
func decodeFramed[T any, P generated[T]](frame []byte, p *T) error {
	_, err := given.Read(bytes.Clone(frame), 0, P(p))
	return err
}

// decodeShared copies strings out of a frame that the caller keeps.
func decodeShared[T any, P generated[T]](frame []byte, p *T) error {
	return thrift.Unmarshal(frame, P(p))
}

// reuse measures repeated decoding into the same struct.
func reuse[T any, P generated[T]](c codec[T], v shapes.Value) measure.Work {
	frame, want := v.Encode(), v.Sum(true)
	r := thrift.Reader{Memory: thrift.MemoryFrame}
	p := new(T)
	var err error
	return measure.Work{Size: len(frame), Run: func() {
		P(p).Reset()
		r.Recycle()
		if _, e := r.Read(frame, 0, P(p)); e != nil {
			err = e
		}
	}, Check: func() error {
		if err != nil {
			return err
		}
		return c.same(p, want)
	}}
}

// sameOurs decodes a frame and returns an error unless it has the contents of v.
func sameOurs(frame []byte, v shapes.Value) error {
	s := shapes.Sum{Exact: true}
	if v.Series != nil {
		p := new(ours.Series)
		if err := decodeGiven(frame, p); err != nil {
			return err
		}
		sumSeries(p, &s)
	} else {
		p := new(ours.Message)
		if err := decodeGiven(frame, p); err != nil {
			return err
		}
		sumMessage(p, &s)
	}
	if s.Value() != v.Sum(true) {
		return fmt.Errorf("the contents differ")
	}
	return nil
}

func buildMessage(v shapes.Value) *ours.Message {
	from := v.Message
	m := &ours.Message{Key: from.Key, Name: from.Name, Payload: from.Payload, Tags: from.Tags}
	o := from.Origin
	m.Origin = &ours.Origin{Host: o.Host, Port: o.Port,
		Place: &ours.Place{Latitude: o.Place.Latitude, Longitude: o.Place.Longitude, City: o.Place.City}}
	if from.Items != nil {
		m.Items = make([]ours.Item, len(from.Items))
		for i := range from.Items {
			item := &from.Items[i]
			m.Items[i] = ours.Item{Key: item.Key, Name: item.Name, Price: item.Price, Tags: item.Tags}
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

func buildSeries(v shapes.Value) *ours.Series {
	from := v.Series
	return &ours.Series{Number: from.Number, Head: &ours.Head{Number: from.Head.Number}, Numbers: from.Numbers}
}

func sumMessage(m *ours.Message, s *shapes.Sum) {
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
	for k, v := range m.Attributes {
		s.Entry(k, v)
	}
	s.Count(len(m.Tags))
	for _, tag := range m.Tags {
		s.Text(tag)
	}
}

func sumSeries(v *ours.Series, s *shapes.Sum) {
	s.Number(v.Number)
	if v.Head != nil {
		s.Number(v.Head.Number)
	}
	s.Count(len(v.Numbers))
	for _, n := range v.Numbers {
		s.Number(n)
	}
}
