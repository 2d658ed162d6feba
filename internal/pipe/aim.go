package pipe

import "fmt"

// A large reply is read to where its call wants it, if the protocol says where its body lies. Only
// what arrived with its length is copied, and over TLS all of it.
//
// The memory is the caller's again as soon as the call has ended, and a cancel must end the call
// within 10 ms. So the reader never waits while it may write: it takes the call under the socket's
// lock, reads what is there by one system call that does not wait, or copies what it has, and lets
// go of the call. Meanwhile the sweeper does not give the call up, and a socket that
// fails leaves its calls to the reader. Once a call has ended, the rest of its reply is dropped.

// A Splitter is a Scanner that can do without the bodies of messages.
type Splitter interface {
	Scanner
	// Body returns where the body lies within the message of which Scan has found a part, and its
	// length, if the message is one body between a head that is there and a tail. Otherwise n is
	// zero. The ticket is the message's, for ByTicket.
	Body() (from, n int, ticket uint64)
	// SkipBody lets the next Scan look at what follows the body. That must be a reply, and the
	// length that Scan returns for it is that of the tail.
	SkipBody()
}

// wanted is where a call wants the body of its reply.
type wanted struct {
	room []byte
	size int // of the body in it
}

// ReadInto lets the body of the reply be read into room, if the body fits and is so large that
// this saves a copy. It is for protocols whose scanner is a Splitter. The engine does not touch room
// after the call has ended, but what is in it then is undefined if the call has failed.
func (c *Call) ReadInto(room []byte) {
	if len(room) < directReply {
		return
	}
	if c.wanted == nil {
		c.wanted = &wanted{}
	}
	c.wanted.room, c.has = room, c.has|hasWanted
}

// Placed returns the body of the reply, if it lies in the memory given to ReadInto; Reply returns
// then what stands around it. Otherwise it returns nil.
func (c *Call) Placed() []byte {
	if c.holds != holdsPlaced {
		return nil
	}
	return c.wanted.room[:c.wanted.size]
}

// aim is a message whose body is read to where a call wants it. The read buffer has nothing of what
// came before or belongs to the body.
type aim struct {
	call      *Call // nil: it has ended, and the rest is dropped
	room      []byte
	ticket    uint64
	have      int  // of the body
	scattered bool // the read under way goes to room first
	closed    bool // the socket failed while the reader held the call
	head      [maxHead]byte
	headLen   int
	rest      []byte // head and tail, when the message is complete; in head
}

// maxHead is how long head and tail of a message may be together. A reply without its body
// lies within its call.
const maxHead = inlineReply

// aiming reports whether a message is being read to where it is wanted.
func (in *input) aiming() bool { return in.aim != nil && in.aim.room != nil && in.aim.rest == nil }

// startAim lets the rest of the message at the front of the read buffer be read to where its call
// wants the body, and reports whether it does.
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
		in.resize(directReply) // everything goes through it
	}
	s.place()
	return true
}

// holdCall lets the reader write to the memory that the call wants the body in, until letGo. It returns
// what is missing there; nil: the call has ended. Whoever has the reader's role.
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

// place moves what has arrived of the body from the read buffer to where it is wanted.
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

// tookAimed notes that n bytes were read.
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

// cutAimed cuts the message whose body is read to where it is wanted. It reports whether the read
// buffer is next.
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
		return false, fmt.Errorf("protocol: a tail of %d bytes was cut off %d", f.Len, len(tail))
	}
	in.begin += f.Len
	a.rest = append(a.head[:a.headLen], tail[:f.Len]...)
	f.Len = len(a.rest) + len(a.room)
	return true, s.classify(f, placed, a.rest)
}
