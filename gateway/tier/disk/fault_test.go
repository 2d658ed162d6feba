package disk

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A batch that fails for want of room takes nothing from readers and gives nothing back to
// them; one that fails because the disk does makes the file worthless: it is begun anew.
func TestBatchesThatFail(t *testing.T) {
	testkit.NoLeaks(t)
	for _, c := range []struct {
		fault error
		anew  bool
	}{
		{fmt.Errorf("write: %w", syscall.ENOSPC), false},
		{fmt.Errorf("write: %w", syscall.EDQUOT), false},
		{fmt.Errorf("file resize error: %s", syscall.EFBIG), false}, // as bbolt says it
		{fmt.Errorf("sync: %w", syscall.EIO), true},
		{fmt.Errorf("file sync error: %s", syscall.EIO), true},
	} {
		for _, step := range []string{"records", "commit"} {
			dir := t.TempDir()
			var fault atomic.Pointer[error]
			tier := openTier(t, dir, func(o *Options) {
				o.beforeWrite = func(at string) error {
					if err := fault.Load(); err != nil && at == step {
						return *err
					}
					return nil
				}
			})
			for _, id := range []string{"a", "b", "c"} {
				tier.Put(key(id), document(id, 5))
			}
			tier.Checkpoint(at(9))
			syncTier(t, tier)
			fault.Store(&c.fault)
			tier.Invalidate(key("a"), 20)
			tier.Put(key("b"), document("b again", 25))
			tier.Checkpoint(at(30))
			if err := tier.Sync(t.Context()); err == nil {
				t.Errorf("%v in %s did not show", c.fault, step)
			}
			holds(t, tier, "a", "")
			if f := tier.Figures(); f.Trouble == "" || f.Failures == 0 {
				t.Errorf("%v: %+v", c.fault, f)
			}
			if !c.anew {
				holds(t, tier, "c", "c")
			}
			fault.Store(nil)
			tier.Checkpoint(at(31))
			syncTier(t, tier)
			holds(t, tier, "a", "")
			holds(t, tier, "b", "") // it may miss what the event that came with the fault dropped
			tier.Put(key("d"), document("d", 25))
			tier.Checkpoint(at(32))
			syncTier(t, tier)
			f := tier.Figures()
			if c.anew != (f.Rebuilds == 1) || f.Trouble != "" {
				t.Errorf("%v: %+v", c.fault, f)
			}
			tier.Close()
			tier = openTier(t, dir, nil)
			holds(t, tier, "a", "")
			holds(t, tier, "d", "d")
			checked(t, tier, dir)
		}
	}
}
