package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/fair"
)

// loader gathers the missing keys of one resource into statements. There is no
// timer: while the maximum number of statements is running, keys gather, and the
// next statement takes them all. So a single miss is sent immediately, and batches
// grow with the load.
type loader struct {
	// Immutable after newLoader.
	cache    *Cache
	resource *resourceState

	// Guarded by mu.
	mu       sync.Mutex
	queue    fair.Queue[*flight]      // a flow for each client
	queued   int                      // bytes of the IDs in queue and lone
	lone     []*flight                // keys that load alone and wait for their turn
	loneWent bool                     // the last statement was for one of them
	shed     []*flight                // lost their slots and will fail
	running  int                      // goroutines in run
	held     int                      // callers that are still adding to queue
	alone    map[string]time.Duration // keys that load alone until then
	aloneNow int                      // statements for such keys in flight
	closed   bool
}

// maxAlone bounds the keys that are remembered as failing; if more fail at the
// same time, single keys are not the cause.
const maxAlone = 4096

// maxQueuedBytes bounds the IDs that wait: MaxQueue IDs of the maximum length would take 512
// MiB.
const maxQueuedBytes = 16 << 20

func newLoader(c *Cache, r *resourceState) *loader {
	return &loader{cache: c, resource: r, alone: make(map[string]time.Duration)}
}

// maxEntries bounds the clients' queues that hold one flight.
const maxEntries = 8

// enqueue queues a flight. It returns false if the queue is full and no client has more
// flights waiting than this one's.
func (l *loader) enqueue(f *flight) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || !l.makeRoomLocked(f, f.client) {
		return false
	}
	l.pushLocked(f, f.client)
	l.startLocked()
	return true
}

// share lets a flight that another client has queued wait in the queue of this one as well:
// the first of them whose turn it is takes it.
func (l *loader) share(f *flight, client uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && !f.taken && f.entries < maxEntries && l.makeRoomLocked(f, client) {
		l.pushLocked(f, client)
	}
}

func (l *loader) pushLocked(f *flight, client uint64) {
	l.queue.Push(client, f)
	f.entries++
	l.queued += len(f.key.ID)
}

// popLocked returns the next flight that no statement has taken, or nil if there is none.
func (l *loader) popLocked() *flight {
	for f, ok := l.queue.Pop(); ok; f, ok = l.queue.Pop() {
		f.entries--
		l.queued -= len(f.key.ID)
		if !f.taken {
			f.taken = true
			return f
		}
	}
	return nil
}

// makeRoomLocked makes room for a flight of the client, at the cost of clients that have more
// waiting. It returns false if there is no such client.
func (l *loader) makeRoomLocked(f *flight, client uint64) bool {
	for l.pendingLocked() >= l.resource.settings.Load().MaxQueue || l.queued+len(f.key.ID) > maxQueuedBytes {
		victim, ok := l.queue.Shed(client)
		if !ok {
			return false
		}
		victim.entries--
		l.queued -= len(victim.key.ID)
		if victim.entries > 0 || victim.taken {
			continue
		}
		victim.taken = true
		if l.shed = append(l.shed, victim); len(l.shed) == 1 {
			l.cache.work.Add(1)
			// Ends when those have failed; Close waits for it. It needs the locks of their
			// shards, and the caller holds one.
			go l.failShed()
		}
	}
	return true
}

// failShed fails the flights that lost their slots.
func (l *loader) failShed() {
	defer l.cache.work.Done()
	for {
		l.mu.Lock()
		shed := l.shed
		l.shed = nil
		l.mu.Unlock()
		if len(shed) == 0 {
			return
		}
		for _, f := range shed {
			l.resource.counters.overloaded.Add(1)
			l.cache.settle(l.resource, f, outcome{err: ErrOverloaded})
		}
	}
}

// pending returns how many flights wait.
func (l *loader) pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pendingLocked()
}

// pendingLocked is pending with the lock held.
func (l *loader) pendingLocked() int { return l.queue.Len() + len(l.lone) }

// again requeues a flight whose key is to be loaded alone. It returns false if
// the loader is closed. The run that calls it calls take next.
func (l *loader) again(f *flight) bool {
	l.setAlone(f.key.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if len(l.lone) == 0 {
		l.loneWent = true // keys that already wait go first
	}
	l.lone = append(l.lone, f)
	l.queued += len(f.key.ID)
	return true
}

// hold keeps statements from beginning until release, so that the keys of one caller
// are sent together. The caller must not block in between.
func (l *loader) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held++
}

func (l *loader) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held--
	if l.closed {
		return
	}
	for n := 0; n < l.pendingLocked(); n += l.resource.settings.Load().MaxBatch {
		l.startLocked()
	}
}

// startLocked begins another run if one is allowed. Called with mu held.
func (l *loader) startLocked() {
	if l.held == 0 && l.running < l.resource.settings.Load().MaxLoads {
		l.running++
		l.cache.work.Add(1)
		// Ends when the queue is empty or the cache closes; Close waits for it.
		go l.run()
	}
}

// abandon stops the loader: what is queued fails with ErrClosed.
func (l *loader) abandon() {
	l.mu.Lock()
	l.closed = true
	queue := l.lone
	for f := l.popLocked(); f != nil; f = l.popLocked() {
		queue = append(queue, f)
	}
	l.lone, l.queued = nil, 0
	l.mu.Unlock()
	for _, f := range queue {
		l.cache.settle(l.resource, f, outcome{err: ErrClosed})
	}
}

