package sqlite

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// deaf is a sink that ignores everything.
type deaf struct{ noStore }

func (deaf) Apply([]cache.Event)                       {}
func (deaf) Advance(time.Duration, cache.Snapshot)     {}
func (deaf) Void(string)                               {}
func (deaf) Retract()                                  {}
func (deaf) SetPromise(cache.ResourceID, bool, string) {}

// The shape is that of the current tables: the stream detects changes of the
// schema.
func TestShapeFollowsTheSchema(t *testing.T) {
	testkit.NoLeaks(t)
	path := newFile(t, deptSchema...)
	o := openOrigin(t, Config{Path: path, PollInterval: 5 * time.Millisecond}, deptResource())
	before := o.Shape(0)
	db := openWriter(t, path, "PRAGMA busy_timeout = 5000", "ALTER TABLE dept ADD COLUMN budget TEXT")
	if o.Shape(0) != before {
		t.Fatal("the shape changed before the database was checked")
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	began := time.Now()
	running.Go(func() { _ = o.Stream(func() time.Duration { return time.Since(began) }).Run(ctx, deaf{}) })
	defer running.Wait()
	defer stop()
	for _, step := range []struct{ sql, want string }{
		{"SELECT 1", "{deptno: integer int64, dname: string, budget: string?, emps: array of {empno: integer int64, ename: string?}}"},
		{"ALTER TABLE dept DROP COLUMN dname", "{deptno: integer int64, budget: string?, emps: array of {empno: integer int64, ename: string?}}"},
		{"ALTER TABLE dept RENAME COLUMN deptno TO number", "unknown"},
	} {
		mustExec(t, db, step.sql)
		testkit.Eventually(t, 10*time.Second, func() error {
			if got := describeShape(o.Shape(0)); got != step.want {
				return fmt.Errorf("%s: got %s, want %s", step.sql, got, step.want)
			}
			return nil
		})
	}
}
