package redis_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// quick returns options for retries without long waits.
func quick(addr string) redis.Options {
	return redis.Options{Addr: addr, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond}
}

// When the connection is lost after the request was sent, only commands that
// change nothing or are declared idempotent are retried.
func TestRepeatsAfterALostConnection(t *testing.T) {
	testkit.NoLeaks(t)
	for _, test := range []struct {
		cmd   redis.Command
		times int
	}{
		{redis.Cmd("GET", "k"), 2}, {redis.Cmd("get", "k"), 2}, {redis.Cmd("HGETALL", "k"), 2}, {redis.Cmd("CLIENT", "LIST"), 2},
		{redis.Cmd("INCR", "k"), 1}, {redis.Cmd("SET", "k", "v"), 1}, {redis.Cmd("DEL", "k"), 1}, {redis.Cmd("EVAL", "x", 0), 1}, {redis.Cmd("NOSUCH", "k"), 1},
		{redis.Cmd("CLIENT", "KILL", "ID", 1), 1}, {redis.Cmd("SET", "k", "v").Idempotent(), 2}, {redis.Cmd("NOSUCH").Idempotent(), 2},
	} {
		s := fake(t, func(conn int, args []string) string {
			switch {
			case args[0] == "COMMAND":
				return "*1\r\n*-1\r\n"
			case conn == 0:
				return hangUp
			}
			return "+fine\r\n"
		})
		c := connect(t, quick(s.Addr))
		var got string
		err := c.Do(t.Context(), &got, test.cmd)
		if test.times == 1 && slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
			t.Errorf("%v: %q, %v", test.cmd, got, err)
		}
		if test.times == 2 && (err != nil || got != "fine") {
			t.Errorf("%v: %q, %v", test.cmd, got, err)
		}
		seen := slices.DeleteFunc(s.seen(), func(sent string) bool { return strings.HasPrefix(sent, "COMMAND") })
		if n := len(seen); n != test.times {
			t.Errorf("%v was sent %d times, want %d", test.cmd, n, test.times)
		}
		if n := c.Stats().Repeated; n != uint64(test.times-1) {
			t.Errorf("%v: %d retries counted", test.cmd, n)
		}
		c.Close()
	}
}

func TestTypedCommandsRepeatByTheSameRule(t *testing.T) {
	testkit.NoLeaks(t)
	for _, test := range []struct {
		name  string
		reply string
		call  func(context.Context, *redis.Client) error
		times int
	}{
		{"GET", "$1\r\nv\r\n", func(ctx context.Context, c *redis.Client) error { _, _, err := c.Get(ctx, "k"); return err }, 2},
		{"MGET", "*1\r\n_\r\n", func(ctx context.Context, c *redis.Client) error { _, err := c.MGet(ctx, "k"); return err }, 2},
		{"EXISTS", ":1\r\n", func(ctx context.Context, c *redis.Client) error { _, err := c.Exists(ctx, "k"); return err }, 2},
		{"PTTL", ":1\r\n", func(ctx context.Context, c *redis.Client) error { _, _, err := c.TTL(ctx, "k"); return err }, 2},
		{"PING", "+PONG\r\n", func(ctx context.Context, c *redis.Client) error { return c.Ping(ctx) }, 2},
		{"SET", "+OK\r\n", func(ctx context.Context, c *redis.Client) error { return c.Set(ctx, "k", "v") }, 1},
		{"INCR", ":1\r\n", func(ctx context.Context, c *redis.Client) error { _, err := c.Incr(ctx, "k"); return err }, 1},
		{"INCRBY", ":1\r\n", func(ctx context.Context, c *redis.Client) error { _, err := c.IncrBy(ctx, "k", 2); return err }, 1},
		{"DEL", ":1\r\n", func(ctx context.Context, c *redis.Client) error { _, err := c.Del(ctx, "k"); return err }, 1},
		{"PEXPIRE", ":1\r\n", func(ctx context.Context, c *redis.Client) error {
			_, err := c.Expire(ctx, "k", time.Second)
			return err
		}, 1},
	} {
		s := fake(t, func(conn int, args []string) string {
			if conn == 0 {
				return hangUp
			}
			return test.reply
		})
		c := connect(t, quick(s.Addr))
		err := test.call(t.Context(), c)
		sent := s.seen()
		if (err == nil) != (test.times == 2) || len(sent) != test.times || !strings.HasPrefix(sent[0], test.name) {
			t.Errorf("%s: %v, sent %q", test.name, err, sent)
		}
		c.Close()
	}
}

