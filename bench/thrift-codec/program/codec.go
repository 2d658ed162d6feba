//go:build ignore

package main

import (
	"bytes"
	"fmt"

	"github.com/slipstream-go/slipstream/bench/thrift-codec/measure"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/shapes"
)

// A codec encodes and decodes one type of a subject.
type codec[T any] struct {
	build func(v shapes.Value) *T
	sum   func(p *T, s *shapes.Sum)
	// encode appends to a buffer with room, which is empty, and may return another one.
	encode func(b []byte, p *T) []byte
	// decode reads into a new T.
	decode func(frame []byte, p *T) error
	// thrift means that the encoding is that of Thrift's Binary protocol.
	thrift bool
	// ordered means that fields are written in the order of their IDs.
	ordered bool
	// keeps means that decoded values refer to the frame.
	keeps bool
}

// add adds a subject to the operations encode, decode and whole. The two codecs are for the two
// kinds of messages.
func add[M, S any](name string, operations string, message codec[M], series codec[S]) {
	choose := func(open func(shapes.Shape, shapes.Value) measure.Work, other func(shapes.Shape, shapes.Value) measure.Work) measure.Open {
		return func(shape string) (measure.Work, error) {
			s, err := shapes.Find(shape)
			if err != nil {
				return measure.Work{}, err
			}
			v := s.Make()
			if v.Series != nil {
				return other(s, v), nil
			}
			return open(s, v), nil
		}
	}
	for _, o := range operations {
		switch o {
		case 'e':
			subjects.Add("encode", name, choose(message.encodes, series.encodes))
		case 'd':
			subjects.Add("decode", name, choose(message.decodes, series.decodes))
		case 'w':
			subjects.Add("whole", name, choose(message.whole, series.whole))
		}
	}
}

// room returns the size of buffers: frames of some protocols are larger than those of Thrift.
func room(frame []byte) int { return 2*len(frame) + 1024 }

// encodes measures encode. Its output is compared with an encoding that shares no code with it, if
// the order is defined, and decoded in any case.
func (c codec[T]) encodes(_ shapes.Shape, v shapes.Value) measure.Work {
	reference := v.Encode()
	want := v.Sum(true)
	several := v.Message != nil && len(v.Message.Attributes) > 1
	p := c.build(v)
	b := make([]byte, 0, room(reference))
	var out []byte
	return measure.Work{Size: len(c.encode(b, p)), Run: func() { out = c.encode(b, p) }, Check: func() error {
		if c.thrift && len(out) != len(reference) {
			return fmt.Errorf("%d bytes, want %d", len(out), len(reference))
		}
		if c.ordered && !several && !bytes.Equal(out, reference) {
			return fmt.Errorf("the encoding differs from the reference")
		}
		if c.thrift {
			if err := sameOurs(out, v); err != nil {
				return fmt.Errorf("decoded by ours: %w", err)
			}
		}
		q := new(T)
		if err := c.decode(out, q); err != nil {
			return err
		}
		return c.same(q, want)
	}}
}

// same returns an error unless p has all contents.
func (c codec[T]) same(p *T, want uint64) error {
	s := shapes.Sum{Exact: true}
	c.sum(p, &s)
	if s.Value() != want {
		return fmt.Errorf("the contents differ: sum %x, want %x", s.Value(), want)
	}
	return nil
}

// frame returns the frame to decode: for Thrift it is the reference, whatever the subject would
// write.
func (c codec[T]) frame(v shapes.Value) []byte {
	if c.thrift {
		return v.Encode()
	}
	return bytes.Clone(c.encode(make([]byte, 0, room(v.Encode())), c.build(v)))
}

// decodes measures decode.
func (c codec[T]) decodes(_ shapes.Shape, v shapes.Value) measure.Work {
	frame := c.frame(v)
	want := v.Sum(true)
	var last *T
	var err error
	return measure.Work{Size: len(frame), Run: func() {
		p := new(T)
		if e := c.decode(frame, p); e != nil {
			err = e
		}
		last = p
	}, Check: func() error {
		if err != nil {
			return err
		}
		return c.same(last, want)
	}}
}

// whole measures the complete path of a message: its struct is filled and encoded, the bytes are
// written to one buffer and read into another one, decoded, and all of the contents are read.
func (c codec[T]) whole(_ shapes.Shape, v shapes.Value) measure.Work {
	want := v.Sum(false)
	exact := v.Sum(true)
	n := room(v.Encode())
	b := make([]byte, 0, n)
	received := make([]byte, n)
	var wire bytes.Buffer
	wire.Grow(n)
	var got uint64
	var err error
	var last *T
	return measure.Work{Size: len(c.encode(b, c.build(v))), Run: func() {
		wire.Reset()
		wire.Write(c.encode(b, c.build(v)))
		frame := received
		if c.keeps {
			frame = make([]byte, wire.Len())
		}
		frame = frame[:copy(frame, wire.Bytes())]
		last = new(T)
		if e := c.decode(frame, last); e != nil {
			err = e
		}
		var s shapes.Sum
		c.sum(last, &s)
		got = s.Value()
	}, Check: func() error {
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("the contents differ: sum %x, want %x", got, want)
		}
		return c.same(last, exact)
	}}
}
