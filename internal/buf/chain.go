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
	// first is the first segment as it was before its front was consumed, nil if it is
	// whole: the pool takes it back only so.
	first []byte
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

// Prepend puts p at the front without copying it, and owns it as Link does.
func (c *Chain) Prepend(p []byte) {
	if len(p) == 0 || len(c.segments) == 0 {
		c.Link(p)
		return
	}
	c.segments = slices.Insert(c.segments, 0, p)
	c.size += len(p)
	c.first = nil // the collector gets what it was of
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
		Put(c.pooled(i))
	}
	if i == len(c.segments) {
		c.open = false
	}
	c.segments = slices.Delete(c.segments, 0, i)
	if n > 0 {
		if c.first == nil {
			c.first = c.segments[0]
		}
		c.segments[0] = c.segments[0][n:]
	}
}

// pooled returns segment i, which is to leave the chain, as the pool takes it.
func (c *Chain) pooled(i int) []byte {
	if i > 0 || c.first == nil {
		return c.segments[i]
	}
	whole := c.first
	c.first = nil
	return whole
}

// MoveTo moves the first n bytes, at most Len, to the end of dst: large segments as they are,
// others by copying.
func (c *Chain) MoveTo(dst *Chain, n int) {
	i := 0
	for ; i < len(c.segments) && n >= len(c.segments[i]) && len(c.segments[i]) >= firstSegment && (i > 0 || c.first == nil); i++ {
		n -= len(c.segments[i])
		c.size -= len(c.segments[i])
		dst.Link(c.segments[i])
	}
	c.segments = slices.Delete(c.segments, 0, i)
	if len(c.segments) == 0 {
		c.open = false
	}
	for n > 0 {
		front := c.segments[0][:min(n, len(c.segments[0]))]
		n -= len(front)
		dst.Append(front)
		c.Consume(len(front))
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
	for i := range c.segments {
		Put(c.pooled(i))
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
