package loop

import (
	"slices"
	"sync"

	"github.com/slipstream-go/slipstream/internal/buf"
)

// linkFrom is the size from which bytes are sent by reference instead of being copied. For fewer
// bytes, a copy is cheaper than a reference and an entry for writev.
const linkFrom = 8 << 10

// compactFrom is how many bytes at the front must have been written before the rest is
// moved there.
const compactFrom = 64 << 10

// keptScratch is the largest buffer that an output keeps between two turns. A loop has up to
// 33 outputs.
const keptScratch = 128 << 10

// An Output collects the bytes that are to be sent: small parts in B, large ones by
// reference. It belongs to its connection's turn.
type Output struct {
	// B takes what is appended: o.B = append(o.B, ...).
	B []byte

	links  []link // ordered by at
	linked int    // bytes of links not yet written
	from   int    // bytes of B that were written
	larges []span // in order
}

// span is a large answer of n bytes, which end at bytes after what was written.
type span struct{ at, n int }

// An Owner owns memory that an output sends without copying it: see [Output.LinkOwned].
type Owner interface {
	// Release is called once, when nothing reads the memory anymore: the kernel has taken all of
	// its bytes, or the connection has ended. It may be called on any goroutine, in the turn of
	// the connection and without a lock, and must neither block nor panic.
	Release()
}

// link is memory that does not belong to the output and is sent after B[:at].
type link struct {
	at    int
	p     []byte
	owner Owner // if nil, nothing is called
}

// release notifies the owner that nothing reads the memory anymore.
func (l *link) release() {
	if owner := l.owner; owner != nil {
		l.owner = nil
		owner.Release()
	}
}

// Link appends p, which must not change anymore. If p has less than 8 KiB, it is copied.
func (o *Output) Link(p []byte) { o.LinkOwned(p, nil) }

// LinkOwned is Link of memory that its owner reuses after [Owner.Release]. If p is copied,
// Release is called before LinkOwned returns.
func (o *Output) LinkOwned(p []byte, owner Owner) {
	if len(p) < linkFrom {
		o.B = append(o.B, p...)
		if owner != nil {
			owner.Release()
		}
		return
	}
	o.links = append(o.links, link{len(o.B), p, owner})
	o.linked += len(p)
}

// Large marks the last n bytes appended as a large answer. They count toward Config.Large, not
// Config.Budget.
func (o *Output) Large(n int) { o.larges = append(o.larges, span{o.Len(), n}) }

// large returns the number of bytes of large answers that wait to be written.
func (o *Output) large() (n int) {
	for _, s := range o.larges {
		n += min(s.n, s.at)
	}
	return n
}

// memory returns the number of bytes that the output keeps alive.
func (o *Output) memory() int { return cap(o.B) + o.linked }

// Len returns the number of bytes that wait to be written.
func (o *Output) Len() int { return len(o.B) - o.from + o.linked }

// segments appends the waiting bytes to dst in order, until its capacity is used up.
func (o *Output) segments(dst [][]byte) [][]byte {
	at := o.from
	for i := range o.links {
		l := &o.links[i]
		if l.at > at {
			if len(dst) == cap(dst) {
				return dst
			}
			dst = append(dst, o.B[at:l.at])
			at = l.at
		}
		if len(dst) == cap(dst) {
			return dst
		}
		dst = append(dst, l.p)
	}
	if at < len(o.B) && len(dst) < cap(dst) {
		dst = append(dst, o.B[at:])
	}
	return dst
}

// advance drops the first n bytes, which were written.
func (o *Output) advance(n int) {
	if n == o.Len() {
		o.reset()
		return
	}
	o.advanceLarges(n)
	done := 0
	for n > 0 && done < len(o.links) {
		l := &o.links[done]
		own := min(n, l.at-o.from)
		o.from += own
		n -= own
		if o.from < l.at {
			break
		}
		part := min(n, len(l.p))
		l.p = l.p[part:]
		o.linked -= part
		n -= part
		if len(l.p) > 0 {
			break
		}
		l.release()
		done++
	}
	o.links = slices.Delete(o.links, 0, done) // which drops the references
	o.from += n
	if o.from >= compactFrom && 2*o.from >= len(o.B) {
		o.B = o.B[:copy(o.B, o.B[o.from:])]
		for i := range o.links {
			o.links[i].at -= o.from
		}
		o.from = 0
	}
}

// advanceLarges updates larges after n bytes were written.
func (o *Output) advanceLarges(n int) {
	for i := range o.larges {
		o.larges[i].at -= n
	}
	o.larges = slices.DeleteFunc(o.larges, func(s span) bool { return s.at <= 0 })
}

// reset drops everything.
func (o *Output) reset() {
	for i := range o.links {
		o.links[i].release()
	}
	clear(o.links)
	o.larges = o.larges[:0]
	o.B, o.links, o.linked, o.from = o.B[:0], o.links[:0], 0, 0
	if cap(o.B) > keptScratch {
		o.B = nil
	}
}

// take appends all of other and empties it.
func (o *Output) take(other *Output) {
	for _, s := range other.larges {
		o.larges = append(o.larges, span{o.Len() + s.at, s.n})
	}
	base := len(o.B) - other.from
	for _, l := range other.links {
		o.links = append(o.links, link{base + l.at, l.p, l.owner})
	}
	clear(other.links) // they belong to o now
	other.links = other.links[:0]
	o.B = append(o.B, other.B[other.from:]...)
	o.linked += other.linked
	other.reset()
}

var outputs = sync.Pool{New: func() any { return new(Output) }}

// newOutput returns an empty output with room for n bytes; freeOutput releases it.
func newOutput(n int) *Output {
	o := outputs.Get().(*Output)
	o.B = buf.Get(n)
	return o
}

func freeOutput(o *Output) {
	o.reset()
	buf.Put(o.B)
	o.B = nil
	if cap(o.links) > 64 {
		o.links = nil
	}
	if cap(o.larges) > 64 {
		o.larges = nil
	}
	outputs.Put(o)
}
