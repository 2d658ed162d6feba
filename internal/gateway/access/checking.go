package access

import (
	"context"
	"errors"
	"sync"

	"github.com/slipstream-go/slipstream/internal/fair"
)

// maxChecking bounds the tokens that wait for their signature to be checked: a quarter of a
// second for the last of them.
const maxChecking = 1024

// checking bounds how many signatures are checked at a time. Tokens wait in a queue that serves
// clients in turn; when it is full, the client with the most tokens loses one.
type checking struct {
	mu sync.Mutex
	// Guarded by mu.
	free    int
	queue   fair.Queue[*waiter]
	refused int64 // tokens for which there was no room, not even in the queue
}

// waiter is a token that waits. Its fields are guarded by checking.mu, and read without it once
// ready is closed.
type waiter struct {
	ready chan struct{}
	shed  bool // removed to make room
	gone  bool // its caller has given up
}

// Errors of take besides those of the context.
var errCrowded = errors.New("access: too many tokens wait for their signature to be checked")

// take waits for a slot until ctx ends; give releases it.
func (p *checking) take(ctx context.Context, client uint64) error {
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return nil
	}
	if p.queue.Len() >= maxChecking {
		p.refused++
		victim, ok := p.queue.Shed(client)
		if !ok {
			p.mu.Unlock()
			return errCrowded
		}
		victim.shed = true
		close(victim.ready)
	}
	w := &waiter{ready: make(chan struct{})}
	p.queue.Push(client, w)
	p.mu.Unlock()
	select {
	case <-w.ready:
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		select {
		case <-w.ready: // just now
		default:
			w.gone = true
			return ctx.Err()
		}
	}
	if w.shed {
		return errCrowded
	}
	return nil
}

// give passes a slot to the next waiter.
func (p *checking) give() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w, ok := p.queue.Pop(); ok; w, ok = p.queue.Pop() {
		if !w.gone {
			close(w.ready)
			return
		}
	}
	p.free++
}

// waiting returns how many tokens wait.
func (p *checking) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Len()
}

// crowded returns how many tokens were refused because too many waited.
func (p *checking) crowded() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}
