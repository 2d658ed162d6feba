package tarantool_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/tarantool"
)

// lost fails the test unless the error says that the stream has ended, and that nothing was sent.
func lost(t testing.TB, what string, err error) {
	t.Helper()
	if !errors.Is(err, tarantool.ErrConnectionLost) {
		t.Errorf("%s: %v", what, err)
	}
	outcome(t, what, err, slipstream.NotSent)
}

// A stream ends with its connection. None of its requests is sent on another one, where each would
// be committed separately.
func TestStreamEndsWithItsConnection(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	c := connected(t, server)
	ctx := patient(t)
	s := begun(t, c)
	must(t, s.Do(ctx, nil, tarantool.Insert("users", []any{1, "", 0})))
	reconnected(t, server)
	must(t, c.Do(ctx, nil, tarantool.Ping())) // the client has reconnected
	lost(t, "an insert", s.Do(ctx, nil, tarantool.Insert("users", []any{2, "", 0})))
	lost(t, "a future", s.Start(ctx, tarantool.Insert("users", []any{3, "", 0})).Wait(nil))
	lost(t, "a blocking call", s.Do(ctx, nil, tarantool.Call("f").Blocking()))
	lost(t, "a commit", s.Commit(ctx))
	lost(t, "a rollback", s.Rollback(ctx))
	lost(t, "a begin", s.Begin(ctx, tarantool.TxOptions{}))
	has(t, server)
	if inserts, commits := saw(server, "insert"), saw(server, "commit"); inserts != 1 || commits != 0 {
		t.Errorf("%d inserts and %d commits were sent", inserts, commits)
	}
	// Another stream of the same client works.
	s = begun(t, c)
	must(t, s.Do(ctx, nil, tarantool.Insert("users", []any{4, "", 0})))
	must(t, s.Commit(ctx))
	has(t, server, []any{4, "", 0})
}

// A request that is cut off in a transaction may have been executed, and is not retried, even if
// it only reads.
func TestStreamCutOff(t *testing.T) {
	testkit.NoLeaks(t)
	for request, do := range map[string]func(ctx context.Context, s *tarantool.Stream) error{
		"insert": func(ctx context.Context, s *tarantool.Stream) error {
			return s.Do(ctx, nil, tarantool.Insert("users", []any{1, "", 0}))
		},
		"select": func(ctx context.Context, s *tarantool.Stream) error {
			return s.Do(ctx, nil, tarantool.Select("users").Key(tarantool.Int(1)))
		},
		"call f": func(ctx context.Context, s *tarantool.Stream) error {
			return s.Do(ctx, nil, tarantool.Call("f").Idempotent())
		},
		"begin":  func(ctx context.Context, s *tarantool.Stream) error { return s.Begin(ctx, tarantool.TxOptions{}) },
		"commit": func(ctx context.Context, s *tarantool.Stream) error { return s.Commit(ctx) },
	} {
		t.Run(request, func(t *testing.T) {
			server := simulated(t, tarantoolsim.Config{})
			c := connected(t, server)
			ctx := patient(t)
			must(t, c.Do(ctx, nil, tarantool.Select("users"))) // the schema is loaded
			s, err := c.Stream(ctx)
			must(t, err)
			if request != "begin" {
				must(t, s.Begin(ctx, tarantool.TxOptions{}))
			}
			before := saw(server, request)
			server.Handle(request, func(r *tarantoolsim.Request) ([]any, error) {
				if r.Stream == 0 {
					return nil, tarantoolsim.Own
				}
				return nil, tarantoolsim.HangUp
			})
			outcome(t, request, do(ctx, s), slipstream.MaybeExecuted)
			must(t, c.Do(ctx, nil, tarantool.Ping()))
			if n := saw(server, request) - before; n != 1 {
				t.Errorf("it was sent %d times", n)
			}
			if err := s.Do(ctx, nil, tarantool.Insert("users", []any{2, "", 0})); !errors.Is(err, tarantool.ErrConnectionLost) && !errors.Is(err, tarantool.ErrStreamInDoubt) {
				t.Errorf("the next request: %v", err)
			}
			has(t, server)
		})
	}
}

