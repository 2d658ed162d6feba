package thrift_test

import (
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/thrift"
)

// A message consists of a header and a struct.
func Example() {
	args := &Order{ID: 7, Tags: []string{"new"}}
	b := thrift.AppendMessage(nil, "put", thrift.Call, 1)
	b = args.AppendThrift(b)

	var m thrift.Message
	off := thrift.ReadMessage(b, 0, &m)
	if err := thrift.Err(off, 0); err != nil {
		fmt.Println(err)
		return
	}
	var r thrift.Reader
	var got Order
	if _, err := r.Read(b, off, &got); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v %s %d: order %d, tags %v\n", m.Type, m.Name, m.Seq, got.ID, got.Tags)
	// Output:
	// call put 1: order 7, tags [new]
}

func ExampleUnmarshal() {
	b := thrift.Append(nil, &Order{Lines: []Order{{ID: 1}, {ID: 2}}})
	err := thrift.Unmarshal(b[:len(b)-30], new(Order))
	var e *thrift.Error
	if errors.As(err, &e) {
		fmt.Println(e.Path, e.Names)
	}
	fmt.Println(err)
	// Output:
	// 15[1].13 lines[1].attrs
	// thrift: field lines[1].attrs: the input ends inside a value, at byte 224
}

// A reused Reader reads into a reused value without allocating.
func ExampleReader_Recycle() {
	var r thrift.Reader
	var order Order
	for id := range int64(3) {
		b := thrift.Append(nil, &Order{ID: id, Name: thrift.Some("a name")})
		r.Recycle()
		order.Reset()
		if _, err := r.Read(b, 0, &order); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(order.ID, order.Name.V)
	}
	// Output:
	// 0 a name
	// 1 a name
	// 2 a name
}

func ExampleOpt() {
	order := Order{Price: thrift.Some(9.5)}
	fmt.Println(order.Price.Set, order.Price.V)
	fmt.Println(order.Quantity.Set, order.Quantity.Or(1))
	// Output:
	// true 9.5
	// false 1
}

func ExampleDistinct() {
	fmt.Println(thrift.Distinct([]string{"a", "b"}), thrift.Distinct([]string{"a", "a"}))
	// Output:
	// true false
}

// A table describes structs for String, Equal and Copy.
func ExampleTable() {
	a := &Order{ID: 1, Tags: []string{"x", "y"}}
	b := a.Copy()
	b.Tags[0], b.Tags[1] = "y", "x"
	fmt.Println(a.Equal(b), a.Tags)
	// Output:
	// true [x y]
}

// Structs are written as JSON and read from it. Integers of 64 bits can be strings, for JavaScript.
func ExampleJSON() {
	order := &Order{ID: 1 << 60, Name: thrift.Some("tea"), Status: thrift.Some[Status](1)}
	b, err := order.AppendJSON(nil, thrift.JSON{I64Strings: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(b[:65]))
	var r thrift.Reader
	var got Order
	fmt.Println(got.ReadJSON(&r, b), got.Equal(order))
	fmt.Println(got.ReadJSON(&r, []byte(`{"id": 2, "lines": [{"id": "3", "quantity": "many"}]}`)))
	// Output:
	// {"id":"1152921504606846976","paid":false,"small":0,"medium":0,"ke
	// <nil> true
	// thrift: JSON: field lines[0].quantity: expected an integer, found a string, at byte 44
}