// scriptTexts are the texts with which Redis refuses scripts, by code.
var scriptTexts = map[string]string{"LOADING": "Redis is loading the dataset in memory", "NOSCRIPT": "No matching script. Please use EVAL."}

// The server's own refusals, by their codes.
func TestRefusals(t *testing.T) {
	testkit.NoLeaks(t)
	for _, test := range []struct {
		code    string
		cmd     redis.Command
		outcome slipstream.Outcome
		times   int
	}{
		{"LOADING", redis.Cmd("INCR", "k"), slipstream.Refused, 4}, {"BUSY", redis.Cmd("INCR", "k"), slipstream.Refused, 4}, {"MASTERDOWN", redis.Cmd("GET", "k"), slipstream.Refused, 4},
		{"CLUSTERDOWN", redis.Cmd("GET", "k"), slipstream.Refused, 4}, {"TRYAGAIN", redis.Cmd("MGET", "k"), slipstream.Refused, 4}, {"LOADING", redis.Cmd("EVAL", "x", 0), slipstream.Refused, 4},
		{"READONLY", redis.Cmd("SET", "k", "v"), slipstream.Refused, 1}, {"OOM", redis.Cmd("SET", "k", "v"), slipstream.Refused, 1}, {"NOPERM", redis.Cmd("SET", "k", "v"), slipstream.Refused, 1},
		{"NOAUTH", redis.Cmd("GET", "k"), slipstream.Refused, 1}, {"MOVED", redis.Cmd("GET", "k"), slipstream.Refused, 1}, {"ASK", redis.Cmd("GET", "k"), slipstream.Refused, 1},
		{"NOSCRIPT", redis.Cmd("EVALSHA", "x", 0), slipstream.Refused, 1}, {"MISCONF", redis.Cmd("SET", "k", "v"), slipstream.Refused, 1},
		{"ERR", redis.Cmd("GET", "k"), slipstream.Executed, 1}, {"WRONGTYPE", redis.Cmd("GET", "k"), slipstream.Executed, 1}, {"CUSTOM", redis.Cmd("GET", "k"), slipstream.Executed, 1},
		// A script may have written data before one of its commands was refused.
		{"READONLY", redis.Cmd("EVAL", "x", 0), slipstream.Executed, 1}, {"OOM", redis.Cmd("FCALL", "f", 0), slipstream.Executed, 1}, {"NOPERM", redis.Cmd("EVALSHA", "x", 0), slipstream.Executed, 1},
	} {
		text := "what the server says"
		if test.cmd.Name() == "EVAL" || test.cmd.Name() == "EVALSHA" {
			text = scriptTexts[test.code]
		}
		s := fake(t, func(int, []string) string { return "-" + test.code + " " + text + "\r\n" })
		c := connect(t, quick(s.Addr))
		err := c.Do(t.Context(), nil, test.cmd)
		var e *redis.ServerError
		if !errors.As(err, &e) || e.Code != test.code || e.Message != text || slipstream.OutcomeOf(err) != test.outcome {
			t.Errorf("%s of %v: %v", test.code, test.cmd, err)
		}
		if n := len(s.seen()); n != test.times {
			t.Errorf("%s of %v: sent %d times, want %d", test.code, test.cmd, n, test.times)
		}
		c.Close()
	}
}