// The answer to a commit is lost: the error says that the result is unknown, and nothing is
// executed twice.
func TestTransactionCommitInDoubt(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	must(t, server.Put("users", []any{1, "", 0}))
	c := connected(t, server)
	ctx := patient(t)
	runs, result := 0, make(chan error, 1)
	go func() { // ends with the transaction
		result <- c.Transaction(ctx, tarantool.TxOptions{}, func(s *tarantool.Stream) error {
			runs++
			err := increment(ctx, s, 1)
			server.Hang(true) // the commit is executed, but not answered
			return err
		})
	}()
	until(t, "no commit", func() bool { return fmt.Sprint(server.Tuples("users")) == "[[1  1]]" })
	server.HangUp()
	server.Hang(false)
	outcome(t, "a commit without an answer", <-result, slipstream.MaybeExecuted)
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
	has(t, server, []any{1, "", 1})
	if n := saw(server, "rollback"); n > 0 {
		t.Errorf("%d rollbacks", n)
	}
}

// A connection is lost while the function runs: its changes are undone, and only its request gets
// the error.
func TestTransactionConnectionLost(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	c := connected(t, server)
	ctx := patient(t)
	runs := 0
	err := c.Transaction(ctx, tarantool.TxOptions{}, func(s *tarantool.Stream) error {
		runs++
		must(t, s.Do(ctx, nil, tarantool.Insert("users", []any{1, "", 0})))
		reconnected(t, server)
		must(t, c.Do(ctx, nil, tarantool.Ping()))
		return s.Do(ctx, nil, tarantool.Insert("users", []any{2, "", 0}))
	})
	lost(t, "the transaction", err)
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
	has(t, server)
}

// After a begin without an answer, nothing can be sent in the stream, because it might be committed
// separately, until the transaction, if there is one, has been ended.
func TestStreamInDoubt(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	release := make(chan struct{})
	server.Handle("begin", func(r *tarantoolsim.Request) ([]any, error) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return nil, tarantoolsim.Own
	})
	c := connected(t, server)
	ctx := patient(t)
	s, err := c.Stream(ctx)
	must(t, err)
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	err = s.Begin(short, tarantool.TxOptions{})
	outcome(t, "a begin without an answer", err, slipstream.MaybeExecuted)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	close(release)
	insert := tarantool.Insert("users", []any{1, "", 0})
	for what, err := range map[string]error{
		"an insert": s.Do(ctx, nil, insert), "a future": s.Start(ctx, insert).Wait(nil), "a commit": s.Commit(ctx),
		"a begin": s.Begin(ctx, tarantool.TxOptions{}),
	} {
		if !errors.Is(err, tarantool.ErrStreamInDoubt) {
			t.Errorf("%s: %v", what, err)
		}
		outcome(t, what, err, slipstream.NotSent)
	}
	if n := saw(server, "insert") + saw(server, "commit"); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
	must(t, s.Rollback(ctx))
	must(t, s.Do(ctx, nil, insert))
	has(t, server, []any{1, "", 0})
}

