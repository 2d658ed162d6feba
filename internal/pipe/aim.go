package pipe

import "fmt"

// A large reply is read directly into the memory that its call has provided, if the scanner reports where the body
// is. Only what arrived with the length is copied; over TLS, all of it.
//
// The memory belongs to the caller again as soon as the call has ended, and a cancel must end the call
// within 10 ms. So the reader never waits while it may write to that memory: it acquires the call under the socket's
// lock, reads what is available by one non-blocking system call, or copies what it has, and releases
// the call. Meanwhile the sweeper does not give the call up, and a failing socket
// leaves its calls to the reader. After a call has ended, the rest of its reply is dropped.

// A Splitter is a Scanner that can skip the bodies of messages.
type Splitter interface {
	Scanner
	// Body returns the offset of the body in the incomplete message that Scan has examined, and its
	// length, if the message consists of a complete head, one body, and a tail. Otherwise n is
	// zero. For ByTicket, it also returns the ticket of the message.
	Body() (from, n int, ticket uint64)
	// SkipBody makes the next Scan examine the bytes after the body. Its verdict must be Done or More, and
	// the length it returns is that of the tail.
	SkipBody()
}

// wanted is the memory that a call has provided for the body of its reply.
type wanted struct {
	room []byte
	size int // of the body in room
}

// ReadInto provides room for the body of the reply. The body is read into room if it fits and is large enough that
// this saves a copy. ReadInto is for protocols whose scanner is a Splitter. The engine does not touch room
// after the call has ended. If the call has failed, the contents of room are undefined.
func (c *Call) ReadInto(room []byte) {
	if len(room) < directReply {
		return
	}
	if c.wanted == nil {
		c.wanted = &wanted{}
	}
	c.wanted.room, c.has = room, c.has|hasWanted
}

// Placed returns the body of the reply if it was read into the memory given to ReadInto. Then Reply returns
// only the head and the tail. Otherwise Placed returns nil.
func (c *Call) Placed() []byte {
	if c.holds != holdsPlaced {
		return nil
	}
	return c.wanted.room[:c.wanted.size]
}

// aim is a message whose body is read into the memory of its call. The read buffer contains neither
// earlier messages nor bytes of the body.
type aim struct {
	call      *Call // nil if it has ended: then the rest is dropped
	room      []byte
	ticket    uint64
	have      int  // received bytes of the body
	scattered bool // the current read goes to room first
	closed    bool // the socket failed while the reader held the call
	head      [maxHead]byte
	headLen   int
	rest      []byte // head and tail of a complete message; in head
}

// maxHead is the maximum length of the head and the tail of a message together. A reply without its body
// is stored in its call.
const maxHead = inlineReply

// aiming reports whether a message is being read into the memory of its call.
func (in *input) aiming() bool { return in.aim != nil && in.aim.room != nil && in.aim.rest == nil }

// startAim prepares to read the rest of the message at the start of the read buffer into the memory of its
// call. It reports whether that is possible.
func (s *socket) startAim() bool {
	in := &s.in
	splitter, ok := in.scanner.(Splitter)
	if !ok || in.early {
		return false
	}
	from, n, ticket := splitter.Body()
	if have := in.end - in.begin; n == 0 || from > have || from > maxHead/2 || from+n-have < in.directFrom {
		return false
	}
	s.mu.Lock()
	var room []byte
	c := s.calls.next(ticket)
	if c != nil && c.state.Load() == statePending && !c.several && c.has&hasWanted != 0 && len(c.wanted.room) >= n {
		room = c.wanted.room[:n]
	}
	s.mu.Unlock()
	if room == nil {
		return false
	}
	if in.aim == nil {
		in.aim = new(aim)
	}
	a := in.aim
	*a = aim{call: c, room: room, ticket: ticket}
	a.headLen = copy(a.head[:], in.buf[in.begin:in.begin+from])
	in.begin += from
	splitter.SkipBody()
	if in.raw == nil && len(in.buf) < directReply {
		in.resize(directReply) // all bytes go through the buffer
	}
	s.place()
	return true
}

// holdCall permits the reader to write to the memory of the call until letGo. It returns
// the part that is to be filled, or nil if the call has ended. The caller has the reader's role.
func (s *socket) holdCall() []byte {
	a := s.in.aim
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.call == nil || s.life.closed || s.calls.next(a.ticket) != a.call || a.call.state.Load() != statePending {
		a.call = nil
		return nil
	}
	s.calls.filled = a.call
	return a.room[a.have:]
}

// letGo ends holdCall.
func (s *socket) letGo() {
	s.mu.Lock()
	s.calls.filled = nil
	s.in.aim.closed = s.in.aim.closed || s.life.closed
	s.mu.Unlock()
}

// place moves the received bytes of the body from the read buffer to the memory of the call.
func (s *socket) place() {
	in := &s.in
	a := in.aim
	n := min(in.end-in.begin, len(a.room)-a.have)
	if n == 0 {
		return
	}
	if room := s.holdCall(); room != nil {
		in.copied += copy(room, in.buf[in.begin:in.begin+n])
		s.letGo()
	}
	a.have += n
	in.begin += n
	s.finishHeld()
}

// finishHeld ends the calls of a socket that failed while the reader held one of them.
func (s *socket) finishHeld() {
	if a := s.in.aim; a.closed {
		a.closed = false
		s.finish()
	}
}

// tookAimed records that n bytes were read.
func (s *socket) tookAimed(n int) {
	in := &s.in
	a := in.aim
	if !a.scattered {
		in.end += n
		s.place()
		return
	}
	a.scattered = false
	own := min(n, len(a.room)-a.have)
	a.have += own
	in.begin, in.end = 0, n-own
}

// cutAimed cuts the message whose body is read into the memory of its call. It reports whether the
// message is complete, in which case the read buffer is next.
func (s *socket) cutAimed(need *int) (done bool, err error) {
	in := &s.in
	a := in.aim
	if a.have < len(a.room) || in.begin == in.end {
		return false, nil
	}
	tail := in.buf[in.begin:in.end]
	f, err := in.scanner.Scan(tail)
	switch {
	case err != nil:
		return false, fmt.Errorf("protocol: %w", err)
	case f.Verdict == More:
		*need = max(f.Len, len(tail)+1)
		return false, nil
	case f.Verdict != Done || f.Len <= 0 || f.Len > len(tail) || a.headLen+f.Len > maxHead:
		return false, fmt.Errorf("protocol: scanner found a tail of %d bytes in %d", f.Len, len(tail))
	}
	in.begin += f.Len
	a.rest = append(a.head[:a.headLen], tail[:f.Len]...)
	f.Len = len(a.rest) + len(a.room)
	return true, s.classify(f, placed, a.rest)
}
