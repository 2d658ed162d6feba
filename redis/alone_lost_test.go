package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// TestShutdownGivesUp: when the deadline of Shutdown passes, sessions that are never closed end,
// and so do calls that wait for a dedicated connection; nothing hangs.
func TestShutdownGivesUp(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	for _, end := range []string{"Shutdown", "Close"} {
		t.Run(end, func(t *testing.T) {
			c := connect(t, redis.Options{Addr: server.Addr, MaxExclusive: 2, WaitWhenFull: true})
			var sessions []*redis.Session
			for range 2 {
				s, err := c.Session(t.Context())
				must(t, err)
				defer s.Close() // after the client
				must(t, s.Do(t.Context(), nil, redis.Cmd("PING")))
				sessions = append(sessions, s)
			}
			waits := c.Start(t.Context(), redis.Cmd("BLPOP", "l", 0))
			time.Sleep(20 * time.Millisecond) // nothing shows when the call waits for a connection
			if end == "Close" {
				must(t, c.Close())
			} else {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				if err := c.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Shutdown: %v", err)
				}
			}
			if err := waits.Wait(nil); slipstream.OutcomeOf(err) != slipstream.Closed {
				t.Errorf("a call that waited for a connection: %v", err)
			}
			for range 2 {
				for _, s := range sessions {
					if err := s.Do(t.Context(), nil, redis.Cmd("INCR", "n")); slipstream.OutcomeOf(err) != slipstream.Closed {
						t.Errorf("a session afterwards: %v", err)
					}
				}
			}
			if _, err := c.Session(t.Context()); slipstream.OutcomeOf(err) != slipstream.Closed {
				t.Errorf("a new session: %v", err)
			}
		})
	}
}

// TestCloseEndsDialling: a caller that waits for a connection that is never opened
// is released.
func TestCloseEndsDialling(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	var dials atomic.Int32
	c := connect(t, redis.Options{Addr: server.Addr, DialTimeout: time.Minute, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials.Add(1) > 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}})
	waits := c.Start(t.Context(), redis.Cmd("BLPOP", "l", 0))
	testkit.Eventually(t, 10*time.Second, func() error {
		if n := dials.Load(); n < 2 {
			return fmt.Errorf("%d dials", n)
		}
		return nil
	})
	began := time.Now()
	must(t, c.Close())
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("Close took %v", took)
	}
	if err := waits.Wait(nil); slipstream.OutcomeOf(err) != slipstream.Closed {
		t.Errorf("got %v", err)
	}
}

