package main

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A shard is one buffer that callers append to.
type shard struct {
	mu      sync.Mutex
	buf     []byte          // guarded by mu
	waiting []chan struct{} // guarded by mu: callers whose bytes are in buf
	_       cacheLine
}

// A queue is what the question lock measures: callers append requests to shards, and one flusher
// removes them.
type queue struct {
	// Immutable after newQueue.
	shards []shard
	wake   chan struct{} // capacity 1: something was queued while the flusher slept

	// Owned by the flusher.
	out     []byte
	woken   []chan struct{}
	sink    [64 << 10]byte // represents the kernel
	written uint64         // bytes

	busy atomic.Bool // the flusher is awake; set by callers, cleared by the flusher
}

// appended is what a caller appends: a GET of a short key has about 40 bytes.
var appended = bytes.Repeat([]byte("request,"), 5)

// fullShard is the size from which free callers wait for the flusher.
const fullShard = 64 << 10

func newQueue(shards int) *queue {
	return &queue{shards: make([]shard, shards), wake: make(chan struct{}, 1)}
}

// submit appends a request. If done is nil, the caller does not wait for it to be written. It
// returns false if the shard is full, which cannot happen if callers wait.
func (q *queue) submit(caller int, done chan struct{}) bool {
	s := &q.shards[caller%len(q.shards)]
	s.mu.Lock()
	if done == nil && len(s.buf) >= fullShard {
		s.mu.Unlock()
		return false
	}
	s.buf = append(s.buf, appended...)
	if done != nil {
		s.waiting = append(s.waiting, done)
	}
	s.mu.Unlock()
	if !q.busy.Load() && !q.busy.Swap(true) {
		q.wake <- struct{}{}
	}
	return true
}

// flush collects all shards once, and reports whether they contained anything.
func (q *queue) flush() bool {
	found := false
	for i := range q.shards {
		s := &q.shards[i]
		s.mu.Lock()
		s.buf, q.out = q.out[:0], s.buf
		s.waiting, q.woken = q.woken[:0], s.waiting
		s.mu.Unlock()
		for b := q.out; len(b) > 0; {
			n := copy(q.sink[:], b)
			b = b[n:]
			q.written += uint64(n)
		}
		found = found || len(q.out) > 0
		for _, done := range q.woken {
			done <- struct{}{}
		}
	}
	return found
}

// run is the flusher's goroutine.
func (q *queue) run(stop <-chan struct{}) {
	for {
		select {
		case <-q.wake:
		case <-stop:
			for q.flush() {
			}
			return
		}
		for {
			for q.flush() {
			}
			q.busy.Store(false)
			// A caller that queued before this line has seen a busy flusher.
			if !q.flush() || q.busy.Swap(true) {
				break
			}
		}
	}
}

// measureLock counts how many requests callers get through a queue.
func measureLock(ctx context.Context, m micro) (microResult, error) {
	q := newQueue(max(m.Count, 1))
	stop, flushed := make(chan struct{}), make(chan struct{})
	// Ends with stop, which is closed below; waited for there.
	go func() {
		defer close(flushed)
		q.run(stop)
	}()
	var (
		ended   atomic.Bool // set below, read by callers
		callers sync.WaitGroup
		counts  = make([]struct {
			n atomic.Uint64 // written by its caller, read at both ends of the window
			_ cacheLine
		}, m.Callers)
	)
	for i := range m.Callers {
		// Ends when ended is set; waited for below.
		callers.Go(func() {
			var done chan struct{}
			if !m.Free {
				done = make(chan struct{}, 1)
			}
			for !ended.Load() {
				if !q.submit(i, done) {
					runtime.Gosched()
					continue
				}
				if done != nil {
					<-done
				}
				counts[i].n.Add(1)
			}
		})
	}
	total := func() (sum uint64) {
		for i := range counts {
			sum += counts[i].n.Load()
		}
		return sum
	}
	time.Sleep(m.WarmUp)
	before := total()
	meter := startMeter()
	time.Sleep(m.Window)
	result := meter.result(total() - before)
	ended.Store(true)
	callers.Wait()
	close(stop)
	<-flushed
	if want := total() * uint64(len(appended)); q.written != want {
		return result, fmt.Errorf("%d bytes were written, want %d", q.written, want)
	}
	return result, ctx.Err()
}
