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

func TestDoTransaction(t *testing.T) {
	c := start(t)
	var b redis.Batch
	var n int64
	var list []string
	var value *string
	b.Add(nil, redis.Cmd("SET", "n", 5))
	b.Add(&n, redis.Cmd("INCR", "n"))
	b.Add(nil, redis.Cmd("RPUSH", "l", "a", "b"))
	b.Add(&list, redis.Cmd("LRANGE", "l", 0, -1))
	b.Add(&value, redis.Cmd("BLMOVE", "none", "l", "LEFT", "RIGHT", 0)) // does not block within a transaction
	for range 2 {
		must(t, c.DoTransaction(t.Context(), &b))
		if n != 6 || list[0] != "a" || value != nil {
			t.Errorf("got %d, %v, %v", n, list, value)
		}
	}
	must(t, c.DoTransaction(t.Context(), new(redis.Batch)))
}

// TestTransactionErrors checks what is executed, what is not, and which command the error names.
func TestTransactionErrors(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	must(t, c.Set(ctx, "text", "x"))
	each := map[string]func(b *redis.Batch) error{
		"shared": func(b *redis.Batch) error { return c.DoTransaction(ctx, b) },
		"watch": func(b *redis.Batch) error {
			return c.Watch(ctx, func(tx *redis.Tx) error {
				tx.Add(nil, redis.Cmd("INCR", "n"))
				tx.Add(nil, redis.Cmd("INCR", "text"))
				if b.Len() > 2 {
					tx.Add(nil, redis.Cmd("INCR"))
				}
				return nil
			}, "n")
		},
	}
	for name, do := range each {
		t.Run(name, func(t *testing.T) {
			c.Del(ctx, "n")
			var b redis.Batch
			b.Add(nil, redis.Cmd("INCR", "n"))
			b.Add(nil, redis.Cmd("INCR", "text"))
			err := do(&b)
			var of *redis.BatchError
			if !errors.As(err, &of) || of.Index != 1 || of.Failed != 1 || slipstream.OutcomeOf(err) != slipstream.Executed {
				t.Errorf("a command that fails: %v", err)
			}
			b.Add(nil, redis.Cmd("INCR")) // not even queued
			err = do(&b)
			if slipstream.OutcomeOf(err) != slipstream.Refused || !strings.Contains(err.Error(), "command 2") || !strings.Contains(err.Error(), "wrong number") {
				t.Errorf("a command that is not queued: %v", err)
			}
			if n, _, err := c.Get(ctx, "n"); n != "1" || err != nil {
				t.Errorf("n is %s, %v, want 1: the second transaction was refused", n, err)
			}
		})
	}
	for _, cmd := range []redis.Command{redis.Cmd("SUBSCRIBE", "c"), redis.Cmd("EXEC"), redis.Cmd("SELECT", 1), {}, redis.Cmd("SET", "k", t)} {
		var b redis.Batch
		b.Add(nil, cmd)
		if err := c.DoTransaction(ctx, &b); slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("%v: %v", cmd, err)
		}
	}
}

// TestTransactionWithoutMulti: if the server refuses only MULTI, the commands were
// executed separately, and no error claims that they were not executed.
func TestTransactionWithoutMulti(t *testing.T) {
	s := fake(t, func(conn int, args []string) string {
		switch args[0] {
		case "MULTI":
			return "-NOPERM this user has no permissions to run the 'multi' command\r\n"
		case "EXEC":
			return "-ERR EXEC without MULTI\r\n"
		case "CLIENT":
			return ":9\r\n"
		}
		return "+OK\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr, Protocol: 2, OmitClientInfo: true})
	var b redis.Batch
	b.Add(nil, redis.Cmd("SET", "k", "v"))
	if err := c.DoTransaction(t.Context(), &b); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("shared: %v", err)
	}
	err := c.Watch(t.Context(), func(tx *redis.Tx) error { tx.Add(nil, redis.Cmd("SET", "k", "v")); return nil }, "k")
	if slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("watch: %v", err)
	}
}

