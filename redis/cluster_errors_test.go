//go:build unix

package redis_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// passingErrors are the errors with which nodes of a cluster temporarily refuse a command.
var passingErrors = []struct {
	name  string
	cmd   redis.Command
	reply string
}{
	{"TRYAGAIN", redis.Cmd("GET", "key"), "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"},
	{"CLUSTERDOWN", redis.Cmd("INCR", "key"), "-CLUSTERDOWN The cluster is down\r\n"},
	{"CLUSTERDOWN", redis.Cmd("INCR", "key"), "-CLUSTERDOWN Hash slot not served\r\n"},
	{"READONLY", redis.Cmd("INCR", "key"), "-READONLY You can't write against a read only replica.\r\n"},
	{"LOADING", redis.Cmd("INCR", "key"), "-LOADING Redis is loading the dataset in memory\r\n"},
	{"MASTERDOWN", redis.Cmd("GET", "key"), "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n"},
}

// connectScripted returns a client of scripted nodes.
func connectScripted(t *testing.T, o redis.ClusterOptions) *redis.Client {
	t.Helper()
	c, err := redis.ConnectCluster(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestErrorsOfNodesPass: a call, made in any way, that a node temporarily refuses succeeds when the
// reason is gone, and is executed once.
//
// mutant: cluster-readonly-is-final
func TestErrorsOfNodesPass(t *testing.T) {
	for _, e := range passingErrors {
		for style := range 4 {
			t.Run(fmt.Sprintf("%s/%d", e.name, style), func(t *testing.T) {
				t.Parallel()
				var refused, executed atomic.Int64
				var n *scriptedNode
				n = startScripted(t, shards(func() []string { return []string{n.addr} }, func(args []string) string {
					switch {
					case args[0] != e.cmd.Name():
						return "+OK\r\n"
					case refused.Add(1) <= 2:
						return e.reply
					}
					executed.Add(1)
					return ":1\r\n"
				}))
				c := connectScripted(t, redis.ClusterOptions{Seeds: []string{n.addr}, Options: redis.Options{DialTimeout: 30 * time.Second}})
				if err := inStyle(t, style, c, e.cmd); err != nil || executed.Load() != 1 {
					t.Errorf("executed %d times, %v", executed.Load(), err)
				}
			})
		}
	}
}

// TestErrorsOfNodesLast: if the reason lasts longer than DialTimeout, the call returns the node's
// error, which says that the call was refused.
//
// mutant: cluster-refusal-without-end
func TestErrorsOfNodesLast(t *testing.T) {
	for _, e := range passingErrors {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			var attempts atomic.Int64
			var n *scriptedNode
			n = startScripted(t, shards(func() []string { return []string{n.addr} }, func(args []string) string {
				if args[0] != e.cmd.Name() {
					return "+OK\r\n"
				}
				attempts.Add(1)
				return e.reply
			}))
			c := connectScripted(t, redis.ClusterOptions{Seeds: []string{n.addr}, Options: redis.Options{DialTimeout: time.Second}})
			const styles = 4
			var callers sync.WaitGroup
			for style := range styles {
				// Ends with its call; waited for below.
				callers.Go(func() {
					err := inStyle(t, style, c, e.cmd)
					server, ok := errors.AsType[*redis.ServerError](err)
					if !ok || server.Code != e.name || slipstream.OutcomeOf(err) != slipstream.Refused {
						t.Errorf("style %d: %v", style, err)
					}
				})
			}
			callers.Wait()
			if n := attempts.Load(); n < 2*styles {
				t.Errorf("%d attempts of %d calls", n, styles)
			}
		})
	}
}

// shardOf returns a reply to CLUSTER SHARDS for a master that owns all slots, and for its replicas.
func shardOf(addrs ...string) string {
	text := func(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }
	var b strings.Builder
	fmt.Fprintf(&b, "*1\r\n*4\r\n%s*2\r\n:0\r\n:16383\r\n%s*%d\r\n", text("slots"), text("nodes"), len(addrs))
	for i, addr := range addrs {
		host, port, _ := net.SplitHostPort(addr)
		role := "replica"
		if i == 0 {
			role = "master"
		}
		b.WriteString("*14\r\n" + text("id") + text(fmt.Sprintf("%040d", i)) + text("port") + ":" + port + "\r\n" +
			text("ip") + text(host) + text("endpoint") + text(host) + text("role") + text(role) +
			text("replication-offset") + ":1\r\n" + text("health") + text("online"))
	}
	return b.String()
}

