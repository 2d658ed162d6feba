package loop

// wakePosts implements backend. It is called once for all tasks posted to a connection before its
// next turn.
func (c *epollConn) wakePosts() {
	l := c.loop
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed { // otherwise the tasks have been dropped
		l.called = append(l.called, c)
		l.wakeLocked()
	}
}

// hasMail reports whether there is mail that was read and not yet processed.
func (l *eventLoop) hasMail() bool {
	return len(l.tasks) > 0 || l.settling.len() > 0 || l.calls.len() > 0
}

// answerCalls gives a turn to connections to which something was posted, some in each round.
func (l *eventLoop) answerCalls() {
	for n := min(l.calls.len(), mailAtOnce); n > 0 && l.spent < mailUnits; n-- {
		// A queued one continues when it reaches the front of the queue.
		if c := l.calls.pop(); !c.closed && !c.queued {
			l.turn(c)
		}
	}
}
