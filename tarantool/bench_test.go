//go:build unix && !race

package tarantool_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
)

// BenchmarkGet reads one tuple by its key: with callers that wait, and with pairs of a sender and a
// receiver that have up to 1,024 futures between them. client-us/op is the CPU time of this process
// with all its goroutines. The suite tarantool of bench/ compares it with other clients.
func BenchmarkGet(b *testing.B) {
	s := testkit.StartTarantool(b, setup)
	c := connect(b, tarantool.Options{Addr: s.Addr, WaitWhenFull: true})
	users := tarantool.SpaceOf[nameless](c, "users")
	cancellable, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for name, ctx := range map[string]context.Context{"plain": context.Background(), "context": cancellable} {
		for _, callers := range []int{1, 64, 512, 8192} {
			b.Run(fmt.Sprintf("sync/%s/%d", name, callers), func(b *testing.B) {
				measured(b, callers, func(n int) {
					var u nameless
					for i := range n {
						if found, err := users.Get(ctx, &u, tarantool.Int(1+i%100)); !found || err != nil || u.ID != uint64(1+i%100) {
							b.Errorf("%v, %t, %v", u, found, err)
							return
						}
					}
				})
			})
		}
		for _, pairs := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("async/%s/%d", name, pairs), func(b *testing.B) {
				measured(b, pairs, func(n int) {
					futures := make(chan tarantool.TupleFuture[nameless], 1024)
					go func() {
						defer close(futures)
						for i := range n {
							futures <- users.StartGet(ctx, tarantool.Int(1+i%100))
						}
					}()
					var u nameless
					i := 0
					for f := range futures {
						if found, err := f.Get(&u); !found || err != nil || u.ID != uint64(1+i%100) {
							b.Errorf("%v, %t, %v", u, found, err)
						}
						i++
					}
				})
			})
		}
	}
}

// measured runs b.N operations on the given number of goroutines.
func measured(b *testing.B, goroutines int, run func(n int)) {
	b.ReportAllocs()
	before := cpuTime()
	var wg sync.WaitGroup
	for g := range goroutines {
		n := b.N / goroutines
		if g < b.N%goroutines {
			n++
		}
		wg.Go(func() { run(n) })
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/1e3/float64(b.N), "client-us/op")
	runtime.GC()
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
