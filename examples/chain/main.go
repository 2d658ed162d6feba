// Chain is an HTTP service that calls a Thrift service that uses a Redis, each in a separate process. README.md
// describes how to run them and what happens when one is killed.
//
//	go run ./examples/chain sales 127.0.0.1:9090 127.0.0.1:6379    # Thrift service, uses the Redis
//	go run ./examples/chain web 127.0.0.1:8081 127.0.0.1:9090      # HTTP service, calls the Thrift service
package main

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

//go:generate go run ../../cmd/slipstream gen thrift --rpc sales.thrift

// Each service gives the next one less time than it has itself, so that it can still report what went wrong.
const (
	webTimeout     = 2 * time.Second        // for a request
	attemptTimeout = 500 * time.Millisecond // for an attempt to call the Thrift service; a request may make several
	redisTimeout   = 250 * time.Millisecond // for a command
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// run runs a service until ctx ends.
func run(ctx context.Context, args []string) error {
	listening := func(addr string) { slog.Info("listening", "service", args[0], "address", addr) }
	switch {
	case len(args) == 3 && args[0] == "sales":
		return serveSales(ctx, args[1], args[2], "", listening)
	case len(args) == 4 && args[0] == "sales":
		return serveSales(ctx, args[1], args[2], args[3], listening)
	case len(args) == 3 && args[0] == "web":
		return serveWeb(ctx, args[1], args[2], listening)
	}
	return errors.New("usage: chain sales ADDRESS REDIS [METRICS] | chain web ADDRESS SALES")
}
