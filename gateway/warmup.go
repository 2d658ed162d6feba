package gateway

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/disk"
)

// Warm-up: when a gateway with a disk tier drains, it saves which documents were the hottest in
// memory; the next process loads them again, at a bounded rate, from disk or from the database,
// while it serves.
const (
	// warmUpRate is how many keys are requested per second: a tenth of what one core can load
	// from a disk, and few enough for a database that has just been restarted itself.
	warmUpRate = 5000
	// warmUpAtOnce is how many are in flight.
	warmUpAtOnce = 16
	// warmUpTalks is the time before its progress is logged, and the interval after that.
	warmUpTalks = 2 * time.Second
)

// warmUp is the progress of a warm-up. Atomics: written by its goroutines, read by all.
type warmUp struct {
	total, done, failed atomic.Int64
}

// saveHotKeys saves which documents are the hottest, next to the file of the disk
// tier.
func (g *Gateway) saveHotKeys(tier *disk.Tier) error {
	var keys []hotKey
	now := g.now()
	for _, key := range g.memory.Hottest(mostHotKeys) {
		if r := now.of(key.Resource); r != nil {
			keys = append(keys, hotKey{r.Name, key.ID})
		}
	}
	if len(keys) == 0 {
		return nil // a gateway without requests should not overwrite what the previous one saved
	}
	return writeHotKeys(tier.Dir(), keys)
}

// beginWarmUp requests the documents that were the hottest when the previous process ended.
func (g *Gateway) beginWarmUp(tier *disk.Tier) {
	if g.config.Tiers.Disk.Stay {
		return // documents found there are not put into memory
	}
	keys, err := readHotKeys(tier.Dir())
	if err != nil {
		g.log.Warn("no warm-up", "error", err)
	}
	if len(keys) == 0 {
		return
	}
	g.tasks.Add(1)
	// Ends when all keys were requested, or with the context of the gateway; Shutdown waits.
	go func() {
		defer g.tasks.Done()
		g.warm(keys)
	}()
}

// warm waits until the gateway keeps its promises, so that answers come from disk, and then
// requests the keys.
func (g *Gateway) warm(keys []hotKey) {
	if err := g.AwaitReady(g.ctx); err != nil {
		return
	}
	now := g.now()
	places := make(map[string]cache.ResourceID)
	for i := range now.config.Resources {
		places[now.config.Resources[i].Name] = now.ids[i]
	}
	wanted := make([]cache.Key, 0, len(keys))
	for _, k := range keys {
		if id, known := places[k.resource]; known {
			wanted = append(wanted, cache.Key{Resource: id, ID: k.id})
		}
	}
	w := &g.warming
	w.total.Store(int64(len(wanted)))
	began := time.Now()
	work := make(chan cache.Key)
	var all sync.WaitGroup
	for range warmUpAtOnce {
		// Ends when work is closed; awaited below.
		all.Go(func() {
			for key := range work {
				g.warmOne(key)
			}
		})
	}
	g.feed(wanted, work, began)
	close(work)
	all.Wait()
	took := time.Since(began)
	if took > warmUpTalks {
		g.log.Info("the warm-up has ended", "done", w.done.Load(), "of", len(wanted), "failed", w.failed.Load(), "took", took.Round(time.Millisecond).String())
	}
}

// feed hands out the keys at the rate.
func (g *Gateway) feed(keys []cache.Key, work chan<- cache.Key, began time.Time) {
	const step = 10 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	talked := began
	for len(keys) > 0 {
		select {
		case <-tick.C:
		case <-g.ctx.Done():
			return
		}
		n := min(len(keys), int(warmUpRate*step/time.Second))
		for _, key := range keys[:n] {
			select {
			case work <- key:
			case <-g.ctx.Done():
				return
			}
		}
		keys = keys[n:]
		if now := time.Now(); now.Sub(talked) >= warmUpTalks && now.Sub(began) >= warmUpTalks {
			talked = now
			done, rate := g.warming.done.Load(), float64(g.warming.done.Load())/now.Sub(began).Seconds()
			left := time.Duration(float64(len(keys)) / max(rate, 1) * float64(time.Second))
			g.log.Info("warming up", "done", done, "of", g.warming.total.Load(), "per_second", int(rate), "left", left.Round(time.Second).String())
		}
	}
}

// warmOne puts a document into memory if it is not there.
func (g *Gateway) warmOne(key cache.Key) {
	defer g.warming.done.Add(1)
	start := g.cache.Now()
	if d := g.cache.Inspect(key, start); d != nil {
		return
	}
	if _, err := g.cache.Get(g.ctx, key, start); err != nil && !errors.Is(err, context.Canceled) {
		g.warming.failed.Add(1)
	}
}
