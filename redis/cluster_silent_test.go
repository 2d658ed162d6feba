//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// Calls go to the replica that has replaced a silent master, and do not wait until the connection to
// the old master is given up. Calls that the old master has received end once the cluster reports that
// it was replaced: reads at the replica, others with an error.
func TestClusterReplacesASilentMaster(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{ReplicasPer: 1})
	c := connectCluster(t, cluster, func(o *redis.ClusterOptions) { o.StallTimeout, o.RefreshEvery = time.Hour, time.Hour })
	slot := cluster.Slot(t, "n")
	old := cluster.MasterOf(t, slot)
	incr := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := c.Incr(ctx, "n")
		return err
	}
	testkit.Eventually(t, 20*time.Second, incr)
	old.Stop(t)
	var calls sync.WaitGroup
	// Both calls end when the master is given up, or at the latest with the test; waited for below.
	calls.Go(func() {
		if _, err := c.Incr(t.Context(), "n"); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || !errors.Is(err, redis.ErrStalled) {
			t.Errorf("an increment that the silent master had received: %v", err)
		}
	})
	// A call that is still queued moves to the replica, and succeeds there.
	testkit.Eventually(t, 20*time.Second, func() error {
		if v := c.Stats(); v.Outstanding != 1 || v.Queued != 0 {
			return fmt.Errorf("%d calls were sent, %d are queued", v.Outstanding, v.Queued)
		}
		return nil
	})
	calls.Go(func() {
		if value, _, err := c.Get(t.Context(), "n"); err != nil || value == "" {
			t.Errorf("a read that the silent master had received: %q, %v", value, err)
		}
	})
	if err := incr(); err == nil {
		t.Error("a stopped master has answered")
	}
	cluster.AwaitMaster(t, slot, old)
	testkit.Eventually(t, 20*time.Second, incr)
	calls.Wait()
}
