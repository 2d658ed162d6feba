package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/memory"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// watched is a canary over a cache, whose database the test writes to and whose
// stream it drives.
type watched struct {
	t      *testing.T
	start  time.Time
	cache  *cache.Cache
	canary *canary
	log    bytes.Buffer // written by the canary's goroutine, read once it has ended

	// Guarded by mu.
	mu       sync.Mutex
	random   *rand.Rand
	versions map[string]int
	changes  []string // the key of each transaction

	// Set before use.
	pending string // what the purge of a document says
	load    func(ctx context.Context, ids []string) (cache.Batch, error)

	// Owned by the caller of poll.
	heard int
}

const watchedX = time.Second

func newWatched(t *testing.T, seed uint64, r config.Resource, interval time.Duration) *watched {
	t.Helper()
	w := &watched{t: t, start: time.Now(), random: testkit.Fork(seed, 0), versions: make(map[string]int)}
	w.load = w.read
	tier, err := memory.New(memory.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	r.Name, r.Freshness, r.Load.Timeout = "depts", watchedX, 5*time.Second
	w.cache, err = cache.New(cache.Config{
		Resources: []cache.Resource{cacheResource(r)},
		Origin:    w,
		Tiers:     []cache.Tier{tier},
		Clock:     func() time.Duration { return time.Since(w.start) },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.canary = newCanary(canaryConfig{
		Interval: interval, Cache: w.cache, Origin: w, Resource: func(cache.ResourceID) *config.Resource { return &r },
		Path: func(key cache.Key) string { return "/depts/" + key.ID },
		Purge: func(_ context.Context, key cache.Key) string {
			w.cache.Purge(key)
			return w.pending
		},
		Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
	w.cache.SetPromise(0, true, "")
	w.poll(nil)
	return w
}

func (w *watched) close() {
	if err := w.cache.Close(); err != nil {
		w.t.Error(err)
	}
}

// Load implements [cache.Origin], for the cache and the canary alike.
func (w *watched) Load(ctx context.Context, _ cache.ResourceID, ids []string) (cache.Batch, error) {
	return w.load(ctx, ids)
}

func (w *watched) read(_ context.Context, ids []string) (cache.Batch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := cache.Batch{Snapshot: cache.UpTo(cache.Tx(len(w.changes)))}
	for _, id := range ids {
		var doc cache.Loaded
		if v := w.versions[id]; v > 0 {
			doc.Body = fmt.Appendf(nil, `{"id":%q,"version":%d}`, id, v)
		}
		b.Docs = append(b.Docs, doc)
	}
	return b, nil
}

func (w *watched) write(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.versions[id]++
	w.changes = append(w.changes, id)
}

// poll is a round of the stream; lost says which changes it misses.
func (w *watched) poll(lost func(id string) bool) {
	sent := w.cache.Now()
	w.pause(50 * time.Millisecond)
	w.mu.Lock()
	changes, seen := w.changes, cache.UpTo(cache.Tx(len(w.changes)))
	w.mu.Unlock()
	w.pause(50 * time.Millisecond)
	var events []cache.Event
	for ; w.heard < len(changes); w.heard++ {
		if id := changes[w.heard]; lost == nil || !lost(id) {
			events = append(events, cache.Event{Key: cache.Key{ID: id}, Tx: cache.Tx(w.heard + 1)})
		}
	}
	w.cache.Apply(events)
	w.cache.Advance(sent, seen)
}

// upTo returns a random duration below d, usually a short one.
func (w *watched) upTo(d time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.random.Float64()
	return time.Duration(f * f * f * float64(d))
}

func (w *watched) pause(d time.Duration) { time.Sleep(w.upTo(d)) }

func (w *watched) chance(p float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.Float64() < p
}

func (w *watched) get(id string) {
	if _, err := w.cache.Get(w.t.Context(), cache.Key{ID: id}, w.cache.Now()); err != nil && !errors.Is(err, context.Canceled) {
		w.t.Errorf("GET %s: %v", id, err)
	}
}

// work runs writers, which pause for at most rest, readers, the stream and the canary
// for a while.
func (w *watched) work(d, rest time.Duration, lost func(id string) bool) {
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	key := func() string {
		if w.chance(0.5) {
			return "hot"
		}
		return string('a' + rune(w.upTo(20)))
	}
	var actors sync.WaitGroup
	actor := func(pause time.Duration, do func()) {
		// Ends with ctx; the wait group is waited for below.
		actors.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(time.Millisecond)
				w.pause(pause)
				do()
			}
		})
	}
	for range 2 {
		actor(rest, func() { w.write(key()) })
	}
	for range 4 {
		actor(40*time.Millisecond, func() { w.get(key()) })
	}
	actor(200*time.Millisecond, func() { w.poll(lost) })
	// Ends with ctx.
	actors.Go(func() { w.canary.run(ctx) })
	actors.Wait()
}

// slow makes loads take time before and after their snapshot: those of the cache
// and those of the canary overlap in every way.
func (w *watched) slow() {
	w.load = func(ctx context.Context, ids []string) (cache.Batch, error) {
		w.pause(2 * watchedX)
		b, err := w.read(ctx, ids)
		w.pause(2 * watchedX)
		return b, err
	}
}

// canarySeeds is how many schedules the random tests run.
const canarySeeds = 20

// No stale answer of a correct cache is reported, even if every document is written
// all the time and loads overlap with the writes.
func TestCanaryAccusesNobody(t *testing.T) {
	for _, r := range []resource.Resource{{}, {NoPromise: true}} {
		t.Run(fmt.Sprintf("no promise %v", r.NoPromise), func(t *testing.T) {
			seed := testkit.Seed(t)
			judged := int64(0)
			for i := range uint64(canarySeeds) {
				synctest.Test(t, func(t *testing.T) {
					w := newWatched(t, seed+i, config.Resource{Resource: r}, 50*time.Millisecond)
					defer w.close()
					w.slow()
					var lost func(string) bool
					if r.NoPromise {
						lost = func(string) bool { return true }
					}
					w.work(10*time.Minute, 200*time.Millisecond, lost)
					if n := w.canary.stale.Load(); n != 0 {
						t.Errorf("%d stale answers of a correct cache:\n%s", n, w.log.String())
					}
					judged += w.canary.checks.Load()
				})
			}
			t.Logf("%d checks", judged)
			if judged < canarySeeds*100 {
				t.Errorf("only %d checks: the canary hardly runs", judged)
			}
		})
	}
}

// A stream that loses one change in twenty is detected, and the log says what is
// known.
func TestCanaryFindsLostChanges(t *testing.T) {
	seed := testkit.Seed(t)
	for i := range uint64(canarySeeds) {
		synctest.Test(t, func(t *testing.T) {
			w := newWatched(t, seed+i, config.Resource{}, 50*time.Millisecond)
			defer w.close()
			w.slow()
			w.work(10*time.Minute, 4*time.Second, func(string) bool { return w.chance(0.05) })
			if w.canary.stale.Load() == 0 {
				t.Errorf("no stale answer was found in %d checks", w.canary.checks.Load())
			}
		})
	}
}

func TestCanaryReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, 1, config.Resource{}, time.Second)
		defer w.close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		// Ends with ctx; awaited below.
		go func() { w.canary.run(ctx); close(ended) }()

		w.write("7")
		w.poll(nil)
		w.get("7")
		time.Sleep(1100 * time.Millisecond) // the first tick requests a sample
		w.poll(nil)
		w.get("7")
		w.write("7")
		w.poll(func(string) bool { return true }) // no change is reported
		for range 40 {
			time.Sleep(100 * time.Millisecond)
			w.poll(nil)
		}
		cancel()
		<-ended
		if n := w.canary.stale.Load(); n != 1 {
			t.Fatalf("%d stale answers, want 1", n)
		}
		line := w.log.String()
		for _, part := range []string{
			"level=ERROR", "resource=depts", "path=/depts/7", "freshness=1s", `served_token="all below 2"`, `database_token=3:3:[]`,
			"events=\"[tx 1 ", "served=", "database=", " ago",
		} {
			if !strings.Contains(line, part) {
				t.Errorf("the log says %q, without %q", line, part)
			}
		}
		if strings.Count(line, "\n") != 1 {
			t.Errorf("one stale answer, but the log says %q", line)
		}
		// A document that is known to be stale is no longer served.
		if d := w.cache.Inspect(cache.Key{ID: "7"}, w.cache.Now()); d != nil {
			t.Errorf("still cached: %s", d.Body())
		}
		if got := gathered(t, collects(w.canary.collect)); got["slipstream_canary_stale_total"] != 1 || len(got) != 4 {
			t.Errorf("metrics %v", got)
		}
	})
}

