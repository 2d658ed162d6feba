//go:build unix

package tarantool_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/tarantool"
)

// All faults occur at random, with all kinds of requests and random options.
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
	wal := []string{"none", "write"}[r.IntN(2)]
	server := startInstance(t, wal, faultSetup)
	seed := r.Uint64()
	proxy := faultproxy.Start(t, server.addr, faultproxy.Options{Seed: seed})
	// MaxBlocking exceeds the 96 requests that 12 workers, 8 each, may have in flight, so that no
	// worker waits for a slot.
	o := tarantool.Options{
		Addr: proxy.Addr(), Sockets: r.IntN(4), MaxBlocking: r.IntN(3) * 100,
		Backoff: time.Duration(1+r.IntN(5)) * time.Millisecond, MaxBackoff: 20 * time.Millisecond,
		StallTimeout: 150 * time.Millisecond, DialTimeout: time.Second,
		Retries: r.IntN(6) - 1, FailFast: r.IntN(4) == 0, WaitWhenFull: r.IntN(2) == 0,
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
	t.Logf("wal %s, %d sockets, %d retries, fail fast %v, wait when full %v, %d calls, %d blocking, timeout %v, opaque %v",
		wal, o.Sockets, o.Retries, o.FailFast, o.WaitWhenFull, o.MaxCalls, o.MaxBlocking, o.Timeout, o.Dialer != nil)
	l := newLedger(connect(t, o), len(fixedSizes))
	l.volatile, l.cancels, l.rest, l.grim = wal == "none", 50*time.Millisecond, time.Millisecond, true
	var over atomic.Bool
	wait := l.start(t, seed, 1+r.IntN(12), over.Load)
	defer func() {
		over.Store(true)
		proxy.SetPlan(nil)
		proxy.Resume()
		wait()
		proxy.Reset() // connections that a plan still breaks
		testkit.Eventually(t, 10*time.Second, func() error {
			var got record
			found, err := l.fixed.Get(t.Context(), &got, tarantool.Int(2))
			if err == nil && (!found || got != record{2, text("fixed:2", 0, fixedSizes[1])}) {
				err = fmt.Errorf("%v, %t", got, found)
			}
			return err
		})
	}()
	for end := time.Now().Add(700 * time.Millisecond); time.Now().Before(end); {
		time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
		switch r.IntN(8) {
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
			server.restart(t)
		default:
			proxy.SetPlan(faultproxy.RandomPlan)
			proxy.Reset()
		}
	}
}
