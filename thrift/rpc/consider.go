package rpc

import "time"

const (
	// idleEvery is how often connections are looked at while no call waits.
	idleEvery = time.Second
	// idlePeriod is the time over which the connections in use are counted. Those that were not in use in two
	// periods are closed.
	idlePeriod = 30 * time.Second
	// leastSilence is how long a server may be silent on new connections, in any case, and oneSilence how long on
	// one of them, which may have got a slow call.
	leastSilence = 25 * time.Millisecond
	oneSilence   = 500 * time.Millisecond
	// longSilence is how long a new connection is waited for, at least, before others are opened.
	longSilence = 100 * time.Millisecond
	// lostPatience is how long the replies to calls that were given up are awaited, if a connection has no others.
	lostPatience = 10 * time.Second
)

// schedule makes consider run after d, or earlier. The caller holds mu.
func (l *lane) schedule(d time.Duration) {
	if !l.closed && (l.pending == 0 || d < l.pending) {
		l.pending = d
		l.tick.Reset(d)
	}
}

// consider opens and closes connections. It runs in a timer, which close stops.
func (l *lane) consider() {
	now := l.client.now()
	l.mu.Lock()
	l.pending = 0
	if l.closed {
		l.mu.Unlock()
		return
	}
	before := l.places
	replaced := l.abandoned(now)
	removed := l.surplus(now)
	if c := l.helper(now); c != nil {
		removed = append(removed, c)
	} else if len(removed) == 0 {
		removed = l.adapt(now)
	}
	l.places = max(l.places-len(removed), 1)
	for _, c := range removed {
		c.removed = true
		c.leaving.Store(true)
	}
	places, grown := l.places, l.places > before
	l.scheduleNext()
	l.mu.Unlock()
	for _, c := range replaced {
		c.pin.Retire()
	}
	for _, c := range removed {
		if !c.pin.Remove() { // it has the only place, or none any more
			c.pin.Retire()
		}
	}
	if grown {
		l.engine.SetSockets(places) // it fails only if the client is closed
	}
}

// scheduleNext schedules the next round. The caller holds mu.
func (l *lane) scheduleNext() {
	soon, later := l.waiting() > 0, len(l.conns) > 1
	for _, c := range l.conns {
		soon = soon || c.busy > 0 && !c.answered && len(l.conns) > 1
		later = later || c.lost > 0
	}
	switch {
	case soon:
		l.schedule(growthEvery)
	case later:
		l.schedule(idleEvery)
	}
}

// adapt changes the number of places. If there will be fewer, it returns the connections to close. The caller
// holds mu.
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
	if rising { // calls that are idempotent will have room on the connections that there are
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

// helper returns a connection to close because the server does not answer on a new one: it may have a thread for
// each connection, and no more of them. The caller holds mu.
func (l *lane) helper(now time.Time) *conn {
	silent, longest := (*conn)(nil), time.Duration(0)
	n := 0
	for _, c := range l.conns {
		least := max(2*l.slow.get(), leastSilence)
		if c.helped > 0 { // the server took another one
			least = max(least, oneSilence<<min(c.helped, 10))
		}
		if d := now.Sub(c.since); c.busy > 0 && !c.answered && d > least {
			if n++; d > longest {
				silent, longest = c, d
			}
		}
	}
	if n == 0 || n == 1 && longest < oneSilence {
		return nil
	}
	silent.helped++
	var found *conn
	for _, c := range l.conns {
		if c.answered && l.takes(c) && c.oneways == 0 && (found == nil || c.busy == 0) {
			found = c
		}
	}
	if found != nil {
		l.growth.starve(len(l.conns)-1, now)
	}
	return found
}

// abandoned returns the connections whose server owes replies that nobody waits for, and has been silent for long.
// They are to be replaced. The caller holds mu.
func (l *lane) abandoned(now time.Time) (all []*conn) {
	for _, c := range l.conns {
		if c.lost > 0 && c.lost == c.busy && now.Sub(c.since) > lostPatience && l.takes(c) {
			c.leaving.Store(true)
			all = append(all, c)
		}
	}
	return all
}

// surplus returns the connections to close because they were not in use for some time. The caller holds mu.
func (l *lane) surplus(now time.Time) (removed []*conn) {
	if now.Sub(l.period) < idlePeriod {
		return nil
	}
	used := max(l.peak[0], l.peak[1], 1)
	l.peak[0], l.peak[1], l.period = 0, l.peak[0], now
	for _, c := range l.conns[min(used, len(l.conns)):] {
		if c.idle() && c != l.open.Load() && l.takes(c) {
			removed = append(removed, c)
		}
	}
	return removed
}
