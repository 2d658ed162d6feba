//go:build ignore

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	capnp "capnproto.org/go/capnp/v3"

	gen "github.com/slipstream-go/slipstream/bench/thrift-codec/gen/capnproto"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/measure"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/shapes"
)

// Messages of Cap'n Proto are built in the buffer in which they are sent, and read in the one in
// which they are received, so only the operation whole is comparable.
func init() {
	subjects.Add("whole", "capnp", func(shape string) (measure.Work, error) {
		s, err := shapes.Find(shape)
		if err != nil {
			return measure.Work{}, err
		}
		v := s.Make()
		want, exact := v.Sum(false), v.Sum(true)
		received := make([]byte, room(v.Encode()))
		var wire bytes.Buffer
		wire.Grow(len(received))
		var got uint64
		var failed error
		way := func(full bool) (uint64, error) {
			sum := shapes.Sum{Exact: full}
			b, err := fill(v)
			if err != nil {
				return 0, err
			}
			wire.Reset()
			wire.Write(b)
			frame := received[:copy(received, wire.Bytes())]
			err = readOut(frame, v.Series != nil, &sum)
			return sum.Value(), err
		}
		work := measure.Work{Run: func() {
			n, err := way(false)
			if err != nil {
				failed = err
			}
			got = n
		}, Check: func() error {
			n, err := way(true)
			if err = errors.Join(failed, err); err != nil {
				return err
			}
			if got != want || n != exact {
				return fmt.Errorf("the contents differ: sums %x and %x, want %x and %x", got, n, want, exact)
			}
			return nil
		}}
		b, err := fill(v)
		work.Size = len(b)
		return work, err
	})
}

// fill builds a message.
func fill(v shapes.Value) ([]byte, error) {
	message, segment, err := capnp.NewMessage(capnp.SingleSegment(nil))
	if err != nil {
		return nil, err
	}
	if v.Series != nil {
		err = fillSeries(segment, v.Series)
	} else {
		err = fillMessage(segment, v.Message)
	}
	if err != nil {
		return nil, err
	}
	return message.Marshal()
}

func fillSeries(segment *capnp.Segment, from *shapes.Series) error {
	s, err := gen.NewRootSeries(segment)
	if err != nil {
		return err
	}
	s.SetNumber(from.Number)
	head, err := s.NewHead()
	if err != nil {
		return err
	}
	head.SetNumber(from.Head.Number)
	list, err := s.NewNumbers(int32(len(from.Numbers)))
	for i, n := range from.Numbers {
		list.Set(i, n)
	}
	return err
}

func fillMessage(segment *capnp.Segment, from *shapes.Message) error {
	m, err := gen.NewRootMessage(segment)
	if err != nil {
		return err
	}
	m.SetKey(from.Key)
	if err := m.SetName(from.Name); err != nil {
		return err
	}
	if from.Payload != nil {
		if err := m.SetPayload(from.Payload); err != nil {
			return err
		}
	}
	if err := fillOrigin(m, from.Origin); err != nil {
		return err
	}
	if from.Items != nil {
		list, err := m.NewItems(int32(len(from.Items)))
		if err != nil {
			return err
		}
		for i := range from.Items {
			if err := fillItem(list.At(i), &from.Items[i]); err != nil {
				return err
			}
		}
	}
	if from.Attributes != nil {
		list, err := m.NewAttributes(int32(len(from.Attributes)))
		if err != nil {
			return err
		}
		for i, e := range from.Attributes {
			entry := list.At(i)
			if err := errors.Join(entry.SetKey(e.Key), entry.SetValue(e.Value)); err != nil {
				return err
			}
		}
	}
	if from.Tags == nil {
		return nil
	}
	list, err := m.NewTags(int32(len(from.Tags)))
	if err != nil {
		return err
	}
	return fillTexts(list, from.Tags)
}

