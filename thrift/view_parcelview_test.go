package thrift_test

import "github.com/slipstream-go/slipstream/thrift"

// This file contains the code that the generator writes for the views of view_parcel_test.go.

// ViewsOfParcel describes the structs of this IDL file for their views.
var ViewsOfParcel = thrift.ViewTable{Structs: []thrift.ViewStruct{
	{ // Choice
		Fields: []thrift.ViewField{
			{Key: thrift.TypeI32<<16 | 1},
			{Key: thrift.TypeString<<16 | 2},
			{Key: thrift.TypeStruct<<16 | 3, Type: &thrift.ViewType{Struct: 0, Table: &ViewsOfSample}},
		},
		Union: true,
	},
	{ // Parcel
		Fields: []thrift.ViewField{
			{Key: thrift.TypeList<<16 | 1, Type: &thrift.ViewType{Elem: thrift.TypeBool}},
			{Key: thrift.TypeList<<16 | 2, Type: &thrift.ViewType{Elem: thrift.TypeI8}},
			{Key: thrift.TypeSet<<16 | 3, Type: &thrift.ViewType{Elem: thrift.TypeI16}},
			{Key: thrift.TypeList<<16 | 4, Type: &thrift.ViewType{Elem: thrift.TypeI32}},
			{Key: thrift.TypeList<<16 | 5, Type: &thrift.ViewType{Elem: thrift.TypeDouble}},
			{Key: thrift.TypeList<<16 | 6, Type: &thrift.ViewType{Elem: thrift.TypeUUID}},
			{Key: thrift.TypeList<<16 | 7, Type: &thrift.ViewType{Elem: thrift.TypeString}},
			{Key: thrift.TypeList<<16 | 8, Type: &thrift.ViewType{Elem: thrift.TypeList, ElemType: &thrift.ViewType{Elem: thrift.TypeString}}},
			{Key: thrift.TypeMap<<16 | 9, Type: &thrift.ViewType{Key: thrift.TypeString, Elem: thrift.TypeStruct, ElemType: &thrift.ViewType{Struct: 0, Table: &ViewsOfSample}}},
			{Key: thrift.TypeMap<<16 | 10, Type: &thrift.ViewType{Key: thrift.TypeI32, Elem: thrift.TypeDouble}},
			{Key: thrift.TypeI32<<16 | 11},
			{Key: thrift.TypeString<<16 | 12},
			{Key: thrift.TypeStruct<<16 | 20, Type: &thrift.ViewType{Struct: 0}},
			{Key: thrift.TypeList<<16 | 21, Type: &thrift.ViewType{Elem: thrift.TypeStruct, ElemType: &thrift.ViewType{Struct: 0}}},
			{Key: thrift.TypeList<<16 | 30, Type: &thrift.ViewType{Elem: thrift.TypeMap, ElemType: &thrift.ViewType{Key: thrift.TypeBool, Elem: thrift.TypeSet, ElemType: &thrift.ViewType{Elem: thrift.TypeI64}}}},
			{Key: thrift.TypeBool<<16 | 31},
			{Key: thrift.TypeI16<<16 | 0xfffe},
		},
		Required: []uint64{0x8000},
	},
}}

// ChoiceView is a view of an encoded Choice: see thrift.View.
type ChoiceView struct {
	view thrift.View
	at   [3]uint32
}

var _ thrift.Struct = (*ChoiceView)(nil)

// OpenThrift makes v a view of the Choice that b begins with. The view owns b.
func (v *ChoiceView) OpenThrift(b []byte) error {
	return v.view.Open(b, v.at[:], &ViewsOfParcel, 0, (*Choice)(nil))
}

// DecodeThrift decodes v into to.
func (v *ChoiceView) DecodeThrift(r *thrift.Reader, to *Choice) error {
	return v.view.Decode(r, v.at[:], to)
}

// ReadThrift makes v a view of the Choice at b[off:]. The view owns b.
func (v *ChoiceView) ReadThrift(r *thrift.Reader, b []byte, off, depth int) int {
	return v.view.Read(r, b, off, depth, v.at[:], &ViewsOfParcel, 0)
}

