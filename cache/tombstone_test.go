package cache

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
)

// Tombstones are dropped once no load can need them, and never exceed their bound.
func TestTombstonesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{})
		for i := range 1000 {
			f.commit(strconv.Itoa(i))
		}
		f.poll()
		f.poll()
		f.poll()
		if n := f.cache.Stats().Tombstones; n != 0 {
			t.Errorf("%d tombstones are left with no load in flight", n)
		}
		release := make(chan struct{})
		f.load = func(_ context.Context, ids []string) (Batch, error) {
			b := f.db.read(0, ids)
			<-release
			return b, nil
		}
		go f.get("7")
		synctest.Wait()
		f.commit("7")
		for range 5 {
			f.poll()
		}
		if n := f.cache.Stats().Tombstones; n != 1 {
			t.Errorf("%d tombstones while a load that needs one is in flight", n)
		}
		close(release)
		synctest.Wait()
		f.poll()
		f.poll()
		if n := f.cache.Stats().Tombstones; n != 0 {
			t.Errorf("%d tombstones are left", n)
		}
	})
}

func TestTombstonesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{})
		f.cache.maxTombstones = 100 * (tombstoneBytes + 2)
		release := make(chan struct{})
		f.load = func(_ context.Context, ids []string) (Batch, error) {
			b := f.db.read(0, ids)
			<-release
			return b, nil
		}
		go f.get("7")
		synctest.Wait()
		for i := range 1000 {
			f.commit(strconv.Itoa(i))
			f.poll()
			if n := f.cache.Stats().Tombstones; n > 101 {
				t.Fatalf("%d tombstones, bytes for about 100 are allowed", n)
			}
		}
		close(release)
		synctest.Wait()
		f.load = nil
		f.mustGet("7", 1, FromLoad) // the load that missed the change was not stored
		f.mustGet("7", 1, FromTier) // and documents are stored again afterwards
	})
}

func TestSnapshotSees(t *testing.T) {
	s := Snapshot{XMin: 5, XMax: 10, InProgress: []Tx{5, 7}}
	for tx, want := range map[Tx]bool{1: true, 4: true, 5: false, 6: true, 7: false, 9: true, 10: false, 11: false} {
		if got := s.Sees(tx); got != want {
			t.Errorf("Sees(%d) = %v", tx, got)
		}
	}
	if s := UpTo(3); !s.Sees(3) || s.Sees(4) {
		t.Errorf("UpTo(3) = %+v", s)
	}
}

// All changes of a key count, not only the greatest number.
func TestChangesOutOfOrder(t *testing.T) {
	var c changes
	for _, tx := range []Tx{10, 8, 12, 8} {
		c = c.with(tx)
	}
	for _, test := range []struct {
		seen Snapshot
		want bool
	}{
		{UpTo(12), true},
		{UpTo(11), false},
		{Snapshot{XMin: 8, XMax: 13, InProgress: []Tx{8}}, false},
		{Snapshot{XMin: 9, XMax: 13, InProgress: []Tx{9}}, true},
		{Snapshot{XMin: 10, XMax: 13, InProgress: []Tx{10}}, false},
	} {
		if got := c.visibleIn(test.seen); got != test.want {
			t.Errorf("visibleIn(%+v) = %v", test.seen, got)
		}
	}
	for tx := Tx(20); tx < 60; tx++ {
		c = c.with(tx)
	}
	if len(c.rest) > maxRest || !c.visibleIn(UpTo(59)) || c.visibleIn(UpTo(58)) {
		t.Errorf("many changes: %+v", c)
	}
}
