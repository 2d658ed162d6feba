package loop

import (
	"cmp"
	"time"
)

// never is a limit that is not reached.
const never = 1<<63 - 1

// lingerTime is how long a half-closed connection is read while waiting for its end.
const lingerTime = time.Second

// leastRate is the minimum rate, in bytes a second, at which a peer must read answers and send
// an expected input.
const leastRate = 1 << 10

// overdue checks the time limits of a connection. It returns true if the connection needs a
// turn; [Conn.next] then says what to do.
func (c *Conn) overdue(now time.Duration) bool {
	config := &c.server.config
	if c.stalled != 0 && c.held < 0 {
		c.held = c.backend.held()
	}
	past := func(since, limit time.Duration) bool { return since != 0 && now-since > limit }
	switch {
	case c.closed || c.failure != nil:
		return c.failure != nil && !c.closed
	case c.lingering:
		if past(c.linger, lingerTime) {
			c.eof = true
		}
		return c.eof
	case c.drainDue() && !c.ending && !c.detaching:
		return true
	case !c.proven && !c.ending && config.ProveTimeout != nil && past(c.opened, cmp.Or(config.ProveTimeout(), never)):
		if c.ending, c.endReason = !c.inUse(), ErrUnproven; !c.ending {
			c.failure = ErrUnproven
		}
		return true
	case past(c.stalled, config.StallTimeout):
		if n := c.taken(); int64(n) < int64(config.StallTimeout/time.Second)*leastRate || n <= 0 {
			c.failure = &CloseError{Reason: ReasonStalled}
			return true
		}
		c.beginStall(now)
	case !c.starved && past(c.partial, c.limits.PartialTimeout):
		c.failure = &CloseError{Reason: ReasonPartial}
		return true
	case c.slowInput(now):
		c.failure = &CloseError{Reason: ReasonPartial}
		return true
	case c.feedable(now):
		return true
	}
	if c.expected != nil || c.owed > 0 || c.waiting() > 0 || c.unfinished || c.partial != 0 || c.ending || c.detaching {
		return false
	}
	switch {
	case c.drained(now):
		c.ending, c.endReason = true, &CloseError{Reason: ReasonDrained}
	case c.limits.IdleTimeout > 0 && now-c.active > c.limits.IdleTimeout:
		c.ending, c.endReason = true, &CloseError{Reason: ReasonIdle}
	}
	return c.ending
}

// drained reports whether a connection that has no request is to end because the server drains: it
// was quiet for Config.DrainGrace, or has sent requests without answers for a long time.
func (c *Conn) drained(now time.Duration) bool {
	began := time.Duration(c.server.drainedAt.Load())
	if began == 0 {
		return false
	}
	return now-max(began, c.opened, c.active) >= c.server.config.DrainGrace || now >= time.Duration(c.server.drainBy.Load())
}

// endWithAnswer ends a connection that has answered its requests if the server has been draining
// for Config.DrainGrace. The connection ends together with the answer, so a client that has
// received the answer can see the end before it sends another request. At any other moment, a
// request may be in flight.
func (c *Conn) endWithAnswer(now time.Duration) {
	began := time.Duration(c.server.drainedAt.Load())
	if began == 0 || now-max(began, c.opened) < c.server.config.DrainGrace {
		return
	}
	if c.expected == nil && c.owed == 0 && c.waiting() == 0 && !c.unfinished && c.partial == 0 && c.in.Len() == 0 && !c.ending && !c.detaching && !c.lingering {
		c.ending, c.endReason = true, ErrDrained
	}
}
