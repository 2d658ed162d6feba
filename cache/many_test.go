package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// manyOrigin notes its statements; "bad" fails, "0" is a missing row.
type manyOrigin struct {
	mu         sync.Mutex
	statements [][]string
	gate       chan struct{} // a statement waits for it, if not nil
}

func (o *manyOrigin) Load(ctx context.Context, _ ResourceID, ids []string) (Batch, error) {
	o.mu.Lock()
	o.statements = append(o.statements, slices.Clone(ids))
	gate := o.gate
	o.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		}
	}
	b := Batch{Snapshot: UpTo(1)}
	for _, id := range ids {
		var l Loaded
		switch id {
		case "0":
		case "bad":
			l.Err = ErrTooLarge
		default:
			l.Body = []byte("doc " + id)
		}
		b.Docs = append(b.Docs, l)
	}
	return b, nil
}

func newManyCache(t *testing.T, o *manyOrigin, r Resource) *Cache {
	t.Helper()
	start := time.Now()
	c, err := New(Config{
		Resources: []Resource{r}, Origin: o, Tiers: []Tier{newMapTier()},
		Clock: func() time.Duration { return time.Since(start) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetPromise(0, true, "")
	c.Advance(time.Hour, UpTo(1))
	return c
}

func manyKeys(ids ...string) (keys []Key) {
	for _, id := range ids {
		keys = append(keys, Key{ID: id})
	}
	return keys
}

func texts(answers []Answer) (texts []string) {
	for _, a := range answers {
		if a.Doc == nil {
			texts = append(texts, "none")
			continue
		}
		texts = append(texts, string(a.Doc.Body()))
	}
	return texts
}

func TestGetManyAnswersInOrder(t *testing.T) {
	o := &manyOrigin{}
	c := newManyCache(t, o, Resource{Name: "a"})
	keys := manyKeys("3", "1", "0", "3", "2")
	answers := make([]Answer, len(keys))
	if c.PeekMany(keys, c.Now(), answers) {
		t.Error("PeekMany answered from an empty cache")
	}
	if err := c.GetMany(t.Context(), keys, c.Now(), answers); err != nil {
		t.Fatal(err)
	}
	want := []string{"doc 3", "doc 1", "", "doc 3", "doc 2"}
	if got := texts(answers); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(o.statements) != 1 || !slices.Equal(o.statements[0], []string{"3", "1", "0", "2"}) {
		t.Errorf("statements %q, want one with each key once", o.statements)
	}
	if a := answers[3]; a.Source != Joined {
		t.Errorf("the second answer of a key has source %d, want that it joined the first", a.Source)
	}
	clear(answers)
	if !c.PeekMany(keys, c.Now(), answers) {
		t.Error("PeekMany does not find what was loaded")
	}
	if got := texts(answers); !slices.Equal(got, want) {
		t.Errorf("from the tier: got %q, want %q", got, want)
	}
	if s := c.Stats().Resources[0]; s.Hits != 5 || s.Misses != 5 || s.Joined != 1 {
		t.Errorf("%d hits, %d misses, %d joined; want 5, 5, 1", s.Hits, s.Misses, s.Joined)
	}
}

// A hit among misses is counted once, though both PeekMany and GetMany see it.
func TestGetManyCountsOnce(t *testing.T) {
	c := newManyCache(t, &manyOrigin{}, Resource{Name: "a"})
	if _, err := c.Get(t.Context(), Key{ID: "1"}, c.Now()); err != nil {
		t.Fatal(err)
	}
	keys := manyKeys("1", "2")
	answers := make([]Answer, 2)
	if !c.PeekMany(keys, c.Now(), answers) {
		if err := c.GetMany(t.Context(), keys, c.Now(), answers); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.Stats().Resources[0]; s.Hits != 1 || s.Misses != 2 {
		t.Errorf("%d hits, %d misses; want 1, 2", s.Hits, s.Misses)
	}
}

// Many keys are sent in as few statements as MaxBatch and MaxLoads allow.
func TestGetManyTravelsTogether(t *testing.T) {
	var ids []string
	for i := range 450 {
		ids = append(ids, fmt.Sprint(i+1))
	}
	keys := manyKeys(ids...)
	answers := make([]Answer, len(keys))
	for range 50 { // whether a load starts too early is up to the scheduler
		o := &manyOrigin{}
		c := newManyCache(t, o, Resource{Name: "a", MaxBatch: 100, MaxLoads: 2})
		if err := c.GetMany(t.Context(), keys, c.Now(), answers); err != nil {
			t.Fatal(err)
		}
		for i, text := range texts(answers) {
			if text != "doc "+ids[i] {
				t.Fatalf("answer %d is %q", i, text)
			}
		}
		if len(o.statements) != 5 {
			t.Fatalf("%d statements for 450 keys of 100 each, want 5", len(o.statements))
		}
	}
}

func TestGetManyFails(t *testing.T) {
	o := &manyOrigin{gate: make(chan struct{})}
	c := newManyCache(t, o, Resource{Name: "a", MaxQueue: 3})
	keys := manyKeys("1", "2", "3", "4")
	answers := make([]Answer, 4)
	if err := c.GetMany(t.Context(), keys, c.Now(), answers); !errors.Is(err, ErrOverloaded) {
		t.Errorf("four keys, of which three may wait: %v, want ErrOverloaded", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.GetMany(ctx, keys[:2], c.Now(), answers[:2]); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a statement that hangs: %v, want the deadline", err)
	}
	close(o.gate)
	o.mu.Lock()
	o.gate = nil
	o.mu.Unlock()
	keys = manyKeys("5", "bad", "6")
	if err := c.GetMany(t.Context(), keys, c.Now(), answers[:3]); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one document that cannot be returned: %v, want ErrTooLarge", err)
	}
	// Nothing stays held: a single key still loads.
	if a, err := c.Get(t.Context(), Key{ID: "7"}, c.Now()); err != nil || string(a.Doc.Body()) != "doc 7" {
		t.Errorf("after failures: %v", err)
	}
}

// Without a horizon each policy does the same for many keys as for one, and the
// stream is waited for at most once.
func TestGetManyWithoutHorizon(t *testing.T) {
	for _, test := range []struct {
		policy Policy
		want   []string
		err    error
	}{
		{Reload, []string{"doc 1", "doc 2"}, nil},
		{Verify, []string{"doc 1", "doc 2"}, nil},
		{ServeStale, []string{"doc 1", "doc 2"}, nil},
		{Unavailable, nil, ErrStale},
	} {
		o := &manyOrigin{}
		start := time.Now()
		wakes := 0
		c, err := New(Config{
			Resources: []Resource{{Name: "a", Policy: test.policy, Freshness: 50 * time.Millisecond, LoadTimeout: 400 * time.Millisecond}},
			Origin:    o, Tiers: []Tier{newMapTier()}, Wake: func() { wakes++ },
			Clock: func() time.Duration { return time.Since(start) },
		})
		if err != nil {
			t.Fatal(err)
		}
		c.SetPromise(0, true, "")
		c.Advance(c.Now(), UpTo(1))
		keys := manyKeys("1", "2")
		answers := make([]Answer, 2)
		if err := c.GetMany(t.Context(), keys, c.Now(), answers); err != nil {
			t.Fatal(err)
		}
		time.Sleep(60 * time.Millisecond)
		began := time.Now()
		err = c.GetMany(t.Context(), keys, c.Now(), answers)
		if !errors.Is(err, test.err) {
			t.Errorf("policy %v: %v, want %v", test.policy, err, test.err)
		}
		if err == nil && !slices.Equal(texts(answers), test.want) {
			t.Errorf("policy %v: got %q, want %q", test.policy, texts(answers), test.want)
		}
		if test.policy == Verify && (wakes != 1 || time.Since(began) > 750*time.Millisecond) {
			t.Errorf("the stream was woken %d times in %v, want once", wakes, time.Since(began))
		}
		c.Close()
	}
}
