//go:build unix

package redis_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/redis"
)

// All faults occur at random, with all kinds of calls and random options.
func TestSoakFaults(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	r := testkit.Fork(seed, 0)
	end := time.Now().Add(testkit.SoakTime(t, 2*time.Second))
	for round := 0; time.Now().Before(end); round++ {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			soakRound(t, rand.New(rand.NewPCG(r.Uint64(), 0)))
		})
	}
}

// soakRound exposes one client to faults for a second.
func soakRound(t *testing.T, r *rand.Rand) {
	server := testkit.StartRedis(t)
	seed := r.Uint64()
	proxy := faultproxy.Start(t, server.Addr, faultproxy.Options{Seed: seed})
	o := redis.Options{
		Addr: proxy.Addr(), Protocol: r.IntN(3), Sockets: r.IntN(4),
		Backoff: time.Duration(1+r.IntN(5)) * time.Millisecond, MaxBackoff: 20 * time.Millisecond,
		StallTimeout: 150 * time.Millisecond, DialTimeout: time.Second,
		Retries: r.IntN(6) - 1, FailFast: r.IntN(4) == 0, WaitWhenFull: r.IntN(2) == 0,
	}
	if o.Protocol == 1 {
		o.Protocol = 0
	}
	if r.IntN(2) == 0 {
		o.MaxCalls = 12
	}
	if r.IntN(3) == 0 {
		o.Timeout = 200 * time.Millisecond
	}
	if r.IntN(3) == 0 {
		o.Dialer = opaque
	}
	t.Logf("protocol %d, %d sockets, %d retries, fail fast %v, wait when full %v, %d calls, timeout %v, opaque %v",
		o.Protocol, o.Sockets, o.Retries, o.FailFast, o.WaitWhenFull, o.MaxCalls, o.Timeout, o.Dialer != nil)
	l := newLedger(t, server.Addr, connect(t, o), 1, 30, 100, 700, 40_000, 300_000)
	l.volatile, l.cancels, l.rest = true, 50*time.Millisecond, time.Millisecond
	var over atomic.Bool
	wait := l.start(t, seed, 1+r.IntN(12), over.Load)
	defer func() {
		over.Store(true)
		proxy.SetPlan(nil)
		proxy.Resume()
		wait()
	}()
	control := redis.Options{Addr: server.Addr}
	for end := time.Now().Add(700 * time.Millisecond); time.Now().Before(end); {
		time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
		switch r.IntN(10) {
		case 0:
			proxy.Reset()
		case 1:
			proxy.Cut()
		case 2:
			proxy.Stall()
			time.Sleep(time.Duration(r.IntN(250)) * time.Millisecond)
			proxy.Resume()
		case 3:
			must(t, server.Signal(syscall.SIGSTOP))
			time.Sleep(time.Duration(r.IntN(250)) * time.Millisecond)
			must(t, server.Signal(syscall.SIGCONT))
		case 4:
			server.Kill()
			time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
			server.Restart(t)
		case 5:
			c := connect(t, control)
			must(t, c.Do(t.Context(), nil, redis.Cmd("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")))
			c.Close()
		case 6:
			c := connect(t, control)
			must(t, c.Do(t.Context(), nil, redis.Cmd("CONFIG", "SET", "min-replicas-to-write", r.IntN(2))))
			c.Close()
		default:
			proxy.SetPlan(faultproxy.RandomPlan)
			proxy.Reset()
		}
	}
	// The server accepts what it was configured to refuse again.
	c := connect(t, control)
	must(t, c.Do(t.Context(), nil, redis.Cmd("CONFIG", "SET", "min-replicas-to-write", 0)))
}
