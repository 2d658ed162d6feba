package loop

import "time"

// Limits bound one connection: see [Conn.SetLimits]. If a field is zero or negative, that of the
// server's [Config] applies, except that a negative IdleTimeout means no limit.
type Limits struct {
	MaxInput       int           // see Config.MaxInput
	MaxDeferred    int           // see Config.MaxDeferred
	IdleTimeout    time.Duration // see Config.IdleTimeout; if negative, there is no limit
	PartialTimeout time.Duration // see Config.PartialTimeout; also for inputs that are expected
}

// SetLimits replaces the limits of the connection, for a session that learns from its peer which
// ones it needs. They apply immediately, including to a request in flight. Time limits are checked
// as often as those of the server require, at least twice a second.
func (c *Conn) SetLimits(l Limits) {
	s := &c.server.limits
	if l.MaxInput <= 0 {
		l.MaxInput = s.MaxInput
	}
	if l.MaxDeferred <= 0 {
		l.MaxDeferred = s.MaxDeferred
	}
	if l.IdleTimeout == 0 {
		l.IdleTimeout = s.IdleTimeout
	}
	if l.PartialTimeout <= 0 {
		l.PartialTimeout = s.PartialTimeout
	}
	c.limits = &l
}
