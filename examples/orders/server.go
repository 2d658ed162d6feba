package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/examples/orders/orders"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// store implements the service Orders. Its methods run concurrently.
type store struct {
	log *slog.Logger // immutable

	mu sync.Mutex
	// Guarded by mu.
	orders map[int64]orders.Order
}

// Get returns an order.
func (s *store) Get(_ context.Context, id int64) (*orders.Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	order, ok := s.orders[id]
	if !ok {
		return nil, &orders.NotFound{ID: id} // declared in the IDL, so clients receive this type
	}
	return &order, nil
}

// Place stores an order and returns its ID.
func (s *store) Place(_ context.Context, order *orders.Order) (int64, error) {
	if len(order.Lines) == 0 {
		return 0, &rpc.StatusError{Code: 400, Message: "an order without lines"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	order.ID = int64(len(s.orders)) + 1
	s.orders[order.ID] = *order
	return order.ID, nil
}

// Ship waits for a carrier; in this example, none comes.
func (s *store) Ship(ctx context.Context, id int64) error {
	<-ctx.Done() // at the client's deadline
	s.log.Info("no carrier in time", "order", id, "error", ctx.Err())
	return ctx.Err()
}

// serve serves until ctx ends, and then still answers the requests that it has received.
func serve(ctx context.Context, addr string, log *slog.Logger, listening func(addr string)) error {
	handler := &store{log: log, orders: make(map[int64]orders.Order)}
	s, err := rpc.NewServer(rpc.ServerConfig{Log: log}, orders.NewOrdersService(handler))
	if err != nil {
		return err
	}
	if err := s.Listen("tcp", addr); err != nil { // returns when connections are accepted
		return err
	}
	listening(s.Addr().String())
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.Shutdown(ctx)
}
