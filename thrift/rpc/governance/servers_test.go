package governance_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/governance"
)

// serveAt starts a server at an address.
func serveAt(t *testing.T, addr string, echo func(ctx context.Context, text string) (string, error)) *rpc.Server {
	t.Helper()
	s, err := rpc.NewServer(rpc.ServerConfig{}, calc.NewCalculatorService(&calculator{echo: echo}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("tcp", addr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(s) })
	return s
}

func stop(s *rpc.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = s.Shutdown(ctx) // may already have been called
}

// No call fails while servers restart one after another and a file adds and removes members.
func TestServersThatRestart(t *testing.T) {
	testkit.NoLeaks(t)
	var counts [3]atomic.Int64
	handler := func(i int) func(context.Context, string) (string, error) {
		return func(_ context.Context, text string) (string, error) {
			counts[i].Add(1)
			return text, nil
		}
	}
	servers := make([]*rpc.Server, 3)
	addrs := make([]string, 3)
	for i := range servers {
		servers[i] = serveAt(t, "127.0.0.1:0", handler(i))
		addrs[i] = servers[i].Addr().String()
	}
	path := filepath.Join(t.TempDir(), "members")
	testkit.WriteAtOnce(t, path, []byte(strings.Join(addrs, "\n")))
	pool, err := governance.NewPool(governance.PoolConfig{
		Resolver: governance.File(path), Refresh: time.Second, WarmUp: -1, EjectionTime: 100 * time.Millisecond,
		Client: rpc.ClientConfig{Timeout: 5 * time.Minute, MaxBackoff: 100 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	retry, err := governance.NewRetry(pool, governance.RetryConfig{Retries: 10})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	t.Cleanup(callers.Wait)
	t.Cleanup(cancel)
	for n := range 8 {
		callers.Go(func() { // ends with ctx
			c := calc.NewCalculatorClient(retry)
			for i := 0; ctx.Err() == nil; i++ {
				want := fmt.Sprint(n, "-", i)
				if text, err := c.Echo(context.Background(), want); text != want || err != nil {
					t.Errorf("%q, %v, want %q", text, err, want)
					return
				}
			}
		})
	}
	used := func(i int) {
		t.Helper()
		before := counts[i].Load()
		testkit.Eventually(t, patience, func() error {
			if n := counts[i].Load(); n < before+10 {
				return fmt.Errorf("server %d has received %d more calls: %+v", i, n-before, pool.Stats().Members)
			}
			return nil
		})
	}
	for i := range servers {
		used(i)
		stop(servers[i])
		for j := range servers {
			if j != i {
				used(j)
			}
		}
		servers[i] = serveAt(t, addrs[i], handler(i))
		used(i)
	}
	testkit.WriteAtOnce(t, path, []byte("# nothing\n"))
	testkit.Eventually(t, patience, func() error {
		if s := pool.Stats(); s.ResolveError == nil || len(s.Members) != 3 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	testkit.WriteAtOnce(t, path, []byte(addrs[1]))
	testkit.Eventually(t, patience, func() error {
		if s := pool.Stats(); s.ResolveError != nil || len(s.Members) != 1 || s.Members[0].Addr != addrs[1] {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	used(1)
	cancel()
	callers.Wait()
}

// A pool is a Caller for generated clients. With ConsistentHash, each call has a key.
func ExampleNewPool() {
	pool, err := governance.NewPool(governance.PoolConfig{
		Resolver: governance.DNS{Addr: "catalog.default.svc.cluster.local:9090"},
		Balance:  governance.ConsistentHash,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	c := calc.NewCalculatorClient(pool)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := c.Echo(governance.WithHashKey(ctx, "user:17"), "hello"); err != nil {
		fmt.Println(err)
	}
}
