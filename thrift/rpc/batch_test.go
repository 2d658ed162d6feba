package rpc

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// The kernel waits for several replies only if the first of them then waits for a short time.
func TestBatchRule(t *testing.T) {
	for _, row := range []struct {
		interval    time.Duration
		calls, want int
	}{
		{20 * time.Microsecond, 0, 1},
		{20 * time.Microsecond, 3, 1},
		{20 * time.Microsecond, 4, 2},
		{20 * time.Microsecond, 16, 8},
		{depthBudget / 16, 16, 8},
		{depthBudget/16 + 1, 16, 1},
		{10 * time.Millisecond, 4, 1},
	} {
		if d := (depth{interval: row.interval}); d.batch(row.calls) != row.want {
			t.Errorf("%d calls at %v: %d replies, want %d", row.calls, row.interval, d.batch(row.calls), row.want)
		}
	}
}

// A server with large replies does not make the kernel wait for more than its buffer holds.
func TestAwaitedBytesAreBounded(t *testing.T) {
	for _, row := range []struct {
		size, n, want int
	}{{100, 0, 1}, {100, 1, 1}, {100, 8, 800}, {16 << 20, 32, mostBatch}} {
		var b batch
		b.sizes.add(row.size)
		if got := b.bytes(row.n); got != row.want {
			t.Errorf("%d replies of %d bytes: %d, want %d", row.n, row.size, got, row.want)
		}
	}
}

// A wait for replies ends even if the goroutine that starts it is descheduled for longer than the previous wait lasts.
func TestWaitsForRepliesEnd(t *testing.T) {
	var mu sync.Mutex
	var applied []int
	b := batch{apply: func(bytes int) {
		if bytes == 900 {
			time.Sleep(5 * batchPatience)
		}
		mu.Lock()
		applied = append(applied, bytes)
		mu.Unlock()
	}}
	b.sizes.add(100)
	b.await(10)
	b.await(9)
	testkit.Eventually(t, 10*time.Second, func() error {
		mu.Lock()
		defer mu.Unlock()
		if n := len(applied); applied[n-1] != 1 {
			return fmt.Errorf("the kernel was told to wait for %d bytes", applied)
		}
		return nil
	})
}

func TestSmallestOfTheLastSizes(t *testing.T) {
	var s smallest
	if s.get() != 0 {
		t.Errorf("without sizes: %d", s.get())
	}
	add := func(size, n int) {
		for range n {
			s.add(size)
		}
	}
	for _, row := range []struct{ size, n, want int }{{50, 1, 50}, {90, 1, 50}, {40, 1, 40}, {60, 125, 40}, {60, 127, 40}, {60, 1, 60}, {30, 1, 30}, {70, 127, 30}, {70, 128, 70}} {
		if add(row.size, row.n); s.get() != row.want {
			t.Errorf("after %d times %d: %d, want %d", row.n, row.size, s.get(), row.want)
		}
	}
}