// TestWatchUnderContention: the counter adds up, and every error is accurate.
func TestWatchUnderContention(t *testing.T) {
	c := start(t)
	const workers, each = 32, 20
	var calls, done atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range each {
				err := c.Watch(t.Context(), func(tx *redis.Tx) error {
					calls.Add(1)
					var n *int64
					if err := tx.Do(t.Context(), &n, redis.Cmd("GET", "counter")); err != nil {
						return err
					}
					next := int64(1)
					if n != nil {
						next = *n + 1
					}
					tx.Add(nil, redis.Cmd("SET", "counter", next))
					return nil
				}, "counter")
				if err == nil {
					done.Add(1)
				} else {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	var n int64
	must(t, c.Do(t.Context(), &n, redis.Cmd("GET", "counter")))
	t.Logf("%d transactions in %d attempts", done.Load(), calls.Load())
	if n != done.Load() || n != workers*each {
		t.Errorf("the counter is %d after %d transactions", n, done.Load())
	}
	if calls.Load() == done.Load() {
		t.Error("there was no conflict")
	}
}

// TestWatchGivesUp: Watch ends with an error of the function, and with a conflict that does not
// end.
func TestWatchGivesUp(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	mine := errors.New("mine")
	if err := c.Watch(ctx, func(tx *redis.Tx) error { tx.Add(nil, redis.Cmd("SET", "k", 1)); return mine }, "k"); !errors.Is(err, mine) {
		t.Errorf("got %v", err)
	}
	must(t, c.Watch(ctx, func(*redis.Tx) error { return nil }, "k"))
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	err := c.Watch(short, func(tx *redis.Tx) error {
		tx.Add(nil, redis.Cmd("SET", "k", 1))
		return c.Set(ctx, "k", "another's")
	}, "k")
	// An EXEC whose reply is awaited when the time is up is in doubt, and nothing else is.
	if e, ok := errors.AsType[*slipstream.Error](err); !ok || e.Outcome == slipstream.MaybeExecuted && e.Op != "EXEC" {
		t.Errorf("a conflict that does not end: %v", err)
	}
	for _, cmd := range []redis.Command{redis.Cmd("EXEC"), redis.Cmd("BLPOP", "l", 0)} {
		err := c.Watch(ctx, func(tx *redis.Tx) error { return tx.Do(ctx, nil, cmd) }, "k")
		if slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("%v: %v", cmd, err)
		}
	}
	if v, _, err := c.Get(ctx, "k"); v != "another's" || err != nil {
		t.Errorf("k is %q, %v", v, err)
	}
	if s := c.Stats().Exclusive; s.Lent != 0 {
		t.Errorf("connections: %+v", s)
	}
}

// TestTransactionCancelStorm: transactions that are given up at any moment leave the shared
// connection intact: no call gets QUEUED as its reply, and each transaction is executed as a whole
// or not at all.
func TestTransactionCancelStorm(t *testing.T) {
	c := start(t)
	random := testkit.Rand(t)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				want := strconv.Itoa(i)
				var got string
				if err := c.Do(t.Context(), &got, redis.Cmd("ECHO", want)); err != nil || got != want {
					t.Errorf("ECHO %s: %q, %v", want, got, err)
					return
				}
			}
		})
	}
	var sure, maybe, never atomic.Int64
	var storm sync.WaitGroup
	for i := range 24 {
		r := testkit.Fork(random.Uint64(), uint64(i))
		patience := 8000 // microseconds
		if i%4 == 0 {
			patience = 500_000 // which a slow machine needs
		}
		storm.Go(func() {
			for range 300 {
				var b redis.Batch
				// More calls than the sweeper visits under one lock.
				for range 1 + r.IntN(400) {
					b.Add(nil, redis.Cmd("INCR", "a"))
				}
				b.Add(nil, redis.Cmd("INCRBY", "b", b.Len()))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(patience))*time.Microsecond)
				err := c.DoTransaction(ctx, &b)
				cancel()
				switch {
				case err == nil:
					sure.Add(1)
				case slipstream.OutcomeOf(err) == slipstream.MaybeExecuted:
					maybe.Add(1)
				default:
					never.Add(1)
				}
			}
		})
	}
	storm.Wait()
	close(stop)
	all.Wait()
	var values []int64
	must(t, c.Do(t.Context(), &values, redis.Cmd("MGET", "a", "b")))
	t.Logf("%d executed, %d in doubt, %d not", sure.Load(), maybe.Load(), never.Load())
	if values[0] != values[1] {
		t.Errorf("a is %d, b is %d: a transaction was executed in part", values[0], values[1])
	}
	if sure.Load() == 0 || maybe.Load() == 0 {
		t.Error("the test had no effect")
	}
}

