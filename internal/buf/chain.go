package buf

import "slices"

// Segments of a chain double from firstSegment to lastSegment, so that an idle
// socket holds little and a burst few segments: one writev takes them all.
const (
	firstSegment = 4 << 10
	lastSegment  = 64 << 10
)

// A Chain is a queue of bytes in segments: appended at its end, written and
// consumed at its front. The zero value is empty. It is not safe for concurrent
// use.
type Chain struct {
	segments [][]byte
	size     int
	// open says that the last segment is ours to append to; a linked one is not.
	open bool
}

// Len returns the number of bytes held.
func (c *Chain) Len() int { return c.size }

// Append copies p to the end.
func (c *Chain) Append(p []byte) {
	c.size += len(p)
	for len(p) > 0 {
		last := len(c.segments) - 1
		if !c.open || len(c.segments[last]) == cap(c.segments[last]) {
			c.grow(len(p))
			last = len(c.segments) - 1
		}
		s := c.segments[last]
		n := min(len(p), cap(s)-len(s))
		c.segments[last] = append(s, p[:n]...)
		p = p[n:]
	}
}

func (c *Chain) grow(n int) {
	size := firstSegment
	if len(c.segments) > 0 {
		size = 2 * cap(c.segments[len(c.segments)-1])
	}
	size = min(max(size, n), lastSegment)
	c.segments = append(c.segments, Get(size))
	c.open = true
}

// Link appends p without copying it. The chain owns p from now on and gives it
// to the pool when it has been consumed.
func (c *Chain) Link(p []byte) {
	if len(p) == 0 {
		Put(p)
		return
	}
	c.segments = append(c.segments, p)
	c.size += len(p)
	c.open = false
}

// Segments returns the bytes in order. The slice and what it holds are valid
// until the next call of another method.
func (c *Chain) Segments() [][]byte { return c.segments }

// Consume drops the first n bytes, at most Len.
func (c *Chain) Consume(n int) {
	c.size -= n
	i := 0
	for ; i < len(c.segments) && n >= len(c.segments[i]); i++ {
		n -= len(c.segments[i])
		Put(c.segments[i])
	}
	if i == len(c.segments) {
		c.open = false
	}
	c.segments = slices.Delete(c.segments, 0, i)
	if n > 0 {
		// A segment cut at its front has no class any more: the collector gets it.
		c.segments[0] = c.segments[0][n:]
	}
}

// A Span is a range of bytes of a chain: from inclusive, to exclusive.
type Span struct{ From, To int }

// Cut removes spans, which are in ascending order and do not overlap.
func (c *Chain) Cut(spans []Span) {
	var kept Chain
	at := 0
	for _, s := range spans {
		kept.copyFrom(c, at, s.From)
		at = s.To
	}
	kept.copyFrom(c, at, c.size)
	c.Reset()
	*c = kept
}

func (c *Chain) copyFrom(src *Chain, from, to int) {
	for _, s := range src.segments {
		if from < len(s) && to > 0 && from < to {
			c.Append(s[max(from, 0):min(to, len(s))])
		}
		from -= len(s)
		to -= len(s)
	}
}

// Reset drops everything and gives all segments back.
func (c *Chain) Reset() {
	for i, s := range c.segments {
		Put(s)
		c.segments[i] = nil
	}
	c.segments = c.segments[:0]
	c.size = 0
	c.open = false
}

// Shrink gives back the list of segments of an empty chain if a burst made it
// long.
func (c *Chain) Shrink() {
	if c.size == 0 && cap(c.segments) > 8 {
		c.segments = nil
	}
}
