package rpc

import (
	"sync/atomic"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/buf"
)

// lent is a large message whose arguments are sent without copying them. The engine copies the part before them, which
// differs from attempt to attempt. A system call may still read the arguments after the attempt was abandoned, so the
// memory is freed only when the exchange and all attempts have released it.
type lent struct {
	message []byte       // the arguments do not change
	refs    atomic.Int32 // one for the exchange and one for each attempt
}

// Release implements [slipstream.Owner].
func (l *lent) Release() {
	if l.refs.Add(-1) == 0 {
		buf.Put(l.message)
	}
}

// lend returns the message for an attempt.
func (x *exchange) lend() *slipstream.Body {
	if x.lent == nil {
		x.lent = &lent{message: x.message}
		x.lent.refs.Store(1)
	}
	x.lent.refs.Add(1)
	at := x.arguments
	return &slipstream.Body{B: x.message[:at:at], Links: []slipstream.Link{{At: at, P: x.message[at:], Owner: x.lent}}}
}

// free releases the message.
func (x *exchange) free() {
	if x.lent == nil {
		buf.Put(x.message)
		return
	}
	x.lent.Release()
}
