package tarantool_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// begun returns a stream in a transaction.
func begun(t testing.TB, c *tarantool.Client) *tarantool.Stream {
	t.Helper()
	s, err := c.Stream(patient(t))
	must(t, err)
	must(t, s.Begin(patient(t), tarantool.TxOptions{}))
	return s
}

func TestStreamCommitAndRollback(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	c := connected(t, server)
	ctx := patient(t)
	kept, dropped := begun(t, c), begun(t, c)
	must(t, kept.Do(ctx, nil, tarantool.Insert("users", []any{1, "one", 0})))
	must(t, dropped.Do(ctx, nil, tarantool.Insert("users", []any{2, "two", 0})))
	has(t, server)
	for _, s := range []struct {
		stream *tarantool.Stream
		want   string
	}{{kept, "[[1 one 0]]"}, {dropped, "[[2 two 0]]"}} {
		if data, err := s.stream.Start(ctx, tarantool.Select("users")).Get(); err != nil || fmt.Sprint(data) != s.want {
			t.Errorf("a transaction sees %v, %v; want %s", data, err, s.want)
		}
	}
	must(t, dropped.Rollback(ctx))
	must(t, kept.Commit(ctx))
	has(t, server, []any{1, "one", 0})
	// A stream can be reused, and outside of transactions its requests are like any others.
	must(t, dropped.Do(ctx, nil, tarantool.Replace("users", []any{2, "alone", 0})))
	must(t, dropped.Begin(ctx, tarantool.TxOptions{}))
	err := dropped.Begin(ctx, tarantool.TxOptions{})
	if !tarantool.IsCode(err, iproto.CodeActiveTransaction) {
		t.Errorf("a begin in a transaction: %v", err)
	}
	outcome(t, "a begin in a transaction", err, slipstream.Refused)
	must(t, dropped.Do(ctx, nil, tarantool.Delete("users", tarantool.Int(1))))
	must(t, dropped.Commit(ctx))
	has(t, server, []any{2, "alone", 0})
}

// Requests of a stream are executed in the order in which Do was called, all on one connection.
func TestStreamOrder(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	must(t, server.Put("users", []any{1, "", 0}))
	var mu sync.Mutex
	of := make(map[uint64]int) // connections by stream; guarded by mu
	server.Handle("update users", func(r *tarantoolsim.Request) ([]any, error) {
		mu.Lock()
		defer mu.Unlock()
		if before, known := of[r.Stream]; known && before != r.Connection() {
			t.Errorf("stream %d on the connections %d and %d", r.Stream, before, r.Connection())
		}
		of[r.Stream] = r.Connection()
		return nil, tarantoolsim.Own
	})
	c := connect(t, tarantool.Options{Addr: server.Addr(), Sockets: 4})
	ctx := patient(t)
	for range 20 {
		s := begun(t, c)
		var futures []tarantool.Future
		for i := range 30 {
			futures = append(futures, s.Start(ctx, tarantool.Update("users", []tarantool.Part{tarantool.Int(1)}, tarantool.Assign("hits", i))))
		}
		for i, f := range futures {
			if data, err := f.Get(); err != nil || fmt.Sprint(data) != fmt.Sprintf("[[1  %d]]", i) {
				t.Fatalf("%d: %v, %v", i, data, err)
			}
		}
		must(t, s.Rollback(ctx))
	}
	mu.Lock()
	defer mu.Unlock()
	used := make(map[int]bool)
	for _, connection := range of {
		used[connection] = true
	}
	if len(of) != 20 || len(used) < 2 {
		t.Errorf("%d streams on %d connections", len(of), len(used))
	}
}

// The server receives the options of a transaction.
func TestTransactionOptions(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	var body []byte // written by the handler, read when the begin has its answer
	server.Handle("begin", func(r *tarantoolsim.Request) ([]any, error) {
		body = r.Body
		return nil, tarantoolsim.Own
	})
	c := connected(t, server)
	ctx := patient(t)
	s, err := c.Stream(ctx)
	must(t, err)
	for _, step := range []struct {
		options tarantool.TxOptions
		want    map[box.Key]any
	}{
		{tarantool.TxOptions{}, map[box.Key]any{}},
		{tarantool.TxOptions{Isolation: tarantool.IsolationLinearizable}, map[box.Key]any{box.KeyIsolation: 4}},
		{tarantool.TxOptions{Isolation: tarantool.IsolationReadConfirmed, Timeout: 1500 * time.Millisecond}, map[box.Key]any{box.KeyIsolation: 2, box.KeyTimeout: 1.5}},
		{tarantool.TxOptions{Synchronous: true}, map[box.Key]any{box.KeyIsSync: true}},
	} {
		must(t, s.Begin(ctx, step.options))
		got, d := make(map[box.Key]any), iproto.NewDecoder(body)
		for range d.Map() {
			key := box.Key(d.Uint())
			got[key] = d.Any()
		}
		if d.Err() != nil || fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("%+v: %v, %v; want %v", step.options, got, d.Err(), step.want)
		}
		must(t, s.Rollback(ctx))
	}
	before := simulated(t, tarantoolsim.Config{Version: "3.1.0", Protocol: 7})
	s, err = connected(t, before).Stream(ctx)
	must(t, err)
	lacking(t, "a synchronous commit", s.Begin(ctx, tarantool.TxOptions{Synchronous: true}), "3.2", "3.1.0")
	if n := saw(before, "begin"); n > 0 {
		t.Errorf("%d begins were sent", n)
	}
}

