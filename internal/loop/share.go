package loop

// What one turn may do. A unit is the work of a small answer, about 1 us: a turn takes some
// 0.3 ms, and what it began last at most 1 ms more. A connection that has more to do goes
// behind the others.
const (
	// turnUnits is how many units a session may spend in one turn.
	turnUnits = 256
	// crowdUnits is the share while more than a cohort of connections have more to do.
	crowdUnits = turnUnits / 4
	// turnBytes bounds what one turn writes: the kernel takes 0.3 ms for that.
	turnBytes = 1 << 20
	// unitBytes is how many bytes written count as one unit.
	unitBytes = 1 << 10
)

// Spend charges the turn for work, in units of about 1 us, before or after it is done. Once
// the turn's share is spent the connection is [Conn.Full] until its next turn. A backend
// whose connections have goroutines of their own leaves that to the scheduler.
func (c *Conn) Spend(units int) { c.spent += units }

// spendBytes charges the turn for bytes that were written.
func (c *Conn) spendBytes(n int) {
	c.wrote += n
	c.spent += n / unitBytes
}

// exhausted reports whether the turn's share is spent.
func (c *Conn) exhausted() bool { return c.spent >= c.share }

// hasInput reports whether the session can be given something that was read.
func (c *Conn) hasInput() bool { return c.in.Len() > 0 || c.expected.complete() }

// newShare ends a turn. It notes whether requests have been read that wait for the next one:
// such a connection is not idle. queued says that it waits for a turn in which they can be
// answered; the turn that ends may have been one that only writes.
func (c *Conn) newShare(queued bool) {
	c.unfinished = (queued || c.exhausted()) && c.hasInput() && !c.ending && !c.detaching && !c.lingering
	c.spent, c.wrote = 0, 0
}
