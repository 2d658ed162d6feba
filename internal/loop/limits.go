package loop

import "time"

// Limits bound one connection: see [Conn.SetLimits]. A field that is zero stands for that of the
// server's [Config]. So does a negative one, but for IdleTimeout.
type Limits struct {
	MaxInput       int           // as Config.MaxInput
	MaxDeferred    int           // as Config.MaxDeferred
	IdleTimeout    time.Duration // as Config.IdleTimeout; negative: none
	PartialTimeout time.Duration // as Config.PartialTimeout, and for inputs that are expected
}

// SetLimits replaces the limits of the connection, for a session that learns only from its peer
// which ones it needs. They count from now on, for a request under way too. Times are looked at
// as often as the limits of the server ask for, at least twice a second.
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
