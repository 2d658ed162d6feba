// Package fair provides a queue that serves clients in turn, so that a client that queues many
// values delays only itself.
package fair

// looked is the number of clients that Shed examines.
const looked = 16

// Queue is a queue of T for each client. Pop serves one client after another. The zero value is
// ready to use. It is not safe for concurrent use.
type Queue[T any] struct {
	flows map[uint64]*flow[T]
	next  *flow[T] // in the ring of flows that are not empty; nil if there is none
	long  *flow[T] // the longest flow when a value was last queued, or nil
	spare *flow[T] // an empty flow for the next client, or nil
	n     int
}

// flow is the queue of one client, in order.
type flow[T any] struct {
	client         uint64
	items          []T // from head on
	head           int
	previous, next *flow[T] // in the ring
}

// Len returns the number of queued values.
func (q *Queue[T]) Len() int { return q.n }

// Clients returns the number of clients that have queued values.
func (q *Queue[T]) Clients() int { return len(q.flows) }

// LenOf returns the number of values that a client has queued.
func (q *Queue[T]) LenOf(client uint64) int {
	if f := q.flows[client]; f != nil {
		return f.len()
	}
	return 0
}

// Push queues a value after those of the same client. A client that had none is served after all
// the others.
func (q *Queue[T]) Push(client uint64, v T) {
	f := q.flows[client]
	if f == nil {
		if f = q.spare; f != nil {
			q.spare, f.client = nil, client
		} else {
			f = &flow[T]{client: client}
		}
		if q.flows == nil {
			q.flows = make(map[uint64]*flow[T])
		}
		q.flows[client] = f
		if q.next == nil {
			f.previous, f.next, q.next = f, f, f
		} else {
			f.previous, f.next = q.next.previous, q.next
			f.previous.next, f.next.previous = f, f
		}
	}
	f.items = append(f.items, v)
	q.n++
	if q.long == nil || f.len() > q.long.len() {
		q.long = f
	}
}

func (f *flow[T]) len() int { return len(f.items) - f.head }

// Pop removes and returns the oldest value of the client whose turn it is. It returns false if the
// queue is empty.
func (q *Queue[T]) Pop() (v T, ok bool) {
	f := q.next
	if f == nil {
		return v, false
	}
	var zero T
	v, f.items[f.head] = f.items[f.head], zero
	f.head++
	q.n--
	q.next = f.next
	switch {
	case f.head == len(f.items):
		q.drop(f)
	case f.head > 64 && 2*f.head > len(f.items):
		left := copy(f.items, f.items[f.head:])
		clear(f.items[left:])
		f.items, f.head = f.items[:left], 0
	}
	return v, true
}

// Shed removes and returns the newest value of a client that has queued many more than the given
// one, so that there is room for the first values of every client. It examines the client that had
// the longest queue when a value was last pushed, and a few clients starting from the one whose
// turn is next. It returns false if none of them has more.
func (q *Queue[T]) Shed(client uint64) (v T, ok bool) {
	most, longest := q.LenOf(client)+1, (*flow[T])(nil)
	if q.long != nil && q.long.len() > most {
		most, longest = q.long.len(), q.long
	}
	f := q.next
	for range min(looked, len(q.flows)) {
		if n := f.len(); n > most {
			most, longest = n, f
		}
		f = f.next
	}
	if longest == nil {
		return v, false
	}
	var zero T
	last := len(longest.items) - 1
	v, longest.items[last] = longest.items[last], zero
	longest.items = longest.items[:last]
	q.n--
	return v, true
}

// drop removes an empty flow.
func (q *Queue[T]) drop(f *flow[T]) {
	delete(q.flows, f.client)
	if q.long == f {
		q.long = nil
	}
	if f.next == f {
		q.next = nil
	} else {
		f.previous.next, f.next.previous = f.next, f.previous
		if q.next == f {
			q.next = f.next
		}
	}
	// Most flows hold one value of a client that returns. Pop has cleared what it took.
	if cap(f.items) <= maxSpare {
		q.spare = f
		*f = flow[T]{items: f.items[:0]}
	}
}

// maxSpare is the number of values for which an empty flow keeps room.
const maxSpare = 64
