package loop

// wakePosts implements backend. A connection is called once, however much is posted to it until
// it has had its turn.
func (c *epollConn) wakePosts() {
	l := c.loop
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed { // else what was posted has been dropped
		l.called = append(l.called, c)
		l.wakeLocked()
	}
}

// hasMail reports whether mail that was read has not been dealt with.
func (l *eventLoop) hasMail() bool {
	return len(l.tasks) > 0 || l.settling.len() > 0 || l.calls.len() > 0
}

// answerCalls gives connections to which something was posted a turn, some in each round.
func (l *eventLoop) answerCalls() {
	for n := min(l.calls.len(), mailAtOnce); n > 0 && l.spent < mailUnits; n-- {
		// One that is queued goes on when its place in the queue has come.
		if c := l.calls.pop(); !c.closed && !c.queued {
			l.turn(c)
		}
	}
}
