package loop

import (
	"context"
	"sync"
	"time"
)

// A Deadline is a context that ends at a deadline. It creates the timer only when Done is called:
// an answer from disk seldom calls it, and the timer was 5 % of its CPU. Set Context and At before
// use, and call End afterwards.
type Deadline struct {
	context.Context // the parent
	At              time.Time

	mu sync.Mutex
	// Guarded by mu.
	timed  context.Context
	cancel context.CancelFunc
}

// Deadline implements [context.Context].
func (d *Deadline) Deadline() (time.Time, bool) {
	if at, ok := d.Context.Deadline(); ok && at.Before(d.At) {
		return at, true
	}
	return d.At, true
}

// Done implements [context.Context].
func (d *Deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil {
		d.timed, d.cancel = context.WithDeadline(d.Context, d.At)
	}
	return d.timed.Done()
}

// Err implements [context.Context].
func (d *Deadline) Err() error {
	d.mu.Lock()
	timed := d.timed
	d.mu.Unlock()
	if timed != nil {
		return timed.Err()
	}
	if err := d.Context.Err(); err != nil {
		return err
	}
	if !time.Now().Before(d.At) {
		return context.DeadlineExceeded
	}
	return nil
}

// End releases the timer, if there is one.
func (d *Deadline) End() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}
