package buf

import "slices"

// The segments of a chain double in size from firstSegment to lastSegment, so that an idle socket
// holds little memory, and a burst takes few segments, which one writev can write.
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
	// first is the first segment as it was before its front was consumed, or nil if nothing of it
	// was consumed. The pool accepts it back only in this form.
	first []byte
	// open says that the last segment may be appended to; a linked one may not.
	open bool
	// owners are the owners of lent segments, with nil for segments that return to the pool. It is
	// as long as segments, or nil if nothing was lent.
	owners []Owner
	// freed are the owners of segments that have left the chain, until TakeFreed returns them.
	freed []Owner
}

// An Owner has memory that it has lent to a chain.
type Owner interface{ Release() }

// moved replaces the owner of a segment that has moved to another chain.
var moved Owner = movedOwner{}

type movedOwner struct{}

func (movedOwner) Release() {}

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
	c.add(Get(size), nil)
	c.open = true
}

// add appends a segment.
func (c *Chain) add(p []byte, owner Owner) {
	if owner != nil && c.owners == nil {
		c.owners = make([]Owner, len(c.segments), len(c.segments)+8)
	}
	c.segments = append(c.segments, p)
	if c.owners != nil {
		c.owners = append(c.owners, owner)
	}
}

// Link appends p without copying it. The chain owns p from now on and gives it
// to the pool when it has been consumed.
func (c *Chain) Link(p []byte) {
	if len(p) == 0 {
		Put(p)
		return
	}
	c.add(p, nil)
	c.size += len(p)
	c.open = false
}

// Lend appends p, which must not be empty, without copying it. TakeFreed returns its owner, which
// must not be nil, after p has left the chain.
func (c *Chain) Lend(p []byte, owner Owner) {
	c.add(p, owner)
	c.size += len(p)
	c.open = false
}

// TakeFreed appends the owners of lent segments that have left the chain to dst, once for each
// Lend. The caller releases them when it holds no lock.
func (c *Chain) TakeFreed(dst []Owner) []Owner {
	if len(c.freed) == 0 {
		return dst
	}
	dst = append(dst, c.freed...)
	clear(c.freed)
	c.freed = c.freed[:0]
	return dst
}

// Prepend inserts p at the front without copying it, and owns it as Link does.
func (c *Chain) Prepend(p []byte) {
	if len(p) == 0 || len(c.segments) == 0 {
		c.Link(p)
		return
	}
	c.segments = slices.Insert(c.segments, 0, p)
	if c.owners != nil {
		c.owners = slices.Insert(c.owners, 0, nil)
	}
	c.size += len(p)
	c.first = nil // its segment is left to the garbage collector
}

// Segments returns the bytes in order. The slice and what it holds are valid
// until the next call of another method.
func (c *Chain) Segments() [][]byte { return c.segments }

// Consume drops the first n bytes; n must not exceed Len.
func (c *Chain) Consume(n int) {
	c.size -= n
	i := 0
	for ; i < len(c.segments) && n >= len(c.segments[i]); i++ {
		n -= len(c.segments[i])
		c.giveBack(i)
	}
	c.deleteFront(i)
	if n > 0 {
		if c.first == nil {
			c.first = c.segments[0]
		}
		c.segments[0] = c.segments[0][n:]
	}
}

// giveBack returns segment i, which is about to leave the chain, to the pool or to its owner.
func (c *Chain) giveBack(i int) {
	p := c.segments[i]
	if i == 0 && c.first != nil {
		p, c.first = c.first, nil
	}
	if c.owners != nil && c.owners[i] != nil {
		c.freed = append(c.freed, c.owners[i])
		return
	}
	Put(p)
}

// deleteFront removes the first n segments from the lists.
func (c *Chain) deleteFront(n int) {
	c.segments = slices.Delete(c.segments, 0, n)
	if c.owners != nil {
		c.owners = slices.Delete(c.owners, 0, n)
	}
	if len(c.segments) == 0 {
		c.open, c.owners = false, nil
	}
}

// MoveTo moves the first n bytes, where n must not exceed Len, to the end of dst: large segments as
// they are, others by copying.
func (c *Chain) MoveTo(dst *Chain, n int) {
	i := 0
	for ; i < len(c.segments) && n >= len(c.segments[i]) && len(c.segments[i]) >= firstSegment && (i > 0 || c.first == nil); i++ {
		n -= len(c.segments[i])
		c.size -= len(c.segments[i])
		if c.owners != nil && c.owners[i] != nil {
			dst.Lend(c.segments[i], c.owners[i])
		} else {
			dst.Link(c.segments[i])
		}
	}
	c.deleteFront(i)
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
		kept.takeFrom(c, at, s.From)
		at = s.To
	}
	kept.takeFrom(c, at, c.size)
	for i, owner := range c.owners {
		if owner == moved {
			c.owners[i], c.segments[i] = nil, nil
			if i == 0 {
				c.first = nil
			}
		}
	}
	c.Reset()
	kept.freed = c.freed
	*c = kept
}

// takeFrom appends bytes of src. It copies them, except for lent segments that are taken whole:
// their owner moves along, and src keeps moved in its place.
func (c *Chain) takeFrom(src *Chain, from, to int) {
	for i, s := range src.segments {
		switch {
		case src.owners != nil && src.owners[i] != nil && from <= 0 && to >= len(s):
			c.Lend(s, src.owners[i])
			src.owners[i] = moved
		case from < len(s) && to > 0 && from < to:
			c.Append(s[max(from, 0):min(to, len(s))])
		}
		from -= len(s)
		to -= len(s)
	}
}

// Reset drops the contents and releases all segments.
func (c *Chain) Reset() {
	for i := range c.segments {
		c.giveBack(i)
		c.segments[i] = nil
	}
	c.segments = c.segments[:0]
	c.size = 0
	c.open, c.owners = false, nil
}

// Shrink releases the list of segments of an empty chain if a burst made it long.
func (c *Chain) Shrink() {
	if c.size == 0 && cap(c.segments) > 8 {
		c.segments = nil
	}
}
