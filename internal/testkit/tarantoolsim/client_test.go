package tarantoolsim_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/tarantool"
)

type user struct {
	ID   uint64
	Name string
	Age  int
}

// The client of package tarantool finds everything in the server that it needs from a new
// Tarantool.
func TestClient(t *testing.T) {
	testkit.NoLeaks(t)
	server, tls := certificates(t)
	s := tarantoolsim.Start(t, tarantoolsim.Config{Users: map[string]string{"alice": "wonderland"}, Locked: true, TLS: server})
	if err := s.CreateSpace(spaces[0]); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := tarantool.Connect(ctx, tarantool.Options{Addr: s.Addr(), User: "alice", Password: "wonderland", TLS: tls})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	users := tarantool.SpaceOf[user](c, "users")
	if err := users.Insert(ctx, &user{1, "one", 30}); err != nil {
		t.Fatal(err)
	}
	var u user
	if found, err := users.Index("name").Get(ctx, &u, tarantool.String("one")); !found || err != nil || u != (user{1, "one", 30}) {
		t.Errorf("%+v, %v, %v", u, found, err)
	}
	err = c.Transaction(ctx, tarantool.TxOptions{}, func(tx *tarantool.Stream) error {
		if err := tx.Do(ctx, nil, tarantool.Insert("users", []any{2, "two", 20})); err != nil {
			return err
		}
		if found, err := users.Get(ctx, &u, tarantool.Int(2)); found || err != nil {
			return fmt.Errorf("seen outside: %v, %v", found, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if found, err := users.Get(ctx, &u, tarantool.Int(2)); !found || err != nil || u.Name != "two" {
		t.Errorf("%+v, %v, %v", u, found, err)
	}
	w, err := c.Watch(ctx, "config")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	s.Broadcast("config", map[string]any{"size": 3})
	for {
		e, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]int
		if err := e.Decode(&m); err != nil {
			t.Fatal(err)
		}
		if m["size"] == 3 {
			break
		}
	}
	s.Func("count", func(r *tarantoolsim.Request) ([]any, error) { return []any{len(s.Tuples("users"))}, nil })
	var count struct{ N int }
	if err := tarantool.ProcedureOf[struct{}, struct{ N int }](c, "count").Call(ctx, nil, &count); err != nil || count.N != 2 {
		t.Errorf("%+v, %v", count, err)
	}
}
