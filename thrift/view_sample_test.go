package thrift_test

import "github.com/slipstream-go/slipstream/thrift"

// This file contains the code that the generator writes for the views of sample_test.go. Setters
// are a separate option; everything else is emitted together.

// ViewsOfSample describes the structs of this IDL file for their views.
var ViewsOfSample = thrift.ViewTable{Structs: []thrift.ViewStruct{
	{ // Order
		Fields: []thrift.ViewField{
			{Key: thrift.TypeI64<<16 | 1},
			{Key: thrift.TypeBool<<16 | 2},
			{Key: thrift.TypeI8<<16 | 3},
			{Key: thrift.TypeI16<<16 | 4},
			{Key: thrift.TypeI32<<16 | 5},
			{Key: thrift.TypeDouble<<16 | 6},
			{Key: thrift.TypeUUID<<16 | 7},
			{Key: thrift.TypeString<<16 | 8},
			{Key: thrift.TypeString<<16 | 9},
			{Key: thrift.TypeI32<<16 | 10},
			{Key: thrift.TypeList<<16 | 11, Type: &thrift.ViewType{Elem: thrift.TypeI64}},
			{Key: thrift.TypeSet<<16 | 12, Type: &thrift.ViewType{Elem: thrift.TypeString}},
			{Key: thrift.TypeMap<<16 | 13, Type: &thrift.ViewType{Key: thrift.TypeString, Elem: thrift.TypeString}},
			{Key: thrift.TypeStruct<<16 | 14, Type: &thrift.ViewType{Struct: 0}},
			{Key: thrift.TypeList<<16 | 15, Type: &thrift.ViewType{Elem: thrift.TypeStruct, ElemType: &thrift.ViewType{Struct: 0}}},
			{Key: thrift.TypeMap<<16 | 40, Type: &thrift.ViewType{Key: thrift.TypeI32, Elem: thrift.TypeList, ElemType: &thrift.ViewType{Elem: thrift.TypeI32}}},
		},
		Required: []uint64{0x1},
	},
}}

// OrderView is a view of an encoded Order: see thrift.View.
type OrderView struct {
	view thrift.View
	at   [16]uint32
}

var _ thrift.Struct = (*OrderView)(nil)

// OpenThrift makes v a view of the Order that b begins with. The view owns b.
func (v *OrderView) OpenThrift(b []byte) error {
	return v.view.Open(b, v.at[:], &ViewsOfSample, 0, (*Order)(nil))
}

// DecodeThrift decodes v into to.
func (v *OrderView) DecodeThrift(r *thrift.Reader, to *Order) error {
	return v.view.Decode(r, v.at[:], to)
}

// ReadThrift makes v a view of the Order at b[off:]. The view owns b.
func (v *OrderView) ReadThrift(r *thrift.Reader, b []byte, off, depth int) int {
	return v.view.Read(r, b, off, depth, v.at[:], &ViewsOfSample, 0)
}

func (v *OrderView) SizeThrift() int { return v.view.Size(v.at[:]) }

func (v *OrderView) AppendThrift(b []byte) []byte { return v.view.Append(b, v.at[:]) }

func OrderViewAt(b []byte, off int) (v OrderView, next int) {
	next = v.view.Index(b, off, v.at[:], &ViewsOfSample, 0)
	return v, next
}

func (v *OrderView) ID() int64 { return v.view.I64(v.at[0], 0) }

func (v *OrderView) Paid() bool { return v.view.Bool(v.at[1], false) }

func (v *OrderView) Small() int8 { return v.view.I8(v.at[2], 0) }

func (v *OrderView) Medium() int16 { return v.view.I16(v.at[3], 0) }

func (v *OrderView) Quantity() thrift.Opt[int32] {
	return thrift.OptIf(v.at[4] != 0, v.view.I32(v.at[4], 0))
}

func (v *OrderView) Price() thrift.Opt[float64] {
	return thrift.OptIf(v.at[5] != 0, v.view.Double(v.at[5], 0))
}

func (v *OrderView) Key() thrift.UUID { return v.view.UUID(v.at[6], thrift.UUID{}) }

func (v *OrderView) Name() thrift.Opt[string] {
	return thrift.OptIf(v.at[7] != 0, v.view.String(v.at[7], ""))
}

func (v *OrderView) Payload() []byte { return v.view.Binary(v.at[8], nil) }

