//go:build !race && unix

// The race detector adds its own memory to the measurement.

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// overload makes a million calls to a server that is stopped.
type overload struct {
	client *redis.Client
	cmd    redis.Command

	// Atomics, written by callers and completers.
	accepted, refused, ended, wrong, measured atomic.Int64
	took                                      [100_000]atomic.Int64 // refused calls by their microseconds
}

// Complete implements redis.Completer.
func (o *overload) Complete(_ redis.Reply, err error) {
	if err != nil {
		o.wrong.Add(1)
	}
	o.ended.Add(1)
}

// start makes one call and records whether it was accepted. It returns the future
// to wait for.
func (o *overload) start(ctx context.Context, future bool) (f redis.Future, wait bool) {
	// A call that started before the client was full may have been suspended by the garbage
	// collector, with 10,000 goroutines ahead of it.
	full := o.refused.Load() > 0
	began := time.Now()
	var err error
	if future {
		f = o.client.Start(ctx, o.cmd)
	} else {
		err = o.client.DoFunc(ctx, o.cmd, o)
	}
	took := time.Since(began)
	if err == nil { // a future reports an error only when it is waited for
		o.accepted.Add(1)
		return f, future
	}
	o.refused.Add(1)
	if slipstream.OutcomeOf(err) != slipstream.Overloaded {
		o.wrong.Add(1)
	}
	if full {
		o.measured.Add(1)
		o.took[min(int(took/time.Microsecond), len(o.took)-1)].Add(1)
	}
	return f, false
}

// percentile returns the time that a share of p of the refused calls did not exceed.
func (o *overload) percentile(p float64) time.Duration {
	want, sum := int64(p*float64(o.measured.Load())), int64(0)
	for i := range o.took {
		if sum += o.took[i].Load(); sum > want {
			return time.Duration(i+1) * time.Microsecond
		}
	}
	return 0
}

// heapInUse returns the memory of live objects, of the gaps between them, and of
// stacks.
func heapInUse() (heap, stacks int64) {
	for range 3 { // pools release their contents after two
		runtime.GC()
	}
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() + samples[1].Value.Uint64()), int64(samples[2].Value.Uint64())
}

// waiters are callers that share a context.
type waiters struct {
	stop  context.CancelFunc
	ended chan time.Time
	n     int
}

func (w *waiters) start(t testing.TB, c *redis.Client, n int) {
	ctx, cancel := context.WithCancel(t.Context())
	w.stop, w.ended, w.n = cancel, make(chan time.Time), n
	for range n {
		go func() { // ends with its call; cancel waits
			_, _, err := c.Get(ctx, "k")
			at := time.Now()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v, expected that the context was canceled", err)
			}
			w.ended <- at
		}()
	}
}

// cancel ends the context and returns how long each caller then took to return.
func (w *waiters) cancel() (d delays) {
	began := time.Now()
	w.stop()
	for range w.n {
		d = append(d, (<-w.ended).Sub(began))
	}
	return d
}

// Ten thousand goroutines submit a million calls to a stopped server. Memory stays within the
// bound, calls that do not fit are refused immediately, callers that give up return immediately,
// and when the server continues, every accepted call ends.
func TestFaultOverload(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	for _, c := range []overloadTest{
		{"completers", false, 16, 1_000_000}, {"futures", true, 16, 1_000_000}, {"completers, 1 KiB", false, 1 << 10, 200_000},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, server) })
	}
}

type overloadTest struct {
	name    string
	futures bool
	size    int // of the value that is set
	calls   int
}

