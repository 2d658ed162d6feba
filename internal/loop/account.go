package loop

import "sync/atomic"

// account is what the connections of a lane hold. Each lane has its own, so that
// connections of different lanes do not write to the same cache line.
type account struct {
	unwritten atomic.Int64 // bytes that wait for peers
	large     atomic.Int64 // of these, bytes that belong to large answers
	held      atomic.Int64 // memory that counts toward the budget
	told      atomic.Int64 // the part of held that was reported to the budget
	_         [96]byte
}

// holding is what a connection has in its lane's account.
type holding struct{ unwritten, large, held int }

// holding returns what the connection holds now. Large answers refer to documents and have a
// separate budget; everything else counts toward Config.Budget.
func (c *Conn) holding() (h holding) {
	memory := c.weight + c.flying.memory + c.tails + c.in.Memory()
	h.unwritten, h.large = c.flying.bytes, c.flying.large+c.tailsLarge
	if c.expected != nil {
		memory += c.expected.memory
	}
	for _, o := range [...]*Output{c.out, c.lastTail()} {
		if o != nil {
			memory += o.memory()
			h.large += o.large()
		}
	}
	if c.out != nil {
		h.unwritten += c.out.Len()
	}
	h.held = max(memory-h.large, 0)
	return h
}

// lastTail returns the output after the last answer owed, or nil if there is none.
func (c *Conn) lastTail() *Output {
	if c.lastOwed == nil {
		return nil
	}
	return c.lastOwed.tail
}

// count updates the lane's account.
func (c *Conn) count(h holding) {
	if h != c.counted {
		was := c.counted
		c.counted = h
		c.server.charge(c.lane, holding{h.unwritten - was.unwritten, h.large - was.large, h.held - was.held})
	}
	if c.room >= c.server.config.MaxOutput || h.unwritten == 0 {
		c.throttled = false
	} else if !c.throttled && c.waiting()+c.weight >= c.room {
		c.throttled = true
		b := c.server.config.Budget
		if b.room(c.room+1) > c.room {
			b = c.server.config.Large
		}
		b.throttled.Add(1)
	}
}

// roomNow returns how many bytes the connection may have waiting in a turn that begins now.
func (c *Conn) roomNow() int {
	config := &c.server.config
	room := config.Budget.room(config.MaxOutput)
	if c.counted.large > 0 {
		room = min(room, config.Large.room(config.MaxOutput))
	}
	return room
}

// HoldLarge adds n bytes, which may be negative, to the budget of large answers. They are what
// a session holds as a [LargeHolder]. It may be called on any goroutine.
func (s *Server) HoldLarge(n int64) {
	if s.config.Large.Add(n) && n > 0 {
		s.wakeKeeper()
	}
}

// heldLarge returns the number of bytes of large answers that the connection and its session hold.
func (c *Conn) heldLarge() int64 {
	n := int64(c.counted.large)
	if h, ok := c.session.(LargeHolder); ok {
		n += h.HoldsLarge()
	}
	return n
}

// charge adds to the account of a lane. The budget, which all lanes share, is updated in steps.
func (s *Server) charge(lane int, by holding) {
	a := &s.accounts[lane]
	if by.unwritten != 0 {
		a.unwritten.Add(int64(by.unwritten))
	}
	if by.large != 0 {
		a.large.Add(int64(by.large))
		s.HoldLarge(int64(by.large)) // at every change: large answers are few, and a step would be too coarse for them
	}
	if by.held == 0 {
		return
	}
	told := a.told.Load()
	step := a.held.Add(int64(by.held)) - told
	if max(step, -step) >= s.step && a.told.CompareAndSwap(told, told+step) && s.config.Budget.Add(step) {
		s.wakeKeeper()
	}
}

// reserve counts n bytes of memory that the connection is about to allocate. If the budget has no
// room for them, it counts nothing and returns false. Unlike charge it updates the budget
// immediately.
func (c *Conn) reserve(n int) bool {
	s := c.server
	ok, over := s.config.Budget.take(int64(n))
	if over {
		s.wakeKeeper()
	}
	if !ok {
		return false
	}
	a := &s.accounts[c.lane]
	a.told.Add(int64(n))
	a.held.Add(int64(n))
	c.counted.held += n
	return true
}

// settleAccounts removes what the server's connections held from the budget. No connection is
// left.
func (s *Server) settleAccounts() {
	for i := range s.accounts {
		s.config.Budget.Add(-s.accounts[i].told.Swap(0))
	}
}

// unwritten returns the number of bytes that wait for peers.
func (s *Server) unwritten() (n int64) {
	for i := range s.accounts {
		n += s.accounts[i].unwritten.Load()
	}
	return n
}

// unwrittenLarge returns the number of bytes of large answers that wait for peers.
func (s *Server) unwrittenLarge() (n int64) {
	for i := range s.accounts {
		n += s.accounts[i].large.Load()
	}
	return n
}
