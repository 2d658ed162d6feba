package loop

// survey asks each loop. A loop that has ended does not answer.
func (e *epollEngine) survey(dst []Peer) []Peer {
	answers := make(chan []Peer, len(e.loops))
	asked := 0
	for _, l := range e.loops {
		if l.post(func() { answers <- l.survey(nil) }) {
			asked++
		}
	}
	for range asked {
		select {
		case some := <-answers:
			dst = append(dst, some...)
		case <-e.server.quit:
			return dst
		}
	}
	return dst
}

func (e *epollEngine) resume() {
	for _, l := range e.loops {
		l.post(func() {
			if l.acceptAt > 0 {
				l.acceptAt = l.now
			}
		})
	}
}

// survey appends the loop's connections to dst.
func (l *eventLoop) survey(dst []Peer) []Peer {
	for i := range l.slots {
		if c := l.slots[i].conn; c != nil {
			dst = append(dst, c.peer(l.now, c))
		}
	}
	return dst
}

// Cut implements [Cutter].
func (c *epollConn) Cut(why CloseReason) {
	l := c.loop
	l.post(func() {
		if c.Conn.cut(why) {
			l.turn(c)
		}
	})
}
