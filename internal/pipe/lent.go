package pipe

import (
	"sync"
	"sync/atomic"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/buf"
)

// A call may link to memory that is sent from where it lies. It stays lent until the call was
// released and no write can read it any more: a call that is given up ends at once, and the bytes
// that a system call reads by then, or that complete a frame of which a part was written, stay
// readable. A connection is never closed for one cancel.

// lent is the memory that a call links to.
type lent struct {
	links []slipstream.Link
	size  int
	refs  atomic.Int32 // of the call, and one for each link in a chain
}

// SetBody makes b what the call sends, in place of Frame. The call takes its memory over and
// leaves it empty; the owners of its links are told after Release, when nothing reads them any more.
// Frame is the buffer of the body then; it is still where the ticket is put.
func (c *Call) SetBody(b *slipstream.Body) {
	c.dropLent()
	c.Frame = b.B
	if len(b.Links) > 0 {
		c.lent = &lent{links: b.Links}
		c.lent.refs.Store(1)
		for i := range b.Links {
			c.lent.size += len(b.Links[i].P)
		}
	}
	*b = slipstream.Body{}
}

// dropLent ends the call's own use of what it links to.
func (c *Call) dropLent() {
	if l := c.lent; l != nil {
		if c.lent = nil; l.refs.Add(-1) == 0 {
			l.Release()
		}
	}
}

// Release tells the owners, after the last reference was dropped. An owner that panics ends
// neither the engine nor the notice to the others.
func (l *lent) Release() {
	for i := range l.links {
		if owner := l.links[i].Owner; owner != nil {
			_ = contain(func() error { owner.Release(); return nil })
		}
	}
}

// appendTo appends the frame with its links to a chain.
func (l *lent) appendTo(chain *buf.Chain, frame []byte) {
	at := 0
	l.refs.Add(int32(len(l.links)))
	for i := range l.links {
		link := &l.links[i]
		chain.Append(frame[at:link.At])
		at = link.At
		chain.Lend(link.P, l)
	}
	chain.Append(frame[at:])
}

// releases are what was lent and is to be released where no lock is held.
type releases struct {
	mu sync.Mutex
	// Guarded by mu.
	waiting []*lent
}

// freeLater takes note of what has left a chain. Under the socket's lock, so the sweeper tells
// the owners. There are such only if a call was released before its bytes were written.
func (e *Engine) freeLater(chain *buf.Chain) {
	for _, owner := range chain.TakeFreed(nil) {
		if l := owner.(*lent); l.refs.Add(-1) == 0 {
			e.releases.mu.Lock()
			e.releases.waiting = append(e.releases.waiting, l)
			e.releases.mu.Unlock()
			e.wakeSweeper(true)
		}
	}
}

// release tells the owners of what freeLater has taken note of. By the sweeper, and by Close.
func (e *Engine) release() {
	e.releases.mu.Lock()
	waiting := e.releases.waiting
	e.releases.waiting = nil
	e.releases.mu.Unlock()
	for _, l := range waiting {
		l.Release()
	}
}

// drop empties a chain of a closed socket and tells the owners. Without locks.
func drop(chain *buf.Chain) {
	chain.Reset()
	for _, owner := range chain.TakeFreed(nil) {
		if l := owner.(*lent); l.refs.Add(-1) == 0 {
			l.Release()
		}
	}
}
