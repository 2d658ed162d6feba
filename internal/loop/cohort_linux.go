package loop

import (
	"time"

	"golang.org/x/sys/unix"
)

// A cohort is a group of connections that became ready together. All are read, then all their
// requests are answered, then all answers are written: the code of each step and the processor's
// tables for it stay warm, and one reading of the clock, after the last read, serves all.
//
// docs/decisions/0008 compares this with complete turns, one connection after the other.
type cohort struct {
	arena   []byte // cohortRead bytes for each connection
	conns   [cohortSize]*epollConn
	read    [cohortSize]int // bytes of the arena
	wrote   [cohortSize]int
	outputs [cohortSize]Output
	cpu     [cohortSize]time.Duration // of the first half of a turn, if turns are measured
}

// Sizes of a cohort.
const (
	cohortSize = 32
	cohortRead = 8 << 10
	// bulkRead is the size of input that is answered immediately in a crowd. A connection that
	// has sent more waits until those with less have been answered. Once there is such a
	// connection, the kernel is asked how much the others have sent before it is read: 3,000
	// connections with 25 KB each made another one wait for 15 ms while 8 KB of each were read
	// first, and for 3 ms since.
	bulkRead = 2 << 10
)

// plain reports whether nothing waits at the connection, so that what is read now is all its input.
func (c *epollConn) plain() bool {
	return !c.queued && c.in.Len() == 0 && c.expected == nil && c.out == nil && c.owed == 0 && !c.postsLeft && c.scratch == nil && c.reads() && !c.lingering
}

// serve processes up to cohortSize events.
func (l *eventLoop) serve(events []unix.EpollEvent) {
	h := &l.cohort
	n, room := 0, l.server.config.Budget.room(l.server.config.MaxOutput)
	for i := range events {
		c := l.connOf(&events[i])
		if c == nil {
			l.dispatch(&events[i])
			continue
		}
		c.note(events[i].Events)
		if !c.plain() {
			if c.expected != nil && l.crowded && !c.queued {
				l.queue(c) // reading it takes a long time, so others come first
			} else {
				l.turn(c)
			}
			continue
		}
		if l.bulky && unread(c.fd) > bulkRead {
			c.active = l.now
			c.unfinished = true
			l.queue(c)
			continue
		}
		at := n * cohortRead
		if h.read[n] = l.readInto(c, h.arena[at:at+cohortRead]); h.read[n] <= 0 {
			l.turn(c)
			continue
		}
		c.room = room
		if h.read[n] > bulkRead && l.crowded {
			l.bulky = true
			c.in.Append(h.arena[at : at+h.read[n]])
			c.unfinished = true
			c.noteWritten(0, l.now) // so that the budget counts the waiting bytes
			l.queue(c)
			continue
		}
		h.conns[n] = c
		n++
	}
	for i := range n {
		l.answer(i)
	}
	for i := range n {
		l.conclude(i)
	}
}

// answer passes what was read from one connection of the cohort to its session.
func (l *eventLoop) answer(i int) {
	h := &l.cohort
	c := h.conns[i]
	defer l.recovered(c)
	if l.measure != nil {
		start := threadCPU()
		defer func() { h.cpu[i] = threadCPU() - start }()
	}
	c.scratch = &h.outputs[i]
	at := i * cohortRead
	h.wrote[i] = l.handOn(c, h.arena[at:at+h.read[i]])
}

// conclude writes the answers of one connection of the cohort and ends its turn.
func (l *eventLoop) conclude(i int) {
	h := &l.cohort
	c := h.conns[i]
	h.conns[i] = nil
	if l.measure != nil {
		defer l.measured(threadCPU() - h.cpu[i])
	}
	switch {
	case c.closed: // its session panicked
	case c.reads():
		l.turn(c)
	default:
		l.endTurn(c, h.wrote[i])
	}
}
