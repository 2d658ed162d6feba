package redis_test

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// TestConnectClusterWaitsForTheMasters: when ConnectCluster returns, there is a connection to each
// master, so that no call starts with a pause, unless a master cannot be reached in time.
func TestConnectClusterWaitsForTheMasters(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{})
	begun := time.Now()
	var dials atomic.Int64
	c := connectCluster(t, cluster, func(o *redis.ClusterOptions) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			// The first connection is used to query the topology, the second one leads to
			// some master.
			if dials.Add(1) > 2 {
				time.Sleep(20 * time.Millisecond)
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	took := time.Since(begun)
	for i := range 30 {
		must(t, c.Set(t.Context(), "k"+strconv.Itoa(i), "v"))
	}
	if n := c.Stats().Repeated; n > 0 && took < redis.StartGrace {
		t.Errorf("%d of the first calls were retried", n)
	}
}
