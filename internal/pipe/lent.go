package pipe

import (
	"sync"
	"sync/atomic"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/buf"
)

// A call may link to memory that is sent without a copy. The memory stays lent until the call has been
// released and no write can read it anymore. A call that is given up ends immediately, but the bytes
// that a system call is reading, or that complete a partly written frame, must stay readable. A cancel
// never closes a connection.

// lent is the memory that a call links to.
type lent struct {
	links []slipstream.Link
	size  int
	refs  atomic.Int32 // one for the call, and one for each link in a chain
}

// SetBody makes b the request, in place of Frame. The call takes over the memory of b and
// empties b. The owners of its links are notified after Release, when nothing reads the links anymore.
// Frame becomes the buffer of the body, which contains the ticket.
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

// dropLent drops the call's reference to the memory that it links to.
func (c *Call) dropLent() {
	if l := c.lent; l != nil {
		if c.lent = nil; l.refs.Add(-1) == 0 {
			l.Release()
		}
	}
}

// Release notifies the owners after the last reference has been dropped. If an owner panics, the panic is
// recovered and the other owners are notified.
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

// releases is lent memory that is to be released when no lock is held.
type releases struct {
	mu sync.Mutex
	// Guarded by mu.
	waiting []*lent
}

// freeLater records the owners of memory that has left a chain. The caller holds the socket's lock, so the sweeper
// notifies the owners. There are such owners only if a call was released before its bytes were written.
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

// release notifies the owners that freeLater has recorded. It is called by the sweeper and by Close.
func (e *Engine) release() {
	e.releases.mu.Lock()
	waiting := e.releases.waiting
	e.releases.waiting = nil
	e.releases.mu.Unlock()
	for _, l := range waiting {
		l.Release()
	}
}

// drop empties a chain of a closed socket and notifies the owners. The caller holds no lock.
func drop(chain *buf.Chain) {
	chain.Reset()
	for _, owner := range chain.TakeFreed(nil) {
		if l := owner.(*lent); l.refs.Add(-1) == 0 {
			l.Release()
		}
	}
}
