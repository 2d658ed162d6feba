package loop

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// acquire takes the turn.
func (c *goConn) acquire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acquireLocked()
}

func (c *goConn) acquireLocked() {
	c.wanted++
	for c.busy {
		c.cond.Wait()
	}
	c.wanted--
	c.begunLocked()
	c.room = c.roomNow()
}

// begunLocked records that a goroutine has the turn.
func (c *goConn) begunLocked() {
	c.busy = true
	c.seen = c.counted
}

// yield yields the turn, unless there is mail to settle first. Posted tasks are left to goroutines
// that wait for the turn; otherwise an endless supply of tasks would keep them waiting.
func (c *goConn) yield() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mail) > 0 || c.posted && c.wanted == 0 {
		return false
	}
	c.busy = false
	c.cond.Broadcast()
	return true
}

// yieldToRead yields the turn, unless there is mail to settle first. If something was posted, a
// helper gets the turn; otherwise an endless supply of tasks would keep the reader from reading.
func (c *goConn) yieldToRead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.mail) > 0:
		return false
	case c.posted && c.wanted == 0:
		c.helpLocked()
		return true
	}
	c.busy = false
	c.cond.Broadcast()
	return true
}

// await yields the turn until another goroutine has had it, unless there is mail to settle first.
// Only the reader calls it, so two goroutines never wake each other.
func (c *goConn) await() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mailLocked() {
		return
	}
	c.busy = false
	c.cond.Broadcast()
	c.cond.Wait()
	c.acquireLocked()
}

// complete implements backend.
func (c *goConn) complete(d *Deferred) {
	if !c.take(d) {
		d.end().Drop()
	}
}

// take puts d into the mail, which a goroutine settles. It returns false if the connection has
// gone.
func (c *goConn) take(d *Deferred) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return false
	}
	c.mail = append(c.mail, d)
	c.callLocked()
	return true
}

// mailLocked reports whether something has come for the connection's turn.
func (c *goConn) mailLocked() bool { return len(c.mail) > 0 || c.posted }

// wakePosts implements backend.
func (c *goConn) wakePosts() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return // posted tasks have been dropped
	}
	c.posted = true
	c.callLocked()
}

// callLocked makes a goroutine take the turn for new mail, unless one has it or will take it.
func (c *goConn) callLocked() {
	if !c.busy && !c.away {
		c.helpLocked()
	}
}

// helpLocked gives the turn to a helper. The caller, or no goroutine, has the turn.
func (c *goConn) helpLocked() {
	c.begunLocked()
	c.engine.running.Add(1)
	// Ends when there is nothing to do, at the latest when the connection has ended;
	// stop waits for it.
	c.engine.helpers.Start((*helper)(c))
}

// helper is a connection as the job of a helper.
type helper goConn

// Work implements [Job].
func (h *helper) Work() { (*goConn)(h).help() }

// lookAt checks one connection for the sweeper.
func (c *goConn) lookAt(now time.Duration) {
	c.mu.Lock()
	if c.busy || c.gone {
		c.mu.Unlock()
		return
	}
	c.begunLocked()
	c.mu.Unlock()
	due := c.overdue(now)
	if c.stuck != 0 && now-c.stuck > c.server.config.sweepInterval() && c.reads() {
		// The reader is blocked by a peer that does not read, and there is room for more
		// answers, so another goroutine reads.
		c.role++
		c.stuck = 0
		c.engine.running.Add(1)
		// Ends with the connection, which stop cuts and waits for.
		go c.takeOver(c.role)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if due || c.mailLocked() {
		c.helpLocked()
		return
	}
	c.busy = false
	c.cond.Broadcast()
}

// look describes the connection for a survey. During its turn a connection is in use, and is
// reported with what it held when the turn began; otherwise others would be closed in its place.
// Cut does not close it then; if the budget is still exceeded, the next survey follows soon.
func (c *goConn) look(now time.Duration) Peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.gone:
		return Peer{Group: c.group(c), Proven: true, Idle: -1, Conn: c}
	case c.busy:
		return Peer{Group: c.group(c), Holds: int64(c.seen.held) + c.postedWeight(), Large: int64(c.seen.large), Proven: true, Idle: -1, Conn: c}
	}
	return c.peer(now, c)
}

