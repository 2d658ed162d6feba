package loop

import "sync"

const (
	// idleWorkers is how many goroutines wait for the next job. Each keeps a stack of about 16 KiB.
	idleWorkers = 64
	// DefaultWorkers is the default limit of [Workers].
	DefaultWorkers = 32 << 10
)

// A Job is work that may block.
type Job interface {
	// Work does the job. It must not panic.
	Work()
}

// A JobFunc is a function that implements [Job].
type JobFunc func()

// Work implements [Job].
func (f JobFunc) Work() { f() }

// Workers are goroutines that run jobs which may block. Idle ones are kept for the next
// job, because their stacks have grown already: with a new goroutine for each job, growing the
// stack was 22 % of the CPU of an answer from the disk tier. All methods are safe for concurrent
// use.
type Workers struct {
	// Immutable.
	max  int
	jobs chan Job      // has room for all idle goroutines, so that a send does not block
	stop chan struct{} // closed by Close

	// Guarded by mu.
	mu     sync.Mutex
	left   sync.Cond // count has become 0
	count  int       // goroutines
	idle   int       // goroutines that wait for a job and were not sent one
	queue  []Job     // from next on: jobs that wait because count is max
	next   int
	closed bool
}

// NewWorkers returns workers of at most max goroutines, which are started when they are needed. If
// max is zero, it is [DefaultWorkers].
func NewWorkers(max int) *Workers {
	if max <= 0 {
		max = DefaultWorkers
	}
	w := &Workers{max: max, jobs: make(chan Job, idleWorkers), stop: make(chan struct{})}
	w.left.L = &w.mu
	return w
}

// Start runs j on a goroutine and does not block. If all goroutines are busy and their number is
// at its limit, j waits for one, after earlier jobs. Callers must bound how many jobs they start,
// because waiting jobs are kept in memory. After Close j still runs, on a goroutine that ends
// with it.
func (w *Workers) Start(j Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.idle > 0:
		w.idle--
		w.jobs <- j
	case w.count < w.max:
		w.count++
		// Ends when it has nothing to do and enough others are idle, or with Close, which waits
		// for it.
		go w.run(j)
	default:
		w.queue = append(w.queue, j)
	}
}

func (w *Workers) run(j Job) {
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
			if j = w.leave(); j == nil {
				return
			}
		}
	}
}

// following returns the next waiting job, or nil if there is none. If stay is false, the goroutine
// is not needed.
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
		w.gone()
		return nil, false
	}
	w.idle++
	return nil, true
}

// leave ends an idle goroutine, or returns the job that it was sent in the meantime.
func (w *Workers) leave() Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case j := <-w.jobs:
		return j
	default:
		w.idle--
		w.gone()
		return nil
	}
}

// gone counts a goroutine that ends. The caller holds mu.
func (w *Workers) gone() {
	if w.count--; w.count == 0 {
		w.left.Broadcast()
	}
}

// Close waits until all jobs are done and the goroutines have ended.
func (w *Workers) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		close(w.stop)
	}
	for w.count > 0 {
		w.left.Wait()
	}
}