func (v *ChoiceView) SizeThrift() int { return v.view.Size(v.at[:]) }

func (v *ChoiceView) AppendThrift(b []byte) []byte { return v.view.Append(b, v.at[:]) }

func ChoiceViewAt(b []byte, off int) (v ChoiceView, next int) {
	next = v.view.Index(b, off, v.at[:], &ViewsOfParcel, 0)
	return v, next
}

func (v *ChoiceView) Number() thrift.Opt[int32] {
	return thrift.OptIf(v.at[0] != 0, v.view.I32(v.at[0], 0))
}

func (v *ChoiceView) Text() thrift.Opt[string] {
	return thrift.OptIf(v.at[1] != 0, v.view.String(v.at[1], ""))
}

func (v *ChoiceView) Order() (w OrderView, ok bool) {
	ok = v.view.Struct(v.at[2], &w.view, w.at[:], &ViewsOfSample, 0)
	return w, ok
}

// ParcelView is a view of an encoded Parcel: see thrift.View.
type ParcelView struct {
	view thrift.View
	at   [17]uint32
}

var _ thrift.Struct = (*ParcelView)(nil)

// OpenThrift makes v a view of the Parcel that b begins with. The view owns b.
func (v *ParcelView) OpenThrift(b []byte) error {
	return v.view.Open(b, v.at[:], &ViewsOfParcel, 1, (*Parcel)(nil))
}

// DecodeThrift decodes v into to.
func (v *ParcelView) DecodeThrift(r *thrift.Reader, to *Parcel) error {
	return v.view.Decode(r, v.at[:], to)
}

// ReadThrift makes v a view of the Parcel at b[off:]. The view owns b.
func (v *ParcelView) ReadThrift(r *thrift.Reader, b []byte, off, depth int) int {
	return v.view.Read(r, b, off, depth, v.at[:], &ViewsOfParcel, 1)
}

func (v *ParcelView) SizeThrift() int { return v.view.Size(v.at[:]) }

func (v *ParcelView) AppendThrift(b []byte) []byte { return v.view.Append(b, v.at[:]) }

func (v *ParcelView) Flags() thrift.NumbersView[bool] {
	return thrift.ViewNumbers[bool](&v.view, v.at[0])
}

func (v *ParcelView) Small() thrift.NumbersView[int8] {
	return thrift.ViewNumbers[int8](&v.view, v.at[1])
}

func (v *ParcelView) Medium() thrift.NumbersView[int16] {
	return thrift.ViewNumbers[int16](&v.view, v.at[2])
}

func (v *ParcelView) Steps() thrift.NumbersView[Status] {
	return thrift.ViewNumbers[Status](&v.view, v.at[3])
}

func (v *ParcelView) Weights() thrift.NumbersView[float64] {
	return thrift.ViewNumbers[float64](&v.view, v.at[4])
}

func (v *ParcelView) Keys() thrift.NumbersView[thrift.UUID] {
	return thrift.ViewNumbers[thrift.UUID](&v.view, v.at[5])
}

func (v *ParcelView) Blobs() thrift.ListView[[]byte] {
	return thrift.ViewList(&v.view, v.at[6], thrift.BinaryAt)
}

func (v *ParcelView) Grid() thrift.ListView[thrift.ListView[string]] {
	return thrift.ViewList(&v.view, v.at[7], viewListString)
}

func viewListString(b []byte, off int) (thrift.ListView[string], int) {
	return thrift.ListAt(b, off, thrift.StringAt)
}

func (v *ParcelView) Orders() thrift.MapView[string, OrderView] {
	return thrift.ViewMap(&v.view, v.at[8], thrift.StringAt, OrderViewAt)
}

func (v *ParcelView) Rates() thrift.MapView[Status, float64] {
	return thrift.ViewMap(&v.view, v.at[9], thrift.NumberAt[Status], thrift.NumberAt[float64])
}

func (v *ParcelView) Level() int32 { return v.view.I32(v.at[10], 7) }

func (v *ParcelView) Label() string { return v.view.String(v.at[11], "none") }

