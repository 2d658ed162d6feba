package loop

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// patience is how long a test waits for something that must happen: long, because the machine may
// be busy.
const patience = time.Minute

// At most the configured number of jobs run concurrently, each runs once, and waiting ones run in
// order.
func TestWorkersAreBounded(t *testing.T) {
	testkit.NoLeaks(t)
	const most, jobs = 4, 1000
	p := NewWorkers(most)
	var running, peak atomic.Int32
	var all sync.WaitGroup
	var ran [jobs]atomic.Int32
	for i := range jobs {
		all.Add(1)
		p.Start(JobFunc(func() {
			defer all.Done()
			n := running.Add(1)
			for old := peak.Load(); n > old && !peak.CompareAndSwap(old, n); old = peak.Load() {
			}
			runtime.Gosched()
			ran[i].Add(1)
			running.Add(-1)
		}))
	}
	all.Wait()
	p.Close()
	p.Close()
	if n := peak.Load(); n > most {
		t.Errorf("%d jobs ran concurrently, want at most %d", n, most)
	}
	for i := range ran {
		if n := ran[i].Load(); n != 1 {
			t.Errorf("job %d ran %d times", i, n)
		}
	}

	p = NewWorkers(1)
	var order []int
	for i := range 100 {
		all.Add(1)
		p.Start(JobFunc(func() { order = append(order, i); all.Done() }))
	}
	all.Wait()
	p.Close()
	for i, n := range order {
		if n != i {
			t.Fatalf("job %d ran as number %d", n, i)
		}
	}
}

// A job that is started while a goroutine is idle gets that one, and jobs that wait for each other
// get a goroutine each until the maximum is reached.
func TestWorkersStay(t *testing.T) {
	testkit.NoLeaks(t)
	p := NewWorkers(0)
	defer p.Close()
	done := make(chan struct{})
	job := JobFunc(func() { done <- struct{}{} })
	start := func() {
		p.Start(job)
		<-done
		idle := func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.idle == p.count
		}
		for deadline := time.Now().Add(patience); !idle(); runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatal("the goroutine is not idle within a minute")
			}
		}
	}
	start()
	if n := testing.AllocsPerRun(100, start); n != 0 {
		t.Errorf("%v allocations a job, want 0", n)
	}
	if p.count != 1 {
		t.Errorf("%d goroutines, want 1", p.count)
	}
	const many = 2 * idleWorkers
	var arrived, ended sync.WaitGroup
	arrived.Add(many)
	for range many {
		ended.Add(1)
		p.Start(JobFunc(func() { defer ended.Done(); arrived.Done(); arrived.Wait() }))
	}
	ended.Wait()
	testkit.Eventually(t, patience, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.count != idleWorkers || p.idle != idleWorkers {
			return fmt.Errorf("%d goroutines, %d idle, want %d", p.count, p.idle, idleWorkers)
		}
		return nil
	})
}

// Jobs that do not block need few goroutines, however many are started together, and the memory of the queue
// does not depend on how many there were.
func TestShortJobsShareGoroutines(t *testing.T) {
	testkit.NoLeaks(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := NewWorkers(0)
	defer p.Close()
	for range 100 {
		var all sync.WaitGroup
		for range 100 {
			all.Add(1)
			p.Start(JobFunc(all.Done))
		}
		all.Wait()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count > 10 {
		t.Errorf("%d goroutines for jobs that do not block", p.count)
	}
	if c := cap(p.queue); c > mostQueue {
		t.Errorf("the queue has room for %d jobs", c)
	}
}

// The queue does not grow while jobs end as fast as they are started, although it is never empty.
func TestQueueOfWorkersIsBounded(t *testing.T) {
	testkit.NoLeaks(t)
	p := NewWorkers(1)
	defer p.Close()
	next := make(chan struct{})
	job := JobFunc(func() { <-next })
	for range 10 {
		p.Start(job)
	}
	for range 10_000 {
		p.Start(job)
		next <- struct{}{}
	}
	p.mu.Lock()
	if c := cap(p.queue); c > 64 {
		t.Errorf("the queue has room for %d jobs", c)
	}
	p.mu.Unlock()
	for range 10 {
		next <- struct{}{}
	}
}

// Close waits for every job that was started, including those that wait for a goroutine, and a job
// started afterwards runs as well.
func TestWorkersClose(t *testing.T) {
	testkit.NoLeaks(t)
	for range 200 {
		w := NewWorkers(2)
		var ran atomic.Int32
		var jobs int32
		for range 5 {
			w.Start(JobFunc(func() { runtime.Gosched(); ran.Add(1) }))
			jobs++
		}
		w.Close()
		if n := ran.Load(); n != jobs {
			t.Fatalf("%d of %d jobs had run when Close returned", n, jobs)
		}
		done := make(chan struct{})
		w.Start(JobFunc(func() { close(done) }))
		<-done
		w.Close()
	}

	// A job given to an idle goroutine at the moment Close begins is not lost.
	for range 500 {
		w := NewWorkers(1)
		first, second := make(chan struct{}), make(chan struct{})
		w.Start(JobFunc(func() { close(first) }))
		<-first
		go w.Close() // ends when the goroutine has, which the Close below waits for
		w.Start(JobFunc(func() { close(second) }))
		<-second
		w.Close()
	}
}