// A transaction that ends without an answer from the server is not left open there, because the
// connection continues and would keep it open.
func TestTransactionLeavesNothingOpen(t *testing.T) {
	testkit.NoLeaks(t)
	for name, what := range map[string]string{"while it begins": "begin", "before the commit": "insert"} {
		t.Run(name, func(t *testing.T) {
			server := simulated(t, tarantoolsim.Config{})
			c := connected(t, server)
			must(t, c.Do(patient(t), nil, tarantool.Select("users")))
			ctx, cancel := context.WithCancel(patient(t))
			release := make(chan struct{})
			server.Handle(what, func(r *tarantoolsim.Request) ([]any, error) {
				if what == "begin" {
					cancel()
					<-release
				}
				return nil, tarantoolsim.Own
			})
			err := c.Transaction(ctx, tarantool.TxOptions{}, func(s *tarantool.Stream) error {
				err := s.Do(ctx, nil, tarantool.Insert("users", []any{1, "", 0}))
				cancel()
				return err
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			close(release)
			until(t, "no rollback", func() bool { return saw(server, "rollback") == 1 })
			has(t, server)
		})
	}
}

// The same holds if there is no room for the commit.
func TestTransactionWithoutRoom(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	release := make(chan struct{})
	server.Func("slow", func(*tarantoolsim.Request) ([]any, error) {
		<-release
		return nil, nil
	})
	c := connect(t, tarantool.Options{Addr: server.Addr(), MaxCalls: 1})
	ctx := patient(t)
	// The client has acknowledged that the server stays up, for which it also needs room.
	until(t, "no watch request from the client", func() bool { return saw(server, "watch") == 2 })
	testkit.Eventually(t, patience, func() error { return c.Do(ctx, nil, tarantool.Ping()) })
	var slow tarantool.Future
	err := c.Transaction(ctx, tarantool.TxOptions{}, func(s *tarantool.Stream) error {
		err := s.Do(ctx, nil, tarantool.Insert("users", []any{1, "", 0}))
		slow = c.Start(ctx, tarantool.Call("slow"))
		time.AfterFunc(30*time.Millisecond, func() { close(release) })
		return err
	})
	outcome(t, "the commit", err, slipstream.Overloaded)
	must(t, slow.Wait(nil))
	if n := saw(server, "rollback"); n != 1 {
		t.Errorf("%d rollbacks", n)
	}
	has(t, server)
}

// The schema changes while a stream is in use. Requests that the server refuses because of that are
// retried in order, or not at all: never after the end of their transaction, where they would be
// committed separately, and never after later requests.
func TestStreamAndChangesOfTheSchema(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	c := connected(t, server)
	ctx := patient(t)
	another := 0
	changed := func() {
		another++
		must(t, server.CreateSpace(tarantoolsim.Space{Name: fmt.Sprint("other", another), Fields: usersSpace.Fields, Indexes: usersSpace.Indexes}))
	}
	must(t, c.Do(ctx, nil, tarantool.Select("users")))
	for name, end := range map[string]func(s *tarantool.Stream) error{
		"rollback": func(s *tarantool.Stream) error { return s.Rollback(ctx) },
		"commit":   func(s *tarantool.Stream) error { return s.Commit(ctx) },
	} {
		changed()
		s := begun(t, c)
		f := s.Start(ctx, tarantool.Insert("users", []any{1, "", 0}))
		must(t, end(s))
		err := f.Wait(nil)
		outcome(t, name, err, slipstream.Refused)
		has(t, server)
	}
	// No request follows this one.
	s, err := c.Stream(ctx)
	must(t, err)
	changed()
	must(t, s.Begin(ctx, tarantool.TxOptions{}))
	must(t, s.Do(ctx, nil, tarantool.Insert("users", []any{1, "", 0})))
	has(t, server)
	must(t, s.Commit(ctx))
	has(t, server, []any{1, "", 0})
	// The second of two requests is the last one.
	changed()
	s = begun(t, c)
	first := s.Start(ctx, tarantool.Replace("users", []any{1, "first", 0}))
	second := s.Start(ctx, tarantool.Replace("users", []any{1, "second", 0}))
	failed := errors.Join(second.Wait(nil), first.Wait(nil))
	must(t, s.Commit(ctx))
	if got := fmt.Sprint(server.Tuples("users")); failed == nil && got != "[[1 second 0]]" || got == "[[1 first 0]]" {
		t.Errorf("%s, %v", got, failed)
	}
	// A transaction is repeated as a whole.
	changed()
	must(t, c.Transaction(ctx, tarantool.TxOptions{}, func(s *tarantool.Stream) error {
		first := s.Start(ctx, tarantool.Replace("users", []any{2, "", 0}))
		second := s.Start(ctx, tarantool.Replace("users", []any{3, "", 0}))
		return errors.Join(first.Wait(nil), second.Wait(nil))
	}))
	if n := len(server.Tuples("users")); n != 3 {
		t.Errorf("%v", server.Tuples("users"))
	}
}
