//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
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

// redirectsOf returns how many commands the nodes of a cluster have redirected.
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

// TestKeysOfCommandsThatTheTableDoesNotList: a server is asked once where they are, so commands of modules
// and of newer servers go to the node of their keys. Here they are commands of Redis with new names.
//
// mutant: redis-learned-keys-ignored, redis-batch-guesses-keys
func TestKeysOfCommandsThatTheTableDoesNotList(t *testing.T) {
	for _, binary := range []string{"redis-server", "redis-server-8"} {
		t.Run(binary, func(t *testing.T) {
			if _, err := exec.LookPath(binary); err != nil {
				t.Skipf("there is no %s", binary)
			}
			renamed := []string{"LMPOP", "BITOP", "ECHO", "SETEX", "EVAL", "BLPOP"}
			var args []string
			for _, name := range renamed {
				args = append(args, "--rename-command", name, "X."+name)
			}
			cluster := rediscluster.Start(t, rediscluster.Options{Binary: binary, Args: args})
			listed(t, connectCluster(t, cluster), connectCluster(t, cluster))
		})
	}
}

func listed(t *testing.T, c, other *redis.Client) {
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
			t.Errorf("a transaction: %v", err)
		}
		b.AddStrings(nil, "X.SETEX", "k"+strconv.Itoa(i+1), "100", "v")
		if err := c.DoTransaction(ctx, &b); !errors.Is(err, redis.ErrCrossSlot) {
			t.Errorf("a transaction with keys of two slots: %v", err)
		}
		if n, _, err := c.Get(ctx, tag+"n"); err != nil || n != "5" {
			t.Errorf("the script ran %s times, %v", n, err)
		}
		// A fresh client learns within a transaction and a batch, too.
		b.Reset()
		b.AddStrings(nil, "X.EVAL", "return redis.call('INCR', KEYS[1])", "1", tag+"n")
		if i%2 == 0 {
			must(t, other.DoTransaction(ctx, &b))
		} else {
			must(t, other.DoBatch(ctx, &b))
		}
		// A command that waits gets a connection at the node of its key.
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
		t.Errorf("X.BITOP with keys of several slots: %v", err)
	}
	if n := redirectsOf(t, c); n != 0 {
		t.Errorf("%d commands were redirected", n)
	}
}

// unknownNodes are two nodes that count how often they are asked about X.Y, and how often each executes it.
type unknownNodes struct {
	nodes [2]*scriptedNode
	asked atomic.Int64 // COMMAND INFO
	made  [2]atomic.Int64
}

// startUnknown starts two nodes, of which the first one has all slots. Info answers COMMAND INFO, and reply X.Y.
func startUnknown(t *testing.T, info func() string, reply func(node int) string) *unknownNodes {
	u := &unknownNodes{}
	for i := range u.nodes {
		u.nodes[i] = startScripted(t, shards(func() []string { return []string{u.nodes[0].addr, u.nodes[1].addr} }, func(args []string) string {
			switch args[0] {
			case "COMMAND":
				u.asked.Add(1)
				return info()
			case "X.Y":
				u.made[i].Add(1)
				return reply(i)
			}
			return "+OK\r\n"
		}))
	}
	return u
}

// TestGuessedKeysAreRedirected: of a command whose keys the server does not describe the first argument is
// taken for the key. The server may redirect it to any slot.
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
			if a, b := u.made[0].Load(), u.made[1].Load(); a != 4 || b != 4 {
				t.Errorf("made %d times, and %d times at the target", a, b)
			}
		})
	}
}

// TestOneAsksAboutACommand: callers that need to know the same at the same time ask once. If the one that asks
// gives up, another one asks.
//
// mutant: redis-learned-by-each-caller
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
	awaitAsked := func(n int64) {
		testkit.Eventually(t, 10*time.Second, func() error {
			if got := u.asked.Load(); got != n {
				return fmt.Errorf("asked %d times, want %d", got, n)
			}
			return nil
		})
	}
	awaitAsked(1)
	var callers sync.WaitGroup
	for style := range 40 {
		// Ends with the answer; the test waits for it.
		callers.Go(func() {
			if err := inStyle(t, style%4, c, redis.Cmd("X.Y", "key")); err != nil {
				t.Errorf("style %d: %v", style%4, err)
			}
		})
	}
	cancel()
	if err := first.Wait(nil); !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("the one that gave up: %v", err)
	}
	close(answer)
	callers.Wait()
	if n := u.asked.Load(); n > 2 {
		t.Errorf("the server was asked %d times", n)
	}
	if n := u.made[0].Load() + u.made[1].Load(); n != 40 {
		t.Errorf("%d calls were made", n)
	}
}

// TestAnAnswerThatDoesNotCome: a call of a command about which the server does not answer ends with its context, and
// was not sent.
func TestAnAnswerThatDoesNotCome(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	var asked atomic.Int64
	u := startUnknown(t, func() string { asked.Add(1); <-over; return "" }, func(int) string { return "+OK\r\n" })
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
		if asked.Load() == 0 {
			return errors.New("the server was not asked")
		}
		return nil
	})
	cancel()
	for _, f := range futures {
		if err := f.Wait(nil); !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("%v", err)
		}
	}
	if n := u.made[0].Load() + u.made[1].Load(); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}
