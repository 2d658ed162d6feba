package pipe

import "github.com/slipstream-go/slipstream/internal/buf"

// A call may have several replies, if its frame is of several requests. It then has that many
// places in the table of a protocol that answers in order, so everything that counts
// requests goes on counting them; only the object, its wake-up and its visit to the pool are
// one for all. At 1,000 requests that is 40 % of the client's CPU.
//
// Its replies are added by the reader, outside the lock, while the call still has places in
// the table. Gathering, of the socket and of the call, keeps everybody else from it
// meanwhile: the sweeper gives it up later, and a socket that fails leaves its calls to the
// reader.

// keptEnds are the ends of replies that a pooled call keeps: 8 KiB.
const keptEnds = 1 << 10

// places returns how many places c takes in a table, and of the bound for calls.
func (c *Call) places() int { return max(int(c.Replies), 1) }

func places(cs []*Call) (n int) {
	for _, c := range cs {
		n += c.places()
	}
	return n
}

// Received returns how many replies c has: also a call that failed may have some, the first
// ones, if it has Replies.
func (c *Call) Received() int {
	switch {
	case c.several:
		return len(c.endings())
	case c.failed || c.small == 0 && c.holds != holdsReply:
		return 0
	}
	return 1
}

// ReplyAt returns a reply, counted from 0, valid until Release.
func (c *Call) ReplyAt(i int) []byte {
	if !c.several {
		return c.Reply()
	}
	from := 0
	if i > 0 {
		from = (*c.ends)[i-1]
	}
	return c.large[from:(*c.ends)[i]]
}

// endings returns where in large each of the replies ends.
func (c *Call) endings() []int {
	if c.ends == nil {
		return nil
	}
	return *c.ends
}

// Written returns how many bytes of the frame of a call that failed the server may have.
func (c *Call) Written() int {
	if !c.failed {
		return 0
	}
	return c.written
}

// await notes that the reader has a reply of c, which may have several.
func (m *matcher) await(c *Call) {
	if !c.several {
		return
	}
	m.gathering = true // also for a call that was given up: the reader looks at it outside the lock
	if c.awaited--; !c.gathering && c.state.Load() == statePending {
		c.gathering = true
	}
}

// unawait undoes await for calls that were taken out.
func (m *matcher) unawait(calls []*Call) {
	for _, c := range calls {
		if c.several {
			c.awaited, c.gathering = c.awaited+1, false
		}
	}
	m.gathering = false
}

// gather adds the replies from place i on that are of the same call, and returns how many
// they are and whether the call has all of its replies.
func (s *socket) gather(i int) (n int, all bool) {
	c := s.in.popped[i]
	size := 0
	for n = 0; i+n < len(s.in.popped) && s.in.popped[i+n] == c; n++ {
		size += s.in.frames[i+n].len
	}
	all = c.awaited == 0
	if !c.gathering {
		return n, all
	}
	c.makeRoom(size, n)
	for _, f := range s.in.frames[i : i+n] {
		c.large = append(c.large, s.in.bytes(f)...)
		*c.ends = append(*c.ends, len(c.large))
	}
	c.gathering = false
	return n, all
}

// makeRoom makes room for n replies of size bytes together, and for those that follow if they
// are alike. It allocates at most four times what has arrived.
func (c *Call) makeRoom(size, n int) {
	if c.ends == nil {
		ends := make([]int, 0, min(int(c.Replies), max(keptEnds, 4*n)))
		c.ends = &ends
	}
	need := len(c.large) + size
	if need <= cap(c.large) {
		return
	}
	alike := need / (len(*c.ends) + n) * (int(c.Replies) + 1)
	b := append(buf.Get(max(need, min(alike, 4*need))), c.large...)
	c.clearLarge()
	c.adopt(b)
}

// endGathering lets others at the calls again. Whoever has the reader's role.
func (s *socket) endGathering() {
	s.mu.Lock()
	was, closed := s.calls.gathering, s.life.closed
	s.calls.gathering = false
	s.mu.Unlock()
	if was && closed {
		s.finish()
	}
}
