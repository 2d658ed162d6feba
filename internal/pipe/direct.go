package pipe

import (
	"fmt"

	"github.com/slipstream-go/slipstream/internal/buf"
)

// A large reply is read into a buffer of its own as soon as its length is known, and becomes
// its call's with that buffer. Only what arrived with the length is copied. What follows the
// reply goes to the read buffer, by the same system call.
const (
	// directReply is how many bytes of a message must be missing for that;
	// docs/decisions/0017 has the table.
	directReply = 16 << 10
	// growStep bounds how far a buffer grows beyond what has arrived: a length that a server
	// claims allocates nothing by itself.
	growStep = 1 << 20
)

// direct is a message that is being read into a buffer of its own. The read buffer has nothing
// of what came before or belongs to it.
type direct struct {
	buf  []byte // nil: there is none
	have int
	need int // the message has at least so many bytes
}

// missing returns the part of the buffer that the message will fill.
func (d *direct) missing() []byte { return d.buf[d.have:min(d.need, len(d.buf))] }

// partial reports whether a part of a message has arrived.
func (in *input) partial() bool {
	return in.begin < in.end || in.direct.buf != nil || in.aiming()
}

// startDirect moves the message at the front of the read buffer, which has at least need
// bytes, to a buffer of its own.
func (in *input) startDirect(need int) {
	in.direct.need = need
	in.growDirect()
	in.fillDirect()
	in.begin, in.end = 0, 0
}

// growDirect makes room for more of the message.
func (in *input) growDirect() {
	d := &in.direct
	// Half as much again at least: where need is far too low, as for an array of long
	// strings, the bytes would be copied once for each of them.
	size := max(min(d.need, max(2*d.have, d.have+growStep)), d.have+d.have/2)
	b := buf.Get(size)
	b = b[:cap(b)]
	copy(b, d.buf[:d.have])
	in.copied += d.have
	buf.Put(d.buf[:0])
	d.buf = b
}

// fillDirect moves what has arrived from the read buffer.
func (in *input) fillDirect() {
	n := copy(in.direct.missing(), in.buf[in.begin:in.end])
	in.direct.have += n
	in.begin += n
	in.copied += n
}

// readConn reads as package net does: only what is missing of a direct message, if there is
// one.
func (in *input) readConn() (int, error) {
	if in.direct.buf != nil {
		return in.conn.Read(in.direct.missing())
	}
	return in.conn.Read(in.buf[in.end:])
}

// took notes that n bytes were read: first the missing ones, then others. Those of the read
// buffer begin at its front.
func (in *input) took(n int) {
	d := &in.direct
	own := min(n, len(d.missing()))
	d.have += own
	in.begin, in.end = 0, n-own
}

// cutDirect cuts the message that is being read directly. It reports whether the read buffer
// is next.
func (s *socket) cutDirect() (done bool, err error) {
	d := &s.in.direct
	for d.have >= d.need || d.have == len(d.buf) {
		if d.have < d.need { // the length was claimed, and so much has come
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
			return false, fmt.Errorf("protocol: a message of %d bytes was cut off %d", f.Len, d.have)
		}
		s.in.own, s.in.direct = d.buf[:d.have], direct{}
		return true, s.classify(f, ownBuffer, s.in.own)
	}
	return false, nil
}

const (
	// ownBuffer is the place of a message that lies in a buffer of its own.
	ownBuffer = -1
	// placed is the place of a message whose body was read to where its call wants it.
	placed = -2
)

// bytes returns a message that was cut.
func (in *input) bytes(f arrived) []byte {
	switch f.at {
	case ownBuffer:
		return in.own
	case placed:
		return in.aim.rest
	}
	return in.buf[f.at : f.at+f.len]
}

// give makes a message its call's reply: it copies it unless it has a buffer of its own.
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

// dropOwn gives back the buffer of a message that no call has taken.
func (in *input) dropOwn() {
	if in.own != nil {
		buf.Put(in.own[:0])
		in.own = nil
	}
	if in.aim != nil && in.aim.rest != nil {
		*in.aim = aim{}
	}
}
