package loop

import (
	"errors"
	"math/bits"
	"time"

	"github.com/slipstream-go/slipstream/internal/buf"
)

// Sizes of the parts into which an expected input is read. A part is as large as what has arrived
// before it, within these bounds: a peer can make the server hold at most twice what it has sent,
// and at most mostPart more than that.
const (
	leastPart = 4 << 10
	mostPart  = 256 << 10
)

// readUnit is how many bytes of an expected input are read for one unit of a turn's share.
const readUnit = 4 << 10

// ErrExpectTooLarge reports that an input cannot be expected because it is larger than the
// [Budget].
var ErrExpectTooLarge = errors.New("loop: the input is larger than the memory budget of all connections")

// A Receiver is a session whose large inputs are read into dedicated memory: see [Conn.Expect].
type Receiver interface {
	Session
	// Received is called once for each Expect, in a turn, when all bytes of the input have arrived
	// and the session may answer. p belongs to the session, which must call [Payload.Release]
	// when it no longer needs the bytes. If the connection ends first, Received is not called.
	Received(c *Conn, p *Payload)
}

// Expect announces that the next n bytes of the connection, after those that the current call of
// Data consumes, are one input. They are read into dedicated memory and passed to
// [Receiver.Received] together; until then Data is not called, and the connection is [Conn.Full].
// The session must be a [Receiver], and must have compared n with its own limit.
//
// Memory is allocated as the bytes arrive, not when they are announced, and is counted in the
// [Budget] before it is allocated. While the budget has no room, the connection is not read. The
// total time is not limited, but a peer that sends less than 1 KiB a second for PartialTimeout is
// disconnected with [ErrPartial].
//
// If Expect returns an error, nothing is expected. It panics if an input is expected already.
func (c *Conn) Expect(n int) error {
	_, ok := c.session.(Receiver)
	switch {
	case !ok:
		panic("loop: Expect was called by a session that is not a Receiver")
	case n < 0 || c.expected != nil || c.detaching:
		panic("loop: Expect was called with a negative number, while an input is expected, or after Detach")
	case int64(n) > c.server.config.Budget.limit:
		return ErrExpectTooLarge
	}
	c.expected = &Payload{size: n, since: c.server.now()}
	return nil
}

// A Payload is an input of a connection in dedicated memory. It is not safe for concurrent use.
type Payload struct {
	// Owned by the turn of the connection until Received, then by the session.
	parts   [][]byte // in order; the last may have room
	size    int      // bytes that are expected
	arrived int      // bytes in parts
	memory  int      // capacity of parts, including a lent one

	// Owned by the turn of the connection.
	since time.Duration // when the time limit was last checked
	mark  int           // the value of arrived at that time
}

// Len returns the number of bytes of the input.
func (p *Payload) Len() int { return p.arrived }

// Memory returns the number of bytes of memory that the input holds. A session that keeps the input
// beyond the turn adds this number to [Deferred.Weigh]. [Payload.Bytes] may need the same amount
// again.
func (p *Payload) Memory() int { return p.memory }

// Parts returns the bytes in order, in the parts into which they were read. They are valid until
// Release or Bytes.
func (p *Payload) Parts() [][]byte { return p.parts }

// Bytes returns the bytes in one slice, which is valid until Release. If there are several parts,
// it copies them, so call it outside the turn if they are large.
func (p *Payload) Bytes() []byte {
	if len(p.parts) > 1 {
		whole := buf.Get(p.arrived)
		for _, part := range p.parts {
			whole = append(whole, part...)
			buf.Put(part)
		}
		p.parts, p.memory = append(p.parts[:0], whole), cap(whole)
	}
	if len(p.parts) == 0 {
		return nil
	}
	return p.parts[0]
}

// Release releases the memory. Later calls do nothing.
func (p *Payload) Release() {
	for _, part := range p.parts {
		buf.Put(part)
	}
	p.parts, p.arrived, p.memory = nil, 0, 0
}

// complete reports whether all bytes have arrived. p may be nil.
func (p *Payload) complete() bool { return p != nil && p.arrived == p.size }

// hasRoom reports whether the last part has room.
func (p *Payload) hasRoom() bool {
	if len(p.parts) == 0 {
		return false
	}
	last := p.parts[len(p.parts)-1]
	return len(last) < cap(last)
}

// receiving reports whether the bytes read next go into the expected input.
func (c *Conn) receiving() bool {
	p := c.expected
	return p != nil && p.arrived < p.size && !c.starved && c.in.Len() == 0 && !c.eof && c.failure == nil
}

