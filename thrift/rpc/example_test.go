package rpc_test

import (
	"context"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// The handler of a service of the IDL: it has a method for each function.
type wallClock struct{}

func (wallClock) Now(context.Context) (int64, error) { return time.Now().Unix(), nil }

func (wallClock) Echo(_ context.Context, text string) (string, error) { return text, nil }

// A server runs until the program is told to stop, and then answers what it has received.
func ExampleServer() {
	s, err := rpc.NewServer(rpc.ServerConfig{}, calc.NewClockService(wallClock{}))
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Listen("tcp", ":9090"); err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		log.Print(err)
	}
}
