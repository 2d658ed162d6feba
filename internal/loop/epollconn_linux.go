package loop

import (
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// epollConn is a connection of an event loop.
type epollConn struct {
	Conn

	// Immutable after accept.
	loop *eventLoop
	fd   int

	// Owned by the loop.
	place    uint32
	scratch  *Output // of the loop, lent for the current turn
	queued   bool    // in loop.again
	readable bool    // the kernel may have more than was read
	hangsUp  bool    // the peer has sent its last byte: keep reading until 0
	blocked  bool    // the kernel took less than it was given
}

// connEvents are registered once and edge-triggered, so that neither a pause in reading nor
// a full socket costs an epoll_ctl(2).
const connEvents = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

// note records what epoll has reported.
func (c *epollConn) note(events uint32) {
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.readable = true
	}
	if events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.hangsUp = true
	}
	if events&(unix.EPOLLOUT|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.blocked = false
	}
}

// turn does everything that a connection can do now: write waiting output, run posted tasks, pass
// buffered input to the session, read more, write the answers, and take the next step.
func (l *eventLoop) turn(c *epollConn) {
	defer l.recovered(c)
	if l.measure != nil {
		defer l.measured(threadCPU())
	}
	l.lend(c)
	wrote := 0
	if c.out != nil && !c.blocked {
		wrote += l.flush(c)
	}
	if !c.queued { // otherwise it continues when it reaches the front of the queue
		c.tellDrain()
		c.runPosts()
		wrote += l.feed(c, false)
		for reads := 0; c.reads(); reads++ {
			if reads == turnReads {
				l.queue(c)
				break
			}
			wrote += l.read(c)
		}
	}
	l.endTurn(c, wrote)
}

// reads reports whether to read from the connection now.
func (c *epollConn) reads() bool {
	return c.readable && !c.eof && !c.starved && c.failure == nil && (c.lingering || !c.Full() || c.receiving())
}

// endTurn writes what is left to write and takes the next step.
func (l *eventLoop) endTurn(c *epollConn, wrote int) {
	c.tellPeerEnded()
	if c.out != nil && !c.blocked {
		wrote += l.flush(c)
	}
	l.keepOutput(c)
	c.noteWritten(wrote, l.now)
	if wrote > 0 && !c.readable {
		c.endWithAnswer(l.now)
	}
	more := c.out != nil && !c.blocked || c.exhausted() && (c.hasInput() || c.readable) || c.postsLeft && c.takesPosts()
	l.spent += c.spent + turnCost
	c.newShare(c.queued)
	switch c.next() {
	case stepNone:
		if more {
			l.counts.postponed++
			l.queue(c)
		}
	case stepHalfClose:
		_ = unix.Shutdown(c.fd, unix.SHUT_WR) // if the peer has gone, the next read reports it
		c.beginLinger(l.now)
		c.readable = true
		l.queue(c)
	case stepDetach:
		l.detach(c)
	case stepClose:
		l.close(c, c.closeError())
	}
}

// feed passes input kept from earlier reads to the session, as long as the session can use it.
// fresh reports that input has arrived since the last call of Data.
func (l *eventLoop) feed(c *epollConn, fresh bool) (wrote int) {
	c.collectKept()
	for c.in.Len() > 0 && !c.Full() && (fresh || c.partial == 0) {
		fresh = false
		n, full := c.deliver(c.in.Peek(c.in.Len()))
		c.in.Discard(n)
		c.in.Release()
		c.noteRest(c.in.Len(), n, full, l.now)
		if full && !c.blocked {
			wrote += l.flush(c)
		}
	}
	return wrote
}

