package tarantooltest_test

import (
	"context"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/tarantooltest"
)

type user struct {
	ID   uint64
	Name string
	Age  int
}

// The package's own client finds in the server what it needs of a new Tarantool.
func TestClient(t *testing.T) {
	testkit.NoLeaks(t)
	server, tls := certificates(t)
	s := tarantooltest.Start(t, tarantooltest.Config{Users: map[string]string{"alice": "wonderland"}, Locked: true, TLS: server})
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
		if err := tx.Exec(ctx, nil, tarantool.Insert("users", []any{2, "two", 20})); err != nil {
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
	s.Func("count", func(r *tarantooltest.Request) ([]any, error) { return []any{len(s.Tuples("users"))}, nil })
	var count struct{ N int }
	if err := tarantool.ProcedureOf[struct{}, struct{ N int }](c, "count").Call(ctx, nil, &count); err != nil || count.N != 2 {
		t.Errorf("%+v, %v", count, err)
	}
}

func Example() {
	server, err := tarantooltest.NewServer(tarantooltest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	err = server.CreateSpace(tarantooltest.Space{
		Name:    "users",
		Fields:  []tarantooltest.Field{{Name: "id", Type: "unsigned"}, {Name: "name", Type: "string"}},
		Indexes: []tarantooltest.Index{{Name: "primary", Parts: []string{"id"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := server.Put("users", []any{1, "Alice"}); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	client, err := tarantool.Connect(ctx, tarantool.Options{Addr: server.Addr()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	type user struct {
		ID   int
		Name string
	}
	var u user
	found, err := tarantool.SpaceOf[user](client, "users").Get(ctx, &u, tarantool.Int(1))
	fmt.Println(u.Name, found, err)
	// Output: Alice true <nil>
}
