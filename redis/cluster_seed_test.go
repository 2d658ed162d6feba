//go:build unix

package redis_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// TestSeedOfACallBeforeTheTopology: with NoWait, the first calls go to a seed. Its connection
// becomes the connection of the node with this address, or ends.
//
// mutant: redis-cluster-seed-kept
func TestSeedOfACallBeforeTheTopology(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "localhost"} {
		t.Run(host, func(t *testing.T) {
			known := make(chan struct{})
			var n *scriptedNode
			answer := shards(func() []string { return []string{n.addr} }, func([]string) string { return "$1\r\nv\r\n" })
			n = &scriptedNode{}
			n.start(t, func(args []string) string {
				if args[0] == "CLUSTER" {
					<-known
				}
				return answer(args)
			})
			_, port, _ := net.SplitHostPort(n.addr)
			c, err := redis.ConnectCluster(t.Context(), redis.ClusterOptions{
				Seeds: []string{net.JoinHostPort(host, port)}, Options: redis.Options{NoWait: true},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if v, _, err := c.Get(t.Context(), "key"); err != nil || v != "v" {
				t.Errorf("before the topology: %q, %v", v, err)
			}
			f := c.Start(t.Context(), redis.Cmd("GET", "key"))
			close(known)
			if err := f.Wait(nil); err != nil {
				t.Error(err)
			}
			testkit.Eventually(t, 20*time.Second, func() error {
				if v, _, err := c.Get(t.Context(), "key"); err != nil || v != "v" {
					return fmt.Errorf("%q, %w", v, err)
				}
				if nodes := c.Nodes(); len(nodes) != 1 || nodes[0].Stats.Connected != 1 {
					return fmt.Errorf("%d nodes", len(nodes))
				}
				if open := n.open.Load(); open != 1 {
					return fmt.Errorf("%d connections", open)
				}
				return nil
			})
		})
	}
}
