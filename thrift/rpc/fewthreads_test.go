package rpc_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// A server has two threads, each for one connection, and three short-lived clients: clients that open several
// connections make no call wait much longer than clients that open one.
func TestThreeClientsOfTwoThreads(t *testing.T) {
	const attempts = 5
	for i := range attempts {
		one := longestCall(t, rpc.ClientConfig{MaxConnections: 1})
		more := longestCall(t, rpc.ClientConfig{})
		t.Logf("the longest call takes %v with one connection per client, and %v with more", one, more)
		if more <= one+time.Second {
			return
		}
		if i == attempts-1 {
			t.Errorf("the longest call takes %v with one connection per client, and %v with more", one, more)
		}
	}
}

// longestCall returns the duration of the longest call. All calls must succeed.
func longestCall(t *testing.T, config rpc.ClientConfig) (longest time.Duration) {
	t.Helper()
	t.Run("", func(t *testing.T) {
		const life = time.Second
		s := startStock(t, &stock{handle: slowly(t), serves: 2})
		config.Addr, config.Transport = s.addr, rpc.Framed
		var mu sync.Mutex
		var clients sync.WaitGroup
		for i := range 3 {
			clients.Go(func() { // ends after the last call of the client
				time.Sleep(time.Duration(i) * life / 10)
				client := connect(t, config)
				defer client.Close()
				c := calc.NewCalculatorClient(client)
				end := time.Now().Add(life)
				var callers sync.WaitGroup
				for n := range int32(4) {
					callers.Go(func() {
						for time.Now().Before(end) {
							start := time.Now()
							if sum, err := c.Add(t.Context(), n, 1); sum != n+1 || err != nil {
								t.Errorf("%d, %v", sum, err)
								return
							}
							mu.Lock()
							longest = max(longest, time.Since(start))
							mu.Unlock()
						}
					})
				}
				callers.Wait()
			})
		}
		clients.Wait()
	})
	return longest
}

// The first call on another connection is an idempotent one if one waits, even if the oldest waiting call is not
// idempotent: the server may have no thread for the connection.
func TestFirstCallOfAnotherConnection(t *testing.T) {
	gate := make(chan struct{})
	var mu sync.Mutex
	var firsts []string // the first call of each connection
	s := startStock(t, &stock{handle: func(c *stockCall) []byte {
		if c.nth == 0 {
			mu.Lock()
			firsts = append(firsts, string(c.Name))
			mu.Unlock()
		}
		switch string(c.Name) {
		case "ping":
			<-gate
			return c.answer(thrift.Reply, &calc.BasePingResult{})
		case "echo":
			return c.answer(thrift.Reply, &calc.CalculatorEchoResult{Success: thrift.Some("x")})
		}
		return add(t, c)
	}})
	// The clock does not advance until both calls wait.
	var ahead atomic.Int64
	clock := func() time.Time { return time.Unix(1000, ahead.Load()) }
	client, err := rpc.NewClientAt(rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, MaxConnections: 2, Timeout: 5 * time.Minute}, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	c := calc.NewCalculatorClient(client)
	if sum, err := c.Add(t.Context(), 1, 1); sum != 2 || err != nil {
		t.Fatalf("%d, %v", sum, err)
	}
	ended := make(chan error, 3)
	waiting := func(calls int64, n int) {
		t.Helper()
		testkit.Eventually(t, patience, func() error {
			if got := client.Stats().Waiting; got != n || s.calls.Load() != calls {
				return fmt.Errorf("the server has had %d calls, and %d wait; want %d and %d", s.calls.Load(), got, calls, n)
			}
			return nil
		})
	}
	go func() { ended <- c.Ping(t.Context()) }() // ends when the gate is opened, like all others
	waiting(2, 0)
	go func() {
		_, err := c.Add(t.Context(), 1, 1)
		ended <- err
	}()
	waiting(2, 1)
	go func() {
		_, err := c.Echo(t.Context(), "x") // idempotent
		ended <- err
	}()
	waiting(2, 2)
	testkit.Eventually(t, patience, func() error {
		mu.Lock()
		defer mu.Unlock()
		if len(firsts) < 2 {
			ahead.Add(int64(2 * time.Second))
			return fmt.Errorf("%d connections", len(firsts))
		}
		return nil
	})
	open()
	for range 3 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(firsts[:2], []string{"add", "echo"}) {
		t.Errorf("the first calls of the connections are %v, want add and echo", firsts)
	}
}