// read reads once and passes the bytes to the session.
func (l *eventLoop) read(c *epollConn) (wrote int) {
	if c.receiving() {
		return l.readExpected(c)
	}
	if c.in.Len() == 0 {
		p := l.readBuf
		if c.room < l.server.config.MaxOutput {
			p = p[:cohortRead] // because what the session does not consume is kept
		}
		n := l.readInto(c, p)
		if n <= 0 || c.lingering {
			return 0
		}
		return l.handOn(c, l.readBuf[:n])
	}
	// The start of a request is in the buffer: the rest is appended to it.
	if c.starves() {
		return 0
	}
	n := l.readInto(c, c.in.Reserve(min(max(4<<10, c.in.Len()), readSize)))
	if n <= 0 {
		return 0
	}
	c.in.Commit(n)
	return l.feed(c, true)
}

// readExpected reads once into the memory of the expected input.
func (l *eventLoop) readExpected(c *epollConn) (wrote int) {
	ahead := 0
	if c.expected.arrived < mostPart && !c.expected.hasRoom() {
		ahead = unread(c.fd)
	}
	into := c.lend(ahead, max(c.share-c.spent, turnCost)*readUnit)
	if into.of == nil {
		return 0
	}
	n := l.readInto(c, into.free)
	c.giveBack(into, max(n, 0))
	if n <= 0 {
		return 0
	}
	c.Spend(n / readUnit)
	return l.feed(c, false)
}

// handOn passes the bytes just read to the session and keeps those that it does not consume.
func (l *eventLoop) handOn(c *epollConn, in []byte) (wrote int) {
	for {
		n, full := c.deliver(in)
		in = in[n:]
		c.noteRest(len(in), n, full, l.now)
		if full && !c.blocked {
			wrote += l.flush(c)
		}
		if len(in) == 0 {
			return wrote
		}
		if !full || c.Full() {
			c.in.Append(in)
			return wrote
		}
	}
}

// readInto reads once and records errors and the end of the peer's bytes.
func (l *eventLoop) readInto(c *epollConn, p []byte) int {
	n, errno := readFile(c.fd, p)
	l.counts.reads++
	switch {
	case n > 0:
		// After a short read the kernel has no more, and epoll reports when more arrives
		// (epoll(7)).
		c.readable = n == len(p) || c.hangsUp
		c.active = l.now
		c.readAt, l.clockAt = -1, -1
	case errno == syscall.EAGAIN:
		c.readable = false
	case errno == syscall.EINTR:
	case n == 0 && errno == 0:
		c.eof, c.readable = true, false
	default:
		if c.failure == nil {
			c.failure = &CloseError{ReasonReset, os.NewSyscallError("read", errno)}
		}
	}
	return n
}

// flush writes as much as it can and returns the number of bytes written.
func (l *eventLoop) flush(c *epollConn) (wrote int) {
	o := c.out
	for o != nil && o.Len() > 0 && c.failure == nil && c.wrote < turnBytes {
		l.segments = o.segments(l.segments[:0])
		total := cut(&l.segments, turnBytes-c.wrote)
		n, errno := writeFile(c.fd, l.segments, total)
		clear(l.segments)
		l.counts.writes++
		switch {
		case errno == 0:
			o.advance(n)
			wrote += n
			c.spendBytes(n)
			if n < total {
				c.blocked = true
				return wrote
			}
		case errno == syscall.EAGAIN:
			c.blocked = true
			return wrote
		case errno == syscall.EINTR:
		default:
			if c.failure == nil {
				c.failure = &CloseError{ReasonReset, os.NewSyscallError("write", errno)}
			}
			return wrote
		}
	}
	return wrote
}

// lend lends the connection the loop's output for the turn, if it has none yet, and sets the
// room that the budget leaves. It stays the same during the turn: a session that stopped because
// it was full must still look full afterwards.
func (l *eventLoop) lend(c *epollConn) {
	if c.scratch == nil {
		c.scratch = l.scratch
	}
	c.room = c.roomNow()
}

// output implements backend. It returns the output that the loop has lent.
func (c *epollConn) output() *Output {
	if c.scratch != nil {
		return c.scratch
	}
	return newOutput(0)
}

// held implements backend.
func (c *epollConn) held() int { return unacknowledged(c.fd) }

