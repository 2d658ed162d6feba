package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/examples/orders/orders"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// call calls all functions and writes the results to w.
func call(ctx context.Context, w io.Writer, addr string) error {
	client, err := rpc.NewClient(rpc.ClientConfig{Addr: addr}) // one for the whole program
	if err != nil {
		return err
	}
	defer client.Close()
	c := orders.NewOrdersClient(client)
	id, err := place(ctx, w, c)
	if err != nil {
		return err
	}
	ship(ctx, w, c, id)
	return inspect(ctx, w, c, id)
}

// place places an order and reads it. Both calls share the connection with calls of other
// goroutines, if there are any.
func place(ctx context.Context, w io.Writer, c *orders.OrdersClient) (id int64, err error) {
	mug := orders.NewLine() // with its defaults, unlike a composite literal
	mug.Product = "mug"
	id, err = c.Place(ctx, &orders.Order{Status: orders.StatusPaid, Lines: []orders.Line{*mug, {Product: "spoon", Quantity: 6}}})
	if err != nil {
		return 0, err
	}
	order, err := c.Get(ctx, id)
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(w, "order %d: %v, %d lines, note: %s\n", order.ID, order.Status, len(order.Lines), order.Note.Or("none"))

	_, err = c.Get(ctx, 1_000_000)
	if missing, ok := errors.AsType[*orders.NotFound](err); ok {
		fmt.Fprintln(w, "not found:", missing.ID)
	}
	_, err = c.Place(ctx, new(orders.Order))
	if status, ok := errors.AsType[*rpc.StatusError](err); ok {
		fmt.Fprintf(w, "refused with status %d: %s\n", status.Code, status.Message)
	}
	return id, nil
}

// ship gives the server less time than it needs.
func ship(ctx context.Context, w io.Writer, c *orders.OrdersClient, id int64) {
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	err := c.Ship(short, id)
	fmt.Fprintln(w, "shipped in time:", err == nil)

	<-short.Done()
	err = c.Ship(short, id) // fails without being sent
	fmt.Fprintln(w, "out of time:", errors.Is(err, context.DeadlineExceeded), "- not executed:", slipstream.SafeToRetry(err))
}

// inspect reads an order without decoding it, and forwards it with another status.
func inspect(ctx context.Context, w io.Writer, c *orders.OrdersClient, id int64) error {
	result, err := c.GetView(ctx, &orders.OrdersGetArgs{ID: id})
	if err != nil {
		return err
	}
	order, _ := result.Success() // there is one, because err is nil
	var pieces int32
	for _, line := range order.Lines().All() {
		pieces += line.Quantity()
	}
	fmt.Fprintf(w, "view of order %d: %v, %d pieces\n", order.ID(), order.Status(), pieces)

	order.SetStatus(orders.StatusShipped)
	frame := order.AppendThrift(nil) // everything else is unchanged, including fields that the IDL does not declare

	var received orders.Order
	if err := thrift.Unmarshal(frame, &received); err != nil {
		return err
	}
	fmt.Fprintf(w, "passed on: order %d: %v, %d lines\n", received.ID, received.Status, len(received.Lines))
	return nil
}
