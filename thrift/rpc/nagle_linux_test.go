package rpc_test

import (
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// If a server delays small replies until earlier ones are acknowledged, a client does not have to wait for its own
// delayed acknowledgments, which take 40 ms.
func TestServerWithoutNoDelay(t *testing.T) {
	s := startStock(t, &stock{nagle: true, handle: func(c *stockCall) []byte { return add(t, c) }})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, Idempotent: []string{"add"}, MaxConnections: 1, Depth: 4})
	c := calc.NewCalculatorClient(client)
	const bursts = 60
	slow := 0
	for range bursts {
		time.Sleep(2 * time.Millisecond) // until everything has been acknowledged
		began := time.Now()
		var all sync.WaitGroup
		for i := range int32(4) {
			all.Go(func() {
				if sum, err := c.Add(t.Context(), i, 1); sum != i+1 || err != nil {
					t.Errorf("%d, %v", sum, err)
				}
			})
		}
		all.Wait()
		if time.Since(began) >= 35*time.Millisecond {
			slow++
		}
	}
	if slow > bursts/2 {
		t.Errorf("%d of %d bursts took 35 ms or more", slow, bursts)
	}
}
