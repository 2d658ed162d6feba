//go:build unix

package redis_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/redis"
)

// resetSpan is the number of bytes of a connection, in each direction, after which it is reset: the
// greeting, some 200 bytes, and dozens of calls.
const resetSpan = 2 << 10

// Connections are reset after every one of their first bytes, in both directions, under load: no
// reply goes astray, and no call is lost.
func TestFaultResetAtEveryByte(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	server := testkit.StartRedis(t)
	// Each lane has its own client and its share of the offsets.
	const lanes = 4
	for lane := range lanes {
		t.Run(fmt.Sprintf("lane %d", lane), func(t *testing.T) {
			t.Parallel()
			// From the last offset to the greeting, so that the first attempt succeeds.
			resetAt(t, seed, server, lane%2 == 0, 4+4*lane, resetSpan/lanes, func(i int) int { return resetSpan - i*lanes - lane })
		})
	}
	// After 64 calls, the only caller reads its own replies.
	t.Run("lone caller", func(t *testing.T) {
		t.Parallel()
		const from = 6 << 10
		if s := resetAt(t, seed, server, true, 1, 20, func(i int) int { return from + i }); s.SoloReplies < 1000 {
			t.Errorf("%d replies were read by their caller", s.SoloReplies)
		}
	})
}

// resetAt lets workers make calls while connection after connection is reset: for each of n
// offsets, one after that many bytes to the server, and one after that many bytes to the client.
func resetAt(t *testing.T, seed uint64, server *testkit.Redis, retry bool, workers, n int, offset func(int) int) redis.Stats {
	proxy := faultproxy.Start(t, server.Addr, faultproxy.Options{Seed: seed, Plan: func(conn int, _ *rand.Rand) faultproxy.Plan {
		if conn >= 2*n {
			return faultproxy.Plan{}
		}
		faulty := faultproxy.Link{Faults: []faultproxy.Fault{{After: int64(offset(conn / 2)), Do: faultproxy.Reset}}}
		if conn%2 == 0 {
			return faultproxy.Plan{Up: faulty}
		}
		return faultproxy.Plan{Down: faulty}
	}})
	o := redis.Options{Addr: proxy.Addr(), Backoff: time.Microsecond, MaxBackoff: time.Microsecond, StallTimeout: 10 * time.Second}
	if !retry {
		o.Retries = -1
	}
	if workers == 8 {
		o.Dialer = opaque
	}
	c := connect(t, o)
	sizes := []int{1, 30, 100, 700}
	if workers == 1 {
		sizes = sizes[:2] // so that there are many calls before the fault
	}
	l := newLedger(t, server.Addr, c, sizes...)
	l.lone = workers == 1
	l.run(t, seed, workers, func() bool { return proxy.Stats().Accepted > int64(2*n) })
	if resets := proxy.Stats().Faults[faultproxy.Reset]; resets < int64(2*n)*9/10 {
		t.Errorf("%d of %d resets happened", resets, 2*n)
	}
	return c.Stats()
}

// Requests and replies arrive in pieces of every small size, and byte by byte with pauses in
// between, so that every split occurs.
func TestFaultChoppedAtEveryByte(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	server := testkit.StartRedis(t)
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
			proxy := faultproxy.Start(t, server.Addr, faultproxy.Options{Seed: seed, Plan: faultproxy.Always(plan)})
			l := newLedger(t, server.Addr, connect(t, redis.Options{Addr: proxy.Addr()}), 1, 30, 100, 700, 2000)
			for _, workers := range []int{1, 8} {
				var steps atomic.Int64
				l.run(t, seed, workers, func() bool { return steps.Add(1) > 100 })
			}
			if n := l.failed.Load(); n > 0 {
				t.Errorf("%d calls failed", n)
			}
			if n := proxy.Stats().Accepted; n != 1 {
				t.Errorf("%d connections, want one", n)
			}
		})
	}
}

// Callers give up at random, even while a large reply is arriving or being copied;
// the remains of their calls do not affect other calls.
func TestFaultCancelsAtRandom(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	server := testkit.StartRedis(t)
	const mib = 1 << 20
	for name, link := range map[string]faultproxy.Link{
		"as quick as it goes": {},
		"32 MiB per second":   {BytesPerSecond: 32 * mib},
		"in pieces, late":     {Chop: 9000, Delay: time.Millisecond, Jitter: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := faultproxy.Start(t, server.Addr, faultproxy.Options{Seed: seed, Plan: faultproxy.Always(faultproxy.Plan{Down: link})})
			o := redis.Options{Addr: proxy.Addr()}
			if link.BytesPerSecond > 0 {
				o.Dialer = opaque
			}
			c := connect(t, o)
			l := newLedger(t, server.Addr, c, 1, 30, 100, 700, 5000, 40_000, 70_000, mib)
			l.cancels = 10 * time.Millisecond
			began := time.Now()
			l.run(t, seed, 8, func() bool {
				took := time.Since(began) // a slow machine needs longer until some calls were given up
				return took > 700*time.Millisecond && c.Stats().Cancelled > 0 || took > time.Minute
			})
			if s := c.Stats(); s.Cancelled == 0 || s.Reconnects != 0 {
				t.Errorf("%d calls were given up, %d connections ended", s.Cancelled, s.Reconnects)
			}
		})
	}
}
