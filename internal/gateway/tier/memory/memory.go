// Package memory is the tier that holds documents on the heap, on top of the
// otter cache (adaptive W-TinyLFU). It adds what a gateway needs: a hard budget in
// bytes, missing rows that cannot evict documents, and forms that are dropped
// before documents.
//
// The budget is charged the allocation of the body, the key, and 184 bytes for
// each document (measured: TestOverheadPerDocument). Missing rows are in a
// dedicated otter cache with a tenth of the budget, so that a scan of keys that
// do not exist cannot evict documents. Forms are charged as they are made, at
// most a quarter of the budget, and are dropped from the coldest documents while
// the documents stay. The memory limit of the Go runtime keeps the process near the
// budget (gateway.LimitMemory); it grows and shrinks with the memory that
// connections hold.
package memory

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/slipstream-go/slipstream/cache"
)

// Shares of the budget.
const (
	missingShare = 10 // missing rows take at most 1/10
	formShare    = 4  // forms take at most 1/4
	stepShare    = 64 // the documents' part follows the other two in steps of 1/64
)

// MinBudget is the minimum budget that New accepts, in bytes.
const MinBudget = 1 << 20

// stripBatch is how many documents one call of strip relieves of their forms.
const stripBatch = 256

// Tier is a [cache.Tier] and [cache.FormKeeper]. All methods are safe for concurrent
// use.
//
// Documents and missing rows live in two otter caches, because a scan of keys
// that do not exist would otherwise displace documents by sheer number.
type Tier struct {
	// Immutable after New.
	budget    int64
	documents *otter.Cache[cache.Key, *cache.Document]
	missing   *otter.Cache[cache.Key, *cache.Document]

	// Atomics. Written by goroutines that make or drop a form, evict, or adjust.
	formBytes atomic.Int64
	evicted   atomic.Int64
	shared    atomic.Int64 // what missing rows and forms took when the documents' maximum was set
	stripping atomic.Bool

	adjusting sync.Mutex // held by the goroutine that changes shared and the documents' maximum
}

var (
	_ cache.Tier       = (*Tier)(nil)
	_ cache.FormKeeper = (*Tier)(nil)
)

// New returns a tier that charges its documents at most budget bytes.
func New(budget int64) (*Tier, error) {
	if budget < MinBudget {
		return nil, fmt.Errorf("memory tier: budget is %d bytes, at least %d are needed", budget, MinBudget)
	}
	t := &Tier{budget: budget}
	var err error
	if t.documents, err = t.newCache(budget); err != nil {
		return nil, fmt.Errorf("memory tier: %w", err)
	}
	if t.missing, err = t.newCache(budget / missingShare); err != nil {
		return nil, fmt.Errorf("memory tier: %w", err)
	}
	return t, nil
}

func (t *Tier) newCache(budget int64) (*otter.Cache[cache.Key, *cache.Document], error) {
	return otter.New(&otter.Options[cache.Key, *cache.Document]{
		MaximumWeight: uint64(budget),
		Weigher: func(key cache.Key, d *cache.Document) uint32 {
			return uint32(min(d.Cost(key), math.MaxUint32))
		},
		// Runs inside the removal, so that no form is charged to a removed
		// document.
		OnAtomicDeletion: func(e otter.DeletionEvent[cache.Key, *cache.Document]) {
			t.ReleaseForm(e.Value.Unhold())
			if e.WasEvicted() {
				t.evicted.Add(1)
			}
		},
	})
}

// Name implements [cache.Tier].
func (t *Tier) Name() string { return "memory" }

// Peek implements [cache.Tier].
func (t *Tier) Peek(key cache.Key) *cache.Document {
	if d, ok := t.documents.GetIfPresent(key); ok {
		return d
	}
	if d, ok := t.missing.GetIfPresent(key); ok {
		return d
	}
	return nil
}

// Get implements [cache.Tier]; it never waits and finds no more than Peek, which
// the cache has called already.
func (t *Tier) Get(context.Context, cache.Key) (*cache.Document, error) { return nil, nil }

// Put implements [cache.Tier].
func (t *Tier) Put(key cache.Key, d *cache.Document) {
	d.Hold()
	if d.Missing() {
		t.documents.Invalidate(key)
		t.missing.Set(key, d)
	} else {
		t.missing.Invalidate(key)
		t.documents.Set(key, d)
	}
	t.adjust()
}

