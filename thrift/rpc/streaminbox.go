package rpc

import (
	"encoding/binary"
	"sync"

	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
)

// A streamInbox holds the messages of a stream that have arrived but that the handler has not yet received. The buffer
// stores them one after another, each preceded by its length. The receiver takes the whole buffer when it has consumed
// the previous one, so most messages need no lock.
type streamInbox struct {
	arrived chan struct{} // has capacity 1; signals a change

	mu sync.Mutex
	// Guarded by mu.
	buffer []byte
	end    error // after the messages; nil if more may come
	closed bool  // messages are dropped

	// Owned by the receiver.
	current []byte // from package buf; not yet received from at on
	at      int
}

// lengthSize is the size of the length that precedes a message.
const lengthSize = 4

// put adds a message and reports whether it was stored.
func (in *streamInbox) put(message []byte) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed || in.end != nil {
		return false
	}
	in.buffer = grow(in.buffer, lengthSize+len(message))
	in.buffer = append(binary.BigEndian.AppendUint32(in.buffer, uint32(len(message))), message...)
	in.notify()
	return true
}

// finish sets the error that take returns after the messages, unless it is already set.
func (in *streamInbox) finish(end error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.end == nil {
		in.end = end
	}
	in.notify()
}

// notify wakes the receiver.
func (in *streamInbox) notify() {
	select {
	case in.arrived <- struct{}{}:
	default:
	}
}

// take returns the next message, which is valid until the next call of take, or the error that follows the last one. If
// there is no message yet, it returns nil, nil. Only the receiver calls it.
func (in *streamInbox) take() ([]byte, error) {
	if in.at == len(in.current) {
		in.mu.Lock()
		switch {
		case in.closed || len(in.buffer) == 0:
			err := in.end
			in.mu.Unlock()
			return nil, err
		case in.current != nil:
			buf.Put(in.current)
		}
		in.current, in.buffer, in.at = in.buffer, nil, 0
		in.mu.Unlock()
	}
	n := int(binary.BigEndian.Uint32(in.current[in.at:]))
	from := in.at + lengthSize
	in.at = from + n
	return in.current[from:in.at:in.at], nil
}

// close releases the messages that were not received and returns their total cost. It is called once, when the receiver
// is done.
func (in *streamInbox) close() (cost int64) {
	in.mu.Lock()
	in.closed = true
	buffer := in.buffer
	in.buffer = nil
	in.mu.Unlock()
	for _, b := range [][]byte{in.current[in.at:], buffer} {
		for len(b) > 0 {
			n := int(binary.BigEndian.Uint32(b))
			cost += messageCost(n)
			b = b[lengthSize+n:]
		}
	}
	for _, b := range [][]byte{in.current, buffer} {
		if b != nil {
			buf.Put(b)
		}
	}
	in.current, in.at = nil, 0
	return cost
}

// messageCost returns how many bytes a message of n bytes counts as.
func messageCost(n int) int64 { return int64(n + frame.StreamMessageCost) }

// grow returns b, of package buf, with room for n more bytes.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	larger := append(buf.Get(max(2*cap(b), len(b)+n)), b...)
	if b != nil {
		buf.Put(b)
	}
	return larger
}
