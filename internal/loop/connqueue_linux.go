package loop

// connQueue is a first-in, first-out queue of connections. Its zero value is empty.
type connQueue struct {
	conns []*epollConn // from next on
	next  int
}

func (q *connQueue) len() int { return len(q.conns) - q.next }

func (q *connQueue) push(c *epollConn) { q.conns = append(q.conns, c) }

// pop returns the first connection. The queue must not be empty.
func (q *connQueue) pop() *epollConn {
	c := q.conns[q.next]
	q.conns[q.next] = nil
	q.next++
	switch {
	case q.next == len(q.conns):
		q.conns, q.next = q.conns[:0], 0
	case q.next > 2*cohortSize && 2*q.next > len(q.conns):
		left := copy(q.conns, q.conns[q.next:])
		clear(q.conns[left:])
		q.conns, q.next = q.conns[:left], 0
	}
	return c
}
