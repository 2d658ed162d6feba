package cache

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// newVerified is a fixture with documents "0" to "9" in the tier, for which the
// horizon no longer holds.
func newVerified(t *testing.T) *fixture {
	f := newFixture(t, Resource{Policy: Verify, LoadTimeout: 5 * time.Second})
	for i := range 10 {
		f.commit(strconv.Itoa(i))
	}
	f.poll()
	for i := range 10 {
		f.mustGet(strconv.Itoa(i), 1, FromLoad)
	}
	time.Sleep(2 * time.Second)
	f.statements.Store(0)
	return f
}

// waiting begins a GET that must wait, and returns the channel that reports its
// end.
func (f *fixture) waiting(ctx context.Context, id string) <-chan got {
	f.t.Helper()
	out := make(chan got, 1)
	// Ends with its answer, for which the test waits.
	go func() {
		began := time.Now()
		a, err := f.cache.Get(ctx, Key{0, id}, f.cache.Now())
		out <- got{a, err, time.Since(began)}
	}()
	synctest.Wait()
	if len(out) > 0 {
		f.t.Fatalf("GET %s did not wait for the stream", id)
	}
	return out
}

type got struct {
	Answer
	err  error
	took time.Duration
}

// expect checks the end of a GET that waited.
func (f *fixture) expect(out <-chan got, version int, source Source, took time.Duration) {
	f.t.Helper()
	g := <-out
	if g.err != nil {
		f.t.Fatal(g.err)
	}
	if v := modelVersion(f.t, Key{0, "1"}, g.Doc); v != version || g.Source != source || g.took != took {
		f.t.Errorf("version %d from source %d after %v, want version %d from %d after %v",
			v, g.Source, g.took, version, source, took)
	}
}

// One report of the stream answers all waiting callers, and nothing is loaded.
func TestVerifyByOneReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newVerified(t)
		var asked atomic.Int64
		f.wake = func() { asked.Add(1) }
		var callers sync.WaitGroup
		for i := range 5000 {
			callers.Go(func() { f.mustGet(strconv.Itoa(i%10), 1, FromTier) })
		}
		synctest.Wait()
		if n := asked.Load(); n != 5000 {
			t.Errorf("the stream was woken %d times by 5,000 callers", n)
		}
		f.poll()
		callers.Wait()
		if n := f.statements.Load(); n != 0 {
			t.Errorf("%d statements", n)
		}
		if s := f.cache.Stats().Resources[0]; s.Verified != 5000 || s.Hits != 5000 || s.Reloaded != 0 {
			t.Errorf("stats %+v", s)
		}
		f.poll()
		if f.cache.moved.next != nil {
			t.Error("no caller has waited since the last report, but there is a channel to wait on")
		}
	})
}

// A report that is older than what a GET needs does not end its wait.
func TestVerifyNeedsTheHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newVerified(t)
		var asked atomic.Int64
		f.wake = func() { asked.Add(1) }
		sent := f.cache.Now() - 1500*time.Millisecond
		out := f.waiting(t.Context(), "1")
		f.cache.Advance(sent, UpTo(10))
		synctest.Wait()
		if len(out) > 0 {
			t.Fatal("answered while the horizon did not cover it")
		}
		if asked.Load() != 2 {
			t.Errorf("the stream was woken %d times, want another time after each report", asked.Load())
		}
		f.poll()
		f.expect(out, 1, FromTier, 0)
	})
}

// The stream may report after the horizon is read and before the wait begins.
func TestVerifyLosesNoReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newVerified(t)
		f.wake = f.poll
		began := time.Now()
		f.mustGet("1", 1, FromTier)
		if took := time.Since(began); took != 0 {
			t.Errorf("waited %v for a report that had come", took)
		}
		time.Sleep(2 * time.Second)
		f.commit("1")
		f.mustGet("1", 2, FromLoad)
		if n := f.statements.Load(); n != 1 {
			t.Errorf("%d statements, want the one of the document that had changed", n)
		}
	})
}

// A wait may end without an answer from a tier; then the document is loaded.
func TestVerifyEndsInALoad(t *testing.T) {
	for _, test := range []struct {
		name    string
		end     func(f *fixture)
		version int
		took    time.Duration
	}{
		{"changed", func(f *fixture) { f.commit("1"); f.poll() }, 2, 0},
		{"removed", func(f *fixture) { f.cache.Purge(Key{0, "1"}); f.poll() }, 1, 0},
		{"promise lost", func(f *fixture) { f.cache.SetPromise(0, false, "test") }, 1, 0},
		{"history lost", func(f *fixture) { f.cache.Void("test") }, 1, 0},
		{"no report", func(*fixture) {}, 1, 5 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newVerified(t)
				out := f.waiting(t.Context(), "1")
				test.end(f)
				f.expect(out, test.version, FromLoad, test.took)
				if n := f.statements.Load(); n != 1 {
					t.Errorf("%d statements", n)
				}
				if s := f.cache.Stats().Resources[0]; s.Verified != 0 || s.Reloaded != 1 {
					t.Errorf("stats %+v", s)
				}
			})
		})
	}
}

func TestVerifyEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newVerified(t)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if g := <-f.waiting(short, "1"); !errors.Is(g.err, context.DeadlineExceeded) || g.took != time.Second {
			t.Errorf("%v after %v", g.err, g.took)
		}
		out := f.waiting(t.Context(), "1")
		if err := f.cache.Close(); err != nil {
			t.Error(err)
		}
		if g := <-out; !errors.Is(g.err, ErrClosed) {
			t.Errorf("after Close: %v", g.err)
		}
		if n := f.statements.Load(); n != 0 {
			t.Errorf("%d statements for callers that had gone", n)
		}
	})
}

// A document that is not cached needs no verification, and without a Wake no report
// would come.
func TestVerifyLoadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newVerified(t)
		began := time.Now()
		f.commit("other")
		f.mustGet("other", 1, FromLoad)
		f.cache.wake = nil
		f.mustGet("1", 1, FromLoad)
		if took := time.Since(began); took != 0 {
			t.Errorf("waited %v", took)
		}
	})
}

func BenchmarkAdvance(b *testing.B) {
	c, err := New(Config{
		Resources: []Resource{{Name: "r"}},
		Origin:    originFunc(nil),
		Tiers:     []Tier{newMapTier()},
		Clock:     func() time.Duration { return 0 },
	})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		c.Advance(time.Second, UpTo(1))
	}
}
