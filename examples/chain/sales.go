package main

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/examples/chain/sales"
	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// counters implements the service Sales with counters in a Redis. Its methods run concurrently.
type counters struct{ redis *redis.Client }

// Sell counts a sale.
func (c counters) Sell(ctx context.Context, product string) (int64, error) {
	n, err := c.redis.Incr(ctx, "sold:"+product)
	return n, statusOf(err)
}

// Sold returns the number of sales.
func (c counters) Sold(ctx context.Context, product string) (int64, error) {
	text, found, err := c.redis.Get(ctx, "sold:"+product)
	if err != nil || !found {
		return 0, statusOf(err)
	}
	return strconv.ParseInt(text, 10, 64)
}

// statusOf converts the error of a command to a status that tells callers whether the command was certainly not
// executed.
func statusOf(err error) error {
	switch {
	case err == nil:
		return nil
	case slipstream.SafeToRetry(err):
		return &rpc.StatusError{Code: http.StatusServiceUnavailable, Message: err.Error()}
	}
	return &rpc.StatusError{Code: http.StatusGatewayTimeout, Message: err.Error()}
}

// serveSales serves until ctx ends, and then answers the calls that it has received.
func serveSales(ctx context.Context, addr, redisAddr string, listening func(addr string)) error {
	// The client connects in the background, and reconnects when the Redis is available again.
	client, err := redis.Connect(ctx, redis.Options{Addr: redisAddr, Timeout: redisTimeout, NoWait: true})
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := rpc.NewServer(rpc.ServerConfig{Log: slog.Default()}, sales.NewSalesService(counters{client}))
	if err != nil {
		return err
	}
	if err := s.Listen("tcp", addr); err != nil {
		return err
	}
	listening(s.Addr().String())
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.Shutdown(ctx)
}
