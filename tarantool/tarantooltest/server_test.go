package tarantooltest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
	"github.com/slipstream-go/slipstream/tarantool/tarantooltest"
)

type user struct {
	ID   uint64
	Name string
	Age  int
}

// started returns a server with a space of users, and a client for it.
func started(t *testing.T, c tarantooltest.Config, o tarantool.Options) (context.Context, *tarantooltest.Server, *tarantool.Client) {
	t.Helper()
	testkit.NoLeaks(t)
	s := tarantooltest.Start(t, c)
	err := s.CreateSpace(tarantooltest.Space{
		Name:   "users",
		Fields: []tarantooltest.Field{{Name: "id", Type: "unsigned"}, {Name: "name", Type: "string"}, {Name: "age", Type: "integer", Nullable: true}},
		Indexes: []tarantooltest.Index{
			{Name: "primary", Parts: []string{"id"}}, {Name: "age", Parts: []string{"age"}, Repeats: true},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	o.Addr, o.Backoff, o.MaxBackoff = s.Addr(), time.Millisecond, 5*time.Millisecond
	client, err := tarantool.Connect(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return ctx, s, client
}

// A pool of servers finds the one that accepts writes, and notices when another one does. A test
// can replace the answers to the queries of a pool.
func TestPoolFindsTheRoles(t *testing.T) {
	testkit.NoLeaks(t)
	leader := tarantooltest.Start(t, tarantooltest.Config{})
	follower := tarantooltest.Start(t, tarantooltest.Config{ReadOnly: true})
	for _, s := range []*tarantooltest.Server{leader, follower} {
		s.Func("ping", func(*tarantooltest.Request) ([]any, error) { return nil, nil })
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p, err := tarantool.NewPool(ctx, tarantool.PoolOptions{Addrs: []string{leader.Addr(), follower.Addr()}, CheckInterval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	states := func(want ...tarantool.InstanceState) {
		t.Helper()
		testkit.Eventually(t, 10*time.Second, func() error {
			var got []tarantool.InstanceState
			for _, i := range p.Instances() {
				got = append(got, i.State)
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("the instances are %v, expected %v", got, want)
			}
			return nil
		})
	}
	states(tarantool.InstanceReadWrite, tarantool.InstanceReadOnly)
	if err := p.Do(ctx, nil, tarantool.Call("ping"), tarantool.ReadWrite); err != nil {
		t.Error(err)
	}
	leader.SetReadOnly(true)
	follower.SetReadOnly(false)
	states(tarantool.InstanceReadOnly, tarantool.InstanceReadWrite)
	denied := tarantooltest.Error(iproto.CodeAccessDenied, "no")
	follower.Handle("eval", func(*tarantooltest.Request) ([]any, error) { return nil, denied })
	if err := p.Do(ctx, nil, tarantool.Call("ping"), tarantool.ReadWrite); err != nil {
		t.Errorf("a pool that may only call box.info: %v", err)
	}
	states(tarantool.InstanceReadOnly, tarantool.InstanceReadWrite)
	follower.Func("box.info", func(*tarantooltest.Request) ([]any, error) { return nil, denied })
	states(tarantool.InstanceReadOnly, tarantool.InstanceUnknown)
}

func TestSpaces(t *testing.T) {
	ctx, s, c := started(t, tarantooltest.Config{}, tarantool.Options{})
	if err := s.Put("users", []any{1, "one", 30}, []any{2, "two", 30}); err != nil {
		t.Fatal(err)
	}
	users := tarantool.SpaceOf[user](c, "users")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	must(users.Insert(ctx, &user{3, "three", 20}))
	must(users.Replace(ctx, &user{2, "zwei", 30}))
	must(users.Upsert(ctx, &user{1, "x", 0}, tarantool.Add("age", 1)))
	var u user
	found, err := users.Update(ctx, &u, []tarantool.Part{tarantool.Int(3)}, tarantool.Assign("name", "drei"))
	if must(err); !found || u != (user{3, "drei", 20}) {
		t.Errorf("updated %+v, %v", u, found)
	}
	found, err = users.Delete(ctx, nil, tarantool.Int(3))
	if must(err); !found {
		t.Error("nothing was deleted")
	}
	list, err := users.Index("age").Select(ctx, nil, 0, tarantool.Req, tarantool.Int(30))
	if must(err); fmt.Sprint(list) != "[{2 zwei 30}]" {
		t.Errorf("an index of the age: %v", list)
	}
	if got := fmt.Sprint(s.Tuples("users")); got != "[[1 one 31] [2 zwei 30]]" {
		t.Errorf("the space has %s", got)
	}
	if err := users.Insert(ctx, &user{1, "x", 0}); !tarantool.IsCode(err, iproto.CodeTupleFound) {
		t.Errorf("inserted twice: %v", err)
	}
	seen := slices.DeleteFunc(s.Seen(), func(r string) bool { return r == "watch" }) // requests of the client itself
	if want := []string{"insert users", "replace users", "upsert users", "update users", "delete users", "select users", "insert users"}; !slices.Equal(seen, want) {
		t.Errorf("seen %q", seen)
	}
	if err := s.CreateSpace(tarantooltest.Space{Name: "users"}); err == nil {
		t.Error("a space without an index was created")
	}
}

func TestFunctions(t *testing.T) {
	ctx, s, c := started(t, tarantooltest.Config{}, tarantool.Options{})
	s.Func("f", func(r *tarantooltest.Request) ([]any, error) {
		if r.Context().Err() != nil || r.Type != "call" || r.Function != "f" {
			return nil, errors.New("not the function that was called")
		}
		return r.Args, r.Push("soon")
	})
	s.Eval("return ...", func(r *tarantooltest.Request) ([]any, error) { return r.Args, nil })
	var pushed any
	push := func(d *iproto.Decoder) { pushed = d.Any() }
	var got []any
	if err := c.Do(ctx, &got, tarantool.Call("f", 1, "x").OnPush(push)); err != nil || fmt.Sprint(got) != "[1 x]" || fmt.Sprint(pushed) != "[soon]" {
		t.Errorf("%v, %v, pushed %v", got, err, pushed)
	}
	if err := c.Do(ctx, &got, tarantool.Eval("return ...", 2)); err != nil || fmt.Sprint(got) != "[2]" {
		t.Errorf("%v, %v", got, err)
	}
	s.Func("f", nil)
	if err := c.Do(ctx, nil, tarantool.Call("f")); !tarantool.IsCode(err, iproto.CodeNoSuchProcedure) {
		t.Errorf("a function that was removed: %v", err)
	}
}

func TestFaults(t *testing.T) {
	ctx, s, c := started(t, tarantooltest.Config{}, tarantool.Options{Retries: -1})
	insert := func() error { return c.Do(ctx, nil, tarantool.Replace("users", []any{1, "one"})) }
	if err := insert(); err != nil {
		t.Fatal(err)
	}
	s.Handle("replace users", func(*tarantooltest.Request) ([]any, error) {
		return nil, tarantooltest.Error(iproto.CodeWALIO, "the disk is full")
	})
	if err := insert(); !tarantool.IsCode(err, iproto.CodeWALIO) {
		t.Errorf("an error: %v", err)
	}
	s.Handle("replace users", func(r *tarantooltest.Request) ([]any, error) { return nil, tarantooltest.HangUp })
	if err := insert(); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("a connection that ends: %v", err)
	}
	waits := make(chan struct{})
	s.Handle("replace", func(r *tarantooltest.Request) ([]any, error) {
		<-waits
		return nil, tarantooltest.Own
	})
	s.Handle("replace users", nil)
	late := c.Start(ctx, tarantool.Replace("users", []any{2, "two"}))
	close(waits)
	if err := late.Wait(nil); err != nil || len(s.Tuples("users")) != 2 {
		t.Errorf("a delay: %v, %v", err, s.Tuples("users"))
	}
	s.Handle("replace", func(*tarantooltest.Request) ([]any, error) { return nil, tarantooltest.Silence })
	brief, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := c.Do(brief, nil, tarantool.Replace("users", []any{3, "three"})); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer: %v", err)
	}
}

func TestFaultsOfTheWholeServer(t *testing.T) {
	ctx, s, c := started(t, tarantooltest.Config{ReadOnly: true}, tarantool.Options{})
	insert := func(id int) error { return c.Do(ctx, nil, tarantool.Insert("users", []any{id, "x"})) }
	if err := insert(1); !tarantool.IsCode(err, iproto.CodeReadOnly) {
		t.Errorf("a server that is read-only: %v", err)
	}
	s.SetReadOnly(false)
	s.Hang(true)
	hung := c.Start(ctx, tarantool.Insert("users", []any{1, "x"}))
	testkit.Eventually(t, 20*time.Second, func() error {
		if len(s.Tuples("users")) == 0 {
			return errors.New("the request was not executed")
		}
		return nil
	})
	s.Hang(false)
	if err := hung.Wait(nil); err != nil {
		t.Error(err)
	}
	s.Refuse(true)
	s.HangUp()
	testkit.Eventually(t, 20*time.Second, func() error {
		if open, _ := s.Connections(); open > 0 {
			return fmt.Errorf("%d connections are open", open)
		}
		return nil
	})
	s.Refuse(false)
	if err := insert(2); err != nil {
		t.Errorf("after a hang-up: %v", err)
	}
}

func TestUsersAndWatchers(t *testing.T) {
	config := tarantooltest.Config{Users: map[string]string{"ann": "secret"}, Locked: true}
	ctx, s, c := started(t, config, tarantool.Options{User: "ann", Password: "secret"})
	if _, err := tarantool.Connect(ctx, tarantool.Options{Addr: s.Addr(), User: "ann", Password: "wrong"}); !tarantool.IsCode(err, iproto.CodePasswordMismatch) {
		t.Errorf("a wrong password: %v", err)
	}
	w, err := c.Watch(ctx, "config")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := s.Broadcast("config", 7); err != nil {
		t.Fatal(err)
	}
	for {
		e, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		v, err := e.Value()
		if err != nil {
			t.Fatal(err)
		}
		if v == any(int64(7)) {
			break
		}
	}
}
