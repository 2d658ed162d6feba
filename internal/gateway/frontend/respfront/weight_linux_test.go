//go:build !race

// The race detector needs additional memory, and makes stacks larger.

package respfront

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// The memory of waiting commands, including the goroutines that load for them, is what the budget
// counts for them, except for the first goroutine of a connection, which is included in the
// memory of a connection.
func TestWaitingLoadsAreWeighed(t *testing.T) {
	const connections, each = 16, 100
	open := make(chan struct{})
	defer close(open)
	load := originFunc(func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		if r == 1 {
			select {
			case <-open:
			case <-ctx.Done():
			}
		}
		return echo(ctx, r, id)
	})
	budget := loop.NewBudget(1 << 30)
	f := newFixture(t, load, Config{ConnConfig: frontend.ConnConfig{Budget: budget, RequestTimeout: time.Minute}})
	f.listen(t)
	inUse := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	before := inUse()
	waiting := int64(0)
	for i := range connections {
		c := f.dial(t)
		for j := range each {
			c.send(fmt.Sprintf("GET orders:a:%d\r\n", 1000*i+j))
			waiting++ // one read each
			testkit.Eventually(t, 10*time.Second, func() error {
				if n := f.server.Waiting(); n != waiting {
					return fmt.Errorf("%d documents are waited for, want %d", n, waiting)
				}
				return nil
			})
		}
	}
	took, counted := inUse()-before, budget.Stats().Used
	t.Logf("%d bytes a command, %d of them in the budget", took/waiting, counted/waiting)
	if took > counted*5/4 {
		t.Errorf("%d commands that wait take %d bytes, the budget counts %d", waiting, took, counted)
	}
}
