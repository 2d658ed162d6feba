package pipe

import (
	"fmt"

	"github.com/slipstream-go/slipstream/internal/buf"
)

// A large reply is read into a dedicated buffer as soon as its length is known, and that buffer
// becomes the call's. Only what arrived with the length is copied. The bytes that follow the reply
// are read into the read buffer, by the same system call.
const (
	// directReply is the number of missing bytes from which a message gets a dedicated buffer;
	// docs/decisions/0017 has the table.
	directReply = 16 << 10
	// growStep bounds how far a buffer grows beyond what has arrived, so that a length claimed by a server
	// allocates little.
	growStep = 1 << 20
)

// direct is a message that is being read into a dedicated buffer. The read buffer contains neither
// earlier messages nor bytes of this one.
type direct struct {
	buf  []byte // nil if there is no such message
	have int
	need int // lower bound of the length of the message
}

// missing returns the part of the buffer that is to be filled.
func (d *direct) missing() []byte { return d.buf[d.have:min(d.need, len(d.buf))] }

// partial reports whether an incomplete message has arrived.
func (in *input) partial() bool {
	return in.begin < in.end || in.direct.buf != nil || in.aiming()
}

// startDirect moves the message at the start of the read buffer, which has at least need
// bytes, to a dedicated buffer.
func (in *input) startDirect(need int) {
	in.direct.need = need
	in.growDirect()
	in.fillDirect()
	in.begin, in.end = 0, 0
}

// growDirect makes room for more of the message.
func (in *input) growDirect() {
	d := &in.direct
	// It grows by at least a half. Where need is far too low, as for an array of long
	// strings, the bytes would otherwise be copied once for each string.
	size := max(min(d.need, max(2*d.have, d.have+growStep)), d.have+d.have/2)
	b := buf.Get(size)
	b = b[:cap(b)]
	copy(b, d.buf[:d.have])
	in.copied += d.have
	buf.Put(d.buf[:0])
	d.buf = b
}

// fillDirect moves received bytes from the read buffer to the dedicated one.
func (in *input) fillDirect() {
	n := copy(in.direct.missing(), in.buf[in.begin:in.end])
	in.direct.have += n
	in.begin += n
	in.copied += n
}

// readConn reads by package net. If there is a direct message, it reads only the missing part of
// that.
func (in *input) readConn() (int, error) {
	if in.direct.buf != nil {
		return in.conn.Read(in.direct.missing())
	}
	return in.conn.Read(in.buf[in.end:])
}

// took records that n bytes were read: first those that the direct message lacked, then others, which are at the
// start of the read buffer.
func (in *input) took(n int) {
	d := &in.direct
	own := min(n, len(d.missing()))
	d.have += own
	in.begin, in.end = 0, n-own
}

// cutDirect cuts the message that is being read directly. It reports whether the message is
// complete, in which case the read buffer is next.
func (s *socket) cutDirect() (done bool, err error) {
	d := &s.in.direct
	for d.have >= d.need || d.have == len(d.buf) {
		if d.have < d.need { // the buffer is full, so it may grow towards the claimed length
			s.in.growDirect()
			s.in.fillDirect()
			continue
		}
		f, err := s.in.scanner.Scan(d.buf[:d.have])
		switch {
		case err != nil:
			return false, fmt.Errorf("protocol: %w", err)
		case f.Verdict == More:
			d.need = max(f.Len, d.have+1)
			if d.need > len(d.buf) {
				s.in.growDirect()
			}
			s.in.fillDirect()
			continue
		case f.Len != d.have:
			return false, fmt.Errorf("protocol: scanner found a message of %d bytes in %d", f.Len, d.have)
		}
		s.in.own, s.in.direct = d.buf[:d.have], direct{}
		return true, s.classify(f, ownBuffer, s.in.own)
	}
	return false, nil
}

const (
	// ownBuffer is the position of a message in a dedicated buffer.
	ownBuffer = -1
	// placed is the position of a message whose body was read into the memory of its call.
	placed = -2
)

// bytes returns the bytes of a message that was cut.
func (in *input) bytes(f arrived) []byte {
	switch f.at {
	case ownBuffer:
		return in.own
	case placed:
		return in.aim.rest
	}
	return in.buf[f.at : f.at+f.len]
}

// give makes a message the reply to c. It copies the message unless it has a dedicated buffer.
func (in *input) give(c *Call, f arrived) {
	switch f.at {
	case ownBuffer:
		c.adopt(in.own)
		in.own = nil
		return
	case placed:
		c.setReply(in.aim.rest)
		c.wanted.size, c.holds = len(in.aim.room), holdsPlaced
		return
	}
	if f.len >= directReply {
		in.copied += f.len
	}
	c.setReply(in.buf[f.at : f.at+f.len])
}

// dropOwn releases the buffer of a message that no call has taken.
func (in *input) dropOwn() {
	if in.own != nil {
		buf.Put(in.own[:0])
		in.own = nil
	}
	if in.aim != nil && in.aim.rest != nil {
		*in.aim = aim{}
	}
}
