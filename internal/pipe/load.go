package pipe

// Outstanding returns how many calls are queued, in transit and under way now, those that were
// given up and still have a place in a table included. It costs an atomic load a socket, so that who
// chooses among engines may ask before every call.
func (e *Engine) Outstanding() int {
	calls := int64(0)
	l := e.list.Load()
	for i, s := range l.sockets {
		charged := &l.peers[i].kept // a socket that is there is charged with them, too
		if s != nil {
			charged = &s.charged
		}
		calls += charged.Load() >> chargeBits
	}
	return int(calls)
}

// Up returns how many sockets take calls, of how many. A socket that failed does not count
// any more when the first of its calls has ended, one that was retired from then on.
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