// Some samples cannot be checked.
func TestCanaryCannotTell(t *testing.T) {
	for _, test := range []struct {
		name            string
		before          func(w *watched)
		failed, skipped int64
	}{
		{"origin down", func(w *watched) {
			w.load = func(context.Context, []string) (cache.Batch, error) {
				return cache.Batch{}, cache.ErrUnavailable
			}
		}, 1, 0},
		{"load too slow", func(w *watched) {
			w.load = func(ctx context.Context, _ []string) (cache.Batch, error) {
				<-ctx.Done()
				return cache.Batch{}, ctx.Err()
			}
		}, 1, 0},
		{"document too large", func(w *watched) {
			w.load = func(context.Context, []string) (cache.Batch, error) {
				return cache.Batch{Snapshot: cache.UpTo(9), Docs: []cache.Loaded{{Err: cache.ErrTooLarge}}}, nil
			}
		}, 1, 0},
		{"another history", func(w *watched) {
			w.load = func(context.Context, []string) (cache.Batch, error) {
				return cache.Batch{Docs: make([]cache.Loaded, 1)}, nil
			}
		}, 0, 1},
		{"no longer cached", func(w *watched) { w.cache.PurgeResource(0) }, 0, 1},
		{"too many suspects", func(w *watched) {
			late := suspect{due: time.Hour}
			for range maxSuspects {
				w.canary.suspects = append(w.canary.suspects, late)
			}
		}, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatched(t, 1, config.Resource{}, time.Second)
				defer w.close()
				w.write("7")
				w.poll(nil)
				w.get("7")
				test.before(w)
				w.canary.check(t.Context(), cache.Key{ID: "7"})
				if c := w.canary; c.failed.Load() != test.failed || c.skipped.Load() != test.skipped || c.checks.Load() != 0 {
					t.Errorf("%d failed, %d skipped, %d checks", c.failed.Load(), c.skipped.Load(), c.checks.Load())
				}
			})
		})
	}
}

// Turned off, it does not even request samples; the canary's own lookup is not
// sampled.
func TestCanaryOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, 1, config.Resource{}, -1)
		defer w.close()
		w.canary.run(t.Context())
		w.get("7")
		w.get("7")
		if _, ok := w.cache.Sample(); ok {
			t.Error("a canary that is off has requested a sample")
		}
		w.canary.check(t.Context(), cache.Key{ID: "7"})
		if _, ok := w.cache.Sample(); ok {
			t.Error("the canary samples itself")
		}
	})
}