// clock implements backend. One reading, which is a system call, serves all connections that were
// read before it.
func (c *epollConn) clock() time.Duration {
	l := c.loop
	if l.clockAt < 0 {
		l.clockAt = l.server.config.Clock()
	}
	return l.clockAt
}

// keepOutput returns the output that the loop has lent. Unwritten bytes move to an output that
// belongs to the connection.
func (l *eventLoop) keepOutput(c *epollConn) {
	o := c.out
	switch {
	case o == nil:
	case o == c.scratch:
		c.out = nil
		if o.Len() > 0 {
			c.out = newOutput(len(o.B) - o.from)
			c.out.take(o)
		}
		o.reset()
	case o.Len() == 0:
		c.out = nil
		freeOutput(o)
	}
	c.scratch = nil
}

// complete implements backend.
func (c *epollConn) complete(d *Deferred) {
	if !c.loop.postDone(d) {
		d.end().Drop() // the loop and all its connections have ended
	}
}

// owes implements backend.
func (c *epollConn) owes(delta int) { c.loop.owed += int64(delta) }

// settle writes an answer that has become complete and those that follow it in the queue and belong
// to the same connection, at most most of them. It returns how many it has settled.
func (l *eventLoop) settle(d *Deferred, most int) (n int) {
	n = 1
	c := d.conn.backend.(*epollConn)
	defer l.recovered(c)
	if l.measure != nil {
		defer l.measured(threadCPU())
	}
	l.lend(c)
	c.Conn.settle(d)
	for n < most && l.settling.len() > 0 && !c.closed && !c.exhausted() && c.waiting() < c.room {
		if l.settling.front().conn != &c.Conn {
			break
		}
		n++ // before the answer, which may panic
		c.Conn.settle(l.settling.pop())
	}
	if !c.closed {
		l.turn(c)
	}
	return n
}

// recovered ends a connection whose session has panicked, without affecting other connections or
// the process.
func (l *eventLoop) recovered(c *epollConn) {
	v := recover()
	if v == nil {
		return
	}
	failure := l.server.panicked(&c.Conn, v)
	if !c.closed {
		c.failure = failure
		l.close(c, failure)
	}
}

// close ends a connection.
func (l *eventLoop) close(c *epollConn, err error) {
	if c.closed {
		return
	}
	l.leave(c)
	_ = unix.Close(c.fd)
	c.releasePlace()
	l.server.countClose(err)
	l.finished(c, err)
}

// leave removes the connection from its slot.
func (l *eventLoop) leave(c *epollConn) {
	s := &l.slots[c.place]
	s.conn = nil
	s.generation++
	if s.generation == 0 {
		s.generation = 1
	}
	l.free = append(l.free, c.place)
	l.conns--
}

func (l *eventLoop) finished(c *epollConn, err error) {
	if c.out != nil {
		if c.out == c.scratch {
			c.out.reset()
		} else {
			freeOutput(c.out)
		}
		c.out = nil
	}
	c.scratch = nil
	c.finish(err)
	l.checkIdle()
}

// detach passes a connection to Config.Detached.
func (l *eventLoop) detach(c *epollConn) {
	unread := append([]byte(nil), c.in.Peek(c.in.Len())...)
	_ = unix.EpollCtl(l.epfd, unix.EPOLL_CTL_DEL, c.fd, nil) // it was added, so it can be removed
	l.leave(c)
	l.server.countClose(&CloseError{Reason: ReasonDetached})
	f := os.NewFile(uintptr(c.fd), "detached")
	nc, err := net.FileConn(f)
	_ = f.Close()      // FileConn has duplicated the descriptor
	l.finished(c, nil) // before Detached, because the session is not involved in what follows
	if err != nil {
		l.server.config.Log.Warn("detaching a connection failed", "connection", c.id, "error", err)
		c.releasePlace()
		return
	}
	l.server.handOver(&c.Conn, nc, unread)
}
