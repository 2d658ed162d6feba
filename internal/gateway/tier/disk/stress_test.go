package disk

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// stressKey is a key that one goroutine changes and all read.
type stressKey struct {
	key cache.Key

	// Guarded by mu, as a shard of the cache guards its keys.
	mu      sync.Mutex
	version uint64 // committed, and applied in the same moment

	// Atomics. Written by the goroutine that changes the key.
	applied atomic.Uint64 // version that Invalidate has returned for
}

// Readers, writers, invalidations, flushes and batches run concurrently: no Get returns what
// an invalidation that had returned before it began has dropped, nor another key's document.
func TestStressSoak(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	dir := t.TempDir()
	var fail atomic.Int32
	tier := openTier(t, dir, func(o *Options) {
		o.MaxQueue, o.Readers = 256<<10, 3
		o.beforeWrite = func(step string) error {
			if step == "commit" && fail.Add(1)%5 == 0 {
				return errInjected
			}
			return nil
		}
	})
	keys := make([]*stressKey, 400)
	for i := range keys {
		keys[i] = &stressKey{key: cache.Key{Resource: cache.ResourceID(i % 2), ID: fmt.Sprint("key ", i)}}
	}
	var tx atomic.Uint64
	tx.Store(10)
	stop := make(chan struct{})
	var all sync.WaitGroup
	run := func(n int, do func(i int, draw func(int) int)) {
		for i := range n {
			random := testkit.Fork(seed, tx.Add(1))
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						do(i, random.IntN)
					}
				}
			})
		}
	}
	const streams = 1 // one goroutine drives invalidations, as cache.Store requires
	run(streams, func(_ int, draw func(int) int) {
		for range 50 {
			k := keys[draw(len(keys))]
			k.mu.Lock()
			now := tx.Add(1)
			k.version = now
			k.mu.Unlock()
			tier.Invalidate(k.key, cache.Tx(now))
			k.applied.Store(now)
		}
		p := at(cache.Tx(tx.Load()))
		if draw(20) == 0 {
			tier.Flush(cache.ResourceID(draw(2)))
		}
		if draw(300) == 0 {
			tier.Void()
		}
		tier.Checkpoint(p)
		time.Sleep(time.Millisecond)
	})
	run(2, func(_ int, draw func(int) int) { // loads
		k := keys[draw(len(keys))]
		k.mu.Lock()
		body := fmt.Sprintf("%s|%d|%0*d", k.key.ID, k.version, 1+draw(2000), 0)
		tier.Put(k.key, document(body, cache.Tx(tx.Load()+1)))
		k.mu.Unlock()
	})
	var hits, reads atomic.Int64
	run(4, func(_ int, draw func(int) int) {
		k := keys[draw(len(keys))]
		applied := k.applied.Load()
		s, err := ask(tier, k.key)
		reads.Add(1)
		if err != nil {
			t.Errorf("get: %v", err)
		}
		if s.Body == nil {
			return
		}
		hits.Add(1)
		var id int
		var version uint64
		if _, err := fmt.Sscanf(string(s.Body), "key %d|%d|", &id, &version); err != nil || k.key.ID != fmt.Sprint("key ", id) {
			t.Errorf("%s: %.60q, %v", k.key.ID, s.Body, err)
		}
		if version < applied {
			t.Errorf("%s: version %d, and %d had been applied", k.key.ID, version, applied)
		}
	})
	run(1, func(_ int, draw func(int) int) {
		if err := tier.Sync(t.Context()); err != nil && !errors.Is(err, errInjected) && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("sync: %v", err)
		}
		_ = tier.Figures()
		if draw(4) == 0 {
			time.Sleep(time.Duration(draw(20)) * time.Millisecond)
		}
	})
	time.Sleep(testkit.SoakTime(t, 3*time.Second))
	testkit.Eventually(t, 2*time.Minute, func() error {
		if f := tier.Figures(); f.Hits < 100 || f.Batches < 10 {
			return fmt.Errorf("%d hits and %d batches: too few to prove anything", f.Hits, f.Batches)
		}
		return nil
	})
	close(stop)
	all.Wait()
	f := tier.Figures()
	t.Logf("%d of %d reads found, %d of them in the file; %+v", hits.Load(), reads.Load(), f.Hits, f)
	fail.Store(0)
	if err := tier.Sync(t.Context()); err != nil {
		t.Error(err)
	}
	checked(t, tier, dir)
}
