package thrift_test

import (
	"encoding/binary"

	"github.com/slipstream-go/slipstream/thrift"
)

// A second IDL file covers types that are not in sample_test.go. Its declaration:
//
//	include "sample.thrift"
//
//	union Choice { 1: i32 number, 2: string text, 3: sample.Order order }
//
//	struct Parcel {
//	  1: list<bool> flags
//	  2: list<i8> small
//	  3: set<i16> medium
//	  4: optional list<sample.Status> steps
//	  5: list<double> weights
//	  6: list<uuid> keys
//	  7: list<binary> blobs
//	  8: list<list<string>> grid
//	  9: map<string, sample.Order> orders
//	  10: map<sample.Status, double> rates
//	  11: i32 level = 7
//	  12: string label = "none"
//	  20: Choice choice
//	  21: list<Choice> choices
//	  30: list<map<bool, set<i64>>> deep
//	  31: required bool last
//	  -2: optional i16 old
//	}

type Choice struct {
	Number thrift.Opt[int32]
	Text   thrift.Opt[string]
	Order  *Order
}

type Parcel struct {
	Flags   []bool
	Small   []int8
	Medium  []int16
	Steps   []Status
	Weights []float64
	Keys    []thrift.UUID
	Blobs   [][]byte
	Grid    [][]string
	Orders  map[string]*Order
	Rates   map[Status]float64
	Level   int32
	Label   string
	Choice  *Choice
	Choices []Choice
	Deep    []map[bool][]int64
	Last    bool
	Old     thrift.Opt[int16]

	unknown thrift.Unknown
}

// NewParcel returns a Parcel with the default values of its fields.
func NewParcel() *Parcel { return &Parcel{Level: 7, Label: "none"} }

func (p *Choice) SizeThrift() int { return len(p.AppendThrift(nil)) }

func (p *Choice) AppendThrift(b []byte) []byte {
	if p.Number.Set {
		b = thrift.AppendI32(append(b, thrift.TypeI32, 0, 1), p.Number.V)
	}
	if p.Text.Set {
		b = thrift.AppendString(append(b, thrift.TypeString, 0, 2), p.Text.V)
	}
	if p.Order != nil {
		b = p.Order.AppendThrift(append(b, thrift.TypeStruct, 0, 3))
	}
	return append(b, thrift.TypeStop)
}

func (p *Choice) ReadThrift(r *thrift.Reader, b []byte, off, depth int) int {
	if r.Refuses(depth) {
		return r.Refusal(off, depth)
	}
	n := 0
	for {
		if len(b)-off < 3 || b[off] == thrift.TypeStop {
			return r.EndUnion(b, off, n)
		}
		t, id := b[off], binary.BigEndian.Uint16(b[off+1:])
		off += 3
		n++
		switch uint32(id)<<8 | uint32(t) {
		case 1<<8 | thrift.TypeI32:
			p.Number.Set = true
			off = thrift.ReadI32(b, off, &p.Number.V)
		case 2<<8 | thrift.TypeString:
			off = r.OptString(b, off, &p.Text)
		case 3<<8 | thrift.TypeStruct:
			p.Order = thrift.Make[Order](r, nil)
			off = p.Order.ReadThrift(r, b, off, depth-1)
		default:
			off = thrift.Skip(b, off, t, depth-1)
		}
		if off < 0 {
			return off
		}
	}
}

func (p *Parcel) SizeThrift() int { return len(p.AppendThrift(nil)) }

func appendNumbers[T any](b []byte, kind byte, id uint16, elem byte, v []T, put func([]byte, int, []T) int, size int) []byte {
	b = thrift.AppendList(append(b, kind, byte(id>>8), byte(id)), elem, len(v))
	n := len(b)
	b = thrift.Extend(b, size*len(v))
	put(b, n, v)
	return b
}

