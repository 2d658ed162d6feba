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
	"github.com/slipstream-go/slipstream/redis"
)

// TestBlockingCommands: each blocking command waits on a dedicated connection and gets the same
// reply as on any other connection.
func TestBlockingCommands(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	for _, test := range []struct {
		wait redis.Command
		wake redis.Command
		want string
	}{
		{redis.Cmd("BLPOP", "l", 0), redis.Cmd("RPUSH", "l", "a"), "[l a]"},
		{redis.Cmd("BRPOP", "l", "m", 10), redis.Cmd("RPUSH", "m", "b"), "[m b]"},
		{redis.Cmd("BLMOVE", "l", "o", "LEFT", "RIGHT", 0), redis.Cmd("RPUSH", "l", "c"), "c"},
		{redis.Cmd("BRPOPLPUSH", "l", "o", 0), redis.Cmd("RPUSH", "l", "d"), "d"},
		{redis.Cmd("BLMPOP", 0, 2, "l", "m", "LEFT"), redis.Cmd("RPUSH", "m", "e"), "[m [e]]"},
		{redis.Cmd("BZPOPMIN", "z", 0), redis.Cmd("ZADD", "z", 1, "f"), "[z f 1]"},
		{redis.Cmd("BZPOPMAX", "z", 0), redis.Cmd("ZADD", "z", 2, "g"), "[z g 2]"},
		{redis.Cmd("BZMPOP", 0, 1, "z", "MIN"), redis.Cmd("ZADD", "z", 3, "h"), "[z [[h 3]]]"},
		{redis.Cmd("XREAD", "BLOCK", 0, "STREAMS", "s", "$"), redis.Cmd("XADD", "s", "5-1", "k", "v"), "map[s:[[5-1 [k v]]]]"},
	} {
		t.Run(test.wait.Name(), func(t *testing.T) {
			lent := c.Stats().Exclusive.Lent
			answer := make(chan string, 1)
			go func() { // ends with the reply, which the test waits for
				var got any
				if err := c.Do(ctx, &got, test.wait); err != nil {
					answer <- err.Error()
					return
				}
				answer <- fmt.Sprint(got)
			}()
			waiting(t, c, lent+1)
			must(t, c.Ping(ctx)) // the shared connection is free
			must(t, c.Do(ctx, nil, test.wake))
			if got := <-answer; got != test.want {
				t.Errorf("%s: %s, want %s", test.wait.Name(), got, test.want)
			}
		})
	}
	if s := c.Stats().Exclusive; s.Opened != 1 || s.Lent != 0 || s.Idle != 1 {
		t.Errorf("connections: %+v, want one for all commands, idle now", s)
	}
}

// waiting returns once n commands have dedicated connections and are blocked at the server.
func waiting(t testing.TB, c *redis.Client, n int) {
	t.Helper()
	testkit.Eventually(t, 10*time.Second, func() error {
		var info string
		if err := c.Do(t.Context(), &info, redis.Cmd("INFO", "clients")); err != nil {
			return err
		}
		_, rest, _ := strings.Cut(info, "blocked_clients:")
		text, _, _ := strings.Cut(rest, "\r\n")
		if blocked, err := strconv.Atoi(text); err != nil || blocked != n {
			return fmt.Errorf("%q clients wait, want %d", text, n)
		}
		return nil
	})
}

// TestNothingToWaitFor: if the server's own timeout passes, the caller gets a null reply.
func TestNothingToWaitFor(t *testing.T) {
	c := start(t)
	var got *string
	must(t, c.Do(t.Context(), &got, redis.Cmd("BLMOVE", "l", "o", "LEFT", "RIGHT", 0.05)))
	if got != nil {
		t.Errorf("got %q, want null", *got)
	}
	err := c.Do(t.Context(), nil, redis.Cmd("BLPOP", "l", "soon"))
	var e *redis.ServerError
	if !errors.As(err, &e) || slipstream.OutcomeOf(err) != slipstream.Executed {
		t.Errorf("not a timeout of the server: %v", err)
	}
}

// TestCancelTakesNothing: a call that is given up while the list is empty ends immediately, is
// known to have taken nothing, and its connection is reused.
func TestCancelTakesNothing(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(strconv.Itoa(protocol), func(t *testing.T) {
			c := start(t, func(o *redis.Options) { o.Protocol = protocol })
			for range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- c.Do(ctx, nil, redis.Cmd("BLPOP", "l", 0)) }() // ends when canceled
				waiting(t, c, 1)
				cancel()
				err := <-done
				if !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.Refused || errors.Is(err, redis.ErrElementLost) {
					t.Fatalf("got %v", err)
				}
			}
			if s := c.Stats().Exclusive; s.Opened != 1 || s.Reused != 2 || s.Unblocked != 3 || s.Abandoned != 0 {
				t.Errorf("connections: %+v", s)
			}
			must(t, c.Do(t.Context(), nil, redis.Cmd("RPUSH", "l", "a")))
			if n := length(t, c, "l"); n != 1 {
				t.Errorf("%d elements are left of 1", n)
			}
		})
	}
}

