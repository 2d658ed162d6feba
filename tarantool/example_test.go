package tarantool_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
	"github.com/slipstream-go/slipstream/tarantool/tarantooltest"
)

// account is a tuple: an array of its fields, in order.
type account struct {
	ID      uint64
	Owner   string
	Balance int
}

// exampleClient connects to an in-memory server that has a space of accounts.
func exampleClient() (client *tarantool.Client, server *tarantooltest.Server, stop func()) {
	server, err := tarantooltest.NewServer(tarantooltest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	err = server.CreateSpace(tarantooltest.Space{
		Name: "accounts",
		Fields: []tarantooltest.Field{
			{Name: "id", Type: "unsigned"}, {Name: "owner", Type: "string"}, {Name: "balance", Type: "integer"},
		},
		Indexes: []tarantooltest.Index{
			{Name: "primary", Parts: []string{"id"}}, {Name: "owner", Parts: []string{"owner"}, Repeats: true},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	client, err = tarantool.Connect(context.Background(), tarantool.Options{Addr: server.Addr()})
	if err != nil {
		log.Fatal(err)
	}
	return client, server, func() { client.Close(); server.Close() }
}

// A client sends requests and decodes the data of replies into destinations.
func ExampleClient() {
	addr, stop := exampleInstance() // starts a Tarantool server
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := tarantool.Connect(ctx, tarantool.Options{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	for id, name := range []string{"Ann", "Bob"} {
		if err := client.Do(ctx, nil, tarantool.Insert("users", []any{id, name})); err != nil {
			log.Fatal(err)
		}
	}
	type user struct {
		ID   int
		Name string
	}
	var users []user
	if err := client.Do(ctx, &users, tarantool.Select("users").Limit(10)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(users)

	// A Lua expression returns the array of its results.
	var results []int
	err = client.Do(ctx, &results, tarantool.Eval("return ... + 1", 41))
	fmt.Println(results, err)
	// Output:
	// [{0 Ann} {1 Bob}]
	// [42] <nil>
}

// Start does not wait: both requests are sent before the first result is taken.
func ExampleClient_Start() {
	client, _, stop := exampleClient()
	defer stop()
	ctx := context.Background()
	first := client.Start(ctx, tarantool.Insert("accounts", []any{1, "Ann", 100}))
	second := client.Start(ctx, tarantool.Insert("accounts", []any{2, "Bob", 50}))
	var inserted []account
	if err := first.Wait(&inserted); err != nil {
		log.Fatal(err)
	}
	tuples, err := second.Get()
	fmt.Println(inserted, tuples, err)
	// Output: [{1 Ann 100}] [[2 Bob 50]] <nil>
}

// A space has methods for tuples of one type.
func ExampleSpace() {
	client, _, stop := exampleClient()
	defer stop()
	ctx := context.Background()
	accounts := tarantool.SpaceOf[account](client, "accounts")
	for _, a := range []account{{1, "Ann", 100}, {2, "Bob", 50}, {3, "Ann", 7}} {
		if err := accounts.Insert(ctx, &a); err != nil {
			log.Fatal(err)
		}
	}

	var a account
	found, err := accounts.Get(ctx, &a, tarantool.Int(2))
	fmt.Println(a.Owner, found, err)
	found, err = accounts.Get(ctx, &a, tarantool.Int(4))
	fmt.Println(found, err)

	// The server changes the tuple atomically.
	if _, err := accounts.Update(ctx, &a, []tarantool.Part{tarantool.Int(2)}, tarantool.Add("balance", 25)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Balance)

	ofAnn, err := accounts.Index("owner").Select(ctx, nil, 10, tarantool.Eq, tarantool.String("Ann"))
	fmt.Println(ofAnn, err)
	// Output:
	// Bob true <nil>
	// false <nil>
	// 75
	// [{1 Ann 100} {3 Ann 7}] <nil>
}

// A function is executed within a transaction, which is committed if the function returns nil. After a conflict with another
// transaction, it is called again.
func ExampleClient_Transaction() {
	client, server, stop := exampleClient()
	defer stop()
	ctx := context.Background()
	if err := server.Put("accounts", []any{1, "Ann", 100}, []any{2, "Bob", 50}); err != nil {
		log.Fatal(err)
	}
	transfer := func(amount int) error {
		return client.Transaction(ctx, tarantool.TxOptions{}, func(s *tarantool.Stream) error {
			var from []account
			take := tarantool.Update("accounts", []tarantool.Part{tarantool.Int(1)}, tarantool.Subtract("balance", amount))
			if err := s.Do(ctx, &from, take); err != nil {
				return err
			}
			if from[0].Balance < 0 {
				return errors.New("insufficient funds")
			}
			return s.Do(ctx, nil, tarantool.Update("accounts", []tarantool.Part{tarantool.Int(2)}, tarantool.Add("balance", amount)))
		})
	}
	fmt.Println(transfer(30))
	fmt.Println(transfer(300))
	fmt.Println(server.Tuples("accounts"))
	// Output:
	// <nil>
	// insufficient funds
	// [[1 Ann 70] [2 Bob 80]]
}

// A stream is a sequence of requests on one connection; with Begin it is a transaction. Other
// clients do not see changes that are not committed.
func ExampleStream() {
	client, _, stop := exampleClient()
	defer stop()
	ctx := context.Background()
	stream, err := client.Stream(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := stream.Begin(ctx, tarantool.TxOptions{Timeout: 10 * time.Second}); err != nil {
		log.Fatal(err)
	}
	if err := stream.Do(ctx, nil, tarantool.Insert("accounts", []any{1, "Ann", 100})); err != nil {
		log.Fatal(err)
	}
	var inside, outside []account
	if err := stream.Do(ctx, &inside, tarantool.Select("accounts")); err != nil {
		log.Fatal(err)
	}
	if err := client.Do(ctx, &outside, tarantool.Select("accounts")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(inside), len(outside))
	if err := stream.Commit(ctx); err != nil { // or Rollback
		log.Fatal(err)
	}
	err = client.Do(ctx, &outside, tarantool.Select("accounts"))
	fmt.Println(len(outside), err)
	// Output:
	// 1 0
	// 1 <nil>
}

// A watcher receives the values that the server broadcasts for a key: first the current one, and
// then the latest one after each change.
func ExampleClient_Watch() {
	client, server, stop := exampleClient()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	watcher, err := client.Watch(ctx, "config")
	if err != nil {
		log.Fatal(err)
	}
	defer watcher.Stop()
	show := func() {
		event, err := watcher.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		value, err := event.Value()
		fmt.Println(event.Key, value, err)
	}
	show()                                                   // the key has no value yet
	if err := server.Broadcast("config", "v2"); err != nil { // in Lua: box.broadcast('config', 'v2')
		log.Fatal(err)
	}
	show()
	// Output:
	// config <nil> <nil>
	// config v2 <nil>
}

// SQL statements have parameters. A result contains the rows, their columns, and the number of
// changed rows.
func ExampleExecute() {
	addr, stop := exampleInstance() // starts a Tarantool server
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := tarantool.Connect(ctx, tarantool.Options{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	if err := client.Do(ctx, nil, tarantool.Execute("CREATE TABLE books (id INTEGER PRIMARY KEY AUTOINCREMENT, title STRING)")); err != nil {
		log.Fatal(err)
	}
	var result tarantool.SQLResult
	insert := tarantool.Execute("INSERT INTO books VALUES (NULL, ?), (NULL, :second)", "Emma", tarantool.Named("second", "Persuasion"))
	if err := client.Do(ctx, &result, insert); err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Changed, result.Generated)

	type book struct {
		ID    int
		Title string
	}
	var books []book
	// The statement only reads, so it may be sent again after a lost connection.
	query := tarantool.Execute("SELECT id, title FROM books WHERE id > ? ORDER BY id", 0).Idempotent()
	if err := client.Do(ctx, &tarantool.SQLResult{Rows: &books}, query); err != nil {
		log.Fatal(err)
	}
	fmt.Println(books)

	// A statement that is executed often should be prepared once.
	byID, err := client.Prepare(ctx, "SELECT id, title FROM books WHERE id = ?")
	if err != nil {
		log.Fatal(err)
	}
	defer byID.Close(ctx)
	err = byID.Do(ctx, &books, 2)
	fmt.Println(books, err)
	// Output:
	// 2 [1 2]
	// [{1 Emma} {2 Persuasion}]
	// [{2 Persuasion}] <nil>
}

// Every error says whether the server may have executed the request.
func ExampleIsCode() {
	client, server, stop := exampleClient()
	defer stop()
	ctx := context.Background()
	if err := server.Put("accounts", []any{1, "Ann", 100}); err != nil {
		log.Fatal(err)
	}
	err := client.Do(ctx, nil, tarantool.Insert("accounts", []any{1, "Bob", 50}))
	fmt.Println(tarantool.IsCode(err, iproto.CodeTupleFound), slipstream.OutcomeOf(err), slipstream.SafeToRetry(err))
	// Output: true refused true
}
