package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis"
)

// exampleServer starts a separate redis-server for an example, which has no
// testing.TB; stop ends it.
func exampleServer() (addr string, stop func()) {
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		log.Fatal(err)
	}
	addr = filepath.Join(dir, "r.sock")
	cmd := exec.Command("redis-server", "--port", "0", "--unixsocket", addr, "--save", "", "--dir", dir)
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	for range 500 {
		if conn, err := net.Dial("unix", addr); err == nil {
			conn.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return addr, func() {
		cmd.Process.Kill()
		cmd.Wait()
		os.RemoveAll(dir)
	}
}

func Example() {
	addr, stop := exampleServer()
	defer stop()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := redis.Connect(ctx, redis.Options{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	if err := client.SetEX(ctx, "greeting", "hello", time.Hour); err != nil {
		log.Fatal(err)
	}
	value, found, err := client.Get(ctx, "greeting")
	fmt.Println(value, found, err)
	// Output: hello true <nil>
}

func ExampleClient_Do() {
	addr, stop := exampleServer()
	defer stop()
	ctx := context.Background()
	client, err := redis.Connect(ctx, redis.Options{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	var fields int
	if err := client.Do(ctx, &fields, redis.Cmd("HSET", "user:1", "name", "Ann", "age", 44)); err != nil {
		log.Fatal(err)
	}
	var user struct {
		Name string  `redis:"name"`
		Age  int     `redis:"age"`
		Boss *string `redis:"boss"`
	}
	if err := client.Do(ctx, &user, redis.Cmd("HGETALL", "user:1")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(fields, user.Name, user.Age, user.Boss == nil)

	// If null is possible and not an error, decode into a pointer.
	var missing *string
	err = client.Do(ctx, &missing, redis.Cmd("HGET", "user:1", "boss"))
	fmt.Println(missing == nil, err)
	// Output:
	// 2 Ann 44 true
	// true <nil>
}

func ExampleClient_GetAppend() {
	addr, stop := exampleServer()
	defer stop()
	ctx := context.Background()
	client, err := redis.Connect(ctx, redis.Options{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	if err := client.Set(ctx, "k", "value"); err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, 0, 1024) // reused, so that nothing is allocated
	for range 3 {
		buf, _, err = client.GetAppend(ctx, buf[:0], "k")
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("%s\n", buf)
	// Output: value
}

func ExampleClient_Start() {
	addr, stop := exampleServer()
	defer stop()
	ctx := context.Background()
	client, err := redis.Connect(ctx, redis.Options{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	first := client.Start(ctx, redis.Cmd("INCRBY", "a", 1))
	second := client.Start(ctx, redis.Cmd("INCRBY", "b", 2))
	var a, b int
	fmt.Println(first.Wait(&a), second.Wait(&b), a, b)
	// Output: <nil> <nil> 1 2
}

func ExampleClient_DoBatch() {
	addr, stop := exampleServer()
	defer stop()
	ctx := context.Background()
	client, err := redis.Connect(ctx, redis.Options{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	var batch redis.Batch
	var n int
	batch.AddStrings(nil, "SET", "text", "x")
	batch.AddStrings(nil, "INCR", "text")
	batch.AddCmd(&n, "INCRBY", "number", 1)
	err = client.DoBatch(ctx, &batch)
	var failed *redis.BatchError
	fmt.Println(errors.As(err, &failed), failed.Index, batch.Err(0), n)
	// Output: true 1 <nil> 1
}

func ExampleServerError() {
	addr, stop := exampleServer()
	defer stop()
	ctx := context.Background()
	client, err := redis.Connect(ctx, redis.Options{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	if err := client.Do(ctx, nil, redis.Cmd("LPUSH", "list", "a")); err != nil {
		log.Fatal(err)
	}
	_, err = client.Incr(ctx, "list")
	var server *redis.ServerError
	if errors.As(err, &server) {
		fmt.Println(server.Code, slipstream.OutcomeOf(err), slipstream.SafeToRetry(err))
	}
	// A command that cannot share the connection is not sent.
	err = client.Do(ctx, nil, redis.Cmd("SELECT", 1))
	fmt.Println(errors.Is(err, redis.ErrShared), slipstream.OutcomeOf(err))
	// Output:
	// WRONGTYPE executed false
	// true not sent
}

func ExampleParseURL() {
	o, err := redis.ParseURL("rediss://app:secret@cache.example:7000/2?timeout=500ms&client_name=api")
	fmt.Println(o, o.Timeout, o.ClientName, err)
	// Output: rediss://app:***@cache.example:7000 database 2 500ms api <nil>
}
