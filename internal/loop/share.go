package loop

// Limits of a turn. A unit is the work of a small answer, about 1 us: a turn takes about 0.3 ms,
// and its last piece of work at most 1 ms more. A connection with more to do is queued after the
// others.
const (
	// turnUnits is how many units a session may spend in one turn.
	turnUnits = 256
	// crowdUnits is the share while more connections than a cohort has are queued.
	crowdUnits = turnUnits / 4
	// turnBytes bounds the bytes that one turn writes; writing that many takes the kernel 0.3 ms.
	turnBytes = 1 << 20
	// unitBytes is how many bytes written count as one unit.
	unitBytes = 1 << 10
)

// Spend charges the turn for work, in units of about 1 us, before or after it is done. Once
// the turn's share is spent, the connection is [Conn.Full] until its next turn. The backend of
// goroutines has no shares; the scheduler divides the processors.
func (c *Conn) Spend(units int) { c.spent += units }

// spendBytes charges the turn for bytes that were written.
func (c *Conn) spendBytes(n int) {
	c.wrote += n
	c.spent += n / unitBytes
}

// exhausted reports whether the turn's share is spent.
func (c *Conn) exhausted() bool { return c.spent >= c.share }

// hasInput reports whether input for the session has been read and not consumed.
func (c *Conn) hasInput() bool { return c.in.Len() > 0 || c.expected.complete() }

// newShare ends a turn. It records whether requests that were read wait for the next turn, because
// such a connection is not idle. queued reports that the connection waits for a turn in which they
// can be answered; the turn that ends may have been one that only writes.
func (c *Conn) newShare(queued bool) {
	c.unfinished = (queued || c.exhausted()) && c.hasInput() && !c.ending && !c.detaching && !c.lingering
	c.spent, c.wrote = 0, 0
}
