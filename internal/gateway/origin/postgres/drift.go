package postgres

import "time"

// drift compares the server's clock with the local one from poll to poll. A virtual
// machine that is paused, or restored from a snapshot, has no clock that counts the
// pause, so the horizon would look younger than it is; the clock of the other machine
// reveals it. The offset between the clocks does not matter. The zero value has seen no
// poll.
type drift struct {
	seen           bool
	sent, received time.Duration // of the last poll, on our clock
	server         time.Duration // the server's clock, at some moment between them

	// jumped says that the clocks had diverged at the last poll.
	jumped bool
}

// slewing is how fast clocks may drift apart, doubled from the 500 ppm at which NTP
// corrects them. It matters only after a long time without a poll.
const slewing = 1000 // one part in

// observe records a poll, and returns by how much the clocks have diverged since the
// previous one if that is more than tolerance, otherwise 0. It is positive if the
// server's clock is ahead. Each clock was read at an unknown moment between sent and
// received, so a slow answer proves nothing.
func (d *drift) observe(sent, received, server, tolerance time.Duration) (apart time.Duration) {
	before := *d
	*d = drift{seen: true, sent: sent, received: received, server: server}
	if !before.seen {
		return 0
	}
	least, most := sent-before.received, received-before.sent
	tolerance += most / slewing
	switch passed := server - before.server; {
	case passed > most+tolerance:
		apart = passed - most
	case passed < least-tolerance:
		apart = passed - least
	}
	d.jumped = apart != 0
	return apart
}

// compareClocks retracts the horizon if the clocks of gateway and server have diverged
// since the last poll. The next complete poll moves it again.
func (s *Stream) compareClocks(sent, server time.Duration) {
	apart := s.drift.observe(sent, s.clock(), server, s.origin.cfg.Freshness/4)
	if apart == 0 {
		return
	}
	s.clockJumps.Add(1)
	s.sink.Retract()
	s.origin.cfg.Logger.Warn("the clocks of the gateway and of the database server diverged between two polls: one of the machines was paused or restored, or its clock was set; nothing is served from cache until the next poll",
		"server_ahead_by", apart)
}
