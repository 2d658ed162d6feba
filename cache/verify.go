package cache

import (
	"context"
	"sync"
	"time"
)

// broadcast wakes all callers that wait for the next event of a kind. An event that
// no caller waits for costs only a lock (BenchmarkAdvance): the first caller that
// waits makes the channel.
type broadcast struct {
	// Guarded by mu.
	mu   sync.Mutex
	next chan struct{} // closed at the next event; nil if no caller waits for it
}

// wait returns a channel that is closed at the next event. A caller that checks
// what the event changes must get the channel first: then an event between the
// check and the wait is not lost.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

// send wakes the callers.
func (b *broadcast) send() {
	b.mu.Lock()
	waiting := b.next
	b.next = nil
	b.mu.Unlock()
	if waiting != nil {
		close(waiting)
	}
}

// verify answers from the tiers as soon as the horizon holds for start, and requests
// that the stream moves it there. One report of the stream verifies everything that is
// cached, so that any number of callers costs one poll.
//
// If it returns false without an error, only a load can answer: the document was
// dropped meanwhile, its resource lost the promise, or LoadTimeout passed.
func (c *Cache) verify(ctx context.Context, r *resourceState, key Key, start time.Duration) (Answer, bool, error) {
	patience, cancel := context.WithTimeout(ctx, r.settings.Load().LoadTimeout)
	defer cancel()
	for {
		moved := c.moved.wait()
		if c.covered(r, start) {
			a, ok := c.Peek(key, start)
			if ok {
				r.counters.verified.Add(1)
			}
			return a, ok, nil
		}
		if _, held := c.unverified(r, key, start); !held || r.broken.Load() != nil {
			return Answer{}, false, nil
		}
		c.wake()
		select {
		case <-moved:
		case <-c.ctx.Done():
			return Answer{}, false, ErrClosed
		case <-patience.Done():
			return Answer{}, false, ctx.Err() // nil when only LoadTimeout has passed
		}
	}
}
