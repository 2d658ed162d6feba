package slipstream

// A Body holds the bytes of a message to send: a buffer, interspersed with links to memory that is
// sent in place, without being copied. The zero value is an empty body. It is not safe for
// concurrent use.
type Body struct {
	// B is the buffer. Append to it with b.B = append(b.B, ...).
	B []byte
	// Links are in the order of their positions. Link appends to them.
	Links []Link
}

// A Link is memory that is sent after the first At bytes of a body's buffer.
type Link struct {
	At int
	P  []byte
	// Owner, if not nil, is notified when P is no longer read.
	Owner Owner
}

// An Owner owns memory that it has lent to a body and wants to reuse.
type Owner interface {
	// Release is called once for each link, when the last system call that reads the memory
	// has returned or it is certain that there will be none. Until then the memory must not
	// change, also if the call that it was lent for has ended, by its reply or because it was
	// given up. Release may be called on any goroutine, without locks, and must neither block
	// nor panic.
	Release()
}

// linkFrom is the size from which a link is cheaper than a copy: an entry of writev, a reference
// and a call of its owner cost about as much as 8 KiB of memory copied.
const linkFrom = 8 << 10

// Link appends p without copying it, unless it is small: then the owner is notified
// immediately. The owner may be nil, if the memory is not used again.
func (b *Body) Link(p []byte, owner Owner) {
	if len(p) < linkFrom {
		b.B = append(b.B, p...)
		if owner != nil {
			owner.Release()
		}
		return
	}
	b.Links = append(b.Links, Link{At: len(b.B), P: p, Owner: owner})
}

// Len returns the number of bytes.
func (b *Body) Len() int {
	n := len(b.B)
	for i := range b.Links {
		n += len(b.Links[i].P)
	}
	return n
}

// AppendTo appends all bytes to dst, copied, and returns it.
func (b *Body) AppendTo(dst []byte) []byte {
	at := 0
	for i := range b.Links {
		l := &b.Links[i]
		dst = append(dst, b.B[at:l.At]...)
		dst = append(dst, l.P...)
		at = l.At
	}
	return append(dst, b.B[at:]...)
}

// Reset empties the body, keeps its memory for reuse, and notifies the owners of its links. A
// body that was handed over to be sent is empty already.
func (b *Body) Reset() {
	for i := range b.Links {
		if owner := b.Links[i].Owner; owner != nil {
			owner.Release()
		}
	}
	clear(b.Links)
	b.B, b.Links = b.B[:0], b.Links[:0]
}
