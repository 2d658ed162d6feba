// Orders is a Thrift service and a client that reads only the parts of messages that it needs.
// docs/tutorial-thrift.md explains it:
//
//	go run ./examples/orders serve 127.0.0.1:9090    # stop it with Ctrl-C
//	go run ./examples/orders call 127.0.0.1:9090
package main

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

//go:generate go run ../../cmd/slipstream gen thrift --rpc --views --setters orders.thrift

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := errors.New("usage: orders serve ADDRESS | call ADDRESS")
	if len(os.Args) == 3 {
		switch os.Args[1] {
		case "serve":
			err = serve(ctx, os.Args[2], slog.Default(), func(addr string) { slog.Info("listening", "address", addr) })
		case "call":
			err = call(ctx, os.Stdout, os.Args[2])
		}
	}
	if err != nil {
		log.Fatal(err)
	}
}
