//go:build unix

package redis_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// inStyle makes a call in one of four ways.
func inStyle(t *testing.T, style int, c *redis.Client, cmd redis.Command) error {
	t.Helper()
	ctx := t.Context()
	switch style {
	case 0:
		return c.Do(ctx, nil, cmd)
	case 1:
		return c.Start(ctx, cmd).Wait(nil)
	case 2:
		done := make(ended, 1)
		if err := c.DoFunc(ctx, cmd, done); err != nil {
			return err
		}
		return <-done
	}
	var b redis.Batch
	b.Add(nil, redis.Cmd("SET", "key", "v"))
	b.Add(nil, cmd)
	_ = c.DoBatch(ctx, &b)
	return b.Err(1)
}

// TestErrorsOfScriptsAreTheirs: a script or a function may return any error, including one that
// looks as if the server had refused it. The call is not retried, because the script may have
// written data. The only exceptions are a redirect as a server would write it, for the slot of the
// keys, and the texts of servers.
//
// mutant: redis-script-refuses-itself, redis-script-redirects-with-more-words, redis-redirect-of-another-slot-followed
func TestErrorsOfScriptsAreTheirs(t *testing.T) {
	const own, other = "12539 ", "1 "
	eval := redis.Cmd("EVAL", "return 1", 1, "key")
	for _, test := range []struct {
		cmd     redis.Command
		reply   string // TARGET is the address of another node
		goesOn  bool   // the call is retried
		outcome slipstream.Outcome
	}{
		{cmd: eval, reply: "-MOVED " + own + "TARGET", goesOn: true},
		{cmd: eval, reply: "-ASK " + own + "TARGET", goesOn: true},
		{cmd: eval, reply: "-MOVED " + other + "TARGET", outcome: slipstream.Executed},
		{cmd: eval, reply: "-ASK " + other + "TARGET", outcome: slipstream.Executed},
		{cmd: eval, reply: "-MOVED " + own + "TARGET script: 0a1b, on @user_script:1.", outcome: slipstream.Executed},
		{cmd: eval, reply: "-MOVED " + own + "TARGET and so on", outcome: slipstream.Executed},
		{cmd: redis.Cmd("EVALSHA", "0a1b", 0), reply: "-MOVED " + own + "TARGET", outcome: slipstream.Executed},
		{cmd: redis.Cmd("FCALL", "f", 0, "key"), reply: "-ASK " + own + "TARGET", outcome: slipstream.Executed},
		{cmd: redis.Cmd("FCALL", "f", 1, "key"), reply: "-MOVED " + other + "TARGET", outcome: slipstream.Executed},
		{cmd: eval, reply: "-TRYAGAIN later", outcome: slipstream.Executed},
		{cmd: eval, reply: "-BUSY the lock is taken", outcome: slipstream.Executed},
		{cmd: eval, reply: "-LOADING of documents has not ended", outcome: slipstream.Executed},
		{cmd: eval, reply: "-CLUSTERDOWN for maintenance", outcome: slipstream.Executed},
		{cmd: eval, reply: "-TRYAGAIN Multiple keys request during rehashing of slot script: 0a1b, on @user_script:1.", outcome: slipstream.Executed},
		{cmd: eval, reply: "-UNBLOCKED client unblocked via CLIENT UNBLOCK", outcome: slipstream.Executed},
		// Other commands return no errors of their own choice, but a server redirects them only for
		// their own slot.
		{cmd: redis.Cmd("GET", "key"), reply: "-MOVED " + own + "TARGET", goesOn: true},
		{cmd: redis.Cmd("GET", "key"), reply: "-MOVED " + other + "TARGET", outcome: slipstream.Refused},
		{cmd: redis.Cmd("ECHO", "key"), reply: "-MOVED " + own + "TARGET", outcome: slipstream.Refused},
	} {
		t.Run(test.cmd.Name()+" "+test.reply, func(t *testing.T) {
			var nodes [2]*scriptedNode // the first one owns all slots
			var made atomic.Int64
			for i := range nodes {
				nodes[i] = startScripted(t, shards(func() []string { return []string{nodes[0].addr, nodes[1].addr} }, func(args []string) string {
					if args[0] != test.cmd.Name() {
						return "+OK\r\n"
					}
					if made.Add(1); i == 1 && test.goesOn {
						return "+OK\r\n"
					}
					return strings.Replace(test.reply, "TARGET", nodes[1-i].addr, 1) + "\r\n"
				}))
			}
			for style := range 4 { // each with its own client, because a client remembers a MOVED that it has followed
				c, err := redis.ConnectCluster(t.Context(), redis.ClusterOptions{
					Seeds: []string{nodes[0].addr}, Options: redis.Options{DialTimeout: 2 * time.Second},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				made.Store(0)
				err = inStyle(t, style, c, test.cmd)
				switch n := made.Load(); {
				case test.goesOn:
					if err != nil || n != 2 {
						t.Fatalf("style %d: %d attempts, %v", style, n, err)
					}
				case n != 1 || err == nil || slipstream.OutcomeOf(err) != test.outcome:
					t.Fatalf("style %d: %d attempts, %v; want the outcome %v", style, n, err, test.outcome)
				}
			}
		})
	}
}

// TestScriptErrorsOfRedis checks the form of scripts' errors, and that a script that has written
// data is not run again, whatever it returns.
func TestScriptErrorsOfRedis(t *testing.T) {
	for _, binary := range []string{"redis-server", "redis-server-8"} {
		t.Run(binary, func(t *testing.T) {
			cluster := rediscluster.Start(t, rediscluster.Options{Binary: binary})
			scriptErrorsOf(t, cluster, connectCluster(t, cluster))
		})
	}
}

func scriptErrorsOf(t *testing.T, cluster *rediscluster.Cluster, c *redis.Client) {
	ctx := t.Context()
	must(t, c.Do(ctx, nil, redis.Cmd("FUNCTION", "LOAD", `#!lua name=l
		redis.register_function('f', function(keys, args) redis.call('INCR', keys[1]); return redis.error_reply(args[1]) end)`)))
	key := "key"
	slot := cluster.Slot(t, key)
	elsewhere := cluster.Nodes()[0]
	if cluster.MasterOf(t, slot) == elsewhere {
		elsewhere = cluster.Nodes()[1]
	}
	redirect := func(code string, slot int) string { return fmt.Sprintf("%s %d %s", code, slot, elsewhere.Addr()) }
	returns := "redis.call('INCR', KEYS[1]); return redis.error_reply(ARGV[1])"
	raises := "redis.call('INCR', KEYS[1]); error({err = ARGV[1]})"
	runs := 0
	for _, test := range []struct{ source, text string }{
		{returns, redirect("MOVED", slot+1)}, {returns, redirect("ASK", slot+1)},
		{raises, redirect("MOVED", slot)}, {raises, redirect("ASK", slot)},
		{returns, "TRYAGAIN later"}, {returns, "BUSY x"}, {returns, "LOADING x"}, {returns, "NOSCRIPT x"}, {returns, "MASTERDOWN x"},
		{"function", redirect("MOVED", slot+1)}, {"function", "TRYAGAIN x"}, {"function", "CLUSTERDOWN x"}, {"function", "ERR Function not found here"},
		{"script", "NOSCRIPT x"}, {"library", "ERR Function not found here"},
	} {
		var err error
		switch test.source {
		case "function":
			err = c.FCall(ctx, nil, "f", []string{key}, test.text)
		case "script":
			err = redis.NewScript(returns).Do(ctx, c, nil, []string{key}, test.text)
		case "library":
			err = redis.NewLibrary("#!lua name=l").Call(ctx, c, nil, "f", []string{key}, test.text)
		default:
			err = c.Eval(ctx, nil, test.source, []string{key}, test.text)
		}
		runs++
		e, ok := errors.AsType[*redis.ServerError](err)
		if !ok || !strings.HasPrefix(e.Error(), test.text) || slipstream.OutcomeOf(err) != slipstream.Executed {
			t.Errorf("%s with %q: %v", test.source, test.text, err)
		}
		if test.source != raises && ok && e.Error() != test.text || test.source == raises && ok && !strings.Contains(e.Message, ", on @user_script:1.") {
			t.Errorf("%s with %q: the server answers %q", test.source, test.text, e)
		}
		if n, _, err := c.Get(ctx, key); err != nil || n != strconv.Itoa(runs) {
			t.Fatalf("%s with %q: %s runs instead of %d, %v", test.source, test.text, n, runs, err)
		}
	}
	// Within a transaction, the error of a script is one of the replies to EXEC.
	var b redis.Batch
	b.AddScript(nil, redis.NewScript(returns), []string{key}, redirect("MOVED", slot))
	err := c.DoTransaction(ctx, &b)
	if _, ok := errors.AsType[*redis.BatchError](err); !ok || slipstream.OutcomeOf(b.Err(0)) != slipstream.Executed {
		t.Errorf("a transaction: %v", err)
	}
	if n, _, err := c.Get(ctx, key); err != nil || n != strconv.Itoa(runs+1) {
		t.Errorf("a transaction: %s runs instead of %d, %v", n, runs+1, err)
	}
	// A string is not an error, whatever its text.
	for _, source := range []string{"return ARGV[1]", "return redis.status_reply(ARGV[1])"} {
		var got string
		if err := c.Eval(ctx, &got, source, []string{key}, redirect("MOVED", slot)); err != nil || got != redirect("MOVED", slot) {
			t.Errorf("%s: %q, %v", source, got, err)
		}
	}
	// A script that reads a key at another node gets an error that is not a redirect.
	far := "far"
	for i := 0; cluster.MasterOf(t, cluster.Slot(t, far)) != elsewhere; i++ {
		far = "far" + strconv.Itoa(i)
	}
	if err := c.Eval(ctx, nil, "return redis.call('GET', ARGV[1])", []string{key}, far); err == nil || slipstream.OutcomeOf(err) != slipstream.Executed {
		t.Errorf("a script that reads a key at another node: %v", err)
	}
	// A redirect that the server sends before a script runs is followed.
	cluster.Migrate(t, elsewhere, slot)
	if err := c.Eval(ctx, nil, "return redis.call('INCR', KEYS[1])", []string{key}); err != nil {
		t.Errorf("after the slot has moved: %v", err)
	}
}
