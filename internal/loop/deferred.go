package loop

import "sync/atomic"

// Deferred is the place of an answer that comes later.
type Deferred struct {
	// Immutable after Defer.
	conn     *Conn
	reply    Reply
	anyOrder bool

	// Owned by the turn of the connection. weight counts in the budget; tail holds what was
	// appended after this answer, nil if that is nothing; next is the answer after it.
	ready  bool
	weight int
	tail   *Output
	next   *Deferred

	// Atomic: set by the first Complete.
	completed atomic.Bool
}

// Complete says that the answer is there: [Reply.Write] or [Reply.Drop] follows, here or
// on another goroutine. It may be called on any goroutine and does not wait; calls after
// the first do nothing.
func (d *Deferred) Complete() {
	if !d.completed.Swap(true) {
		d.conn.backend.complete(d)
	}
}

// Defer reserves the place of the next answer. What is appended from now on waits behind
// it until d.Complete has been called and r written.
func (c *Conn) Defer(r Reply) *Deferred {
	d := &Deferred{conn: c, reply: r}
	if c.lastOwed == nil {
		c.firstOwed = d
	} else {
		if t := c.lastOwed.tail; t != nil {
			c.tails += t.Len()
			c.tailsLarge += t.large()
		}
		c.lastOwed.next = d
	}
	c.lastOwed = d
	c.owed++
	c.backend.owes(1)
	return d
}

// DeferAnyOrder is Defer for protocols whose answers say what they answer: r is written
// as soon as it is complete, and nothing waits for it.
func (c *Conn) DeferAnyOrder(r Reply) *Deferred {
	c.owed++
	c.backend.owes(1)
	return &Deferred{conn: c, reply: r, anyOrder: true}
}

// Weigh says how much memory the request holds until its answer is written. It is called
// with Defer, in the same turn.
func (d *Deferred) Weigh(bytes int) {
	d.weight += bytes
	d.conn.weight += bytes
}

// Owed returns how many answers are deferred and not yet written.
func (c *Conn) Owed() int { return c.owed }

// settle writes what has become complete with d. It is a part of the turn.
func (c *Conn) settle(d *Deferred) {
	if c.closed {
		c.drop(d)
		return
	}
	if d.anyOrder {
		c.write(d)
		return
	}
	d.ready = true
	for c.firstOwed != nil && c.firstOwed.ready {
		first := c.firstOwed
		c.firstOwed, first.next = first.next, nil
		if c.firstOwed == nil {
			c.lastOwed = nil
		}
		c.after, first.tail = first.tail, nil
		if t := c.after; t != nil && c.firstOwed != nil {
			c.tails -= t.Len()
			c.tailsLarge -= t.large()
		}
		c.write(first)
		if c.closed {
			return // Write has given up the connection
		}
		if t := c.after; t != nil {
			c.head().take(t)
			c.dropAfter()
		}
	}
}

// write lets a reply append itself in front of what is owed still.
func (c *Conn) write(d *Deferred) {
	c.owed--
	c.weight -= d.weight
	c.backend.owes(-1)
	c.settling = true
	d.reply.Write(c)
	c.settling = false
}

// dropAfter drops what was to follow a reply.
func (c *Conn) dropAfter() {
	if c.after != nil {
		freeOutput(c.after)
		c.after = nil
	}
}

// dropOwed ends what is complete but has not been written; what is not complete ends
// with its Complete.
func (c *Conn) dropOwed() {
	c.dropAfter()
	for d := c.firstOwed; d != nil; d = d.next {
		if d.tail != nil {
			freeOutput(d.tail)
			d.tail = nil
		}
		if d.ready {
			c.drop(d)
		}
	}
	c.firstOwed, c.lastOwed, c.tails, c.tailsLarge, c.weight = nil, nil, 0, 0, 0
	c.backend.owes(-c.owed)
	c.owed = 0
}

func (c *Conn) drop(d *Deferred) {
	defer c.outlive()
	d.reply.Drop()
}
