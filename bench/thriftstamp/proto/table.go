package proto

import (
	"unsafe"

	rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"
)

var tableOrder = rt.File{Structs: []rt.StructDesc{{
	Name: "Order", Size: unsafe.Sizeof(Order{}), Least: 12, Needed: 1, New: rt.New[Order], Zero: (*Order)(nil),
	Fields: []rt.Field{
		{Name: "id", ID: 1, Offset: unsafe.Offsetof(Order{}.ID), Type: &rt.TI64},
		{Name: "paid", ID: 2, Offset: unsafe.Offsetof(Order{}.Paid), Type: &rt.TBool},
		{Name: "quantity", ID: 3, Opt: true, Offset: unsafe.Offsetof(Order{}.Quantity), Type: &rt.TI32},
		{Name: "price", ID: 4, Opt: true, Offset: unsafe.Offsetof(Order{}.Price), Type: &rt.TDouble},
		{Name: "name", ID: 5, Opt: true, Offset: unsafe.Offsetof(Order{}.Name), Type: &rt.TString},
		{Name: "payload", ID: 6, Sparse: true, Offset: unsafe.Offsetof(Order{}.Payload), Type: &rt.TBinary},
		{Name: "status", ID: 7, Opt: true, Offset: unsafe.Offsetof(Order{}.Status), Type: &rt.TI32},
		{Name: "codes", ID: 8, Offset: unsafe.Offsetof(Order{}.Codes), Type: &rt.TI64s},
		{Name: "tags", ID: 9, Offset: unsafe.Offsetof(Order{}.Tags), Type: &rt.TStrings},
		{Name: "attrs", ID: 10, Offset: unsafe.Offsetof(Order{}.Attrs), Type: &rt.TStrMap},
		{Name: "parent", ID: 11, Sparse: true, Offset: unsafe.Offsetof(Order{}.Parent), Type: &rt.Type{Wire: rt.Struct, Index: 0}},
		{Name: "lines", ID: 12, Offset: unsafe.Offsetof(Order{}.Lines), Type: &rt.Type{Wire: rt.List, Elem: &rt.Type{Wire: rt.Struct, Index: 0}}},
	},
}}}
