package buf

import "slices"

// The links of an input double in size from firstLink to lastLink: a trickle takes half a KiB, and
// a flood takes few links.
const (
	firstLink = 1 << minBits
	lastLink  = 64 << 10
)

// keptLinks is the capacity of the list of links that an empty input keeps. A list that a burst
// made longer is left to the garbage collector.
const keptLinks = 8

// An Input is a queue of bytes that were read and not yet consumed, in links of
// pooled memory: filled at its end, inspected and consumed at its front. The zero
// value is empty and holds no memory. It is not safe for concurrent use.
//
// Slices returned by Peek and Next are valid until Release or Reset; Append,
// Reserve and Commit do not affect them. Until then the memory of consumed bytes
// is kept, so Release is called whenever no such slice is in use.
type Input struct {
	// head is the first link, and more are the links after it. The length of a link is its
	// contents; its capacity beyond that is free. head is nil only if more is empty.
	head []byte
	more [][]byte
	// from is the number of consumed bytes of head.
	from int
	size int
	// want is the last argument of Reserve: a joined link has room for that many bytes.
	want int
	// used are links that have left the queue and may be read until Release.
	used [][]byte
}

// Len returns the number of bytes held and not consumed.
func (in *Input) Len() int { return in.size }

// Append copies p to the end.
func (in *Input) Append(p []byte) {
	for len(p) > 0 {
		last := in.last()
		if len(*last) == cap(*last) {
			last = in.grow(min(len(p), lastLink))
		}
		n := min(len(p), cap(*last)-len(*last))
		*last = append(*last, p[:n]...)
		in.size += n
		p = p[n:]
	}
}

// Reserve returns free room for at least n bytes, and at least one, after the contents. Commit adds
// data that was written to the start of that room; no other method may be called before Commit.
func (in *Input) Reserve(n int) []byte {
	in.want = n
	last := in.last()
	if cap(*last)-len(*last) < max(n, 1) {
		last = in.grow(n)
	}
	return (*last)[len(*last):cap(*last)]
}

// Commit appends the first n bytes of what Reserve returned.
func (in *Input) Commit(n int) {
	last := in.last()
	*last = (*last)[:len(*last)+n]
	in.size += n
}

// Peek returns the first n bytes, or all if fewer are held, without consuming them. If they span
// several links, all links are joined into one. The joined link has free room for half of its
// contents, so that each byte of a message that arrives byte by byte is copied a bounded number of
// times on average.
func (in *Input) Peek(n int) []byte {
	n = min(n, in.size)
	if n > len(in.head)-in.from {
		in.join()
	}
	return in.head[in.from : in.from+n : in.from+n]
}

// Next is Peek, but consumes what it returns.
func (in *Input) Next(n int) []byte {
	p := in.Peek(n)
	in.Discard(len(p))
	return p
}

// Discard consumes the first n bytes, or all if fewer are held. It copies
// nothing.
func (in *Input) Discard(n int) {
	n = min(n, in.size)
	in.size -= n
	in.from += n
	done := 0
	for in.from >= len(in.head) && done < len(in.more) {
		in.from -= len(in.head)
		in.used = append(in.used, in.head)
		in.head = in.more[done]
		done++
	}
	in.more = slices.Delete(in.more, 0, done)
}

// Release returns the memory of consumed bytes. An empty input holds no memory afterwards;
// otherwise a link that is only partly consumed is kept as a whole.
func (in *Input) Release() {
	if in.size == 0 {
		in.Reset()
		return
	}
	in.putUsed()
	// The remaining bytes move to the front if they are no more than the consumed ones: a
	// connection whose requests are split anywhere by its reads then needs only one link.
	if rest := in.head[in.from:]; len(in.more) == 0 && in.from >= len(rest) {
		in.head = append(in.head[:0], rest...)
		in.from = 0
	}
}

// Reset drops the contents and returns all memory.
func (in *Input) Reset() {
	in.putUsed()
	Put(in.head)
	for _, link := range in.more {
		Put(link)
	}
	in.head, in.more = nil, emptied(in.more)
	in.from, in.size = 0, 0
}

func (in *Input) putUsed() {
	for _, link := range in.used {
		Put(link)
	}
	in.used = emptied(in.used)
}

// last returns the link to fill. In an input that holds no memory, that is an empty one without
// capacity.
func (in *Input) last() *[]byte {
	if len(in.more) > 0 {
		return &in.more[len(in.more)-1]
	}
	return &in.head
}

// grow appends a link of at least n bytes.
func (in *Input) grow(n int) *[]byte {
	last := in.last()
	link := Get(max(n, min(2*cap(*last), lastLink), firstLink))
	switch {
	case in.head == nil:
		in.head = link
	case in.size == 0:
		// Nothing is left in any link, so the new one becomes the first.
		in.used = append(in.used, in.head)
		in.head, in.from = link, 0
	default:
		in.more = append(in.more, link)
	}
	return in.last()
}

// join joins all links into one.
func (in *Input) join() {
	// Between two joins, at least a quarter of what was copied is read: half of the new link is
	// free, and the next Reserve leaves at most want bytes of that unused. If want is more than a
	// quarter, the link has room for two of that size.
	joined := Get(in.size + max(in.size/2, 2*in.want))
	joined = append(joined, in.head[in.from:]...)
	in.used = append(in.used, in.head)
	for _, link := range in.more {
		joined = append(joined, link...)
		in.used = append(in.used, link)
	}
	in.head, in.more, in.from = joined, emptied(in.more), 0
}

// emptied returns the list with nothing in it, ready to be filled again.
func emptied(list [][]byte) [][]byte {
	clear(list)
	if cap(list) > keptLinks {
		return nil
	}
	return list[:0]
}

// Memory returns how much memory the input holds.
func (in *Input) Memory() int {
	n := cap(in.head)
	for _, link := range in.more {
		n += cap(link)
	}
	for _, link := range in.used {
		n += cap(link)
	}
	return n
}
