package tarantooltest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/tarantooltest"
)

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