// extend makes room in the last part of the expected input, or adds a part. ahead is the number of
// bytes that are known to have arrived. It returns false if the budget has no room.
func (c *Conn) extend(ahead int) bool {
	p := c.expected
	if p.hasRoom() {
		return true
	}
	most := min(mostPart, floorPower(max(leastPart, int(c.server.config.Budget.limit/8))))
	n := min(floorPower(max(p.arrived, ahead, leastPart)), most)
	n = buf.Size(min(n, p.size-p.arrived))
	if c.starved = !c.reserve(n); c.starved {
		return false
	}
	p.parts = append(p.parts, buf.Get(n))
	p.memory += n
	return true
}

// floorPower returns the largest power of two that is at most n, which is positive.
func floorPower(n int) int { return 1 << (bits.Len(uint(n)) - 1) }

// fill copies the front of in, which has already been read, into the expected input and returns the
// number of bytes copied.
func (c *Conn) fill(in []byte) (n int) {
	p := c.expected
	in = in[:min(len(in), p.size-p.arrived)]
	for n < len(in) && c.extend(len(in)-n) {
		last := &p.parts[len(p.parts)-1]
		k := min(len(in)-n, cap(*last)-len(*last))
		*last = append(*last, in[n:n+k]...)
		n += k
		p.arrived += k
	}
	return n
}

// collect takes the bytes at the front of in that the session expects, passes complete inputs to
// the session, and returns the number of bytes taken.
func (c *Conn) collect(in []byte) (taken int) {
	for c.expected != nil {
		taken += c.fill(in[taken:])
		if !c.expected.complete() || c.full() {
			break
		}
		p := c.expected
		c.expected = nil
		c.session.(Receiver).Received(c, p)
	}
	return taken
}

// collectKept is collect for the bytes kept from earlier reads.
func (c *Conn) collectKept() {
	if c.expected == nil {
		return
	}
	n := c.collect(c.in.Peek(c.in.Len()))
	c.in.Discard(n)
	c.in.Release()
}

// A loan is a part of an expected input while a reader reads into it. Until giveBack the part
// belongs to the reader: the end of the connection does not release it.
type loan struct {
	of   *Payload // nil if there is no loan
	part []byte   // the contents of the part
	free []byte   // where to read to
}

// lend lends the last part of the expected input for a read of at most limit bytes. ahead is the
// same as for extend. It returns no loan if the budget has no room.
func (c *Conn) lend(ahead, limit int) loan {
	if !c.extend(ahead) {
		return loan{}
	}
	p := c.expected
	last := len(p.parts) - 1
	part := p.parts[last]
	p.parts[last] = nil
	p.parts = p.parts[:last]
	n := len(part)
	return loan{p, part, part[n:min(cap(part), n+p.size-p.arrived, n+limit)]}
}

// giveBack ends a loan into which n bytes were read.
func (c *Conn) giveBack(l loan, n int) {
	if c.expected != l.of {
		buf.Put(l.part) // the input was dropped
		return
	}
	l.of.parts = append(l.of.parts, l.part[:len(l.part)+n])
	l.of.arrived += n
}

// dropExpected ends an input that will not be received.
func (c *Conn) dropExpected() {
	if p := c.expected; p != nil {
		c.expected = nil
		p.Release()
	}
}

// slowInput reports whether the peer sends the expected input too slowly. It is part of the sweep.
func (c *Conn) slowInput(now time.Duration) bool {
	p, limit := c.expected, c.limits.PartialTimeout
	if p == nil || now-p.since <= limit {
		return false
	}
	if !c.starved && !p.complete() && float64(p.arrived-p.mark) < max(leastRate*limit.Seconds(), 1) {
		return true
	}
	p.since, p.mark = now, p.arrived
	return false
}

// starves reports whether the budget has no room for more of a request whose start was read.
// If so, the connection is not read until the sweep finds that there is room.
func (c *Conn) starves() bool {
	c.starved = c.server.config.Budget.exhausted()
	return c.starved
}

// feedable reports whether a connection that was not read because the budget had no room can be
// read again.
func (c *Conn) feedable(now time.Duration) bool {
	if !c.starved || c.server.config.Budget.Over() {
		return false
	}
	c.starved = false
	// The peer was not slow.
	if p := c.expected; p != nil {
		p.since, p.mark = now, p.arrived
	}
	if c.partial != 0 {
		c.partial = now
	}
	return true
}