// run sends statements until nothing is queued.
func (l *loader) run() {
	defer l.cache.work.Done()
	for {
		flights, alone := l.take()
		if len(flights) == 0 {
			return
		}
		l.load(flights, l.resource.settings.Load().LoadTimeout)
		if alone {
			l.mu.Lock()
			l.aloneNow-- // keys of this kind that were passed over are next
			l.mu.Unlock()
		}
	}
}

// take returns the flights of the next statement, from each client in turn; if there are none,
// the run ends. A key that failed recently is loaded alone. Such keys together may use at most
// half of the statements, and at most every other one, so that they cannot delay healthy keys.
func (l *loader) take() (flights []*flight, alone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.loneWent {
		flights = l.takeLoneLocked()
		alone = flights != nil
	}
	if !alone {
		now := l.cache.clock()
		for len(flights) < l.resource.settings.Load().MaxBatch {
			f := l.popLocked()
			if f == nil {
				break
			}
			if l.isAloneLocked(f.key.ID, now) {
				l.lone = append(l.lone, f)
				l.queued += len(f.key.ID)
			} else {
				flights = append(flights, f)
			}
		}
		if len(flights) == 0 {
			flights = l.takeLoneLocked()
			alone = flights != nil
		}
	}
	l.loneWent = alone
	if alone {
		l.aloneNow++
	}
	if len(flights) == 0 {
		l.running--
	}
	return flights, alone
}

// takeLoneLocked takes the next key that is to load alone, if one may load now.
func (l *loader) takeLoneLocked() []*flight {
	if len(l.lone) == 0 || l.aloneNow >= max(1, l.resource.settings.Load().MaxLoads/2) {
		return nil
	}
	f := l.lone[0]
	l.lone[0] = nil
	l.lone = l.lone[1:]
	l.queued -= len(f.key.ID)
	return []*flight{f}
}

// isAloneLocked reports whether the key failed recently. Called with mu held.
func (l *loader) isAloneLocked(id string, now time.Duration) bool {
	until, failed := l.alone[id]
	if failed && now >= until {
		delete(l.alone, id)
		return false
	}
	return failed
}

// setAlone remembers that a statement with only this key failed.
func (l *loader) setAlone(id string) {
	now := l.cache.clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.alone) >= maxAlone {
		for id, until := range l.alone {
			if now >= until {
				delete(l.alone, id)
			}
		}
	}
	if len(l.alone) < maxAlone {
		l.alone[id] = now + l.resource.settings.Load().AloneFor
	}
}

// load sends one statement for the flights and settles them. A statement that
// fails is retried in halves, until the key at fault fails alone.
//
// Each half gets a quarter of the time, at least a sixteenth of LoadTimeout: only
// one of the two holds the key that hangs, so the other keys wait for one timeout
// per level, and all levels together take less than twice the first timeout (1.6
// times at 256 keys). The key itself is queued again, to be loaded alone with the
// full timeout.
func (l *loader) load(flights []*flight, timeout time.Duration) {
	c, r := l.cache, l.resource
	// All three are taken before the statement's snapshot: see store and join.
	o := outcome{statement: c.ledger.begin(), generation: r.generation.Load(), began: c.clock() - c.loadLag}
	defer c.ledger.end(o.statement)
	ids := make([]string, len(flights))
	for i, f := range flights {
		c.begin(f, o.began)
		ids[i] = f.key.ID
	}
	ctx, cancel := context.WithTimeout(c.ctx, timeout)
	batch, err := l.ask(ctx, ids)
	cancel()
	r.counters.statements.Add(1)
	if err == nil && len(batch.Docs) != len(ids) {
		err = fmt.Errorf("origin returned %d documents for %d keys: %w", len(batch.Docs), len(ids), ErrUnavailable)
	}

	switch {
	case err == nil:
		o.seen = batch.Snapshot
		for i, f := range flights {
			o.loaded = batch.Docs[i]
			c.settle(r, f, o)
		}
	case c.closed.Load():
		l.fail(flights, o, ErrClosed)
	case errors.Is(err, ErrUnavailable):
		l.fail(flights, o, err)
	case len(flights) == 1:
		f := flights[0]
		if timeout < r.settings.Load().LoadTimeout && !f.again && errors.Is(err, context.DeadlineExceeded) {
			f.again = true
			if l.again(f) {
				return
			}
			err = ErrClosed
		}
		l.setAlone(f.key.ID)
		l.fail(flights, o, err)
	default:
		r.counters.halved.Add(1)
		half := len(flights) / 2
		timeout = max(timeout/4, r.settings.Load().LoadTimeout/16)
		l.load(flights[:half], timeout)
		l.load(flights[half:], timeout)
	}
}

// ask sends the statement. An origin that panics fails these keys and no others.
func (l *loader) ask(ctx context.Context, ids []string) (b Batch, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the origin panicked: %v\n%s", v, debug.Stack())
		}
	}()
	return l.cache.origin.Load(ctx, l.resource.id, ids)
}

func (l *loader) fail(flights []*flight, o outcome, err error) {
	o.err = err
	for _, f := range flights {
		l.cache.settle(l.resource, f, o)
	}
}
