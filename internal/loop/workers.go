package loop

import "sync"

const (
	// idleWorkers is how many goroutines wait for the next job. Each keeps a stack of about 16 KiB.
	idleWorkers = 64
	// mostQueue is the capacity of a queue that is kept when it is empty.
	mostQueue = 1 << 10
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
// stack was 22 % of the CPU of an answer from the disk tier.
//
// At most one goroutine at a time is on its way to a job. It wakes the next one, if jobs wait,
// before it runs its own. Therefore many short jobs that are started together wake few goroutines,
// and a job that blocks does not delay others. All methods are safe for concurrent use.
type Workers struct {
	// Immutable.
	max  int
	wake chan struct{} // has room for all idle goroutines, so that a send does not block
	stop chan struct{} // closed by Close

	// Guarded by mu.
	mu     sync.Mutex
	left   sync.Cond // signals that count has become 0
	count  int       // goroutines
	idle   int       // goroutines that wait for a job and were not woken
	queue  []Job     // the waiting jobs start at next
	next   int
	waking bool // a goroutine was woken or started and has not looked for a job yet
	closed bool
}

// NewWorkers returns workers with at most max goroutines, which are started when they are needed.
// If max is zero, it is [DefaultWorkers].
func NewWorkers(max int) *Workers {
	if max <= 0 {
		max = DefaultWorkers
	}
	w := &Workers{max: max, wake: make(chan struct{}, idleWorkers), stop: make(chan struct{})}
	w.left.L = &w.mu
	return w
}

// Start runs j on a goroutine and does not block. If all goroutines are busy and their number is at
// its limit, j waits for one, after earlier jobs. Callers must bound how many jobs they start,
// because waiting jobs are kept in memory. After Close, j still runs, on a goroutine that ends with
// it.
func (w *Workers) Start(j Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == cap(w.queue) && w.next >= len(w.queue)/2 { // half of it is free
		n := copy(w.queue, w.queue[w.next:])
		clear(w.queue[n:])
		w.queue, w.next = w.queue[:n], 0
	}
	w.queue = append(w.queue, j)
	w.rouse()
}

// rouse wakes or starts a goroutine if jobs wait and no goroutine is on its way to one. The caller
// holds mu.
func (w *Workers) rouse() {
	switch {
	case w.waking || w.next == len(w.queue):
	case w.idle > 0:
		w.idle--
		w.waking = true
		w.wake <- struct{}{}
	case w.count < w.max:
		w.count++
		w.waking = true
		// Ends when it has nothing to do and enough others are idle, or with Close, which waits
		// for it.
		go w.run()
	}
}

func (w *Workers) run() {
	for woken := true; ; {
		j, stay := w.following(woken)
		woken = false
		switch {
		case j != nil:
			j.Work()
		case !stay:
			return
		default:
			select {
			case <-w.wake:
				woken = true
			case <-w.stop:
				if woken = w.stopped(); !woken {
					return
				}
			}
		}
	}
}

// following returns the next waiting job, or nil if there is none. woken says that the goroutine was woken
// or started for it. If stay is false, the goroutine is not needed.
func (w *Workers) following(woken bool) (j Job, stay bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if woken {
		w.waking = false
	}
	if w.next < len(w.queue) {
		j, w.queue[w.next] = w.queue[w.next], nil
		if w.next++; w.next == len(w.queue) {
			w.queue, w.next = w.queue[:0], 0
			if cap(w.queue) > mostQueue {
				w.queue = nil
			}
		}
		w.rouse()
		return j, true
	}
	if w.idle == idleWorkers || w.closed {
		w.gone()
		return nil, false
	}
	w.idle++
	return nil, true
}

// stopped ends an idle goroutine, unless it was woken in the meantime, and reports whether it was.
func (w *Workers) stopped() (woken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.wake:
		return true
	default:
		w.idle--
		w.gone()
		return false
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
