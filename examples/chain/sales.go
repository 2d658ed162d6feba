package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
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

// serveSales serves until ctx ends, and then answers the calls that it has received. If metricsAddr is not empty, it
// exposes its metrics there.
func serveSales(ctx context.Context, addr, redisAddr, metricsAddr string, listening func(addr string)) (err error) {
	m := newMetrics()
	// It connects in the background, and again when the Redis was away.
	client, err := redis.Connect(ctx, redis.Options{Addr: redisAddr, Timeout: redisTimeout, NoWait: true, Observer: m.client})
	if err != nil {
		return err
	}
	defer client.Close()
	if err := m.next("redis", func() slipstream.Stats { return client.Stats().Stats }); err != nil {
		return err
	}
	s, err := rpc.NewServer(rpc.ServerConfig{Log: slog.Default(), OnCall: m.called}, sales.NewSalesService(counters{client}))
	if err != nil {
		return err
	}
	if metricsAddr != "" {
		l, err := net.Listen("tcp", metricsAddr)
		if err != nil {
			return err
		}
		exposing, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		// It ends with exposing; the deferred function waits for it.
		go func() { ended <- serveHTTP(exposing, l, m.handler()) }()
		defer func() {
			stop()
			err = errors.Join(err, <-ended)
		}()
	}
	if err := s.Listen("tcp", addr); err != nil {
		return err
	}
	listening(s.Addr().String())
	<-ctx.Done()
	draining, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.Shutdown(draining)
}
