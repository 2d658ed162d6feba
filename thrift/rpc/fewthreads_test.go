package rpc_test

import (
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// A server has two threads, each for a connection, and three clients that come and go: a client that opens more
// connections than one makes no call wait much longer than clients that open one.
func TestThreeClientsOfTwoThreads(t *testing.T) {
	const attempts = 5
	for i := range attempts {
		one := longestCall(t, rpc.ClientConfig{MaxConnections: 1})
		more := longestCall(t, rpc.ClientConfig{})
		t.Logf("the longest call takes %v with one connection of each client, and %v with more", one, more)
		if more <= one+time.Second {
			return
		}
		if i == attempts-1 {
			t.Errorf("the longest call takes %v with one connection of each client, and %v with more", one, more)
		}
	}
}

// longestCall returns how long the longest call takes. All calls must succeed.
func longestCall(t *testing.T, config rpc.ClientConfig) (longest time.Duration) {
	t.Helper()
	t.Run("", func(t *testing.T) {
		const life = time.Second
		s := startStock(t, &stock{handle: slowly(t), serves: 2})
		config.Addr, config.Transport = s.addr, rpc.Framed
		var mu sync.Mutex
		var clients sync.WaitGroup
		for i := range 3 {
			clients.Go(func() { // ends with its life, after its last call
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
