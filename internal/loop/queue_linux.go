package loop

// queue is a FIFO queue. Its zero value is empty.
type queue[T any] struct {
	all  []T // the elements start at next
	next int
}

func (q *queue[T]) len() int { return len(q.all) - q.next }

func (q *queue[T]) push(one T) { q.all = append(q.all, one) }

// front returns the first element. The queue must not be empty.
func (q *queue[T]) front() T { return q.all[q.next] }

// pop removes the first element and returns it. The queue must not be empty.
func (q *queue[T]) pop() T {
	var none T
	one := q.all[q.next]
	q.all[q.next] = none
	q.next++
	switch {
	case q.next == len(q.all):
		q.all, q.next = q.all[:0], 0
	case q.next > 2*cohortSize && 2*q.next > len(q.all):
		left := copy(q.all, q.all[q.next:])
		clear(q.all[left:])
		q.all, q.next = q.all[:left], 0
	}
	return one
}