func (v *ParcelView) Choice() (w ChoiceView, ok bool) {
	ok = v.view.Struct(v.at[12], &w.view, w.at[:], &ViewsOfParcel, 0)
	return w, ok
}

func (v *ParcelView) Choices() thrift.ListView[ChoiceView] {
	return thrift.ViewList(&v.view, v.at[13], ChoiceViewAt)
}

func (v *ParcelView) Deep() thrift.ListView[thrift.MapView[bool, thrift.NumbersView[int64]]] {
	return thrift.ViewList(&v.view, v.at[14], viewMapBoolListI64)
}

func viewMapBoolListI64(b []byte, off int) (thrift.MapView[bool, thrift.NumbersView[int64]], int) {
	return thrift.MapAt(b, off, thrift.NumberAt[bool], thrift.NumbersAt[int64])
}

func (v *ParcelView) Last() bool { return v.view.Bool(v.at[15], false) }

func (v *ParcelView) Old() thrift.Opt[int16] {
	return thrift.OptIf(v.at[16] != 0, v.view.I16(v.at[16], 0))
}

func (v *ParcelView) SetFlags(x []bool) {
	thrift.SetNumbers(&v.view, v.at[:], 0, thrift.TypeList<<16|1, thrift.TypeBool, x, true)
}

func (v *ParcelView) SetSmall(x []int8) {
	thrift.SetNumbers(&v.view, v.at[:], 1, thrift.TypeList<<16|2, thrift.TypeI8, x, true)
}

func (v *ParcelView) SetMedium(x []int16) {
	thrift.SetNumbers(&v.view, v.at[:], 2, thrift.TypeSet<<16|3, thrift.TypeI16, x, true)
}

func (v *ParcelView) SetSteps(x []Status) {
	thrift.SetNumbers(&v.view, v.at[:], 3, thrift.TypeList<<16|4, thrift.TypeI32, x, x != nil)
}

func (v *ParcelView) SetWeights(x []float64) {
	thrift.SetNumbers(&v.view, v.at[:], 4, thrift.TypeList<<16|5, thrift.TypeDouble, x, true)
}

func (v *ParcelView) SetKeys(x []thrift.UUID) {
	thrift.SetNumbers(&v.view, v.at[:], 5, thrift.TypeList<<16|6, thrift.TypeUUID, x, true)
}

func (v *ParcelView) SetBlobs(x [][]byte) {
	thrift.SetStrings(&v.view, v.at[:], 6, thrift.TypeList<<16|7, x, true)
}

func (v *ParcelView) SetGrid(x [][]string) {
	thrift.SetValue(&v.view, v.at[:], 7, thrift.TypeList<<16|8, x, true, appendGrid)
}

func (v *ParcelView) SetOrders(x map[string]*Order) {
	thrift.SetValue(&v.view, v.at[:], 8, thrift.TypeMap<<16|9, x, true, appendOrders)
}

func (v *ParcelView) SetRates(x map[Status]float64) {
	thrift.SetValue(&v.view, v.at[:], 9, thrift.TypeMap<<16|10, x, true, appendRates)
}

func (v *ParcelView) SetLevel(x int32) { v.view.SetI32(v.at[:], 10, 11, x, true) }

func (v *ParcelView) SetLabel(x string) { v.view.SetString(v.at[:], 11, 12, x, true) }

func (v *ParcelView) SetChoice(x *Choice) { v.view.SetStruct(v.at[:], 12, 20, x, x != nil) }

func (v *ParcelView) SetChoices(x []Choice) {
	thrift.SetStructs(&v.view, v.at[:], 13, thrift.TypeList<<16|21, x, true)
}

func (v *ParcelView) SetDeep(x []map[bool][]int64) {
	thrift.SetValue(&v.view, v.at[:], 14, thrift.TypeList<<16|30, x, true, appendDeep)
}

func (v *ParcelView) SetLast(x bool) { v.view.SetBool(v.at[:], 15, 31, x, true) }

func (v *ParcelView) SetOld(x thrift.Opt[int16]) {
	v.view.SetI16(v.at[:], 16, 0xfffe, x.V, x.Set)
}
