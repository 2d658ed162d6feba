package governance_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/governance"
)

// A client that retries and hedges calls, and falls back to a value if the service is down.
func Example() {
	client, err := rpc.NewClient(rpc.ClientConfig{Addr: "127.0.0.1:1", FailFast: true, Retries: -1})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	hedge, err := governance.NewHedge(client, governance.HedgeConfig{Delay: 50 * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	retry, err := governance.NewRetry(hedge, governance.RetryConfig{Retries: 1})
	if err != nil {
		log.Fatal(err)
	}
	fallback, err := governance.NewFallback(retry, func(_ context.Context, in rpc.Invocation, err error) error {
		if result, ok := in.Result.(*calc.CalculatorEchoResult); ok {
			result.Success = thrift.Some("the last known answer")
			return nil
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	text, err := calc.NewCalculatorClient(fallback).Echo(context.Background(), "hello")
	fmt.Println(text, err)
	// Output: the last known answer <nil>
}