func TestRefusalsThatPass(t *testing.T) {
	testkit.NoLeaks(t)
	var n atomic.Int32
	s := fake(t, func(int, []string) string {
		if n.Add(1) <= 2 {
			return "-LOADING Redis is loading the dataset in memory\r\n"
		}
		return ":8\r\n"
	})
	c := connect(t, quick(s.Addr))
	if v, err := c.Incr(t.Context(), "k"); v != 8 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	if got := c.Stats().Repeated; got != 2 {
		t.Errorf("%d repetitions", got)
	}
	if err := c.Start(t.Context(), redis.Cmd("GET", "k")).Wait(nil); err != nil {
		t.Error(err)
	}
}

// A doubt remains: a later attempt that certainly did nothing does not resolve it.
func TestDoubtStays(t *testing.T) {
	testkit.NoLeaks(t)
	s := fake(t, func(conn int, args []string) string {
		if conn == 0 {
			return hangUp
		}
		return "-LOADING wait\r\n"
	})
	c := connect(t, quick(s.Addr))
	err := c.Do(t.Context(), nil, redis.Cmd("SET", "k", "v").Idempotent())
	if slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || !strings.Contains(err.Error(), "LOADING") {
		t.Errorf("%v", err)
	}
}

func TestRepetitionsAreBounded(t *testing.T) {
	testkit.NoLeaks(t)
	s := fake(t, func(int, []string) string { return "-BUSY a script runs\r\n" })
	for _, test := range []struct {
		change func(*redis.Options)
		times  int
	}{
		{func(o *redis.Options) {}, 4},
		{func(o *redis.Options) { o.Retries = 1 }, 2},
		{func(o *redis.Options) { o.Retries = -1 }, 1},
		{func(o *redis.Options) { o.Backoff = time.Hour; o.MaxBackoff = time.Hour; o.Timeout = time.Second }, 1},
	} {
		o := quick(s.Addr)
		test.change(&o)
		c := connect(t, o)
		before := len(s.seen())
		err := c.Do(t.Context(), nil, redis.Cmd("GET", "k"))
		if slipstream.OutcomeOf(err) != slipstream.Refused {
			t.Error(err)
		}
		times := len(s.seen()) - before
		if times != test.times {
			t.Errorf("%d attempts, want %d", times, test.times)
		}
		c.Close()
	}
	// A timeout ends the attempts. A slow machine may need several runs until there are two
	// attempts.
	testkit.Eventually(t, 30*time.Second, func() error {
		o := quick(s.Addr)
		o.Backoff, o.Retries, o.Timeout = 40*time.Millisecond, 1000, 100*time.Millisecond
		c := connect(t, o)
		defer c.Close()
		before := len(s.seen())
		began := time.Now()
		err := c.Do(t.Context(), nil, redis.Cmd("GET", "k"))
		took := time.Since(began)
		if times := len(s.seen()) - before; slipstream.OutcomeOf(err) != slipstream.Refused || times < 2 || times > 6 || took > o.Timeout+200*time.Millisecond {
			return fmt.Errorf("%d attempts in %v with a timeout of %v: %v", times, took, o.Timeout, err)
		}
		return nil
	})
	// The end of the context also ends the pauses, and so does Close.
	o := quick(s.Addr)
	o.Backoff, o.MaxBackoff = 30*time.Second, 30*time.Second
	c := connect(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- c.Do(ctx, nil, redis.Cmd("GET", "k")) }()
	go func() { ended <- c.Do(context.WithoutCancel(ctx), nil, redis.Cmd("GET", "k")) }()
	testkit.Eventually(t, 5*time.Second, func() error {
		if c.Stats().Replies < 2 {
			return errors.New("no replies yet")
		}
		return nil
	})
	cancel()
	if err := <-ended; slipstream.OutcomeOf(err) != slipstream.Refused {
		t.Error(err)
	}
	c.Close()
	if err := <-ended; slipstream.OutcomeOf(err) != slipstream.Refused {
		t.Error(err)
	}
}

