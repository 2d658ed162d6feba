package httpfront

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// idleWorkers is how many goroutines that have answered wait for the next request. Each keeps
// a stack of some 16 KiB.
const idleWorkers = 64

// workers are the goroutines that answer requests which have to wait. One that is through
// takes the next, because its stack has grown already: on a new goroutine each the growing
// was 22 % of the CPU of an answer from the disk tier. The zero value is not ready.
type workers struct {
	// Immutable.
	queue chan *later   // unbuffered: a send succeeds if somebody is idle
	stop  chan struct{} // closed by end

	running sync.WaitGroup
	once    sync.Once
	idle    atomic.Int32 // written by the workers
}

func newWorkers() *workers {
	return &workers{queue: make(chan *later), stop: make(chan struct{})}
}

// begin lets somebody answer l.
func (w *workers) begin(l *later) {
	select {
	case w.queue <- l:
		return
	default:
	}
	w.running.Add(1)
	// Ends when its answer is there and enough others are idle, or with end, which waits.
	go w.run(l)
}

func (w *workers) run(l *later) {
	defer w.running.Done()
	for {
		l.answer()
		l = nil // what it holds is not needed while this is idle
		if w.idle.Add(1) > idleWorkers {
			w.idle.Add(-1)
			return
		}
		select {
		case l = <-w.queue:
			w.idle.Add(-1)
		case <-w.stop:
			return
		}
	}
}

// end waits until all answers are there. Nothing begins after it.
func (w *workers) end() {
	w.once.Do(func() { close(w.stop) })
	w.running.Wait()
}

// lazyDeadline is a context that ends at a deadline, and makes the timer for it only when
// somebody asks for Done: an answer from disk seldom does, and the timer was 5 % of its CPU.
type lazyDeadline struct {
	context.Context
	deadline time.Time

	mu sync.Mutex
	// Guarded by mu.
	timed  context.Context
	cancel context.CancelFunc
}

// Deadline implements context.Context.
func (p *lazyDeadline) Deadline() (time.Time, bool) {
	if at, ok := p.Context.Deadline(); ok && at.Before(p.deadline) {
		return at, true
	}
	return p.deadline, true
}

// Done implements context.Context.
func (p *lazyDeadline) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timed == nil {
		p.timed, p.cancel = context.WithDeadline(p.Context, p.deadline)
	}
	return p.timed.Done()
}

// Err implements context.Context.
func (p *lazyDeadline) Err() error {
	p.mu.Lock()
	timed := p.timed
	p.mu.Unlock()
	if timed != nil {
		return timed.Err()
	}
	if err := p.Context.Err(); err != nil {
		return err
	}
	if !time.Now().Before(p.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// end gives back what Done has made.
func (p *lazyDeadline) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		p.cancel()
	}
}
