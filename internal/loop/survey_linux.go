package loop

// survey asks each loop for its connections. A loop that has ended does not answer.
func (e *epollEngine) survey(dst []Peer) []Peer {
	answers := make(chan [][]Peer, len(e.loops))
	asked := 0
	for _, l := range e.loops {
		if l.post(func() { l.beginSurvey(answers) }) {
			asked++
		}
	}
	for range asked {
		select {
		case parts := <-answers:
			for _, some := range parts {
				dst = append(dst, some...)
			}
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

// survey is a survey of a loop in progress.
type survey struct {
	left   int // slots that were not visited yet
	parts  [][]Peer
	answer chan<- [][]Peer // has room for the answer
}

func (l *eventLoop) beginSurvey(answer chan<- [][]Peer) {
	l.surveys = append(l.surveys, &survey{left: len(l.slots), answer: answer})
}

// goOnSurvey visits some slots for the oldest survey; the next round continues.
func (l *eventLoop) goOnSurvey() {
	if l.measure != nil {
		defer l.measured(threadCPU())
	}
	s := l.surveys[0]
	n := min(s.left, sweepAtOnce)
	some := make([]Peer, 0, n)
	for range n {
		s.left--
		if c := l.slots[s.left].conn; c != nil {
			some = append(some, c.peer(l.now, c))
		}
	}
	s.parts = append(s.parts, some)
	if s.left == 0 {
		s.answer <- s.parts
		l.surveys[0] = nil
		l.surveys = l.surveys[1:]
	}
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
