package rpc

import (
	"sync"
	"time"
)

// waiter is a call that waits for a connection.
type waiter struct {
	ready chan struct{} // has capacity 1; signals that conn or unreachable was set, or the lane was closed
	timer *time.Timer   // stopped unless the call is waiting

	// Guarded by lane.mu.
	conn        *conn
	unreachable bool   // the server cannot be reached, and the call must fail
	number      uint64 // greater than those of older calls
	next, prev  *waiter
}

var waiters = sync.Pool{New: func() any {
	w := &waiter{ready: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	return w
}}

// queue is a list of waiting calls, the oldest first. The zero value is empty.
type queue struct {
	first, last *waiter
	n           int
}

func (q *queue) push(w *waiter) {
	if w.prev = q.last; w.prev != nil {
		w.prev.next = w
	} else {
		q.first = w
	}
	q.last = w
	q.n++
}

func (q *queue) remove(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.last = w.prev
	}
	w.next, w.prev = nil, nil
	q.n--
}

// pop removes the oldest call. There must be one.
func (q *queue) pop() *waiter {
	w := q.first
	q.remove(w)
	return w
}