// adjust sets the documents' maximum to what missing rows and forms do not use.
// One caller does it at a time, so that the last maximum set is the last one
// computed; others continue, and the next caller finds the step that was missed.
func (t *Tier) adjust() {
	step := t.budget / stepShare
	took := int64(t.missing.WeightedSize()) + t.formBytes.Load()
	last := t.shared.Load()
	if took <= last && took >= last-2*step || !t.adjusting.TryLock() {
		return
	}
	defer t.adjusting.Unlock()
	took = int64(t.missing.WeightedSize()) + t.formBytes.Load()
	// One step more than was taken, so that this happens once per step.
	next := (took/step + 1) * step
	t.shared.Store(next)
	t.documents.SetMaximum(uint64(t.budget - next))
}

// Remove implements [cache.Tier].
func (t *Tier) Remove(key cache.Key) {
	t.documents.Invalidate(key)
	t.missing.Invalidate(key)
}

// RemoveIf implements [cache.Tier].
func (t *Tier) RemoveIf(key cache.Key, gone func(*cache.Document) bool) {
	removeIf(t.documents, key, gone)
	removeIf(t.missing, key, gone)
}

func removeIf(c *otter.Cache[cache.Key, *cache.Document], key cache.Key, gone func(*cache.Document) bool) {
	c.ComputeIfPresent(key, func(d *cache.Document) (*cache.Document, otter.ComputeOp) {
		if gone(d) {
			return nil, otter.InvalidateOp
		}
		return d, otter.CancelOp
	})
}

// Sweep implements [cache.Tier].
func (t *Tier) Sweep(gone func(cache.Key, *cache.Document) bool) {
	for _, c := range [...]*otter.Cache[cache.Key, *cache.Document]{t.documents, t.missing} {
		for key, d := range c.All() {
			if gone(key, d) {
				removeIf(c, key, func(now *cache.Document) bool { return gone(key, now) })
			}
		}
	}
}

// Clear implements [cache.Tier].
func (t *Tier) Clear() {
	t.documents.InvalidateAll()
	t.missing.InvalidateAll()
}

// Stats implements [cache.Tier].
func (t *Tier) Stats() cache.TierStats {
	missing, forms := int64(t.missing.EstimatedSize()), t.formBytes.Load()
	return cache.TierStats{
		Documents: int64(t.documents.EstimatedSize()) + missing,
		Bytes:     int64(t.documents.WeightedSize()) + int64(t.missing.WeightedSize()) + forms,
		Budget:    t.budget,
		Evicted:   t.evicted.Load(),
		FormBytes: forms,
		Missing:   missing,
	}
}

// Close implements [cache.Tier].
func (t *Tier) Close() error {
	t.Clear()
	t.documents.StopAllGoroutines()
	t.missing.StopAllGoroutines()
	return nil
}

// ReserveForm implements [cache.FormKeeper]. When the forms' share is spent, it
// drops the forms of the coldest documents; the caller's form is kept the next time.
func (t *Tier) ReserveForm(n int) bool {
	if t.formBytes.Add(int64(n)) <= t.budget/formShare {
		t.adjust()
		return true
	}
	t.formBytes.Add(int64(-n))
	t.strip()
	return false
}

// ReleaseForm implements [cache.FormKeeper].
func (t *Tier) ReleaseForm(n int) {
	if n != 0 {
		t.formBytes.Add(int64(-n))
	}
}

// strip drops the forms of the coldest documents that have any. One caller does
// it, others continue without it.
func (t *Tier) strip() {
	if !t.stripping.CompareAndSwap(false, true) {
		return
	}
	defer t.stripping.Store(false)
	stripped := 0
	for e := range t.documents.Coldest() {
		if n := e.Value.DropForms(); n > 0 {
			t.ReleaseForm(n)
			if stripped++; stripped == stripBatch {
				return
			}
		}
	}
}

// Hottest returns the keys of at most n documents that the tier would keep longest, the
// hottest first. Evictions wait meanwhile: some 10 ms for 100,000.
func (t *Tier) Hottest(n int) []cache.Key {
	keys := make([]cache.Key, 0, min(n, t.documents.EstimatedSize()))
	for e := range t.documents.Hottest() {
		if len(keys) == n {
			break
		}
		keys = append(keys, e.Key)
	}
	return keys
}
