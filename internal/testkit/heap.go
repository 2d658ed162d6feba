package testkit

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// HeapGrowth watches the memory of the heap. The returned function ends that and returns the
// maximum growth.
func HeapGrowth() func() int64 {
	runtime.GC()
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	now := func() int64 {
		metrics.Read(samples)
		return int64(samples[0].Value.Uint64() + samples[1].Value.Uint64())
	}
	base := now()
	stop, out := make(chan struct{}), make(chan int64)
	// Ends when the returned function closes stop; that function waits for it.
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
	return func() int64 {
		close(stop)
		return <-out
	}
}
