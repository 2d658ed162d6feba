package disk

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
)

// TestReadersAreBounded: at most Options.Readers reads wait for the disk; one more waits for its
// turn, or until its caller gives up.
func TestReadersAreBounded(t *testing.T) {
	const most = 3
	entered, release := make(chan struct{}), make(chan struct{})
	tier := openTier(t, t.TempDir(), func(o *Options) {
		o.Readers = most
		o.BeforeRead = func() {
			entered <- struct{}{}
			<-release
		}
	})
	var reads sync.WaitGroup
	read := func() {
		if _, err := getOne(t.Context(), tier, key("absent")); err != nil {
			t.Error(err)
		}
	}
	for range most {
		reads.Go(read)
		<-entered
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := getOne(gone, tier, key("absent")); !errors.Is(err, context.Canceled) {
		t.Errorf("a read beyond the limit whose caller has gone: %v, want %v", err, context.Canceled)
	}
	reads.Go(read) // waits for its turn
	select {
	case <-entered:
		t.Errorf("%d reads are at the disk, want at most %d", most+1, most)
	case release <- struct{}{}:
		<-entered
	}
	close(release)
	reads.Wait()
}

// One call of Get for many keys is one reader, sets only the documents that are held, whether
// written or waiting, and ends with its caller.
func TestGetOfManyKeys(t *testing.T) {
	reads := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop := 0
	tier := openTier(t, t.TempDir(), func(o *Options) {
		o.Readers = 1
		o.BeforeRead = func() {
			if reads++; reads == stop {
				cancel()
			}
		}
	})
	tier.Put(key("written"), cache.NewDocument([]byte("1"), cache.UpTo(3), 0))
	tier.Checkpoint(at(5))
	syncTier(t, tier)
	tier.Put(key("waits"), cache.NewDocument([]byte("2"), cache.UpTo(9), 0))
	keys := []cache.Key{key("absent"), key("written"), {Resource: 9, ID: "unknown"}, key("waits"), key("absent too")}
	found := make([]cache.Stored, len(keys))
	if err := tier.Get(ctx, keys, found); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "1", "", "2", ""} {
		if got := string(found[i].Body); got != want {
			t.Errorf("%s: %q, want %q", keys[i].ID, got, want)
		}
	}
	if reads != 3 {
		t.Errorf("the file was read for %d keys, want 3", reads)
	}
	reads, stop = 0, 1
	if err := tier.Get(ctx, keys, make([]cache.Stored, len(keys))); !errors.Is(err, context.Canceled) || reads != 1 {
		t.Errorf("a call whose caller has gone: %v after %d reads, want %v after 1", err, reads, context.Canceled)
	}
	if _, err := getOne(t.Context(), tier, key("absent")); err != nil { // its slot is free again
		t.Error(err)
	}
}