// TestSession: the state of a session affects no other connection.
func TestSession(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	s, err := c.Session(ctx)
	must(t, err)
	defer s.Close()
	must(t, s.Do(ctx, nil, redis.Cmd("SELECT", 3)))
	must(t, s.Do(ctx, nil, redis.Cmd("SET", "k", "three")))
	if _, found, err := c.Get(ctx, "k"); found || err != nil {
		t.Errorf("the shared connection uses database 3: %v", err)
	}
	must(t, s.Do(ctx, nil, redis.Cmd("MULTI")))
	var queued string
	must(t, s.Do(ctx, &queued, redis.Cmd("GET", "k")))
	var got []string
	must(t, s.Do(ctx, &got, redis.Cmd("EXEC")))
	if queued != "QUEUED" || fmt.Sprint(got) != "[three]" {
		t.Errorf("got %q and %v", queued, got)
	}
	for _, cmd := range []redis.Command{redis.Cmd("SUBSCRIBE", "c"), redis.Cmd("CLIENT", "REPLY", "OFF"), redis.Cmd("MONITOR"), redis.Cmd("QUIT"), {}} {
		if err := s.Do(ctx, nil, cmd); slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("%v: %v", cmd, err)
		}
	}
	s.Close()
	s.Close()
	if err := s.Do(ctx, nil, redis.Cmd("PING")); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("after Close: %v", err)
	}
	if s := c.Stats().Exclusive; s.Lent != 0 || s.Idle != 0 {
		t.Errorf("a connection that uses database 3 was kept: %+v", s)
	}
}

// TestSessionLost: the state of a session is lost with its connection.
func TestSessionLost(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	s, err := c.Session(ctx)
	must(t, err)
	defer s.Close()
	var id int64
	must(t, s.Do(ctx, &id, redis.Cmd("CLIENT", "ID")))
	must(t, c.Do(ctx, nil, redis.Cmd("CLIENT", "KILL", "ID", id)))
	// The server has closed the connection: nothing is sent, so nothing is in
	// doubt.
	for range 2 {
		if err := s.Do(ctx, nil, redis.Cmd("INCR", "n")); slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("after that: %v", err)
		}
	}
	if _, found, err := c.Get(ctx, "n"); found || err != nil {
		t.Errorf("it was executed, %v", err)
	}
}

// TestSessionGivenUp: if the caller gives up a command that does not block, its outcome is
// uncertain, even if its reply would be null, because that does not mean that it did nothing.
func TestSessionGivenUp(t *testing.T) {
	c := start(t)
	s, err := c.Session(t.Context())
	must(t, err)
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	slow := redis.Cmd("EVAL", "redis.call('INCR', KEYS[1]); local t = redis.call('TIME'); local stop = t[1] * 1000000 + t[2] + 150000; repeat t = redis.call('TIME') until t[1] * 1000000 + t[2] > stop; return nil", 1, "n")
	if err := s.Do(ctx, nil, slow); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("got %v", err)
	}
	if err := s.Do(t.Context(), nil, redis.Cmd("PING")); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("the session continues: %v", err)
	}
}
