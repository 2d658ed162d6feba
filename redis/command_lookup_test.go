//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// redirectsOf returns the number of commands that the nodes of a cluster have redirected with
// MOVED.
func redirectsOf(t *testing.T, c *redis.Client) (n int) {
	t.Helper()
	must(t, c.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		info, err := node.Info(ctx, "errorstats")
		if _, tail, ok := strings.Cut(info, "errorstat_MOVED:count="); ok {
			count, _, _ := strings.Cut(tail, "\r")
			more, _ := strconv.Atoi(count)
			n += more
		}
		return err
	}))
	return n
}

// TestKeysOfCommandsThatTheTableDoesNotList: the client queries a server once for the positions of the keys,
// so commands of modules and of newer servers go to the node of their keys. The test uses renamed commands
// of Redis.
//
// mutant: redis-lookup-keys-ignored, redis-batch-guesses-keys
func TestKeysOfCommandsThatTheTableDoesNotList(t *testing.T) {
	for _, binary := range []string{"redis-server", "redis-server-8"} {
		t.Run(binary, func(t *testing.T) {
			renamed := []string{"LMPOP", "BITOP", "ECHO", "SETEX", "EVAL", "BLPOP"}
			var args []string
			for _, name := range renamed {
				args = append(args, "--rename-command", name, "X."+name)
			}
			cluster := rediscluster.Start(t, rediscluster.Options{Binary: binary, Args: args})
			testUnlistedCommands(t, connectCluster(t, cluster), connectCluster(t, cluster))
		})
	}
}

// testUnlistedCommands sends renamed commands with clients c and other of the same cluster.
func testUnlistedCommands(t *testing.T, c, other *redis.Client) {
	ctx := t.Context()
	for i := range 12 {
		key := "k" + strconv.Itoa(i)
		tag := "{" + key + "}"
		if _, err := c.RPush(ctx, tag+"list", "a", "b", "c", "d"); err != nil {
			t.Fatal(err)
		}
		for _, cmd := range []redis.Command{
			redis.Cmd("X.LMPOP", 2, tag+"none", tag+"list", "LEFT"),
			redis.Cmd("X.BITOP", "NOT", tag+"dest", tag+"none"),
			redis.Cmd("X.SETEX", key, 100, "v"),
			redis.Cmd("X.EVAL", "return redis.call('INCR', KEYS[1])", 1, tag+"n"),
			redis.Cmd("X.ECHO", key),
		} {
			for style := range 4 {
				if err := inStyle(t, style, c, cmd); err != nil {
					t.Errorf("%v, style %d: %v", cmd, style, err)
				}
			}
		}
		var b redis.Batch
		b.AddStrings(nil, "X.EVAL", "return redis.call('INCR', KEYS[1])", "1", tag+"n")
		b.AddStrings(nil, "X.SETEX", tag+"s", "100", "v")
		if err := c.DoTransaction(ctx, &b); err != nil {
			t.Errorf("transaction: %v", err)
		}
		b.AddStrings(nil, "X.SETEX", "k"+strconv.Itoa(i+1), "100", "v")
		if err := c.DoTransaction(ctx, &b); !errors.Is(err, redis.ErrCrossSlot) {
			t.Errorf("transaction with keys in two slots: %v, want ErrCrossSlot", err)
		}
		if n, _, err := c.Get(ctx, tag+"n"); err != nil || n != "5" {
			t.Errorf("the script ran %s times, want 5; error %v", n, err)
		}
		// A new client also looks up the commands of transactions and batches.
		b.Reset()
		b.AddStrings(nil, "X.EVAL", "return redis.call('INCR', KEYS[1])", "1", tag+"n")
		if i%2 == 0 {
			must(t, other.DoTransaction(ctx, &b))
		} else {
			must(t, other.DoBatch(ctx, &b))
		}
		// A blocking command gets a dedicated connection to the node of its key.
		f := c.Start(ctx, redis.Cmd("X.BLPOP", tag+"queue", 10))
		if _, err := c.RPush(ctx, tag+"queue", "x"); err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := f.Wait(&got); err != nil || len(got) != 2 {
			t.Errorf("X.BLPOP: %v, %v", got, err)
		}
	}
	if err := c.Do(ctx, nil, redis.Cmd("X.BITOP", "AND", "a", "b", "c")); !errors.Is(err, redis.ErrCrossSlot) || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("X.BITOP with keys in several slots: %v, want ErrCrossSlot, not sent", err)
	}
	if n := redirectsOf(t, c); n != 0 {
		t.Errorf("%d commands were redirected, want 0", n)
	}
}

