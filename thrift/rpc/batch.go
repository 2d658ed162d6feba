package rpc

import (
	"sync"
	"time"
)

// A serial server sends each reply on its own. With several calls on a connection, each reply would wake the
// goroutine that reads, which costs more than the rest of a call. So on Linux the kernel waits until half of the
// replies that are due have arrived (SO_RCVLOWAT), if that takes at most 0.25 ms at the present interval. It counts
// bytes: half of the calls times the smallest of the last 128 replies or more. A timer ends the wait after 1 ms, so a
// reply that no other follows is late by that at most.
const (
	// leastBatch is the number of calls at a server from which replies are awaited together.
	leastBatch = 4
	// batchPatience is how long the replies that have arrived wait for others, at most. They wait half of
	// depthBudget if the server continues as it did.
	batchPatience = 2 * depthBudget
	// mostBatch bounds the bytes that are awaited: a server must not make the kernel wait for more than its buffer
	// holds, and large replies need no company.
	mostBatch = 64 << 10
)

// batch makes the kernel wait for the replies of a connection.
type batch struct {
	// Immutable after the connection is up.
	apply func(bytes int) // sets how many bytes wake the goroutine that reads

	sizes smallest // owned by the goroutine that reads

	mu sync.Mutex
	// Guarded by mu, so that apply gets the values in the order in which they were chosen, and the timer fires after
	// the last one.
	low   int         // bytes that are awaited; 0 and 1 mean that there is no wait
	timer *time.Timer // ends a wait; nil until it is needed
}

// await makes the kernel wait for the next replies, of which there will be at least n. Only the goroutine that reads
// calls it.
func (b *batch) await(n int) { b.set(b.bytes(n)) }

// bytes returns how many bytes n replies have at least, or 1 if they are not awaited together.
func (b *batch) bytes(n int) int {
	if n <= 1 {
		return 1
	}
	return min(n*b.sizes.get(), mostBatch)
}

// set makes the goroutine that reads wake up when so many bytes have arrived, or when batchPatience has passed.
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
