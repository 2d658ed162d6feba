package testpkg

import (
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shared"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shop"
)

// A view of a struct of another package can be read, changed and set.
func TestViewsOfStructsOfOtherPackages(t *testing.T) {
	b := (&shop.Order{ID: 7, Place: &shared.Point{X: 1, Y: 2}}).AppendThrift(nil)
	var order shop.OrderView
	if err := order.OpenThrift(b); err != nil {
		t.Fatal(err)
	}
	place, ok := order.Place()
	if !ok || place.X() != 1 || place.Y() != 2 {
		t.Fatal(place.X(), place.Y(), ok)
	}
	place.SetX(5)
	if before, _ := order.Place(); before.X() != 1 {
		t.Error("the outer view has changed")
	}
	order.SetPlaceView(&place)
	var got shop.Order
	if err := thrift.Unmarshal(order.AppendThrift(nil), &got); err != nil || got.Place.X != 5 || got.Place.Y != 2 {
		t.Errorf("%v %v", got.Place, err)
	}
	order.SetPlace(nil)
	if _, ok := order.Place(); ok {
		t.Error("the field was not removed")
	}
	if n := testing.AllocsPerRun(10, func() {
		if err := order.OpenThrift(b); err != nil {
			t.Fatal(err)
		}
		if place, ok := order.Place(); !ok || place.X() != 1 {
			t.Fatal("no place")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A required struct that is nil is written without fields, as AppendThrift does.
func TestRequiredStructsOfViewsAreNeverRemoved(t *testing.T) {
	var v shop.RequiredView
	if err := v.OpenThrift((&shop.Required{NumbersStruct: &shop.Numbers{AnI8: 5}}).AppendThrift(nil)); err != nil {
		t.Fatal(err)
	}
	for _, set := range []func(){func() { v.SetNumbersStruct(nil) }, func() { v.SetNumbersStructView(nil) }} {
		v.SetNumbersStruct(&shop.Numbers{AnI8: 6})
		if w, ok := v.NumbersStruct(); !ok || w.AnI8() != 6 {
			t.Fatal(w.AnI8(), ok)
		}
		set()
		var got shop.Required
		if err := thrift.Unmarshal(v.AppendThrift(nil), &got); err != nil || got.NumbersStruct == nil || got.NumbersStruct.AnI8 != 0 {
			t.Errorf("%+v, %v", got.NumbersStruct, err)
		}
	}
}

// Views of elements can be changed and set.
func TestListsOfViewsAreSet(t *testing.T) {
	var order shop.OrderView
	if err := order.OpenThrift((&shop.Order{ID: 7, Lines: []shop.Line{{Sku: "a"}, {Sku: "b"}}}).AppendThrift(nil)); err != nil {
		t.Fatal(err)
	}
	var lines []shop.LineView
	for i, line := range order.Lines().All() {
		line.SetQuantity(int32(i + 3))
		lines = append(lines, line)
	}
	order.SetLinesView(lines[1:])
	var got shop.Order
	if err := thrift.Unmarshal(order.AppendThrift(nil), &got); err != nil || len(got.Lines) != 1 || got.Lines[0].Sku != "b" || got.Lines[0].Quantity != 4 {
		t.Errorf("%+v, %v", got.Lines, err)
	}
}
