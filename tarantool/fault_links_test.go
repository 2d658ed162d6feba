//go:build unix

package tarantool_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/tarantool"
)

// resetSpan is the number of bytes of a connection, in each direction, after which it is reset: the
// greeting, the schema, and dozens of requests.
const resetSpan = 2 << 10

// opaque hides the type of a connection, as TLS does. Then the client cannot write without
// blocking, and a separate goroutine writes.
func opaque(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{conn}, nil
}

// Connections are reset after every one of their first bytes, in both directions, under load: no
// reply goes astray, and no request is lost.
func TestFaultResetAtEveryByte(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	server := startInstance(t, "none", faultSetup)
	// Each lane is a separate client with its share of the offsets.
	const lanes = 4
	for lane := range lanes {
		t.Run(fmt.Sprintf("lane %d", lane), func(t *testing.T) {
			t.Parallel()
			// From the last offset to the greeting, so that the first attempt succeeds.
			resetAt(t, seed, server, lane, 4+4*lane, resetSpan/lanes, func(i int) int { return resetSpan - i*lanes - lane })
		})
	}
	// A lone caller reads its own replies after 64 requests.
	t.Run("lone caller", func(t *testing.T) {
		t.Parallel()
		resetAt(t, seed, server, 0, 1, 20, func(i int) int { return 10<<10 + i })
	})
}

// resetAt lets workers make calls while connection after connection is reset: for each of n
// offsets, one after that many bytes to the server, and one after that many bytes to the client.
func resetAt(t *testing.T, seed uint64, server *instance, lane, workers, n int, offset func(int) int) {
	proxy := faultproxy.Start(t, server.addr, faultproxy.Options{Seed: seed, Plan: func(conn int, _ *rand.Rand) faultproxy.Plan {
		if conn >= 2*n {
			return faultproxy.Plan{}
		}
		faulty := faultproxy.Link{Faults: []faultproxy.Fault{{After: int64(offset(conn / 2)), Do: faultproxy.Reset}}}
		if conn%2 == 0 {
			return faultproxy.Plan{Up: faulty}
		}
		return faultproxy.Plan{Down: faulty}
	}})
	o := tarantool.Options{Addr: proxy.Addr(), Backoff: time.Microsecond, MaxBackoff: time.Microsecond, StallTimeout: 10 * time.Second}
	if lane%2 == 1 {
		o.Retries = -1
	}
	if lane == 1 {
		o.Dialer = opaque
	}
	l := newLedger(connect(t, o), 4)
	l.lone = workers == 1
	if l.lone {
		l.sizes = l.sizes[:2] // so that there are many requests before the fault
	}
	l.run(t, seed, workers, func() bool { return proxy.Stats().Accepted > int64(2*n) })
	if resets := proxy.Stats().Faults[faultproxy.Reset]; resets < int64(2*n)*9/10 {
		t.Errorf("%d of %d resets happened", resets, 2*n)
	}
}

// Requests and replies arrive in pieces of every small size, and byte by byte with pauses in
// between, so that every split occurs.
func TestFaultChoppedAtEveryByte(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	server := startInstance(t, "none", faultSetup)
	var pauses []faultproxy.Fault
	for i := range int64(1 << 10) {
		pauses = append(pauses, faultproxy.Fault{After: i, Do: faultproxy.Stall, For: time.Microsecond})
	}
	for name, plan := range map[string]faultproxy.Plan{
		"single bytes":  {Up: faultproxy.Link{Chop: 1}, Down: faultproxy.Link{Chop: 1}},
		"7 and 13":      {Up: faultproxy.Link{Chop: 7}, Down: faultproxy.Link{Chop: 13}},
		"with pauses":   {Down: faultproxy.Link{Chop: 1, Faults: pauses}},
		"pauses before": {Up: faultproxy.Link{Chop: 1, Faults: pauses}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := faultproxy.Start(t, server.addr, faultproxy.Options{Seed: seed, Plan: faultproxy.Always(plan)})
			l := newLedger(connect(t, tarantool.Options{Addr: proxy.Addr()}), 4)
			for _, workers := range []int{1, 8} {
				var steps atomic.Int64
				l.run(t, seed, workers, func() bool { return steps.Add(1) > 60 })
			}
			if n := l.failed.Load(); n > 0 {
				t.Errorf("%d requests failed", n)
			}
			if n := proxy.Stats().Accepted; n > 2 { // one more for blocking calls
				t.Errorf("%d connections, expected at most two", n)
			}
		})
	}
}

// Callers give up at random, even while a large reply is arriving or being copied; the remains of
// their requests do not affect other calls.
func TestFaultCancelsAtRandom(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	server := startInstance(t, "none", faultSetup)
	for name, link := range map[string]faultproxy.Link{
		"as quick as it goes": {},
		"32 MiB per second":   {BytesPerSecond: 32 << 20},
		"in pieces, late":     {Chop: 9000, Delay: time.Millisecond, Jitter: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := faultproxy.Start(t, server.addr, faultproxy.Options{Seed: seed, Plan: faultproxy.Always(faultproxy.Plan{Down: link})})
			o := tarantool.Options{Addr: proxy.Addr()}
			if link.BytesPerSecond > 0 {
				o.Dialer = opaque
			}
			l := newLedger(connect(t, o), len(fixedSizes))
			l.cancels = 10 * time.Millisecond
			began := time.Now()
			l.run(t, seed, 8, func() bool {
				took := time.Since(began) // a slow machine needs longer until some requests were given up
				return took > 700*time.Millisecond && l.failed.Load() > 0 || took > time.Minute
			})
			if n := l.failed.Load(); n == 0 {
				t.Error("no request was given up")
			}
			if n := proxy.Stats().Accepted; n > 2 {
				t.Errorf("%d connections, expected at most two", n)
			}
		})
	}
}

// The server is stopped, killed and restarted under load. Acknowledged writes are in its log, or it
// loses everything.
func TestFaultServerComesAndGoes(t *testing.T) {
	testkit.NoLeaks(t)
	for _, wal := range []string{"none", "write"} {
		t.Run("wal "+wal, func(t *testing.T) {
			seed := testkit.Seed(t)
			server := startInstance(t, wal, faultSetup)
			o := tarantool.Options{Addr: server.addr, Backoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond, StallTimeout: 150 * time.Millisecond}
			l := newLedger(connect(t, o), 6)
			l.volatile, l.cancels = wal == "none", 100*time.Millisecond
			var over atomic.Bool
			wait := l.start(t, seed, 8, over.Load)
			r := testkit.Fork(seed, 1)
			for i := range 5 {
				time.Sleep(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
				if i%2 == 1 {
					must(t, server.Signal(syscall.SIGSTOP))
					time.Sleep(time.Duration(r.Int64N(int64(300 * time.Millisecond))))
					must(t, server.Signal(syscall.SIGCONT))
					continue
				}
				server.Kill()
				time.Sleep(time.Duration(r.Int64N(int64(50 * time.Millisecond))))
				server.restart(t)
			}
			time.Sleep(50 * time.Millisecond)
			over.Store(true)
			wait()
		})
	}
}
