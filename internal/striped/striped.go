// Package striped counts events that many cores cause concurrently.
package striped

import (
	"math/rand/v2"
	"sync/atomic"
)

const (
	stripes  = 8
	lineSize = 64 // bytes of a line in the processor's caches
)

// Counter is a counter that many cores add to. With a single word, they would pass its cache line
// around with every event. The zero value is 0. All methods are safe for concurrent use.
type Counter struct {
	// Atomics. Written by Add, read by Sum.
	stripes [stripes]struct {
		n atomic.Int64
		_ [lineSize - 8]byte
	}
}

// Add adds n.
func (c *Counter) Add(n int64) { c.stripes[rand.Uint32()%stripes].n.Add(n) }

// Sum returns the sum of all numbers added so far.
func (c *Counter) Sum() (n int64) {
	for i := range c.stripes {
		n += c.stripes[i].n.Load()
	}
	return n
}
