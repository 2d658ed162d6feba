package disk

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A batch that fails for lack of room neither hides nor reveals anything to readers; if it
// fails because the disk fails, the file is useless and is recreated.
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
			holds(t, tier, "b", "") // it may lack the drop by the event that came with the fault
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

// The metadata of the file has a checksum, too: a position that is ahead would hide changes, and a
// wrong epoch would bring back flushed documents.
func TestStateAndPositionHaveChecksums(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{`"XMin":10,"XMax":10`, `"XMin":90,"XMax":90`},
		{`"Epoch":1,`, `"Epoch":2,`},
	} {
		dir := t.TempDir()
		tier := openTier(t, dir, nil)
		tier.Put(key("a"), document("a", 5))
		tier.Checkpoint(at(9))
		tier.Close()
		path := filepath.Join(dir, FileName)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		other := bytes.ReplaceAll(text, []byte(c.from), []byte(c.to))
		if bytes.Equal(text, other) {
			t.Fatalf("the file does not hold %s", c.from)
		}
		if err := os.WriteFile(path, other, 0o600); err != nil {
			t.Fatal(err)
		}
		tier = openTier(t, dir, nil)
		holds(t, tier, "a", "")
		if f := tier.Figures(); f.Rebuilds != 1 || tier.Position().History != "" {
			t.Errorf("%s: %+v, %+v", c.to, f, tier.Position())
		}
	}
}
