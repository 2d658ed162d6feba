package rpc

import (
	"sync"
	"time"
)

// A serial server sends each reply separately. With several calls on a connection, each reply would wake the reading
// goroutine, which costs more than the rest of a call. So, on Linux, the kernel waits until half of the expected
// replies have arrived (SO_RCVLOWAT), if that takes at most 0.25 ms at the current interval. It counts bytes: half the
// number of calls times the size of the smallest of at least the last 128 replies. A timer ends the wait after 1 ms, so
// a reply that is not followed by others is delayed by at most that.
const (
	// leastBatch is the minimum number of calls in flight for which the kernel waits for several replies.
	leastBatch = 4
	// batchPatience is the maximum time that replies that have arrived wait for others. If the server keeps its pace, they
	// wait for half of depthBudget.
	batchPatience = 2 * depthBudget
	// mostBatch bounds the number of bytes that the kernel waits for: it must not exceed the receive buffer, and large
	// replies gain nothing from waiting.
	mostBatch = 64 << 10
)

// batch makes the kernel wait for several replies of a connection.
type batch struct {
	// Immutable after the connection is up.
	apply func(bytes int) // sets the number of bytes that wake the reading goroutine

	sizes smallest // owned by the reading goroutine

	mu sync.Mutex
	// Guarded by mu, so that apply receives the values in the order in which they were chosen, and the timer fires after
	// the last one.
	low   int         // bytes to wait for; 0 and 1 mean no wait
	timer *time.Timer // ends a wait; nil until it is needed
}

// await makes the kernel wait for the next n replies. Only the reading goroutine calls it.
func (b *batch) await(n int) { b.set(b.bytes(n)) }

// bytes returns the minimum size of n replies, or 1 to wait for a single reply.
func (b *batch) bytes(n int) int {
	if n <= 1 {
		return 1
	}
	return min(n*b.sizes.get(), mostBatch)
}

// set makes the reading goroutine wake up when the given number of bytes have arrived, or after batchPatience.
func (b *batch) set(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.low
	if b.low = bytes; before != bytes && max(before, bytes) > 1 {
		b.apply(bytes)
	}
	switch {
	case bytes <= 1:
	case b.timer == nil:
		b.timer = time.AfterFunc(batchPatience, func() { b.set(1) })
	default:
		b.timer.Reset(batchPatience)
	}
}

// smallest is the smallest of the last 128 to 256 sizes.
type smallest struct {
	current, previous int // 0 if there is none
	n                 int
}

func (s *smallest) add(size int) {
	if s.current == 0 || size < s.current {
		s.current = size
	}
	if s.n++; s.n == 128 {
		s.previous, s.current, s.n = s.current, 0, 0
	}
}

func (s *smallest) get() int {
	if s.previous == 0 || s.current > 0 && s.current < s.previous {
		return s.current
	}
	return s.previous
}
