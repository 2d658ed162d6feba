// Command thrift encodes and decodes an order with generated code. Its output is in docs/THRIFT.md.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/slipstream-go/slipstream/examples/thrift/shop"
	"github.com/slipstream-go/slipstream/thrift"
)

//go:generate go run ../../cmd/slipstream gen thrift --equal --json --sorted-keys --views --setters shop.thrift

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run prints its steps to w.
func run(w io.Writer) error {
	mug := shop.NewLine() // the quantity has a default
	mug.Sku, mug.Price = "mug", thrift.Some(12.5)
	order := shop.Order{
		ID:      17,
		Status:  shop.StatusPaid,
		Lines:   []shop.Line{*mug, {Sku: "spoon", Quantity: 6}},
		Coupons: []int64{4711, 815},
		Labels:  map[string]string{"ship": "express", "gift": "yes"},
	}

	// A buffer with room for SizeThrift bytes is enough: nothing is allocated.
	frame := thrift.Append(make([]byte, 0, order.SizeThrift()), &order)
	fmt.Fprintln(w, len(frame), "bytes")

	var got shop.Order
	if err := thrift.Unmarshal(frame, &got); err != nil {
		return err
	}
	fmt.Fprintln(w, "equal:", got.Equal(&order))
	fmt.Fprintln(w, "note:", got.Note.Or("none"))

	text, err := got.MarshalJSON()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\n", text)

	// The same values in the Compact protocol.
	fmt.Fprintln(w, len(got.AppendCompact(nil)), "bytes in the Compact protocol")

	// A view reads fields without decoding the message, and forwards it with changes.
	var view shop.OrderView
	if err := view.OpenThrift(frame); err != nil {
		return err
	}
	for _, line := range view.Lines().All() {
		fmt.Fprintln(w, "view of a line:", line.Quantity(), line.Sku())
	}
	view.SetStatus(shop.StatusShipped)
	if err := thrift.Unmarshal(view.AppendThrift(nil), &got); err != nil {
		return err
	}
	fmt.Fprintln(w, "forwarded:", got.ID, got.Status)

	// A reused reader decodes into memory that it already has.
	var r thrift.Reader
	for range 3 {
		r.Recycle()
		got.Reset()
		if _, err := r.Read(frame, 0, &got); err != nil {
			return err
		}
	}

	// Bytes from the network are not trusted. The error says where they are invalid.
	fmt.Fprintln(w, thrift.Unmarshal(frame[:len(frame)/2], &got))
	return nil
}