func length(t testing.TB, c *redis.Client, key string) (n int) {
	t.Helper()
	must(t, c.Do(t.Context(), &n, redis.Cmd("LLEN", key)))
	return n
}

// TestCancelStorm: calls are given up at the moment when elements arrive. Every element is
// delivered once, and no failed call has an uncertain outcome.
func TestCancelStorm(t *testing.T) {
	c := start(t)
	random := testkit.Rand(t)
	const elements = 3000
	var mu sync.Mutex
	got := make(map[string]int)
	var cancelled, late atomic.Int64
	stop := make(chan struct{})
	var consumers sync.WaitGroup
	for i := range 16 {
		r := testkit.Fork(random.Uint64(), uint64(i))
		consumers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(3000))*time.Microsecond)
				var pair []string
				err := c.Do(ctx, &pair, redis.Cmd("BLPOP", "queue", 0))
				over := ctx.Err() != nil
				cancel()
				switch {
				case err == nil:
					if over {
						late.Add(1)
					}
					mu.Lock()
					got[pair[1]]++
					mu.Unlock()
				case slipstream.OutcomeOf(err) == slipstream.MaybeExecuted:
					t.Errorf("uncertain outcome: %v", err)
				default:
					cancelled.Add(1)
				}
			}
		})
	}
	for i := range elements {
		must(t, c.Do(t.Context(), nil, redis.Cmd("RPUSH", "queue", i)))
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		if n := length(t, c, "queue"); n > 0 {
			return fmt.Errorf("%d elements are left", n)
		}
		if n := cancelled.Load(); n < 100 {
			return fmt.Errorf("%d calls were given up", n)
		}
		return nil
	})
	close(stop)
	consumers.Wait()
	for i := range elements {
		if n := got[strconv.Itoa(i)]; n != 1 {
			t.Errorf("element %d was delivered %d times", i, n)
		}
	}
	s := c.Stats().Exclusive
	t.Logf("%d calls were given up, %d elements came after that: %+v", cancelled.Load(), late.Load(), s)
	if s.Abandoned > 0 {
		t.Errorf("connections were lost: %+v", s)
	}
}

// TestServerDiesWhileWaiting: the error says that the command may have been executed, and
// the next call has a new connection.
func TestServerDiesWhileWaiting(t *testing.T) {
	released := make(chan struct{})
	s := fake(t, func(conn int, args []string) string {
		switch {
		case args[0] == "BLPOP" && conn == 1:
			<-released
			return hangUp
		case args[0] == "BLPOP":
			return "*2\r\n$1\r\nl\r\n$1\r\na\r\n"
		case args[0] == "CLIENT":
			return ":" + strconv.Itoa(conn+100) + "\r\n"
		}
		return "+OK\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr, Protocol: 2, OmitClientInfo: true})
	done := make(chan error, 1)
	go func() { done <- c.Do(t.Context(), nil, redis.Cmd("BLPOP", "l", 0)) }() // ends with its connection
	time.Sleep(20 * time.Millisecond)
	close(released)
	if err := <-done; slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("got %v", err)
	}
	must(t, c.Do(t.Context(), nil, redis.Cmd("BLPOP", "l", 0)))
}

// TestUnblockUnanswered: if a server does not answer CLIENT UNBLOCK, or does not answer the blocked
// call, the outcome is uncertain, and the error says so.
func TestUnblockUnanswered(t *testing.T) {
	for name, reply := range map[string]string{
		"refused":       "-NOPERM this user has no permissions to run the 'client|unblock' command\r\n",
		"not unblocked": ":0\r\n", // and no reply of BLPOP follows
	} {
		t.Run(name, func(t *testing.T) {
			s := fake(t, func(conn int, args []string) string {
				switch {
				case args[0] == "BLPOP":
					return silence
				case args[0] == "CLIENT" && args[1] == "ID":
					return ":7\r\n"
				case args[0] == "CLIENT":
					return reply
				}
				return "+OK\r\n"
			})
			c := connect(t, redis.Options{Addr: s.Addr, Protocol: 2, OmitClientInfo: true, StallTimeout: 200 * time.Millisecond})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			err := c.Do(ctx, nil, redis.Cmd("BLPOP", "l", 0))
			if !errors.Is(err, redis.ErrElementLost) || !errors.Is(err, context.DeadlineExceeded) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
				t.Errorf("got %v", err)
			}
			if s := c.Stats().Exclusive; s.Abandoned != 1 || s.Idle != 0 {
				t.Errorf("connections: %+v", s)
			}
		})
	}
}

