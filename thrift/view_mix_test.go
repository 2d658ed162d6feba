package thrift_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/thrift"
)

// opt returns an Opt that is set half of the time.
func opt[T any](rnd *rand.Rand, v T) (o thrift.Opt[T]) {
	if rnd.IntN(2) == 0 {
		o = thrift.Some(v)
	}
	return o
}

// few returns up to 11 values.
func few[T any](rnd *rand.Rand, next func() T) []T {
	v := make([]T, rnd.IntN(4)*rnd.IntN(4)+rnd.IntN(3))
	for i := range v {
		v[i] = next()
	}
	return v
}

func randomText(rnd *rand.Rand) string { return strings.Repeat("text ", rnd.IntN(4)) }

func randomUUID(rnd *rand.Rand) (u thrift.UUID) {
	binary.BigEndian.PutUint64(u[rnd.IntN(9):], rnd.Uint64())
	return u
}

func randomOrder(rnd *rand.Rand, depth int) *Order {
	p := &Order{
		ID: int64(rnd.Uint64()), Paid: rnd.IntN(2) == 0, Small: int8(rnd.Uint32()), Medium: int16(rnd.Uint32()),
		Quantity: opt(rnd, int32(rnd.Uint32())), Price: opt(rnd, math.Float64frombits(rnd.Uint64())), Key: randomUUID(rnd),
		Name: opt(rnd, randomText(rnd)), Status: opt(rnd, Status(rnd.Int32())),
		Codes: few(rnd, rnd.Int64), Tags: few(rnd, func() string { return randomText(rnd) }),
	}
	if rnd.IntN(2) == 0 {
		p.Payload = []byte(randomText(rnd))
	}
	for range rnd.IntN(3) {
		p.Attrs = map[string]string{randomText(rnd): randomText(rnd), "k": "v"}
		p.States = map[int32][]Status{rnd.Int32(): {1, 2}, 7: nil}
	}
	if depth > 0 && rnd.IntN(2) == 0 {
		p.Parent = randomOrder(rnd, depth-1)
	}
	for range rnd.IntN(4) * depth {
		p.Lines = append(p.Lines, *randomOrder(rnd, depth-1))
	}
	return p
}

func randomChoice(rnd *rand.Rand) *Choice {
	switch rnd.IntN(3) {
	case 0:
		return &Choice{Number: thrift.Some(rnd.Int32())}
	case 1:
		return &Choice{Text: thrift.Some(randomText(rnd))}
	}
	return &Choice{Order: randomOrder(rnd, 0)}
}

func randomParcel(rnd *rand.Rand) *Parcel {
	p := &Parcel{
		Flags: few(rnd, func() bool { return rnd.IntN(2) == 0 }), Small: few(rnd, func() int8 { return int8(rnd.Uint32()) }),
		Medium: few(rnd, func() int16 { return int16(rnd.Uint32()) }), Weights: few(rnd, rnd.NormFloat64),
		Keys: few(rnd, func() thrift.UUID { return randomUUID(rnd) }), Blobs: few(rnd, func() []byte { return []byte(randomText(rnd)) }),
		Grid:  few(rnd, func() []string { return few(rnd, func() string { return randomText(rnd) }) }),
		Level: rnd.Int32(), Label: randomText(rnd), Last: rnd.IntN(2) == 0, Old: opt(rnd, int16(rnd.Uint32())),
		Choices: few(rnd, func() Choice { return *randomChoice(rnd) }),
		Deep: few(rnd, func() map[bool][]int64 {
			return map[bool][]int64{rnd.IntN(2) == 0: few(rnd, rnd.Int64), true: {1}}
		}),
	}
	if rnd.IntN(2) == 0 {
		p.Steps = few(rnd, func() Status { return Status(rnd.Int32()) })
		p.Choice = randomChoice(rnd)
		p.Orders = map[string]*Order{randomText(rnd): randomOrder(rnd, 0), "k": randomOrder(rnd, 1)}
		p.Rates = map[Status]float64{Status(rnd.Int32()): rnd.Float64(), 1: 2}
	}
	return p
}

