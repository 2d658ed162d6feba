package shapes

import (
	"encoding/binary"
	"math"
)

// The types of Thrift's Binary protocol.
const (
	typeDouble = 4
	typeI32    = 8
	typeI64    = 10
	typeString = 11
	typeStruct = 12
	typeMap    = 13
	typeList   = 15
)

// Encode returns the encoding in Thrift's Binary protocol, with fields in the order of their IDs
// and entries of maps in their order in the slice. It shares no code with any of the codecs.
func (v Value) Encode() []byte {
	var e encoder
	if v.Series != nil {
		e.series(v.Series)
	} else {
		e.message(v.Message)
	}
	return e.b
}

type encoder struct{ b []byte }

func (e *encoder) head(t byte, id uint16) {
	e.b = binary.BigEndian.AppendUint16(append(e.b, t), id)
}

func (e *encoder) end()        { e.b = append(e.b, 0) }
func (e *encoder) count(n int) { e.b = binary.BigEndian.AppendUint32(e.b, uint32(n)) }

func (e *encoder) i64(id uint16, v int64) {
	e.head(typeI64, id)
	e.b = binary.BigEndian.AppendUint64(e.b, uint64(v))
}

func (e *encoder) double(id uint16, v float64) {
	e.head(typeDouble, id)
	e.b = binary.BigEndian.AppendUint64(e.b, math.Float64bits(v))
}

func (e *encoder) text(v string) {
	e.count(len(v))
	e.b = append(e.b, v...)
}

func (e *encoder) string(id uint16, v string) {
	e.head(typeString, id)
	e.text(v)
}

func (e *encoder) list(id uint16, elem byte, n int) {
	e.head(typeList, id)
	e.b = append(e.b, elem)
	e.count(n)
}

func (e *encoder) texts(id uint16, list []string) {
	e.list(id, typeString, len(list))
	for _, v := range list {
		e.text(v)
	}
}

func (e *encoder) message(m *Message) {
	e.i64(1, m.Key)
	e.string(2, m.Name)
	if m.Payload != nil {
		e.string(3, string(m.Payload))
	}
	e.head(typeStruct, 4)
	e.origin(m.Origin)
	e.list(5, typeStruct, len(m.Items))
	for i := range m.Items {
		e.item(&m.Items[i])
	}
	e.head(typeMap, 6)
	e.b = append(e.b, typeString, typeString)
	e.count(len(m.Attributes))
	for _, entry := range m.Attributes {
		e.text(entry.Key)
		e.text(entry.Value)
	}
	e.texts(7, m.Tags)
	e.end()
}

func (e *encoder) origin(o *Origin) {
	e.string(1, o.Host)
	e.head(typeI32, 2)
	e.b = binary.BigEndian.AppendUint32(e.b, uint32(o.Port))
	e.head(typeStruct, 3)
	e.double(1, o.Place.Latitude)
	e.double(2, o.Place.Longitude)
	e.string(3, o.Place.City)
	e.end()
	e.end()
}

func (e *encoder) item(i *Item) {
	e.i64(1, i.Key)
	e.string(2, i.Name)
	e.double(3, i.Price)
	e.texts(4, i.Tags)
	e.end()
}

func (e *encoder) series(s *Series) {
	e.i64(1, s.Number)
	e.head(typeStruct, 2)
	e.i64(1, s.Head.Number)
	e.end()
	e.list(3, typeI64, len(s.Numbers))
	for _, v := range s.Numbers {
		e.b = binary.BigEndian.AppendUint64(e.b, uint64(v))
	}
	e.end()
}