// TestAskingFails: if the lookup of an unknown command fails, the command was not sent, whatever
// happened to the lookup. The next call looks it up again.
func TestAskingFails(t *testing.T) {
	testkit.NoLeaks(t)
	var failures atomic.Int32
	s := fake(t, func(conn int, args []string) string {
		switch {
		case args[0] == "COMMAND" && failures.Add(-1) >= 0:
			return hangUp
		case args[0] == "COMMAND":
			return "*1\r\n*-1\r\n"
		case args[0] == "CLIENT":
			return ":7\r\n"
		}
		return "+OK\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr, Retries: -1, Backoff: time.Millisecond})
	calls := map[string]func() error{
		"Do":    func() error { return c.Do(t.Context(), nil, redis.Cmd("MODULE.GET", "k")) },
		"Start": func() error { return c.Start(t.Context(), redis.Cmd("MODULE.GET", "k")).Wait(nil) },
		"DoMany": func() error {
			return c.DoMany(t.Context(), []redis.Command{redis.Cmd("PING"), redis.Cmd("MODULE.GET", "k")}, nil)
		},
	}
	for name, call := range calls {
		testkit.Eventually(t, 10*time.Second, func() error { return c.Ping(t.Context()) })
		failures.Store(1)
		if err := call(); slipstream.OutcomeOf(err) != slipstream.NotSent || !strings.Contains(err.Error(), "looking up the command") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, command := range s.seen() {
		if strings.HasPrefix(command, "MODULE.GET") {
			t.Fatalf("it was sent: %q", s.seen())
		}
	}
	testkit.Eventually(t, 10*time.Second, func() error { return calls["Do"]() })
	must(t, calls["DoMany"]())
	// With retries, callers notice nothing.
	patient := connect(t, redis.Options{Addr: s.Addr, Backoff: time.Millisecond})
	failures.Store(2)
	must(t, patient.Do(t.Context(), nil, redis.Cmd("MODULE.GET", "k")))
	must(t, c.Close())
	if err := c.Do(t.Context(), nil, redis.Cmd("OTHER.GET", "k")); slipstream.OutcomeOf(err) != slipstream.Closed {
		t.Errorf("after Close: %v", err)
	}
}

// limited returns a client of a user with all permissions except for the given rules, and one of a
// user with all permissions.
func limited(t *testing.T, rules ...string) (c, admin *redis.Client) {
	t.Helper()
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	admin = connect(t, redis.Options{Addr: server.Addr})
	args := []any{"SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	must(t, admin.Do(t.Context(), nil, redis.Cmd("ACL", args...)))
	return connect(t, redis.Options{Addr: server.Addr, User: "limited", Password: "secret"}), admin
}

func refusedFor(err error, code string) error {
	var e *redis.ServerError
	if !errors.As(err, &e) || e.Code != code || slipstream.OutcomeOf(err) != slipstream.Refused {
		return fmt.Errorf("got %v, want a refusal with %s", err, code)
	}
	return nil
}

// TestMonitorRefused: the only result is the server's error.
func TestMonitorRefused(t *testing.T) {
	c, _ := limited(t, "-monitor")
	n := 0
	for line, err := range c.Monitor(t.Context()) {
		n++
		must(t, refusedFor(err, "NOPERM"))
		if line != "" {
			t.Errorf("a line: %q", line)
		}
	}
	if s := c.Stats().Exclusive; n != 1 || s.Lent != 0 {
		t.Errorf("%d results; connections: %+v", n, s)
	}
}

// TestWatchRefused: the function is not called, and the connection serves the next caller.
func TestWatchRefused(t *testing.T) {
	c, admin := limited(t, "-watch")
	for range 2 {
		err := c.Watch(t.Context(), func(*redis.Tx) error { t.Error("called"); return nil }, "k")
		must(t, refusedFor(err, "NOPERM"))
	}
	must(t, c.Do(t.Context(), nil, redis.Cmd("BLPOP", "none", 0.01)))
	if s := c.Stats().Exclusive; s.Lent != 0 || s.Opened != 1 {
		t.Errorf("connections: %+v, want one", s)
	}
	// A key that this user may not read is refused, too.
	must(t, admin.Do(t.Context(), nil, redis.Cmd("ACL", "SETUSER", "limited", "+watch", "resetkeys", "~mine:*")))
	must(t, refusedFor(c.Watch(t.Context(), func(*redis.Tx) error { return nil }, "other"), "NOPERM"))
	must(t, c.Watch(t.Context(), func(tx *redis.Tx) error { tx.Add(nil, redis.Cmd("SET", "mine:k", 1)); return nil }, "mine:k"))
}

// TestSessionDiesWithinACommand: the outcome of the request is unknown, and the session has ended.
func TestSessionDiesWithinACommand(t *testing.T) {
	s := fake(t, func(conn int, args []string) string {
		switch args[0] {
		case "CLIENT":
			return ":" + strconv.Itoa(conn+1) + "\r\n"
		case "INCR":
			return hangUp
		}
		return "+OK\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr})
	session, err := c.Session(t.Context())
	must(t, err)
	defer session.Close()
	must(t, session.Do(t.Context(), nil, redis.Cmd("SET", "k", "v")))
	if err := session.Do(t.Context(), nil, redis.Cmd("INCR", "n")); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("it was sent: %v", err)
	}
	if err := session.Do(t.Context(), nil, redis.Cmd("INCR", "n")); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("after it: %v", err)
	}
}

// TestWatchDiesBeforeExec: if the connection is lost between the reads and EXEC, nothing was
// executed, and the error says so.
func TestWatchDiesBeforeExec(t *testing.T) {
	c := start(t)
	err := c.Watch(t.Context(), func(tx *redis.Tx) error {
		var id int64
		if err := tx.Do(t.Context(), &id, redis.Cmd("CLIENT", "ID")); err != nil {
			return err
		}
		tx.Add(nil, redis.Cmd("SET", "k", 1))
		return c.Do(t.Context(), nil, redis.Cmd("CLIENT", "KILL", "ID", id))
	}, "k")
	if slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("got %v", err)
	}
	if _, found, err := c.Get(t.Context(), "k"); found || err != nil {
		t.Errorf("it was executed, %v", err)
	}
}

// TestUnblockComesTooEarly: a server may read CLIENT UNBLOCK before the command that it is meant to
// end; it replies that nothing is blocked, and the client sends CLIENT UNBLOCK again.
func TestUnblockComesTooEarly(t *testing.T) {
	var asked atomic.Int32
	third := make(chan struct{})
	s := fake(t, func(_ int, args []string) string {
		switch {
		case args[0] == "BLPOP":
			<-third
			return "*-1\r\n"
		case args[0] == "CLIENT" && args[1] == "ID":
			return ":7\r\n"
		case args[0] == "CLIENT":
			if asked.Add(1) == 3 {
				close(third)
				return ":1\r\n"
			}
			return ":0\r\n"
		}
		return "+OK\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr, Protocol: 2, OmitClientInfo: true})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := c.Do(ctx, nil, redis.Cmd("BLPOP", "l", 0))
	if !errors.Is(err, context.DeadlineExceeded) || slipstream.OutcomeOf(err) != slipstream.Refused {
		t.Errorf("got %v", err)
	}
	if s := c.Stats().Exclusive; s.Unblocked != 1 || s.Abandoned != 0 || s.Idle != 1 {
		t.Errorf("connections: %+v", s)
	}
}