func TestTransactionTimeout(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	c := connected(t, server)
	ctx := patient(t)
	err := c.Transaction(ctx, tarantool.TxOptions{Timeout: time.Millisecond}, func(s *tarantool.Stream) error {
		for id := 1; ; id++ {
			if err := s.Do(ctx, nil, tarantool.Insert("users", []any{id, "", 0})); err != nil {
				return err
			}
		}
	})
	if !tarantool.IsCode(err, iproto.CodeTransactionTimeout) {
		t.Errorf("%v", err)
	}
	outcome(t, "a transaction that took too long", err, slipstream.Refused)
	has(t, server)
}

func TestStreamsOfOldServers(t *testing.T) {
	testkit.NoLeaks(t)
	_, real := started(t)
	lacksOne := simulated(t, tarantoolsim.Config{Without: []int{int(box.FeatureStreams)}})
	old := simulated(t, oldServer)
	for _, server := range []struct{ addr, version string }{{real.Addr, "2.6.0"}, {old.Addr(), "2.6.0"}, {lacksOne.Addr(), "3.3.0"}} {
		c := connect(t, tarantool.Options{Addr: server.addr})
		_, err := c.Stream(t.Context())
		lacking(t, "a stream", err, "2.10", server.version)
		err = c.Transaction(t.Context(), tarantool.TxOptions{}, func(*tarantool.Stream) error {
			t.Error("the transaction was started")
			return nil
		})
		lacking(t, "a transaction", err, "2.10", server.version)
	}
	for _, s := range []*tarantoolsim.Server{old, lacksOne} {
		if all := s.Seen(); len(all) != saw(s, "watch") { // for the shutdown of the server
			t.Errorf("%v was sent", all)
		}
	}
}

// increment adds one to hits of the tuple, in a way that would lose concurrent changes without a
// transaction.
func increment(ctx context.Context, s *tarantool.Stream, id int) error {
	var users []user
	if err := s.Do(ctx, &users, tarantool.Select("users").Key(tarantool.Int(id))); err != nil {
		return err
	}
	users[0].Hits++
	return s.Do(ctx, nil, tarantool.Replace("users", &users[0]))
}

func TestTransactionConflict(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	must(t, server.Put("users", []any{1, "", 0}))
	ctx := patient(t)
	for _, c := range []struct{ retries, conflicts, runs int }{{0, 0, 1}, {0, 1, 2}, {0, 3, 4}, {0, 9, 4}, {-1, 9, 1}, {1, 9, 2}} {
		name := fmt.Sprintf("%+v", c)
		must(t, server.Put("users", []any{1, "", 0}))
		client := connect(t, tarantool.Options{Addr: server.Addr(), Retries: c.retries, Backoff: time.Microsecond, MaxBackoff: time.Microsecond})
		runs := 0
		err := client.Transaction(ctx, tarantool.TxOptions{}, func(s *tarantool.Stream) error {
			runs++
			err := increment(ctx, s, 1)
			if runs <= c.conflicts { // another transaction was first
				must(t, server.Put("users", []any{1, "", 10 * runs}))
			}
			return err
		})
		if runs != c.runs {
			t.Errorf("%s: %d runs", name, runs)
		}
		if runs > c.conflicts {
			must(t, err)
			has(t, server, []any{1, "", 10*c.conflicts + 1})
			continue
		}
		if !tarantool.IsCode(err, iproto.CodeTransactionConflict) {
			t.Errorf("%s: %v", name, err)
		}
		outcome(t, name, err, slipstream.Refused)
		has(t, server, []any{1, "", 10 * runs})
	}
}

// Many concurrent transactions that change the same tuple lose no changes.
func TestTransactionsBesideEachOther(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	must(t, server.Put("users", []any{1, "", 0}))
	c := connect(t, tarantool.Options{Addr: server.Addr(), Sockets: 2, Retries: math.MaxInt32, Backoff: time.Microsecond, MaxBackoff: 500 * time.Microsecond})
	ctx := patient(t)
	var wg sync.WaitGroup
	var runs atomic.Int64
	for range 4 {
		wg.Go(func() {
			for range 25 {
				if err := c.Transaction(ctx, tarantool.TxOptions{}, func(s *tarantool.Stream) error {
					runs.Add(1)
					return increment(ctx, s, 1)
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	has(t, server, []any{1, "", 100})
	t.Logf("%d runs", runs.Load())
}

// A transaction whose function fails, or panics, is rolled back.
func TestTransactionFunctionFails(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	c := connected(t, server)
	ctx := patient(t)
	failure := errors.New("changed my mind")
	insert := func(s *tarantool.Stream) { must(t, s.Do(ctx, nil, tarantool.Insert("users", []any{1, "", 0}))) }
	if err := c.Transaction(ctx, tarantool.TxOptions{}, func(s *tarantool.Stream) error {
		insert(s)
		return failure
	}); err != failure {
		t.Errorf("%v", err)
	}
	func() {
		defer func() {
			if p := recover(); p != failure {
				t.Errorf("recovered %v", p)
			}
		}()
		c.Transaction(ctx, tarantool.TxOptions{}, func(s *tarantool.Stream) error {
			insert(s)
			panic(failure)
		})
	}()
	has(t, server)
	if begins, rollbacks, commits := saw(server, "begin"), saw(server, "rollback"), saw(server, "commit"); begins != 2 || rollbacks != 2 || commits != 0 {
		t.Errorf("%d begins, %d rollbacks, %d commits", begins, rollbacks, commits)
	}
}
