package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// liveHeap returns the number of heap bytes in use after two garbage collections; the second one frees what pools
// retain.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Each round makes calls of all kinds, some of them canceled, from a long-lived client and from short-lived ones, and
// sends invalid messages. After all rounds, the memory is what it was after the first, and no call is in progress.
func TestSoakMemory(t *testing.T) {
	eachKind(t, func(t *testing.T, transport rpc.Transport) {
		h := new(calculator)
		s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(h))
		config := rpc.ClientConfig{Addr: s.Addr().String(), Transport: transport}
		client := connect(t, config)
		seed := testkit.Seed(t)
		stop := time.Now().Add(testkit.SoakTime(t, time.Second) / 2)
		base := int64(0)
		for n := uint64(0); n < 4 || time.Now().Before(stop); n++ {
			var all sync.WaitGroup
			for i := range uint64(16) {
				all.Go(func() { callOften(t, client, testkit.Fork(seed, n<<8|i)) })
			}
			for i := range uint64(2) {
				all.Go(func() { // another client
					other, err := rpc.NewClient(config)
					if err != nil {
						t.Error(err)
						return
					}
					defer other.Close()
					callOften(t, other, testkit.Fork(seed, n<<8|16|i))
				})
			}
			all.Go(func() { sendNoise(t, config.Addr, testkit.Fork(seed, n<<8|18)) })
			all.Wait()
			testkit.Eventually(t, patience, func() error {
				if c, st := client.Stats(), s.Stats(); c.InProgress+c.Waiting > 0 || st.Calls > 0 {
					return fmt.Errorf("the client has %d calls in progress and %d waiting, the server has %d", c.InProgress, c.Waiting, st.Calls)
				}
				return nil
			})
			if n == 0 {
				base = liveHeap()
			}
		}
		const most = 8 << 20 // connections of the client and buffers in use
		if grown := liveHeap() - base; grown > most {
			t.Errorf("the heap has grown by %d bytes, want at most %d", grown, most)
		}
	})
}

// callOften makes calls of all kinds, and cancels some of them.
func callOften(t *testing.T, client *rpc.Client, r *rand.Rand) {
	c := calc.NewCalculatorClient(client)
	for n := range int32(150) {
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if r.IntN(4) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(1000))*time.Microsecond)
		}
		text := strconv.Itoa(int(n)) + " " + strings.Repeat("x", 1<<10)
		var err error
		switch k := r.IntN(32); {
		case k < 2:
			err = c.Forget(ctx, 1)
		case k < 4:
			if err = c.Fail(ctx, "status sold out"); slipstream.OutcomeOf(err) == slipstream.Executed {
				err = nil
			}
		case k < 16:
			var sum int32
			if sum, err = c.Add(ctx, n, 1); err == nil && sum != n+1 {
				t.Errorf("the sum of %d and 1 is %d", n, sum)
			}
		default:
			if k == 31 {
				text += strings.Repeat("x", 100<<10)
			}
			var got string
			if got, err = c.Echo(ctx, text); err == nil && got != text {
				t.Errorf("echo of %d bytes: %d bytes, %.30q", len(text), len(got), got)
			}
		}
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && slipstream.OutcomeOf(err) != slipstream.Refused { // its deadline had passed
			t.Error(err)
			return
		}
	}
}

// sendNoise opens connections and sends data that is not a call, or an incomplete call.
func sendNoise(t *testing.T, addr string, r *rand.Rand) {
	for _, noise := range []string{
		"GET / HTTP/1.1\r\n\r\n",
		"\x00\xff\xff\x00\x80\x01\x00\x01\x00\x00\x00\x04echo",                                     // nearly 16 MiB
		"\x00\xff\xff\x00\x10\x00\x00\x01\x00\x00\x00\x01\xff\xff\x00\x00",                         // the same with a header
		"\x80\x01\x00\x01\x00\x00\x00\x04echo\x00\x00\x00\x01\x0b\x00\x01\x00\xff\xf0\x00",         // the same without a frame
		"\x00\x00\x00\x15\x80\x01\x00\x01\x00\x00\x00\x04move\x00\x00\x00\x01\x0f\x00\x02\x0c\x7f", // arguments that end early
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		b := append([]byte(noise), make([]byte, r.IntN(32<<10))...)
		_, _ = c.Write(b) // the server may have closed it
		c.Close()
	}
}
