package disk

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// TestReadersAreBounded: as many reads wait for the disk as Options.Readers says; one more waits
// for its turn, or for its caller to give up.
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
		t.Errorf("a read too many whose caller has gone: %v, want %v", err, context.Canceled)
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