// unknownNodes are two nodes that count the COMMAND INFO requests, and how often each node executes X.Y.
type unknownNodes struct {
	nodes    [2]*scriptedNode
	lookups  atomic.Int64 // COMMAND INFO
	executed [2]atomic.Int64
}

// startUnknown starts two nodes, the first of which owns all slots. They answer COMMAND INFO with info() and
// X.Y with reply(node).
func startUnknown(t *testing.T, info func() string, reply func(node int) string) *unknownNodes {
	u := &unknownNodes{}
	for i := range u.nodes {
		u.nodes[i] = startScripted(t, shards(func() []string { return []string{u.nodes[0].addr, u.nodes[1].addr} }, func(args []string) string {
			switch args[0] {
			case "COMMAND":
				u.lookups.Add(1)
				return info()
			case "X.Y":
				u.executed[i].Add(1)
				return reply(i)
			}
			return "+OK\r\n"
		}))
	}
	return u
}

// TestGuessedKeysAreRedirected: if the server does not describe the keys of a command, the client guesses that
// the first argument is the key, and follows a redirect to any slot.
func TestGuessedKeysAreRedirected(t *testing.T) {
	for name, info := range map[string]string{"not known": "*1\r\n*-1\r\n", "refused": "-NOPERM no\r\n", "nonsense": "+OK\r\n"} {
		t.Run(name, func(t *testing.T) {
			var u *unknownNodes
			u = startUnknown(t, func() string { return info }, func(node int) string {
				if node == 0 {
					return "-MOVED 1 " + u.nodes[1].addr + "\r\n"
				}
				return "+OK\r\n"
			})
			c, err := redis.ConnectCluster(t.Context(), redis.ClusterOptions{Seeds: []string{u.nodes[0].addr}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for style := range 4 {
				if err := inStyle(t, style, c, redis.Cmd("X.Y", "key")); err != nil {
					t.Errorf("style %d: %v", style, err)
				}
			}
			if a, b := u.executed[0].Load(), u.executed[1].Load(); a != 4 || b != 4 {
				t.Errorf("executed %d times, and %d times at the target, want 4 and 4", a, b)
			}
		})
	}
}

// TestOneAsksAboutACommand: concurrent lookups of the same command share one request. If the context of the
// caller that sent it is canceled, another caller sends one.
//
// mutant: redis-lookup-by-each-caller
func TestOneAsksAboutACommand(t *testing.T) {
	answer := make(chan struct{})
	u := startUnknown(t, func() string { <-answer; return "*1\r\n*-1\r\n" }, func(int) string { return "+OK\r\n" })
	c, err := redis.ConnectCluster(t.Context(), redis.ClusterOptions{Seeds: []string{u.nodes[0].addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	first := c.Start(ctx, redis.Cmd("X.Y", "key"))
	awaitLookups := func(n int64) {
		testkit.Eventually(t, 10*time.Second, func() error {
			if got := u.lookups.Load(); got != n {
				return fmt.Errorf("%d lookups, want %d", got, n)
			}
			return nil
		})
	}
	awaitLookups(1)
	var callers sync.WaitGroup
	for style := range 40 {
		// Ends when the server answers; the test waits for it.
		callers.Go(func() {
			if err := inStyle(t, style%4, c, redis.Cmd("X.Y", "key")); err != nil {
				t.Errorf("style %d: %v", style%4, err)
			}
		})
	}
	cancel()
	if err := first.Wait(nil); !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("the canceled caller: %v, want canceled, not sent", err)
	}
	close(answer)
	callers.Wait()
	if n := u.lookups.Load(); n > 2 {
		t.Errorf("%d lookups, want at most 2", n)
	}
	if n := u.executed[0].Load() + u.executed[1].Load(); n != 40 {
		t.Errorf("%d calls were executed, want 40", n)
	}
}

// TestAnAnswerThatDoesNotCome: if the server does not answer COMMAND INFO, the call ends with its context and
// fails with NotSent.
func TestAnAnswerThatDoesNotCome(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	u := startUnknown(t, func() string { <-over; return "" }, func(int) string { return "+OK\r\n" })
	c, err := redis.ConnectCluster(t.Context(), redis.ClusterOptions{Seeds: []string{u.nodes[0].addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var futures []redis.Future
	for range 10 {
		futures = append(futures, c.Start(ctx, redis.Cmd("X.Y", "key")))
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if u.lookups.Load() == 0 {
			return errors.New("no lookup yet")
		}
		return nil
	})
	cancel()
	for _, f := range futures {
		if err := f.Wait(nil); !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("%v, want canceled, not sent", err)
		}
	}
	if n := u.executed[0].Load() + u.executed[1].Load(); n != 0 {
		t.Errorf("%d calls were executed, want 0", n)
	}
}
