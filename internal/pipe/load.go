package pipe

// Outstanding returns the number of calls that are queued, in transit, or in flight, including those that were
// given up and are still in a table. It costs one atomic load for each socket, so callers that
// choose among engines may use it before every call.
func (e *Engine) Outstanding() int {
	calls := int64(0)
	l := e.list.Load()
	for i, s := range l.sockets {
		charged := &l.peers[i].kept // if there is a socket, its charge includes kept
		if s != nil {
			charged = &s.charged
		}
		calls += charged.Load() >> chargeBits
	}
	return int(calls)
}

// Up returns the number of sockets that accept calls, and the number of all sockets. A socket that failed is
// not counted from before the first of its calls ends, and a retired one from its retirement.
func (e *Engine) Up() (up, of int) {
	l := e.list.Load()
	for _, s := range l.sockets[:l.places] {
		if s == nil {
			continue
		}
		s.mu.Lock()
		if !s.life.closed && !s.life.retiring.Load() {
			up++
		}
		s.mu.Unlock()
	}
	return up, l.places
}

// Silent reports whether the server is silent on a socket, in the sense of Config.OnSilence.
func (e *Engine) Silent() bool {
	for _, s := range e.list.Load().sockets {
		if s != nil && s.quiet.Load() {
			return true
		}
	}
	return false
}

// GiveUp closes the sockets on which the server is silent, as StallTimeout would later. It is for
// callers that know that no reply is worth waiting for.
func (e *Engine) GiveUp() {
	for _, s := range e.list.Load().sockets {
		if s != nil && s.quiet.Load() {
			e.stalled(s)
		}
	}
}
