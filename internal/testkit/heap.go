package testkit

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// HeapGrowth observes the size of the heap until the test ends or the returned function is called,
// which returns the maximum growth.
func HeapGrowth(t testing.TB) func() int64 {
	runtime.GC()
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	now := func() int64 {
		metrics.Read(samples)
		return int64(samples[0].Value.Uint64() + samples[1].Value.Uint64())
	}
	base := now()
	stop, out := make(chan struct{}), make(chan int64)
	// Ends when growth is called, which waits for it; at the latest when the test ends.
	go func() {
		peak := base
		for {
			peak = max(peak, now())
			select {
			case <-stop:
				out <- peak - base
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	growth := sync.OnceValue(func() int64 {
		close(stop)
		return <-out
	})
	t.Cleanup(func() { growth() })
	return growth
}