// Cut implements [Cutter].
func (c *goConn) Cut(why CloseReason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.busy && !c.gone && c.Conn.cut(why) {
		c.helpLocked()
	}
}

// settleMail settles the answers that have become complete, and runs posted tasks.
func (c *goConn) settleMail() {
	for {
		c.mu.Lock()
		c.mail, c.settled = c.settled[:0], c.mail
		c.posted = false
		c.mu.Unlock()
		if len(c.settled) == 0 {
			c.runPosted()
			return
		}
		for i, d := range c.settled {
			c.settled[i] = nil
			c.settleOne(d)
		}
	}
}

// runPosted calls Drain if that is due, and runs posted tasks.
func (c *goConn) runPosted() {
	defer c.recovered()
	c.tellDrain()
	c.runPosts()
}

func (c *goConn) settleOne(d *Deferred) {
	defer c.recovered()
	c.settle(d)
}

// output implements backend.
func (c *goConn) output() *Output { return newOutput(min(c.lastOut, writeAtOnce)) }

// held implements backend.
func (c *goConn) held() int {
	s, ok := c.raw.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	if raw.Control(func(fd uintptr) { n = unacknowledged(int(fd)) }) != nil {
		return 0
	}
	return n
}

// clock implements backend.
func (c *goConn) clock() time.Duration { return c.server.config.Clock() }

// owes implements backend.
func (c *goConn) owes(delta int) { c.engine.owed.Add(int64(delta)) }

// write writes the output. It does not hold the turn while it writes. me is the role of a reader,
// or 0.
func (c *goConn) write(me uint32) {
	o := c.out
	c.out = nil
	c.lastOut = o.Len()
	c.writing = true
	c.flying = flightOf(o)
	c.noteWritten(0, c.server.now())
	for c.flying.bytes > 0 && c.failure == nil && !c.closed {
		if me == c.role {
			c.stuck = c.server.now()
		}
		c.mu.Lock()
		c.busy, c.away = false, true
		c.cond.Broadcast()
		c.mu.Unlock()
		n, err := c.engine.writeSome(c.nc, o)
		c.mu.Lock()
		c.acquireLocked()
		c.away = false
		c.mu.Unlock()
		if me == c.role {
			c.stuck = 0
		}
		if c.closed {
			break
		}
		o.advance(n)
		c.flying = flightOf(o)
		c.noteWritten(n, c.server.now())
		if err != nil {
			c.broke(err)
		}
	}
	c.flying = flight{}
	c.writing = false
	freeOutput(o)
	if c.failure == nil && !c.closed {
		c.endWithAnswer(c.server.now())
	}
}

// segmentList is the segments of one write.
type segmentList struct {
	all  [16][]byte
	left net.Buffers
}

var segmentLists = sync.Pool{New: func() any { return new(segmentList) }}

// writeSome writes the front of an output and returns the number of bytes written.
func (g *goEngine) writeSome(nc net.Conn, o *Output) (int, error) {
	g.writes.Add(1)
	l := segmentLists.Get().(*segmentList)
	segments := o.segments(l.all[:0])
	room := writeAtOnce
	for i, s := range segments {
		if len(s) >= room {
			segments = segments[:i+1]
			segments[i] = s[:room]
			break
		}
		room -= len(s)
	}
	var n int64
	var err error
	if len(segments) == 1 {
		var one int
		one, err = nc.Write(segments[0])
		n = int64(one)
	} else {
		l.left = segments
		n, err = l.left.WriteTo(nc)
	}
	clear(l.all[:])
	l.left = nil
	segmentLists.Put(l)
	return int(n), err
}
