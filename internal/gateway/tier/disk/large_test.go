package disk

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A full queue is written quickly when the gateway ends, and all of it is found again.
func TestCloseOfAFullQueue(t *testing.T) {
	dir := t.TempDir()
	large := func(o *Options) { o.Budget = 1 << 30 }
	tier := openTier(t, dir, large)
	body := strings.Repeat("x", 1000)
	put := 0
	for tier.Figures().Declined == 0 {
		tier.Put(key(fmt.Sprintf("document %08d", put*7919%1_000_000)), document(body, 5))
		put++
	}
	f := tier.Figures()
	tier.Checkpoint(at(9))
	began := time.Now()
	tier.Close()
	took := time.Since(began)
	t.Logf("%d documents, %d MiB, in %v", f.Queued, f.QueuedBytes>>20, took.Round(time.Millisecond))
	limit := 10 * time.Second
	if raceEnabled {
		limit = time.Minute
	}
	if f.QueuedBytes < 60<<20 || took > limit {
		t.Errorf("%d bytes took %v", f.QueuedBytes, took)
	}
	tier = openTier(t, dir, large)
	if now := tier.Figures(); now.Documents != int64(put-1) {
		t.Errorf("%d documents are left of %d", now.Documents, put-1)
	}
}

// A large file opens quickly, after a clean shutdown and after a kill. Under make soak it has 1
// GB.
func TestOpenLargeFileSoak(t *testing.T) {
	dir := t.TempDir()
	size := int64(64 << 20)
	if os.Getenv(testkit.SoakEnv) != "" {
		size = 1 << 30
	}
	large := func(o *Options) { o.Budget = size * 3 / 2 }
	tier := openTier(t, dir, large)
	body := strings.Repeat("x", 2000)
	for i := 0; tier.Figures().FileSize < size; i++ {
		tier.Put(key(fmt.Sprintf("document %08d", i)), document(body, 5))
		if i%4000 == 3999 {
			tier.Checkpoint(at(9))
			if err := tier.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	tier.Close()
	began := time.Now()
	tier = openTier(t, dir, large)
	took := time.Since(began)
	f := tier.Figures()
	t.Logf("%d MB with %d documents opened in %v", f.FileSize/1_000_000, f.Documents, took)
	if took > 2*time.Second || f.Documents < size/5000 {
		t.Errorf("it took %v; %+v", took, f)
	}
	holds(t, tier, "document 00000007", body)
}