func (v *OrderView) Status() thrift.Opt[Status] {
	return thrift.OptIf(v.at[9] != 0, Status(v.view.I32(v.at[9], 0)))
}

func (v *OrderView) Codes() thrift.NumbersView[int64] {
	return thrift.ViewNumbers[int64](&v.view, v.at[10])
}

func (v *OrderView) Tags() thrift.ListView[string] {
	return thrift.ViewList(&v.view, v.at[11], thrift.StringAt)
}

func (v *OrderView) Attrs() thrift.MapView[string, string] {
	return thrift.ViewMap(&v.view, v.at[12], thrift.StringAt, thrift.StringAt)
}

func (v *OrderView) Parent() (w OrderView, ok bool) {
	ok = v.view.Struct(v.at[13], &w.view, w.at[:], &ViewsOfSample, 0)
	return w, ok
}

func (v *OrderView) Lines() thrift.ListView[OrderView] {
	return thrift.ViewList(&v.view, v.at[14], OrderViewAt)
}

func (v *OrderView) States() thrift.MapView[int32, thrift.NumbersView[Status]] {
	return thrift.ViewMap(&v.view, v.at[15], thrift.NumberAt[int32], thrift.NumbersAt[Status])
}

func (v *OrderView) SetID(x int64) { v.view.SetI64(v.at[:], 0, 1, x, true) }

func (v *OrderView) SetPaid(x bool) { v.view.SetBool(v.at[:], 1, 2, x, true) }

func (v *OrderView) SetSmall(x int8) { v.view.SetI8(v.at[:], 2, 3, x, true) }

func (v *OrderView) SetMedium(x int16) { v.view.SetI16(v.at[:], 3, 4, x, true) }

func (v *OrderView) SetQuantity(x thrift.Opt[int32]) { v.view.SetI32(v.at[:], 4, 5, x.V, x.Set) }

func (v *OrderView) SetPrice(x thrift.Opt[float64]) { v.view.SetDouble(v.at[:], 5, 6, x.V, x.Set) }

func (v *OrderView) SetKey(x thrift.UUID) { v.view.SetUUID(v.at[:], 6, 7, x, true) }

func (v *OrderView) SetName(x thrift.Opt[string]) { v.view.SetString(v.at[:], 7, 8, x.V, x.Set) }

func (v *OrderView) SetPayload(x []byte) { v.view.SetBinary(v.at[:], 8, 9, x, x != nil) }

func (v *OrderView) SetStatus(x thrift.Opt[Status]) {
	v.view.SetI32(v.at[:], 9, 10, int32(x.V), x.Set)
}

func (v *OrderView) SetCodes(x []int64) {
	thrift.SetNumbers(&v.view, v.at[:], 10, thrift.TypeList<<16|11, thrift.TypeI64, x, true)
}

func (v *OrderView) SetTags(x []string) {
	thrift.SetStrings(&v.view, v.at[:], 11, thrift.TypeSet<<16|12, x, true)
}

func (v *OrderView) SetAttrs(x map[string]string) {
	thrift.SetStringMap(&v.view, v.at[:], 12, thrift.TypeMap<<16|13, x, true)
}

func (v *OrderView) SetParent(x *Order) { v.view.SetStruct(v.at[:], 13, 14, x, x != nil) }

func (v *OrderView) SetParentView(x *OrderView) { v.view.SetStruct(v.at[:], 13, 14, x, x != nil) }

func (v *OrderView) SetLines(x []Order) {
	thrift.SetStructs(&v.view, v.at[:], 14, thrift.TypeList<<16|15, x, true)
}

func (v *OrderView) SetLinesView(x []OrderView) {
	thrift.SetStructs(&v.view, v.at[:], 14, thrift.TypeList<<16|15, x, true)
}

func (v *OrderView) SetStates(x map[int32][]Status) {
	thrift.SetValue(&v.view, v.at[:], 15, thrift.TypeMap<<16|40, x, true, appendOrderStates)
}

func appendOrderStates(b []byte, x map[int32][]Status) []byte {
	b = thrift.AppendMap(b, thrift.TypeI32, thrift.TypeList, len(x))
	for _, k := range thrift.SortedKeys(x) {
		v := x[k]
		b = thrift.AppendI32(b, k)
		b = thrift.AppendList(b, thrift.TypeI32, len(v))
		n := len(b)
		b = thrift.Extend(b, 4*len(v))
		thrift.PutI32s(b, n, v)
	}
	return b
}
