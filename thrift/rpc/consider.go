package rpc

import "time"

// Servers with few threads accept connections that they do not serve. If the server is silent on two new connections
// for longer than twice the duration of the slowest recent call, or on one for 0.5 s, one of the other connections is
// closed so that its thread can serve a silent one, and no more are opened for 30 s. If a lane has no other connection,
// the other lane closes one of its own; if that helped, all calls use one lane for 30 s.

const (
	// idleEvery is the interval between checks of connections while no call waits.
	idleEvery = time.Second
	// idlePeriod is the time over which the connections in use are counted. Connections that were not needed in two
	// periods are closed.
	idlePeriod = 30 * time.Second
	// leastSilence is the minimum time that a server may be silent on new connections, and oneSilence the time for a
	// single one, which may have received a slow call.
	leastSilence = 25 * time.Millisecond
	oneSilence   = 500 * time.Millisecond
	// helpPatience is how soon a reply must arrive after a connection of the other lane was closed for the reply to be
	// attributed to the closing.
	helpPatience = 200 * time.Millisecond
	// longSilence is the minimum time to wait for an answer on a new connection before others are opened.
	longSilence = 100 * time.Millisecond
	// lostPatience is how long to wait for the replies to abandoned calls if a connection has no other calls.
	lostPatience = 10 * time.Second
)

// schedule makes consider run after d or earlier. The caller must hold mu.
func (l *lane) schedule(d time.Duration) {
	if !l.closed && (l.pending == 0 || d < l.pending) {
		l.pending = d
		l.tick.Reset(d)
	}
}

// consider opens and closes connections. It runs on a timer, which close stops.
func (l *lane) consider() {
	now := l.client.now()
	l.mu.Lock()
	l.pending = 0
	if l.closed {
		l.mu.Unlock()
		return
	}
	before := l.places
	var d departures
	l.abandoned(now, &d)
	l.drained(now, &d)
	l.overdue(now, &d)
	l.rotate(now, &d)
	l.surplus(now, &d)
	c, starved := l.helper(now)
	if c != nil {
		d.removed = append(d.removed, c)
	} else if len(d.removed) == 0 {
		d.removed = l.adapt(now)
	}
	l.places = max(l.places-len(d.removed), 1)
	for _, c := range d.removed {
		c.removed = true
		c.leaving.Store(true)
	}
	places, grown := l.places, l.places > before
	l.scheduleNext()
	l.mu.Unlock()
	d.end()
	if starved && l.client.makeRoom(l) {
		l.mu.Lock()
		l.helped = now
		l.mu.Unlock()
	}
	if grown {
		l.engine.SetSockets(places) // fails only if the client is closed
	}
}

// scheduleNext schedules the next round. The caller must hold mu.
func (l *lane) scheduleNext() {
	soon, old, later, silent := l.waiting() > 0, false, len(l.conns) > 1, false
	for _, c := range l.conns {
		silent = silent || c.busy > 0 && !c.answered
		old = old || c.old && l.takes(c)
		later = later || c.lost > 0 || c.draining || !c.ends.IsZero()
	}
	switch {
	case soon || silent && len(l.conns) > 1:
		l.schedule(growthEvery)
	case old || silent:
		l.schedule(rotateEvery)
	case later:
		l.schedule(idleEvery)
	}
}

// adapt changes the number of connections that the lane may have. If there will be fewer, it returns the connections to
// close. The caller must hold mu.
func (l *lane) adapt(now time.Time) (removed []*conn) {
	s := state{now: now, conns: l.places, waiting: l.waiting(), replies: l.replies, slow: l.slow.get()}
	rising := false
	for i, c := range l.conns {
		if c.answered || c.busy > 0 && now.Sub(c.since) > max(2*s.slow, longSilence) {
			s.answered++
		}
		rising = rising || i < 8 && c.answered && c.depth.mayRise(now)
	}
	if s.answered == 0 {
		return nil
	}
	if rising { // idempotent calls will have room on the existing connections
		s.waiting = l.others.n
	}
	next := l.growth.next(s)
	for i := len(l.conns) - 1; i > 0 && len(removed) < l.places-next; i-- {
		if c := l.conns[i]; l.takes(c) && c.oneways == 0 {
			removed = append(removed, c)
		}
	}
	l.places = max(l.places, next)
	return removed
}

// helper returns a connection to close because the server does not answer on a new one: it may use one thread per
// connection and have none left. If no connection of the lane has answered, starved is true. The caller must hold mu.
func (l *lane) helper(now time.Time) (found *conn, starved bool) {
	silent, longest := (*conn)(nil), time.Duration(0)
	n := 0
	for _, c := range l.conns {
		least := max(2*l.slow.get(), leastSilence)
		if c.helped > 0 { // the server served another connection instead
			least = max(least, oneSilence<<min(c.helped, 10))
		}
		if d := now.Sub(c.since); c.busy > 0 && !c.answered && !c.anyOrder.Load() && d > least {
			if n++; d > longest {
				silent, longest = c, d
			}
		}
	}
	if n == 0 || (n == 1 || len(l.conns) == n) && longest < oneSilence {
		return nil, false
	}
	silent.helped++
	if found = l.answering(); found != nil {
		l.growth.starve(len(l.conns)-1, now)
	}
	return found, found == nil
}

// answering returns a connection that has answered and can be closed, preferably an idle one, or nil. It ignores
// connections whose server answers in any order, because such a server does not use one thread per connection. The
// caller must hold mu.
func (l *lane) answering() (found *conn) {
	for _, c := range l.conns {
		if c.answered && !c.anyOrder.Load() && l.takes(c) && c.oneways == 0 && (found == nil || c.busy == 0) {
			found = c
		}
	}
	return found
}

// yield closes a connection that has answered, and reports whether there was one.
func (l *lane) yield() bool {
	l.mu.Lock()
	c := l.answering()
	if c != nil {
		c.leaving.Store(true)
	}
	l.mu.Unlock()
	if c != nil {
		c.pin.Retire()
	}
	return c != nil
}

// abandoned adds connections on which only replies to abandoned calls are outstanding: those that are being closed
// anyway, and those whose server has been silent for lostPatience. The caller must hold mu.
func (l *lane) abandoned(now time.Time, d *departures) {
	for _, c := range l.conns {
		switch {
		case c.lost == 0 || c.lost < c.busy:
		case !l.takes(c):
			d.lost = append(d.lost, c)
		case now.Sub(c.since) > lostPatience:
			c.leaving.Store(true)
			d.replaced = append(d.replaced, c)
		}
	}
}

// surplus adds connections that were not needed for some time. The caller must hold mu.
func (l *lane) surplus(now time.Time, d *departures) {
	if now.Sub(l.period) < idlePeriod {
		return
	}
	used := max(l.peak[0], l.peak[1], 1)
	l.peak[0], l.peak[1], l.period = 0, l.peak[0], now
	if used > 1 {
		used++ // one is kept idle
	}
	for _, c := range l.conns[min(used, len(l.conns)):] {
		if c.idle() && c != l.open.Load() && l.takes(c) {
			c.leaving.Store(true)
			d.removed = append(d.removed, c)
		}
	}
}
