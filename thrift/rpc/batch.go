package rpc

import (
	"sync/atomic"
	"time"
)

// A serial server sends each reply on its own, so with several calls at the server each of them would wake the goroutine
// that reads, and that would cost more than everything else that the client does for a call. The kernel can wait
// until some of the replies have arrived. A server that gets several calls is fast, so they do not wait long:
// see depth.go. If they do nevertheless, they are read when batchPatience has passed.
const (
	// leastBatch is the number of calls at a server from which replies are awaited together.
	leastBatch = 4
	// batchPatience is how long the replies that have arrived wait for others, at most. They wait half of
	// depthBudget if the server goes on as it did.
	batchPatience = 2 * depthBudget
	// mostBatch bounds the bytes that are awaited: a server must not make the kernel wait for more than its buffer
	// holds, and large replies need no company.
	mostBatch = 64 << 10
)

// batch makes the kernel wait for the replies of a connection.
type batch struct {
	// Owned by the goroutine that reads.
	sizes smallest
	timer *time.Timer // sets low to 1; nil until it is needed

	low atomic.Int64 // bytes that are awaited; 0 and 1 mean that there is no wait; written by the reader and the timer
}

// await makes the kernel wait for the next replies of c, of which there will be at least n. Only the goroutine that reads
// calls it.
func (b *batch) await(c *conn, n int) {
	bytes := b.bytes(n)
	if bytes > 1 {
		// The timer fires after the last change, whatever happens at the same time.
		if b.timer == nil {
			b.timer = time.AfterFunc(batchPatience, func() { b.set(c, 1) })
		} else {
			b.timer.Reset(batchPatience)
		}
	}
	b.set(c, bytes)
}

// bytes returns how many bytes n replies have at least, or 1 if they are not awaited together.
func (b *batch) bytes(n int) int64 {
	if n <= 1 {
		return 1
	}
	return min(int64(n)*int64(b.sizes.get()), mostBatch)
}

func (b *batch) set(c *conn, bytes int64) {
	if old := b.low.Swap(bytes); old != bytes && max(old, bytes) > 1 {
		c.pin.SetLowWater(int(bytes))
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
