package loop

import "sync"

const (
	// idleWorkers is how many goroutines wait for the next job. Each keeps a stack of some 16 KiB.
	idleWorkers = 64
	// DefaultWorkers is the limit of [Workers] that have none of their own.
	DefaultWorkers = 32 << 10
)

// A Job is work that may wait.
type Job interface {
	// Work does it. It must not panic.
	Work()
}

// JobFunc is a function as a [Job].
type JobFunc func()

// Work implements [Job].
func (f JobFunc) Work() { f() }

// Workers are goroutines that run jobs which may wait. Those that are idle are kept for the next
// job, because their stacks have grown already: on a new goroutine for each, growing the stack was
// 22 % of the CPU of an answer from the disk tier. All methods are safe for concurrent use.
type Workers struct {
	// Immutable.
	max  int
	jobs chan Job      // has room for all that are idle, so that a send does not wait
	stop chan struct{} // closed by Close

	running sync.WaitGroup
	once    sync.Once

	// Guarded by mu.
	mu     sync.Mutex
	count  int   // goroutines
	idle   int   // of these, how many wait for a job and have not been sent one
	queue  []Job // from next on: what waits because count is max
	next   int
	closed bool
}

// NewWorkers returns at most max goroutines, of which there are none yet. If max is zero, it is
// [DefaultWorkers].
func NewWorkers(max int) *Workers {
	if max <= 0 {
		max = DefaultWorkers
	}
	return &Workers{max: max, jobs: make(chan Job, idleWorkers), stop: make(chan struct{})}
}

// Start runs j on a goroutine and does not wait. If all goroutines are busy and there are as many
// as there may be, j waits for one, after those that came before: a caller that starts more jobs
// than a bound of its own would keep them in memory. Start must not be called after Close.
func (w *Workers) Start(j Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		panic("loop: Workers: Start after Close")
	case w.idle > 0:
		w.idle--
		w.jobs <- j
	case w.count < w.max:
		w.count++
		w.running.Add(1)
		// Ends when it has nothing to do and enough others are idle, or with Close, which waits.
		go w.run(j)
	default:
		w.queue = append(w.queue, j)
	}
}

func (w *Workers) run(j Job) {
	defer w.running.Done()
	for {
		j.Work()
		var stay bool
		if j, stay = w.following(); !stay {
			return
		}
		if j != nil {
			continue
		}
		select {
		case j = <-w.jobs:
		case <-w.stop:
			return
		}
	}
}

// following returns the next job that waits, nil if there is none. If stay is false, the
// goroutine is not needed.
func (w *Workers) following() (j Job, stay bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next < len(w.queue) {
		j, w.queue[w.next] = w.queue[w.next], nil
		if w.next++; w.next == len(w.queue) {
			w.queue, w.next = nil, 0
		}
		return j, true
	}
	if w.idle == idleWorkers || w.closed {
		w.count--
		return nil, false
	}
	w.idle++
	return nil, true
}

// Close ends the goroutines and waits for them. All jobs must have been done.
func (w *Workers) Close() {
	w.once.Do(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.closed = true
		close(w.stop)
	})
	w.running.Wait()
}
