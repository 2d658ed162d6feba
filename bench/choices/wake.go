package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The ways to wake waiters.
const (
	wakeChannel   = "channel"        // one of capacity 1 for each
	wakeCond      = "sync.Cond"      // one for each
	wakeBroadcast = "cond broadcast" // one for all
	wakeGroup     = "sync.WaitGroup" // one for each
	wakeMutex     = "sync.Mutex"     // one for each, handed over locked
)

// A waker makes n goroutines wait, and wakes all of them. A wake before the wait is not lost,
// because replies may be faster than callers.
type waker interface {
	wait(i int)
	wakeAll()
}

func newWaker(kind string, n int) (waker, error) {
	switch kind {
	case wakeChannel:
		w := make(channels, n)
		for i := range w {
			w[i] = make(chan struct{}, 1)
		}
		return w, nil
	case wakeCond:
		w := make(conds, n)
		for i := range w {
			w[i].cond.L = &w[i].mu
		}
		return w, nil
	case wakeBroadcast:
		w := &broadcast{seen: make([]uint64, n)}
		w.cond.L = &w.mu
		return w, nil
	case wakeGroup:
		w := make(groups, n)
		for i := range w {
			w[i].group.Add(1)
		}
		return w, nil
	case wakeMutex:
		w := make(mutexes, n)
		for i := range w {
			w[i].mu.Lock()
		}
		return w, nil
	}
	return nil, fmt.Errorf("unknown kind of waker %q", kind)
}

type channels []chan struct{}

func (w channels) wait(i int) { <-w[i] }
func (w channels) wakeAll() {
	for _, c := range w {
		c <- struct{}{}
	}
}

// cacheLine keeps neighbors from sharing a cache line.
type cacheLine [64]byte

type conds []struct {
	mu   sync.Mutex
	cond sync.Cond
	set  bool // guarded by mu
	_    cacheLine
}

func (w conds) wait(i int) {
	w[i].mu.Lock()
	for !w[i].set {
		w[i].cond.Wait()
	}
	w[i].set = false
	w[i].mu.Unlock()
}

func (w conds) wakeAll() {
	for i := range w {
		w[i].mu.Lock()
		w[i].set = true
		w[i].mu.Unlock()
		w[i].cond.Signal()
	}
}

type broadcast struct {
	mu    sync.Mutex
	cond  sync.Cond
	round uint64   // guarded by mu
	seen  []uint64 // each owned by its waiter
}

func (w *broadcast) wait(i int) {
	w.mu.Lock()
	for w.round == w.seen[i] {
		w.cond.Wait()
	}
	w.seen[i] = w.round
	w.mu.Unlock()
}

func (w *broadcast) wakeAll() {
	w.mu.Lock()
	w.round++
	w.mu.Unlock()
	w.cond.Broadcast()
}

type groups []struct {
	group sync.WaitGroup
	_     cacheLine
}

func (w groups) wait(i int) {
	w[i].group.Wait()
	w[i].group.Add(1)
}

func (w groups) wakeAll() {
	for i := range w {
		w[i].group.Done()
	}
}

type mutexes []struct {
	mu sync.Mutex
	_  cacheLine
}

func (w mutexes) wait(i int) { w[i].mu.Lock() }
func (w mutexes) wakeAll() {
	for i := range w {
		w[i].mu.Unlock()
	}
}

// measureWake makes one goroutine wake all others in rounds. The last one to wake reports this over
// a channel, which costs the same for every kind.
func measureWake(ctx context.Context, m micro) (microResult, error) {
	w, err := newWaker(m.Kind, m.Callers)
	if err != nil {
		return microResult{}, err
	}
	var (
		left    atomic.Int64 // waiters not yet awake in this round; set by the waker, counted down by waiters
		stopped atomic.Bool  // written by the waker before its last round
		awake   = make(chan struct{}, 1)
		waiters sync.WaitGroup
	)
	for i := range m.Callers {
		// Ends at the first round after stopped is set; waited for below.
		waiters.Go(func() {
			for {
				w.wait(i)
				// Read before the round can end: stopped is set after it.
				ended := stopped.Load()
				if left.Add(-1) == 0 {
					awake <- struct{}{}
				}
				if ended {
					return
				}
			}
		})
	}
	round := func() {
		left.Store(int64(m.Callers))
		w.wakeAll()
		<-awake
	}
	rounds := func(d time.Duration) (n uint64) {
		for begun := time.Now(); time.Since(begun) < d && ctx.Err() == nil; n++ {
			round()
		}
		return n
	}
	rounds(m.WarmUp)
	meter := startMeter()
	n := rounds(m.Window)
	result := meter.result(n * uint64(m.Callers))
	stopped.Store(true)
	round()
	waiters.Wait()
	return result, ctx.Err()
}