func (p *Parcel) AppendThrift(b []byte) []byte {
	b = appendNumbers(b, thrift.TypeList, 1, thrift.TypeBool, p.Flags, thrift.PutBools, 1)
	b = appendNumbers(b, thrift.TypeList, 2, thrift.TypeI8, p.Small, thrift.PutI8s, 1)
	b = appendNumbers(b, thrift.TypeSet, 3, thrift.TypeI16, p.Medium, thrift.PutI16s, 2)
	if p.Steps != nil {
		b = appendNumbers(b, thrift.TypeList, 4, thrift.TypeI32, p.Steps, thrift.PutI32s[Status], 4)
	}
	b = appendNumbers(b, thrift.TypeList, 5, thrift.TypeDouble, p.Weights, thrift.PutDoubles, 8)
	b = appendNumbers(b, thrift.TypeList, 6, thrift.TypeUUID, p.Keys, thrift.PutUUIDs, 16)
	b = thrift.AppendList(append(b, thrift.TypeList, 0, 7), thrift.TypeString, len(p.Blobs))
	b = thrift.AppendStrings(b, p.Blobs)
	b = appendGrid(append(b, thrift.TypeList, 0, 8), p.Grid)
	b = appendOrders(append(b, thrift.TypeMap, 0, 9), p.Orders)
	b = appendRates(append(b, thrift.TypeMap, 0, 10), p.Rates)
	b = thrift.AppendI32(append(b, thrift.TypeI32, 0, 11), p.Level)
	b = thrift.AppendString(append(b, thrift.TypeString, 0, 12), p.Label)
	if p.Choice != nil {
		b = p.Choice.AppendThrift(append(b, thrift.TypeStruct, 0, 20))
	}
	b = thrift.AppendList(append(b, thrift.TypeList, 0, 21), thrift.TypeStruct, len(p.Choices))
	for i := range p.Choices {
		b = p.Choices[i].AppendThrift(b)
	}
	b = appendDeep(append(b, thrift.TypeList, 0, 30), p.Deep)
	b = append(b, thrift.TypeBool, 0, 31, thrift.Bit(p.Last))
	if p.Old.Set {
		b = thrift.AppendI16(append(b, thrift.TypeI16, 0xff, 0xfe), p.Old.V)
	}
	return append(append(b, p.unknown...), thrift.TypeStop)
}

func appendGrid(b []byte, x [][]string) []byte {
	b = thrift.AppendList(b, thrift.TypeList, len(x))
	for _, row := range x {
		b = thrift.AppendList(b, thrift.TypeString, len(row))
		b = thrift.AppendStrings(b, row)
	}
	return b
}

func appendOrders(b []byte, x map[string]*Order) []byte {
	b = thrift.AppendMap(b, thrift.TypeString, thrift.TypeStruct, len(x))
	for _, k := range thrift.SortedKeys(x) {
		b = x[k].AppendThrift(thrift.AppendString(b, k))
	}
	return b
}

func appendRates(b []byte, x map[Status]float64) []byte {
	b = thrift.AppendMap(b, thrift.TypeI32, thrift.TypeDouble, len(x))
	for _, k := range thrift.SortedKeys(x) {
		b = thrift.AppendDouble(thrift.AppendI32(b, int32(k)), x[k])
	}
	return b
}

func appendDeep(b []byte, x []map[bool][]int64) []byte {
	b = thrift.AppendList(b, thrift.TypeMap, len(x))
	for _, m := range x {
		b = thrift.AppendMap(b, thrift.TypeBool, thrift.TypeSet, len(m))
		for _, k := range []bool{false, true} {
			if v, ok := m[k]; ok {
				b = thrift.AppendList(thrift.AppendBool(b, k), thrift.TypeI64, len(v))
				n := len(b)
				b = thrift.Extend(b, 8*len(v))
				thrift.PutI64s(b, n, v)
			}
		}
	}
	return b
}