// TestReadsLeaveAReplicaThatCannotServe: if a replica refuses a read because it is loading its data
// or has lost its master, the master executes the read.
func TestReadsLeaveAReplicaThatCannotServe(t *testing.T) {
	for _, e := range passingErrors[4:] {
		t.Run(e.name, func(t *testing.T) {
			var master, replica *scriptedNode
			var reads [2]atomic.Int64
			node := func(i int, reply string) func(args []string) string {
				return func(args []string) string {
					switch {
					case strings.Join(args, " ") == "CLUSTER SHARDS":
						return shardOf(master.addr, replica.addr)
					case args[0] == "CLUSTER":
						return "$18\r\ncluster_state:ok\r\n\r\n"
					case args[0] == "GET":
						reads[i].Add(1)
						return reply
					}
					return "+OK\r\n"
				}
			}
			master, replica = &scriptedNode{}, &scriptedNode{}
			master.start(t, node(0, "$1\r\nv\r\n"))
			replica.start(t, node(1, e.reply))
			c := connectScripted(t, redis.ClusterOptions{Seeds: []string{master.addr}, ReadFrom: redis.ReadReplica})
			testkit.Eventually(t, 20*time.Second, func() error {
				for _, n := range c.Nodes() {
					if n.Stats.Connected == 0 {
						return errors.New("no connection to " + n.Addr)
					}
				}
				return nil
			})
			testkit.Eventually(t, 20*time.Second, func() error { // until earlier choices have expired
				if _, _, err := c.Get(t.Context(), "key"); err != nil {
					t.Fatal(err)
				}
				if reads[1].Load() == 0 {
					return errors.New("the replica was not used")
				}
				return nil
			})
			before := reads[1].Load()
			for style := range 4 {
				if err := inStyle(t, style, c, redis.Cmd("GET", "key")); err != nil {
					t.Errorf("style %d: %v", style, err)
				}
			}
			if n := reads[1].Load() - before; n != 4 {
				t.Errorf("the replica received %d requests for 4 reads", n)
			}
		})
	}
}

// TestNodesThatRefuseConnections: a call to a master that refuses connections is not sent. It waits
// for DialTimeout, unless FailFast is set.
//
// mutant: cluster-fail-fast-waits
func TestNodesThatRefuseConnections(t *testing.T) {
	dead := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	var n *scriptedNode
	n = startScripted(t, shards(func() []string { return []string{dead, n.addr} }, func([]string) string { return "+OK\r\n" }))
	for _, failFast := range []bool{false, true} {
		dial := time.Second
		if failFast {
			dial = time.Minute
		}
		c := connectScripted(t, redis.ClusterOptions{Seeds: []string{n.addr}, Options: redis.Options{DialTimeout: dial, FailFast: failFast}})
		for style := range 3 {
			began := time.Now()
			err := inStyle(t, style, c, redis.Cmd("INCR", "key"))
			if took := time.Since(began); slipstream.OutcomeOf(err) != slipstream.NotSent || failFast == (took >= dial) {
				t.Errorf("FailFast %t, style %d: %v after %v", failFast, style, err, took)
			}
		}
	}
}

// TestNodesThatDieWithCalls: if a connection ends before the replies to its calls, reads are
// repeated, and other calls may have been executed.
//
// mutant: redis-cluster-lost-call-repeated
func TestNodesThatDieWithCalls(t *testing.T) {
	for style := range 4 {
		for _, cmd := range []redis.Command{redis.Cmd("GET", "key"), redis.Cmd("INCR", "key")} {
			t.Run(fmt.Sprintf("%s/%d", cmd.Name(), style), func(t *testing.T) {
				t.Parallel()
				var attempts atomic.Int64
				var n *scriptedNode
				n = startScripted(t, shards(func() []string { return []string{n.addr} }, func(args []string) string {
					switch {
					case args[0] != cmd.Name():
						return "+OK\r\n"
					case attempts.Add(1) == 1:
						return hangUp
					}
					return ":1\r\n"
				}))
				c := connectScripted(t, redis.ClusterOptions{Seeds: []string{n.addr}, Options: redis.Options{DialTimeout: 30 * time.Second}})
				err := inStyle(t, style, c, cmd)
				if cmd.Name() == "GET" && (err != nil || attempts.Load() != 2) {
					t.Errorf("a read: %d attempts, %v", attempts.Load(), err)
				}
				if cmd.Name() == "INCR" && (slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || attempts.Load() != 1) {
					t.Errorf("an increment: %d attempts, %v", attempts.Load(), err)
				}
			})
		}
	}
}
