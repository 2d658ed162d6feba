package rpc_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// wallClock is the handler of a service in the IDL. It has a method for each function.
type wallClock struct{}

func (wallClock) Now(context.Context) (int64, error) { return time.Now().Unix(), nil }

func (wallClock) Echo(_ context.Context, text string) (string, error) { return text, nil }

// A server runs until the program receives a signal to stop, and then answers the calls that it has received.
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

// A generated client calls functions through a Client, which all goroutines share.
func ExampleClient() {
	s, err := rpc.NewServer(rpc.ServerConfig{}, calc.NewClockService(wallClock{}))
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		log.Fatal(err)
	}
	defer s.Shutdown(context.Background())

	client, err := rpc.NewClient(rpc.ClientConfig{Addr: s.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	text, err := calc.NewClockClient(client).Echo(context.Background(), "hello")
	if err != nil {
		log.Fatal(err, slipstream.SafeToRetry(err)) // whether the call was certainly not executed
	}
	fmt.Println(text)
	// Output: hello
}

// logged is middleware: it wraps a client and is passed to generated clients in its place.
type logged struct{ rpc.Caller }

func (l logged) Call(ctx context.Context, in rpc.Invocation) error {
	err := l.Caller.Call(ctx, in)
	fmt.Println(in.Service, in.Function.Name, slipstream.OutcomeOf(err))
	return err
}

// Middleware wraps a Client.
func ExampleCaller() {
	s, err := rpc.NewServer(rpc.ServerConfig{}, calc.NewClockService(wallClock{}))
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		log.Fatal(err)
	}
	defer s.Shutdown(context.Background())
	client, err := rpc.NewClient(rpc.ClientConfig{Addr: s.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := calc.NewClockClient(logged{client}).Echo(context.Background(), "hello"); err != nil {
		log.Fatal(err)
	}
	// Output: Clock echo executed
}
