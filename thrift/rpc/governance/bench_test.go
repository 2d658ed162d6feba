package governance_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/governance"
)

// closed is a closed circuit breaker that counts results, as those of libraries do.
type closed struct {
	mu sync.Mutex
	n  int // guarded by mu
}

func (c *closed) TryAcquirePermit() bool { return true }
func (c *closed) IsHalfOpen() bool       { return false }
func (c *closed) RecordFailure()         { c.RecordSuccess() }
func (c *closed) RecordSuccess() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// places is a bulkhead.
type places chan struct{}

func (p places) AcquirePermitWithMaxWait(context.Context, time.Duration) error {
	p <- struct{}{}
	return nil
}
func (p places) ReleasePermit() { <-p }

// BenchmarkCallers compares 100 callers of a client with those of a client wrapped in a circuit breaker, a limit and a
// retry. A profile shows the cost of each part of the chain:
//
//	go test ./thrift/rpc/governance -run '^$' -bench Callers -cpuprofile cpu.out
func BenchmarkCallers(b *testing.B) {
	s, err := rpc.NewServer(rpc.ServerConfig{}, calc.NewCalculatorService(&calculator{echo: func(_ context.Context, text string) (string, error) { return text, nil }}))
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		b.Fatal(err)
	}
	defer s.Shutdown(context.Background())
	client, err := rpc.NewClient(rpc.ClientConfig{Addr: s.Addr().String(), Retries: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	limit, err := governance.NewBulkhead(client, make(places, 1000), 0)
	if err != nil {
		b.Fatal(err)
	}
	breaker, err := governance.NewBreaker(limit, new(closed))
	if err != nil {
		b.Fatal(err)
	}
	retry, err := governance.NewRetry(breaker, governance.RetryConfig{})
	if err != nil {
		b.Fatal(err)
	}
	for _, one := range []struct {
		name string
		rpc.Caller
	}{{"client", client}, {"retry, breaker, limit", retry}} {
		b.Run(one.name, func(b *testing.B) {
			c := calc.NewCalculatorClient(one.Caller)
			b.ReportAllocs()
			b.SetParallelism(100 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := c.Echo(context.Background(), "hello"); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
