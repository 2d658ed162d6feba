package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis"
)

// exampleClient returns a client with its own server; stop ends both.
func exampleClient(o redis.Options) (client *redis.Client, stop func()) {
	addr, stopServer := exampleServer()
	o.Addr = addr
	client, err := redis.Connect(context.Background(), o)
	if err != nil {
		log.Fatal(err)
	}
	return client, func() { client.Close(); stopServer() }
}

// A worker takes jobs from a list. Its context ends while the list is empty: no job was taken, and
// none is lost.
func ExampleClient_BLPop() {
	client, stop := exampleClient(redis.Options{})
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := client.RPush(ctx, "jobs", "first"); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		_, job, found, err := client.BLPop(ctx, 0, "jobs")
		if err != nil {
			fmt.Println(errors.Is(err, context.DeadlineExceeded), slipstream.OutcomeOf(err))
			break
		}
		fmt.Println(job, found)
	}
	// Output:
	// first true
	// true refused
}

// A counter has an upper limit, so a change depends on the value that was read.
func ExampleClient_Watch() {
	client, stop := exampleClient(redis.Options{})
	defer stop()
	ctx := context.Background()
	for range 3 {
		err := client.Watch(ctx, func(tx *redis.Tx) error {
			var seats *int
			if err := tx.Do(ctx, &seats, redis.Cmd("GET", "seats")); err != nil {
				return err
			}
			if seats != nil && *seats >= 2 {
				return errors.New("no seat is left")
			}
			tx.Add(nil, redis.Cmd("INCR", "seats"))
			return nil
		}, "seats")
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// <nil>
	// no seat is left
}

func ExampleClient_DoTransaction() {
	client, stop := exampleClient(redis.Options{})
	defer stop()
	var batch redis.Batch
	var balance int
	batch.Add(nil, redis.Cmd("INCRBY", "account:1", 100))
	batch.Add(&balance, redis.Cmd("DECRBY", "account:2", 100))
	fmt.Println(client.DoTransaction(context.Background(), &batch), balance)
	// Output: <nil> -100
}

func ExampleClient_Subscribe() {
	client, stop := exampleClient(redis.Options{})
	defer stop()
	ctx := context.Background()
	news, err := client.Subscribe(ctx, redis.Topics{Channels: []string{"news"}})
	if err != nil {
		log.Fatal(err)
	}
	defer news.Close()
	if _, err := client.Publish(ctx, "news", "hello"); err != nil {
		log.Fatal(err)
	}
	for m, err := range news.Messages(ctx) {
		switch {
		case err != nil:
			log.Fatal(err)
		case m.Kind == redis.Gap:
			fmt.Println("messages may be missing: read the current state again")
		default:
			fmt.Println(m.Channel, m.Payload)
		}
		break
	}
	// Output: news hello
}

func ExampleScript() {
	client, stop := exampleClient(redis.Options{})
	defer stop()
	takeIfEqual := redis.NewScript(`
		if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end
		return 0`)
	ctx := context.Background()
	if err := client.Set(ctx, "lock", "mine"); err != nil {
		log.Fatal(err)
	}
	var taken bool
	for _, owner := range []string{"another's", "mine"} {
		if err := takeIfEqual.Do(ctx, client, &taken, []string{"lock"}, owner); err != nil {
			log.Fatal(err)
		}
		fmt.Println(owner, taken)
	}
	// Output:
	// another's false
	// mine true
}

func ExampleClient_Scan() {
	client, stop := exampleClient(redis.Options{})
	defer stop()
	ctx := context.Background()
	if err := client.MSet(ctx, redis.KeyValue{Key: "user:1", Value: "a"}, redis.KeyValue{Key: "other", Value: "b"}); err != nil {
		log.Fatal(err)
	}
	for key, err := range client.Scan(ctx, redis.ScanOptions{Match: "user:*"}) {
		fmt.Println(key, err)
	}
	// Output: user:1 <nil>
}

func ExampleClient_GetCached() {
	client, stop := exampleClient(redis.Options{Cache: &redis.CacheOptions{}})
	defer stop()
	ctx := context.Background()
	if err := client.Set(ctx, "greeting", "hello"); err != nil {
		log.Fatal(err)
	}
	for range 1000 {
		if _, _, err := client.GetCached(ctx, "greeting"); err != nil {
			log.Fatal(err)
		}
	}
	s := client.Stats()
	fmt.Println(s.Cache.Misses, s.Cache.Hits)
	// Output: 1 999
}

func ExampleConnectCluster() {
	ctx := context.Background()
	client, err := redis.ConnectCluster(ctx, redis.ClusterOptions{
		Seeds:   []string{"node-1:6379", "node-2:6379"},
		Options: redis.Options{Password: "secret", Timeout: time.Second},
	})
	if err != nil {
		return
	}
	defer client.Close()
	// Keys with the same hash tag have the same slot, so that they can be changed together.
	var b redis.Batch
	b.AddStrings(nil, "INCR", "{user:1}:visits")
	b.AddStrings(nil, "SET", "{user:1}:seen", "today")
	if err := client.DoTransaction(ctx, &b); err != nil {
		return
	}
	// These keys are in several slots: the client queries all nodes concerned at the same time.
	items, err := client.MGet(ctx, "{user:1}:visits", "{user:2}:visits")
	fmt.Println(items, err)
}

func ExampleClient_ForEachMaster() {
	ctx := context.Background()
	client, err := redis.ConnectCluster(ctx, redis.ClusterOptions{Seeds: []string{"node-1:6379"}})
	if err != nil {
		return
	}
	defer client.Close()
	err = client.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		keys, err := master.DBSize(ctx)
		fmt.Println(master.Addr(), keys)
		return err
	})
	if err != nil {
		return
	}
}