// fieldsOf returns the encodings of the fields of the struct that b begins with.
func fieldsOf(b []byte) (fields [][]byte) {
	for off := 0; b[off] != thrift.TypeStop; {
		next := thrift.Skip(b, off+3, b[off], 1000)
		fields = append(fields, b[off:next])
		off = next
	}
	return fields
}

// order is an order of the fields of a struct.
type order int

const (
	byID order = iota
	fixedFirst
	anyOrder
)

// sorted returns the fields of a struct in another order.
func sorted(rnd *rand.Rand, fields [][]byte, as order) [][]byte {
	fields = slices.Clone(fields)
	if as == anyOrder {
		rnd.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		return fields
	}
	slices.SortStableFunc(fields, func(x, y []byte) int {
		if as == fixedFirst && isFixed(x[0]) != isFixed(y[0]) {
			return 1 - 2*thrift.One(isFixed(x[0]))
		}
		return int(binary.BigEndian.Uint16(x[1:])) - int(binary.BigEndian.Uint16(y[1:]))
	})
	return fields
}

func isFixed(t byte) bool { return t < thrift.TypeString || t == thrift.TypeUUID }

// unknownFields holds fields that the samples do not declare. Some have the ID of a declared field,
// but another type.
var unknownFields = [][]byte{
	{thrift.TypeBool, 0, 100, 1},
	{thrift.TypeI8, 0, 1, 4},
	{thrift.TypeString, 0, 101, 0, 0, 0, 1, 'x'},
	{thrift.TypeStruct, 0, 12, thrift.TypeBool, 0, 1, 1, 0},
	{thrift.TypeList, 0, 102, thrift.TypeStruct, 0, 0, 0, 1, thrift.TypeI8, 0, 1, 5, 0},
	{thrift.TypeMap, 0, 13 + 90, thrift.TypeI8, thrift.TypeI8, 0, 0, 0, 1, 1, 2},
	{thrift.TypeList, 0, 104, 0, 0, 0, 0, 0},
	{thrift.TypeUUID, 0xff, 0xff, 15: 1, 18: 0},
}

// mixed returns the struct that b begins with, with the fields of all its structs in the order as
// and, if more is true, with unknown fields. Unions get no unknown fields, because they must have
// exactly one field.
func mixed(rnd *rand.Rand, b []byte, as order, more bool) []byte {
	var out []byte
	fields := fieldsOf(b)
	for more && len(fields) > 1 && rnd.IntN(2) == 0 {
		fields = append(fields, unknownFields[rnd.IntN(len(unknownFields))])
	}
	for _, f := range sorted(rnd, fields, as) {
		out = append(out, f[:3]...)
		v, _ := mixedValue(rnd, f[3:], f[0], as, more)
		out = append(out, v...)
	}
	return append(out, thrift.TypeStop)
}

// mixedValue is mixed for a value of type t. It also returns the size of the value in b.
func mixedValue(rnd *rand.Rand, b []byte, t byte, as order, more bool) (out []byte, size int) {
	size = thrift.Skip(b, 0, t, 1000)
	each := func(off int, types ...byte) {
		out = append(out, b[:off]...)
		for off < size {
			for _, t := range types {
				v, n := mixedValue(rnd, b[off:], t, as, more)
				out = append(out, v...)
				off += n
			}
		}
	}
	switch t {
	case thrift.TypeStruct:
		out = mixed(rnd, b, as, more)
	case thrift.TypeList, thrift.TypeSet:
		each(5, b[0])
	case thrift.TypeMap:
		each(6, b[0], b[1])
	default:
		out = b[:size]
	}
	return out, size
}

// doubled returns the struct that b begins with, preceded by some fields of the struct other.
func doubled(rnd *rand.Rand, b, other []byte) []byte {
	var out []byte
	for _, f := range fieldsOf(other) {
		if rnd.IntN(2) == 0 {
			out = append(out, f...)
		}
	}
	return append(out, b...)
}
