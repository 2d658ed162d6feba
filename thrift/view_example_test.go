package thrift_test

import (
	"fmt"
	"maps"

	"github.com/slipstream-go/slipstream/thrift"
)

// A view reads fields of a message without decoding it. It owns the frame.
func ExampleView() {
	frame := thrift.Append(nil, &Order{ID: 7, Name: thrift.Some("Ada"), Parent: &Order{ID: 6}, Lines: []Order{{ID: 8}, {ID: 9}}})

	var order OrderView
	if err := order.OpenThrift(frame); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(order.ID(), order.Name().Or("unnamed"), order.Quantity().Set)
	if parent, ok := order.Parent(); ok {
		fmt.Println("parent", parent.ID())
	}
	for i, line := range order.Lines().All() {
		fmt.Println("line", i, line.ID())
	}
	// Output:
	// 7 Ada false
	// parent 6
	// line 0 8
	// line 1 9
}

// A changed view is encoded with all other fields unchanged, including unknown ones.
func ExampleView_forward() {
	frame := thrift.Append(nil, &Order{ID: 7, Name: thrift.Some("Ada"), Payload: []byte("secret")})

	var order OrderView
	if err := order.OpenThrift(frame); err != nil {
		fmt.Println(err)
		return
	}
	order.SetName(thrift.Some("Grace"))
	order.SetPayload(nil) // removes the field
	out := order.AppendThrift(nil)

	var got Order
	if err := thrift.Unmarshal(out, &got); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(got.ID, got.Name.V, got.Payload == nil, order.Name().V)
	// Output:
	// 7 Grace true Grace
}

// To change a nested struct, change its view and set it in the outer view.
func ExampleView_nested() {
	frame := thrift.Append(nil, &Order{ID: 7, Parent: &Order{ID: 6, Medium: 1}})

	var order OrderView
	if err := order.OpenThrift(frame); err != nil {
		fmt.Println(err)
		return
	}
	parent, _ := order.Parent()
	parent.SetMedium(2)
	order.SetParentView(&parent)

	var got Order
	if err := order.DecodeThrift(new(thrift.Reader), &got); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(got.Parent.ID, got.Parent.Medium)
	// Output:
	// 6 2
}

// Elements of a fixed size can be accessed by index.
func ExampleNumbersView() {
	var order OrderView
	if err := order.OpenThrift(thrift.Append(nil, &Order{Codes: []int64{3, 5, 8}})); err != nil {
		fmt.Println(err)
		return
	}
	codes := order.Codes()
	fmt.Println(codes.Len(), codes.At(1), codes.AppendTo(nil))
	for i, code := range codes.All() {
		fmt.Println(i, code)
	}
	// Output:
	// 3 5 [3 5 8]
	// 0 3
	// 1 5
	// 2 8
}

func ExampleListView() {
	var order OrderView
	if err := order.OpenThrift(thrift.Append(nil, &Order{Tags: []string{"new", "gift"}})); err != nil {
		fmt.Println(err)
		return
	}
	for i, tag := range order.Tags().All() {
		fmt.Println(i, tag)
	}
	// Output:
	// 0 new
	// 1 gift
}

func ExampleMapView() {
	var order OrderView
	if err := order.OpenThrift(thrift.Append(nil, &Order{Attrs: map[string]string{"color": "green", "size": "L"}})); err != nil {
		fmt.Println(err)
		return
	}
	color, ok := thrift.Lookup(order.Attrs(), "color")
	fmt.Println(color, ok, order.Attrs().Len())
	fmt.Println(maps.Collect(order.Attrs().All()))
	// Output:
	// green true 2
	// map[color:green size:L]
}