// There is no retry when the caller's time is up, when there is no room, or when the caller wants
// to fail fast.
func TestWhatIsNotRepeated(t *testing.T) {
	testkit.NoLeaks(t)
	s := fake(t, func(_ int, args []string) string { return silence })
	o := quick(s.Addr)
	o.MaxCalls = 1
	c := connect(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, _, err := c.Get(ctx, "k")
	if !errors.Is(err, context.DeadlineExceeded) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("a silent server: %v", err)
	}
	began := time.Now()
	if _, _, err = c.Get(t.Context(), "k"); slipstream.OutcomeOf(err) != slipstream.Overloaded || time.Since(began) > time.Second {
		t.Errorf("no room: %v after %v", err, time.Since(began))
	}
	if sent := s.seen(); !slices.Equal(sent, []string{"GET k"}) {
		t.Errorf("sent %q", sent)
	}
	if n := c.Stats(); n.Repeated != 0 || n.Overloaded != 1 {
		t.Errorf("%d retried, %d overloaded", n.Repeated, n.Overloaded)
	}
	done, cancelled := context.WithCancel(t.Context())
	cancelled()
	if _, _, err = c.Get(done, "k"); slipstream.OutcomeOf(err) != slipstream.NotSent || !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	c.Close()
	if _, _, err = c.Get(t.Context(), "k"); slipstream.OutcomeOf(err) != slipstream.Closed {
		t.Errorf("after Close: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

func TestFailFastAndWaiting(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	o := quick(server.Addr)
	o.MaxBackoff = 20 * time.Millisecond
	o.FailFast = true
	impatient := connect(t, o)
	o.FailFast = false
	patient := connect(t, o)
	server.Kill()
	testkit.Eventually(t, 5*time.Second, func() error {
		began := time.Now()
		err := impatient.Ping(t.Context())
		if slipstream.OutcomeOf(err) != slipstream.NotSent || !strings.Contains(err.Error(), "connect") {
			return fmt.Errorf("without a server: %w", err)
		}
		if took := time.Since(began); took > 500*time.Millisecond {
			return fmt.Errorf("failing fast took %v", took)
		}
		return nil
	})
	// Until the client has noticed the loss, a call would be written to a dead connection.
	testkit.Eventually(t, 5*time.Second, func() error {
		if n := patient.Stats().Connected; n != 0 {
			return fmt.Errorf("%d connections", n)
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := patient.Ping(ctx)
	if took := time.Since(began); slipstream.OutcomeOf(err) != slipstream.NotSent || !errors.Is(err, context.DeadlineExceeded) || took < 250*time.Millisecond {
		t.Errorf("%v after %v", err, took)
	}
}

// Shutdown lets calls in flight end and refuses new ones.
func TestShutdown(t *testing.T) {
	testkit.NoLeaks(t)
	release := make(chan struct{})
	s := fake(t, func(int, []string) string { <-release; return "+late\r\n" })
	c := connect(t, redis.Options{Addr: s.Addr})
	f := c.Start(t.Context(), redis.Cmd("GET", "k"))
	ended := make(chan error, 1)
	go func() { ended <- c.Shutdown(t.Context()) }()
	testkit.Eventually(t, 5*time.Second, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := c.Set(ctx, "k", "v"); slipstream.OutcomeOf(err) != slipstream.Closed {
			return fmt.Errorf("a new call: %v", err)
		}
		return nil
	})
	close(release)
	var got string
	if err := f.Wait(&got); err != nil || got != "late" {
		t.Errorf("%q, %v", got, err)
	}
	must(t, <-ended)

	hung := fake(t, func(int, []string) string { return silence })
	c = connect(t, redis.Options{Addr: hung.Addr})
	f = c.Start(t.Context(), redis.Cmd("GET", "k"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := f.Wait(nil); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("a call that was cut off: %v", err)
	}
}