func fillOrigin(m gen.Message, from *shapes.Origin) error {
	o, err := m.NewOrigin()
	if err != nil {
		return err
	}
	o.SetPort(from.Port)
	if err := o.SetHost(from.Host); err != nil {
		return err
	}
	p, err := o.NewPlace()
	if err != nil {
		return err
	}
	p.SetLatitude(from.Place.Latitude)
	p.SetLongitude(from.Place.Longitude)
	return p.SetCity(from.Place.City)
}

func fillItem(to gen.Item, from *shapes.Item) error {
	to.SetKey(from.Key)
	to.SetPrice(from.Price)
	if err := to.SetName(from.Name); err != nil || from.Tags == nil {
		return err
	}
	list, err := to.NewTags(int32(len(from.Tags)))
	if err != nil {
		return err
	}
	return fillTexts(list, from.Tags)
}

func fillTexts(list capnp.TextList, from []string) error {
	for i, v := range from {
		if err := list.Set(i, v); err != nil {
			return err
		}
	}
	return nil
}

// readOut reads all fields. Strings stay in the frame.
func readOut(frame []byte, series bool, s *shapes.Sum) error {
	message, err := capnp.Unmarshal(frame)
	if err != nil {
		return err
	}
	message.ResetReadLimit(math.MaxUint64)
	if series {
		v, err := gen.ReadRootSeries(message)
		if err != nil {
			return err
		}
		return readSeries(v, s)
	}
	v, err := gen.ReadRootMessage(message)
	if err != nil {
		return err
	}
	return readMessage(v, s)
}

func readSeries(v gen.Series, s *shapes.Sum) error {
	s.Number(v.Number())
	head, err := v.Head()
	if err != nil {
		return err
	}
	s.Number(head.Number())
	list, err := v.Numbers()
	s.Count(list.Len())
	for i := range list.Len() {
		s.Number(list.At(i))
	}
	return err
}

func readMessage(m gen.Message, s *shapes.Sum) error {
	s.Number(m.Key())
	if err := addBytes(m.NameBytes, s); err != nil {
		return err
	}
	if err := addBytes(m.Payload, s); err != nil {
		return err
	}
	if err := readOrigin(m, s); err != nil {
		return err
	}
	items, err := m.Items()
	if err != nil {
		return err
	}
	s.Count(items.Len())
	for i := range items.Len() {
		if err := readItem(items.At(i), s); err != nil {
			return err
		}
	}
	attributes, err := m.Attributes()
	if err != nil {
		return err
	}
	s.Count(attributes.Len())
	for i := range attributes.Len() {
		e := attributes.At(i)
		k, err := e.Key()
		if err != nil {
			return err
		}
		v, err := e.Value()
		if err != nil {
			return err
		}
		s.Entry(k, v)
	}
	return readTexts(m.Tags, s)
}

func readOrigin(m gen.Message, s *shapes.Sum) error {
	o, err := m.Origin()
	if err != nil {
		return err
	}
	if err := addBytes(o.HostBytes, s); err != nil {
		return err
	}
	s.Number(int64(o.Port()))
	p, err := o.Place()
	if err != nil {
		return err
	}
	s.Double(p.Latitude())
	s.Double(p.Longitude())
	return addBytes(p.CityBytes, s)
}

func readItem(item gen.Item, s *shapes.Sum) error {
	s.Number(item.Key())
	if err := addBytes(item.NameBytes, s); err != nil {
		return err
	}
	s.Double(item.Price())
	return readTexts(item.Tags, s)
}

func addBytes(get func() ([]byte, error), s *shapes.Sum) error {
	b, err := get()
	s.Bytes(b)
	return err
}

func readTexts(get func() (capnp.TextList, error), s *shapes.Sum) error {
	list, err := get()
	if err != nil {
		return err
	}
	s.Count(list.Len())
	for i := range list.Len() {
		b, err := list.BytesAt(i)
		if err != nil {
			return err
		}
		s.Bytes(b)
	}
	return nil
}
