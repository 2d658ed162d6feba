package loop

import "sync/atomic"

// A Deferred is the place reserved for an answer that comes later.
//
// [Conn.Defer] makes one for each answer. A session that has an object for each request anyway may
// put a Deferred into it and call [Conn.DeferInto], which allocates nothing. The object may be
// reused once [Reply.Write] or [Reply.Drop] has been called, even inside these methods.
type Deferred struct {
	// Owned by the turn of the connection from Defer until Write or Drop. weight counts toward the
	// budget; tail holds what was appended after this answer, or is nil; next is the answer after
	// it.
	conn     *Conn
	reply    Reply
	anyOrder bool
	into     bool // DeferInto was used
	ready    bool
	weight   int
	tail     *Output
	next     *Deferred

	// Atomic: the number of the use, and its state in the lowest two bits.
	state atomic.Uint64
}

// States of a use of a Deferred.
const (
	deferredFree     = iota // it is not in use
	deferredWaiting         // the answer is not complete
	deferredComplete        // Complete has been called, but neither Write nor Drop

	deferredStates = 3 // the bits of a state
	deferredUse    = 4 // one use
)

// A Ticket completes the answer for which [Conn.DeferInto] was called. It does nothing once that
// answer is complete, even if the Deferred has been reused for another answer. Its zero value must
// not be used.
type Ticket struct {
	d   *Deferred
	use uint64
}

// Complete reports that the answer is complete: [Reply.Write] or [Reply.Drop] follows, on this
// goroutine or another one. It may be called on any goroutine and does not block; calls after
// the first do nothing.
func (t Ticket) Complete() {
	if t.d.state.CompareAndSwap(t.use|deferredWaiting, t.use|deferredComplete) {
		t.d.conn.backend.complete(t.d)
	}
}

// Complete is like [Ticket.Complete]. It panics if d was passed to [Conn.DeferInto], because a
// late call would complete another answer.
func (d *Deferred) Complete() {
	if d.into {
		panic("loop: Complete of a Deferred that has a Ticket")
	}
	Ticket{d, deferredUse}.Complete()
}

// Defer reserves the place of the next answer. Output appended from now on follows it, and waits
// until Complete has been called and r has been written.
func (c *Conn) Defer(r Reply) *Deferred {
	d := &Deferred{conn: c, reply: r}
	c.deferInto(d)
	return d
}

// DeferInto is Defer with a Deferred that belongs to the caller. It panics if d is in use.
func (c *Conn) DeferInto(d *Deferred, r Reply) Ticket {
	d.begin(c, r)
	return Ticket{d, c.deferInto(d)}
}

// begin prepares a session's Deferred for a use.
func (d *Deferred) begin(c *Conn, r Reply) {
	if d.state.Load()&deferredStates != deferredFree {
		panic("loop: DeferInto of a Deferred that is in use")
	}
	d.conn, d.reply, d.anyOrder, d.into, d.ready, d.weight = c, r, false, true, false, 0
}

// deferInto makes d the place of the next answer and returns the number of its use.
func (c *Conn) deferInto(d *Deferred) (use uint64) {
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
	return c.owe(d)
}

// owe records that an answer is owed and returns the number of its use.
func (c *Conn) owe(d *Deferred) (use uint64) {
	use = d.state.Load()&^deferredStates + deferredUse
	d.state.Store(use | deferredWaiting)
	c.owed++
	c.backend.owes(1)
	return use
}

// DeferAnyOrder is Defer for protocols whose answers name their requests: r is written
// as soon as it is complete, and nothing waits for it.
func (c *Conn) DeferAnyOrder(r Reply) *Deferred {
	d := &Deferred{conn: c, reply: r, anyOrder: true}
	c.owe(d)
	return d
}

// DeferAnyOrderInto is DeferAnyOrder with a Deferred that belongs to the caller, like DeferInto.
func (c *Conn) DeferAnyOrderInto(d *Deferred, r Reply) Ticket {
	d.begin(c, r)
	d.anyOrder = true
	return Ticket{d, c.owe(d)}
}

// Weigh adds bytes to the memory that the request holds until its answer is written. It must be
// called in the same turn as Defer or DeferInto.
func (d *Deferred) Weigh(bytes int) {
	d.weight += bytes
	d.conn.weight += bytes
}

// Owed returns the number of answers that are deferred and not yet written.
func (c *Conn) Owed() int { return c.owed }

// settle writes the answers that can be written now that d is complete. It is part of the turn.
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
			return // Write has ended the connection
		}
		if t := c.after; t != nil {
			c.head().take(t)
			c.dropAfter()
		}
	}
}

// write calls Write of a reply, whose bytes go ahead of the answers still owed. When it returns, d
// may have been reused.
func (c *Conn) write(d *Deferred) {
	c.owed--
	c.weight -= d.weight
	c.backend.owes(-1)
	c.settling = true
	d.end().Write(c)
	c.settling = false
}

// end ends the use of a Deferred, which must not be touched afterwards, and returns its reply.
func (d *Deferred) end() Reply {
	r := d.reply
	d.reply = nil
	d.state.Store(d.state.Load() &^ deferredStates)
	return r
}

// dropAfter drops the bytes that were to follow a reply.
func (c *Conn) dropAfter() {
	if c.after != nil {
		freeOutput(c.after)
		c.after = nil
	}
}

// dropOwed drops answers that are complete but not written. The others are dropped when Complete is
// called.
func (c *Conn) dropOwed() {
	c.dropAfter()
	var next *Deferred
	for d := c.firstOwed; d != nil; d = next {
		next, d.next = d.next, nil
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

// drop calls Drop of a reply whose connection has ended.
func (c *Conn) drop(d *Deferred) {
	defer c.outlive()
	d.end().Drop()
}