// TestUnknownCommandsThatWait: the server says that a command of a module blocks.
func TestUnknownCommandsThatWait(t *testing.T) {
	var asked atomic.Int32
	var conns sync.Map
	s := fake(t, func(conn int, args []string) string {
		switch strings.ToUpper(args[0]) {
		case "COMMAND":
			asked.Add(1)
			if strings.HasPrefix(args[2], "QUEUE.") {
				return "*1\r\n*3\r\n$9\r\nqueue.pop\r\n:-2\r\n*2\r\n+write\r\n+blocking\r\n"
			}
			return "*1\r\n*-1\r\n"
		case "CLIENT":
			return ":9\r\n"
		}
		conns.Store(args[0], conn)
		return "+OK\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr, Protocol: 2, OmitClientInfo: true})
	for range 3 {
		for _, name := range []string{"QUEUE.POP", "OTHER.GET"} {
			must(t, c.Do(t.Context(), nil, redis.Cmd(name, "k")))
			must(t, c.Start(t.Context(), redis.Cmd(name, "k")).Wait(nil))
		}
	}
	if conn, _ := conns.Load("QUEUE.POP"); conn != 1 {
		t.Errorf("QUEUE.POP was sent on connection %v, want a dedicated one", conn)
	}
	if conn, _ := conns.Load("OTHER.GET"); conn != 0 {
		t.Errorf("OTHER.GET was sent on connection %v, want the shared one", conn)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("%d lookups, want one for each command", n)
	}
	err := c.DoMany(t.Context(), []redis.Command{redis.Cmd("PING"), redis.Cmd("QUEUE.POP", "k")}, nil)
	if !errors.Is(err, redis.ErrShared) || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("in a batch: %v", err)
	}
}

// TestExclusiveConnectionsAreBounded: a call beyond MaxExclusive is refused, or waits.
func TestExclusiveConnectionsAreBounded(t *testing.T) {
	server := testkit.StartRedis(t)
	for _, wait := range []bool{false, true} {
		t.Run(fmt.Sprintf("wait %t", wait), func(t *testing.T) {
			testkit.NoLeaks(t)
			c := connect(t, redis.Options{Addr: server.Addr, MaxExclusive: 2, WaitWhenFull: wait})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var two sync.WaitGroup
			for range 2 {
				two.Go(func() { c.Do(ctx, nil, redis.Cmd("BLPOP", "none", 0)) })
			}
			waiting(t, c, 2)
			short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer stop()
			err := c.Do(short, nil, redis.Cmd("BLPOP", "none", 0))
			want := slipstream.Overloaded
			if wait {
				want = slipstream.NotSent
			}
			if got := slipstream.OutcomeOf(err); got != want {
				t.Errorf("the third: %v, want %v", err, want)
			}
			cancel()
			two.Wait()
			must(t, c.Do(t.Context(), nil, redis.Cmd("BLPOP", "none", 0.01)))
		})
	}
}

// TestCloseEndsWaitingCalls: no goroutine and no connection is left.
func TestCloseEndsWaitingCalls(t *testing.T) {
	c := start(t)
	errs := make(chan error, 3)
	go func() { errs <- c.Do(t.Context(), nil, redis.Cmd("BLPOP", "l", 0)) }() // ends with Close
	future := c.Start(t.Context(), redis.Cmd("BLPOP", "l", 0))
	must(t, c.DoFunc(t.Context(), redis.Cmd("BLPOP", "l", 0), completer(func(_ redis.Reply, err error) { errs <- err })))
	waiting(t, c, 3)
	must(t, c.Close())
	errs <- future.Wait(nil)
	for range 3 {
		if err := <-errs; slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
			t.Errorf("got %v", err)
		}
	}
	if err := c.Do(t.Context(), nil, redis.Cmd("BLPOP", "l", 0)); slipstream.OutcomeOf(err) != slipstream.Closed {
		t.Errorf("after Close: %v", err)
	}
}

// TestShutdownWaitsForThoseThatWait: Shutdown waits until blocked commands have ended normally.
func TestShutdownWaitsForThoseThatWait(t *testing.T) {
	c := start(t)
	done := make(chan error, 1)
	go func() { done <- c.Do(t.Context(), nil, redis.Cmd("BLPOP", "l", 0.3)) }() // ends by itself
	waiting(t, c, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	must(t, c.Shutdown(ctx))
	if err := <-done; err != nil {
		t.Errorf("got %v", err)
	}
}

// TestIdleConnectionsThatDied: idle connections that died are detected before a command is lost on
// them.
func TestIdleConnectionsThatDied(t *testing.T) {
	c := start(t)
	for range 5 {
		must(t, c.Do(t.Context(), nil, redis.Cmd("BLPOP", "l", 0.01)))
		// TYPE normal covers both connections of the client; the shared one is reopened.
		must(t, c.Do(t.Context(), nil, redis.Cmd("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")))
		time.Sleep(10 * time.Millisecond)
	}
	if s := c.Stats().Exclusive; s.Opened != 5 || s.Reused != 0 {
		t.Errorf("connections: %+v, want five opened", s)
	}
}
