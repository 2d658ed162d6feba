//go:build unix

package redis_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/redis/redistest"
)

// TestOrderOfCallsThatAreRepeated checks what the package comment says about the order of one
// caller's calls for one key. If one of two calls in flight is temporarily refused, it is executed
// after the other one. A call that starts after another one has returned is executed after it.
func TestOrderOfCallsThatAreRepeated(t *testing.T) {
	ctx := t.Context()
	set := func(value string) redis.Command { return redis.Cmd("SET", "key", value) }
	for name, test := range map[string]struct {
		call func(c *redis.Client) error // two calls: SET key 1, SET key 2
		want []string
	}{
		"futures": {func(c *redis.Client) error {
			first, second := c.Start(ctx, set("1")), c.Start(ctx, set("2"))
			if err := first.Wait(nil); err != nil {
				return err
			}
			return second.Wait(nil)
		}, []string{"2", "1"}},
		"completers": {func(c *redis.Client) error {
			done := make(ended, 2)
			for _, value := range []string{"1", "2"} {
				if err := c.DoFunc(ctx, set(value), done); err != nil {
					return err
				}
			}
			if err := <-done; err != nil {
				return err
			}
			return <-done
		}, []string{"2", "1"}},
		"a batch": {func(c *redis.Client) error {
			var b redis.Batch
			b.Add(nil, set("1"))
			b.Add(nil, set("2"))
			return c.DoBatch(ctx, &b)
		}, []string{"2", "1"}},
		"one after the other": {func(c *redis.Client) error {
			if err := c.Do(ctx, nil, set("1")); err != nil {
				return err
			}
			return c.Do(ctx, nil, set("2"))
		}, []string{"1", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var executed []string
			refusals := 0
			var n *scriptedNode
			n = startScripted(t, shards(func() []string { return []string{n.addr} }, func(args []string) string {
				if args[0] != "SET" {
					return "+PONG\r\n"
				}
				mu.Lock()
				defer mu.Unlock()
				// The first call is refused until the second one has been executed, if both are in
				// flight.
				if refusals++; args[2] == "1" && len(executed) == 0 && (test.want[0] == "2" || refusals == 1) {
					return "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"
				}
				executed = append(executed, args[2])
				return "+OK\r\n"
			}))
			c := connectScripted(t, redis.ClusterOptions{Seeds: []string{n.addr}})
			if err := test.call(c); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(executed, test.want) {
				t.Errorf("executed in the order %v, want %v", executed, test.want)
			}
		})
	}
}

// TestBatchOverNodesKeepsTheOrderOfEachSlot: without redirects, each node executes the commands of
// the batch in order.
func TestBatchOverNodesKeepsTheOrderOfEachSlot(t *testing.T) {
	cluster, c := fakeCluster(t, redistest.ClusterOptions{}, nil)
	var b redis.Batch
	const keys, rounds = 30, 20
	for round := range rounds {
		for i := range keys {
			b.AddStrings(nil, "RPUSH", fmt.Sprint("key", i), fmt.Sprint(round))
		}
	}
	must(t, c.DoBatch(t.Context(), &b))
	if n := len(cluster.Nodes()); n != 3 {
		t.Fatalf("%d nodes", n)
	}
	for i := range keys {
		values, err := c.LRange(t.Context(), fmt.Sprint("key", i), 0, -1)
		must(t, err)
		var want []string
		for round := range rounds {
			want = append(want, fmt.Sprint(round))
		}
		if !slices.Equal(values, want) {
			t.Errorf("key %d: %v", i, values)
		}
	}
}
