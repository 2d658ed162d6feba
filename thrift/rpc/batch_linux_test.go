package rpc_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// batched is a fast server, and a client with several calls on one connection to it. From time to time, the server
// stops answering until the client has received all replies that were sent.
type batched struct {
	answered, received atomic.Int64
	raw                atomic.Pointer[net.TCPConn] // the client's connection
	stop               chan struct{}
	all                sync.WaitGroup
}

func startBatched(t *testing.T) *batched {
	t.Helper()
	b := &batched{stop: make(chan struct{})}
	s := startStock(t, &stock{handle: func(c *stockCall) []byte {
		if c.nth%100 == 99 {
			for b.received.Load() < b.answered.Load() && t.Context().Err() == nil {
				runtime.Gosched()
			}
		}
		b.answered.Add(1)
		return c.answer(thrift.Reply, &calc.CalculatorEchoResult{Success: thrift.Some("")})
	}})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, MaxConnections: 1, Depth: 16,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err == nil {
				b.raw.Store(c.(*net.TCPConn))
			}
			return c, err
		}})
	c := calc.NewCalculatorClient(client)
	for range 32 {
		b.all.Go(func() { // ends with stop
			for {
				select {
				case <-b.stop:
					return
				default:
				}
				if _, err := c.Echo(t.Context(), ""); err != nil {
					t.Error(err)
					return
				}
				b.received.Add(1)
			}
		})
	}
	return b
}

func (b *batched) end() {
	close(b.stop)
	b.all.Wait()
}

// lowWater returns the number of bytes that wake the reading goroutine, or 0 if there is no connection yet.
func (b *batched) lowWater(t *testing.T) (n int) {
	t.Helper()
	c := b.raw.Load()
	if c == nil {
		return 0
	}
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if bad := raw.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT) }); bad != nil || err != nil {
		t.Fatal(bad, err)
	}
	return n
}

// Replies do not wait for others that do not arrive.
func TestRepliesDoNotWaitForever(t *testing.T) {
	b := startBatched(t)
	defer b.end()
	testkit.Eventually(t, patience, func() error {
		if n := b.received.Load(); n < 5000 {
			return fmt.Errorf("%d replies", n)
		}
		return nil
	})
}

// The kernel waits for several replies while several calls are in flight, and for one otherwise.
func TestRepliesAreAwaitedTogether(t *testing.T) {
	b := startBatched(t)
	ended := sync.OnceFunc(b.end)
	defer ended()
	testkit.Eventually(t, patience, func() error {
		if n := b.lowWater(t); n < 2*10 {
			return fmt.Errorf("%d bytes wake the client", n)
		}
		return nil
	})
	ended()
	testkit.Eventually(t, patience, func() error {
		if n := b.lowWater(t); n != 1 {
			return fmt.Errorf("%d bytes wake the client when no call is left", n)
		}
		return nil
	})
}