func (p *Parcel) ReadThrift(r *thrift.Reader, b []byte, off, depth int) int {
	if r.Refuses(depth) {
		return r.Refusal(off, depth)
	}
	seenLast := false
	p.unknown = nil
	for {
		if len(b)-off < 3 || b[off] == thrift.TypeStop {
			return r.End(b, off, seenLast)
		}
		t, id := b[off], binary.BigEndian.Uint16(b[off+1:])
		off += 3
		switch uint32(id)<<8 | uint32(t) {
		case 1<<8 | thrift.TypeList:
			off = r.Bools(b, off, &p.Flags)
		case 2<<8 | thrift.TypeList:
			off = r.I8s(b, off, &p.Small)
		case 3<<8 | thrift.TypeSet:
			off = r.I16s(b, off, &p.Medium)
		case 4<<8 | thrift.TypeList:
			off = thrift.ReadI32s(r, b, off, &p.Steps)
		case 5<<8 | thrift.TypeList:
			off = r.Doubles(b, off, &p.Weights)
		case 6<<8 | thrift.TypeList:
			off = r.UUIDs(b, off, &p.Keys)
		case 7<<8 | thrift.TypeList:
			off = r.Binaries(b, off, &p.Blobs)
		case 8<<8 | thrift.TypeList:
			_, off = thrift.List(r, b, off, thrift.TypeList, 5, &p.Grid)
			for i := 0; off >= 0 && i < len(p.Grid); i++ {
				off = r.Strings(b, off, &p.Grid[i])
			}
		case 9<<8 | thrift.TypeMap:
			off = p.readOrders(r, b, off, depth)
		case 10<<8 | thrift.TypeMap:
			off = p.readRates(r, b, off)
		case 11<<8 | thrift.TypeI32:
			off = thrift.ReadI32(b, off, &p.Level)
		case 12<<8 | thrift.TypeString:
			off = r.String(b, off, &p.Label)
		case 20<<8 | thrift.TypeStruct:
			p.Choice = thrift.Make[Choice](r, nil)
			off = p.Choice.ReadThrift(r, b, off, depth-1)
		case 21<<8 | thrift.TypeList:
			_, off = thrift.List(r, b, off, thrift.TypeStruct, 1, &p.Choices)
			for i := 0; off >= 0 && i < len(p.Choices); i++ {
				p.Choices[i] = Choice{}
				off = p.Choices[i].ReadThrift(r, b, off, depth-2)
			}
		case 30<<8 | thrift.TypeList:
			off = p.readDeep(r, b, off)
		case 31<<8 | thrift.TypeBool:
			seenLast = true
			off = thrift.ReadBool(b, off, &p.Last)
		case 0xfffe<<8 | thrift.TypeI16:
			p.Old.Set = true
			off = thrift.ReadI16(b, off, &p.Old.V)
		default:
			off = r.Keep(b, off, t, depth-1, &p.unknown)
		}
		if off < 0 {
			return off
		}
	}
}

func (p *Parcel) readOrders(r *thrift.Reader, b []byte, off, depth int) int {
	n, next := r.CountMap(b, off, thrift.TypeString, thrift.TypeStruct, 5)
	if next < 0 {
		return next
	}
	p.Orders, off = thrift.MakeMap(r, p.Orders, n, off, next)
	for ; n > 0 && off >= 0; n-- {
		var k string
		if off = r.String(b, off, &k); off < 0 {
			break
		}
		p.Orders[k] = new(Order)
		off = p.Orders[k].ReadThrift(r, b, off, depth-2)
	}
	return off
}

func (p *Parcel) readRates(r *thrift.Reader, b []byte, off int) int {
	n, next := r.CountMap(b, off, thrift.TypeI32, thrift.TypeDouble, 12)
	if next < 0 {
		return next
	}
	p.Rates, off = thrift.MakeMap(r, p.Rates, n, off, next)
	for ; n > 0 && off >= 0; n-- {
		var k Status
		var v float64
		off = thrift.ReadDouble(b, thrift.ReadI32(b, off, &k), &v)
		p.Rates[k] = v
	}
	return off
}

func (p *Parcel) readDeep(r *thrift.Reader, b []byte, off int) int {
	_, off = thrift.List(r, b, off, thrift.TypeMap, 6, &p.Deep)
	for i := 0; off >= 0 && i < len(p.Deep); i++ {
		n, next := r.CountMap(b, off, thrift.TypeBool, thrift.TypeSet, 6)
		if next < 0 {
			return next
		}
		p.Deep[i], off = thrift.MakeMap(r, map[bool][]int64(nil), n, off, next)
		for ; n > 0 && off >= 0; n-- {
			var k bool
			var v []int64
			if off = thrift.ReadBool(b, off, &k); off >= 0 {
				off = r.I64s(b, off, &v)
			}
			if off >= 0 {
				p.Deep[i][k] = v
			}
		}
	}
	return off
}