// flood starts 10,000 goroutines, which submit the calls once begin is closed. Goroutines with
// futures wait for them once resume is closed.
func (c overloadTest) flood(o *overload) (begin chan struct{}, submitted *sync.WaitGroup, resume chan struct{}, all *sync.WaitGroup) {
	const callers = 10_000
	begin, resume = make(chan struct{}), make(chan struct{})
	submitted, all = new(sync.WaitGroup), new(sync.WaitGroup)
	room := make([]redis.Future, c.calls)
	for i := range callers {
		submitted.Add(1)
		all.Go(func() {
			each := c.calls / callers
			futures := room[i*each : i*each : (i+1)*each]
			<-begin
			for range each {
				if c.futures && o.client.Stats().Overloaded > 0 {
					break // a refused future stays in memory until its caller waits for it
				}
				if f, wait := o.start(context.Background(), c.futures); wait {
					futures = append(futures, f)
				}
			}
			submitted.Done()
			<-resume
			for _, f := range futures {
				if err := f.Wait(nil); err != nil && slipstream.OutcomeOf(err) != slipstream.Overloaded {
					o.wrong.Add(1)
				}
				o.ended.Add(1)
			}
		})
	}
	return begin, submitted, resume, all
}

func (c overloadTest) run(t *testing.T, server *testkit.Redis) {
	const bound = 64 << 20
	client := connect(t, redis.Options{Addr: server.Addr, MaxCalls: 2 * c.calls, MaxBytes: bound, StallTimeout: -1, Retries: -1})
	o := &overload{client: client, cmd: redis.Cmd("SET", "k", text("k", 0, c.size))}
	must(t, client.Set(t.Context(), "k", text("k", 0, c.size)))
	must(t, server.Signal(syscall.SIGSTOP))
	// The goroutines and their memory for futures belong to the test, not to the client.
	begin, submitted, resume, all := c.flood(o)
	before, _ := heapInUse()
	// Calls with a context are to be canceled when the client is full: a few at a time, because one
	// late wake-up of the sweeper delays all calls that it finds.
	var waiters [8]waiters
	for i := range waiters {
		waiters[i].start(t, client, 8)
	}
	close(begin)
	submitted.Wait()
	held := client.Stats()
	late := lateness()
	var took delays
	for i := range waiters {
		time.Sleep(7 * time.Millisecond)
		took = append(took, waiters[i].cancel()...)
	}
	slack := late().at(1)
	after, _ := heapInUse()
	n := int64(held.Queued + held.Outstanding)
	t.Logf("%d calls held, %d refused; %d bytes of heap for each held call, which counts %d",
		n, held.Overloaded, (after-before)/n, held.HeldBytes/n)
	limit := int64(bound * 11 / 10)
	if c.futures {
		// Each caller keeps at most one refused future, which the client does not hold.
		limit += int64(held.Overloaded) * 512
	}
	if after-before > limit {
		t.Errorf("the heap grew by %.1f MiB, expected at most %.1f MiB", float64(after-before)/(1<<20), float64(limit)/(1<<20))
	}
	if held.HeldBytes > bound || held.HeldBytes < bound*9/10 {
		t.Errorf("%d bytes are held, expected nearly %d", held.HeldBytes, int64(bound))
	}
	took.log(t, "cancel among them")
	// On a busy machine, the slowest cancels say nothing about the client.
	if got := took.at(0.5); got > 10*time.Millisecond+slack {
		t.Errorf("a cancel took %v (p50; goroutines run up to %v late), expected at most 10 ms", got, slack)
	}
	if !c.futures {
		t.Logf("refused calls took %v (p50), %v (p99)", o.percentile(0.5), o.percentile(0.99))
		if got := o.percentile(0.99); got > 500*time.Microsecond && c.calls == 1_000_000 {
			t.Errorf("refused calls took %v (p99), expected at most 50 µs", got)
		}
	}
	must(t, server.Signal(syscall.SIGCONT))
	close(resume)
	all.Wait()
	testkit.Eventually(t, 20*time.Second, func() error {
		if s := client.Stats(); o.ended.Load() != o.accepted.Load() || s.HeldBytes != 0 {
			return fmt.Errorf("%d of %d calls have ended, %d bytes are held", o.ended.Load(), o.accepted.Load(), s.HeldBytes)
		}
		return nil
	})
	if o.wrong.Load() != 0 {
		t.Errorf("%d calls ended in the wrong way", o.wrong.Load())
	}
	if sum := o.accepted.Load() + o.refused.Load(); sum != int64(c.calls) && !c.futures {
		t.Errorf("%d calls, expected %d", sum, c.calls)
	}
}
