package cache

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{})
		for range 3 {
			f.commit("a")
			f.commit("b")
			time.Sleep(time.Second)
			f.poll()
		}
		f.cache.Apply([]Event{{Key: Key{0, ""}, Tx: 7, All: true}})
		want := []RecentEvent{{1, time.Second, false}, {3, 2 * time.Second, false}, {5, 3 * time.Second, false}, {7, 3 * time.Second, true}}
		if got := f.cache.Recent(Key{0, "a"}); !slices.Equal(got, want) {
			t.Errorf("events of a: %v, want %v", got, want)
		}
		if got := f.cache.Recent(Key{0, "c"}); !slices.Equal(got, want[3:]) {
			t.Errorf("events of c: %v, want the flush", got)
		}
	})
}

// Events are kept in a ring: the newest 4,096, whatever the size of the
// batches that they come in.
func TestRecentIsBounded(t *testing.T) {
	for _, batch := range []int{1, 7, maxRecent, maxRecent + 1, 3 * maxRecent} {
		t.Run(strconv.Itoa(batch), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, Resource{})
				const total = 3 * maxRecent
				var events []Event
				for i := range total {
					events = append(events, Event{Key: Key{0, strconv.Itoa(i % 2)}, Tx: Tx(i + 1)})
				}
				for part := range slices.Chunk(events, batch) {
					f.cache.Apply(part)
				}
				if n := len(f.cache.recent.ring); n != maxRecent {
					t.Errorf("%d events are kept", n)
				}
				got := f.cache.Recent(Key{0, "1"})
				if len(got) != maxRecent/2 {
					t.Fatalf("%d events of one of two keys", len(got))
				}
				for i, e := range got {
					if want := Tx(total - maxRecent + 2*(i+1)); e.Tx != want {
						t.Fatalf("event %d is of transaction %d, want %d", i, e.Tx, want)
					}
				}
			})
		})
	}
}

// A sample is a key that was hit, once for each request.
func TestSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Resource{})
		f.commit("a")
		f.commit("b")
		f.poll()
		none := func() {
			t.Helper()
			if key, ok := f.cache.Sample(); ok {
				t.Errorf("sampled %v, although nothing was hit", key)
			}
		}
		none()
		f.mustGet("a", 1, FromLoad)
		f.mustGet("b", 1, FromLoad)
		none()
		if f.cache.Inspect(Key{0, "b"}, f.cache.Now()) == nil {
			t.Error("Inspect finds nothing")
		}
		none()
		f.mustGet("b", 1, FromTier)
		f.mustGet("a", 1, FromTier)
		if key, ok := f.cache.Sample(); !ok || key != (Key{0, "b"}) {
			t.Errorf("sampled %v, %v; the first hit was b", key, ok)
		}
		none()
		if n := f.cache.Stats().Resources[0].Hits; n != 2 {
			t.Errorf("%d hits were counted", n)
		}
		time.Sleep(2 * time.Second)
		if f.cache.Inspect(Key{0, "b"}, f.cache.Now()) != nil {
			t.Error("Inspect answers past the horizon")
		}
	})
}
