package redistest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/redis/redistest"
)

func start(t *testing.T, change ...func(*redis.Options)) (*redistest.Server, *redis.Client) {
	t.Helper()
	testkit.NoLeaks(t)
	s := redistest.NewServer()
	t.Cleanup(s.Close)
	o := s.Options()
	for _, f := range change {
		f(&o)
	}
	c, err := redis.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return s, c
}

// TestAnswersAsRedisDoes sends the same random commands to a fake and a real server, and compares
// the replies.
func TestAnswersAsRedisDoes(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(strconv.Itoa(protocol), func(t *testing.T) {
			_, ours := start(t, func(o *redis.Options) { o.Protocol = protocol })
			server := testkit.StartRedis(t)
			theirs, err := redis.Connect(t.Context(), redis.Options{Addr: server.Addr, Protocol: protocol})
			if err != nil {
				t.Fatal(err)
			}
			defer theirs.Close()
			r := testkit.Rand(t)
			for range 20_000 {
				cmd, text := randomCommand(r)
				got, want := answerTo(t, ours, cmd), answerTo(t, theirs, cmd)
				if got != want {
					t.Fatalf("%s: %s, want %s", text, got, want)
				}
			}
		})
	}
}

func randomCommand(r *rand.Rand) (redis.Command, string) {
	key := func() string { return "k" + strconv.Itoa(r.IntN(4)) }
	value := func() string { return []string{"", "7", "-3", "text", "x y"}[r.IntN(5)] }
	field := func() string { return "f" + strconv.Itoa(r.IntN(3)) }
	number := func() string { return strconv.Itoa(r.IntN(9) - 4) }
	shapes := [][]func() string{}
	words := []string{"GET", "SET", "MGET", "MSET", "INCR", "DECRBY", "APPEND", "STRLEN", "HSET", "HGET", "HGETALL", "HDEL", "HLEN", "LPUSH",
		"RPUSH", "LPOP", "RPOP", "LRANGE", "LLEN", "SADD", "SREM", "SISMEMBER", "SCARD", "DEL", "EXISTS", "TYPE", "PERSIST", "STRLEN", "DBSIZE", "SET", "SET", "GET", "EXPIRE"}
	shapes = append(shapes, [][]func() string{{key}, {key, value}, {key, key}, {key, value, key, value}, {key}, {key, number}, {key, value}, {key},
		{key, field, value}, {key, field}, {key}, {key, field, field}, {key}, {key, value, value}, {key, value}, {key}, {key}, {key, number, number}, {key},
		{key, field, field}, {key, field}, {key, field}, {key}, {key, key}, {key, key}, {key}, {key}, {key}, {}, {key, value, func() string { return "NX" }},
		{key, value, func() string { return "XX" }, func() string { return "GET" }}, {}, {key, func() string { return "1000" }}}...)
	i := r.IntN(len(words))
	args := make([]any, len(shapes[i]))
	for j, f := range shapes[i] {
		args[j] = f()
	}
	if r.IntN(50) == 0 && len(args) > 0 {
		args = args[1:] // too few arguments
	}
	return redis.Cmd(words[i], args...), fmt.Sprint(words[i], args)
}

// answerTo returns a reply as a string, in which the members of hashes and sets are sorted.
func answerTo(t *testing.T, c *redis.Client, cmd redis.Command) string {
	t.Helper()
	if cmd.Name() == "HGETALL" {
		var m map[string]string
		err := c.Do(t.Context(), &m, cmd)
		return fmt.Sprint(m, code(err))
	}
	var v redis.Value
	err := c.Do(t.Context(), &v, cmd)
	return fmt.Sprint(v, code(err))
}

func code(err error) string {
	var e *redis.ServerError
	if errors.As(err, &e) {
		return e.Error()
	}
	return fmt.Sprint(err)
}

func TestExpiryByTheTestsClock(t *testing.T) {
	s, c := start(t)
	ctx := t.Context()
	if err := c.SetEX(ctx, "k", "v", time.Minute); err != nil {
		t.Fatal(err)
	}
	if ttl, found, err := c.TTL(ctx, "k"); ttl != time.Minute || !found || err != nil {
		t.Errorf("%v, %t, %v", ttl, found, err)
	}
	s.Advance(time.Minute)
	if v, found, err := c.Get(ctx, "k"); found || err != nil {
		t.Errorf("%q, %t, %v", v, found, err)
	}
}

func TestTransactions(t *testing.T) {
	_, c := start(t)
	ctx := t.Context()
	tries := 0
	err := c.Watch(ctx, func(tx *redis.Tx) error {
		var n *int64
		if err := tx.Do(ctx, &n, redis.Cmd("GET", "n")); err != nil {
			return err
		}
		if tries++; tries == 1 { // another client interferes
			if _, err := c.Incr(ctx, "n"); err != nil {
				return err
			}
		}
		tx.Add(nil, redis.Cmd("INCRBY", "n", 10))
		return nil
	}, "n")
	if v, _, _ := c.Get(ctx, "n"); err != nil || v != "11" || tries != 2 {
		t.Errorf("%v, %s, %d tries", err, v, tries)
	}
	var b redis.Batch
	for range 3000 {
		b.Add(nil, redis.Cmd("APPEND", "long", strings.Repeat("x", 100)))
	}
	if err := c.DoTransaction(ctx, &b); err != nil {
		t.Error(err)
	}
	b.Add(nil, redis.Cmd("NOSUCH"))
	if err := c.DoTransaction(ctx, &b); slipstream.OutcomeOf(err) != slipstream.Refused {
		t.Errorf("a transaction with an unknown command: %v", err)
	}
	if n, err := c.StrLen(ctx, "long"); n != 300_000 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestHandlers(t *testing.T) {
	s, c := start(t, func(o *redis.Options) { o.Retries = -1 })
	ctx := t.Context()
	for _, test := range []struct {
		reply any
		want  string
	}{
		{"text", "text"}, {7, "7"}, {nil, "<nil>"}, {redistest.Simple("OK"), "OK"}, {[]string{"a"}, "[a]"}, {1.5, "1.5"},
		{map[string]any{"a": 1}, "map[a:1]"}, {true, "true"}, {[]any{"a", nil}, "[a <nil>]"}, {redistest.Raw("+raw\r\n"), "raw"},
	} {
		s.Handle("mine", func(*redistest.Conn, []string) any { return test.reply })
		var got any
		if err := c.Do(ctx, &got, redis.Cmd("MINE", "x")); err != nil || fmt.Sprint(got) != test.want {
			t.Errorf("%v: got %v, %v, want %s", test.reply, got, err, test.want)
		}
	}
	s.Handle("MINE", func(*redistest.Conn, []string) any { return &redis.ServerError{Code: "BUSY", Message: "wait"} })
	if err := c.Do(ctx, nil, redis.Cmd("MINE")); slipstream.OutcomeOf(err) != slipstream.Refused {
		t.Errorf("got %v", err)
	}
	s.Handle("MINE", func(*redistest.Conn, []string) any { return redistest.HangUp })
	if err := c.Do(ctx, nil, redis.Cmd("MINE")); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("got %v", err)
	}
	s.Handle("MINE", func(*redistest.Conn, []string) any { return redistest.Silence })
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := c.Do(short, nil, redis.Cmd("MINE")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	s.HangUp()
	s.Handle("MINE", nil)
	testkit.Eventually(t, 10*time.Second, func() error { return c.Ping(ctx) })
	if seen := s.Seen(); len(seen) < 10 || seen[0][0] != "MINE" {
		t.Errorf("%v", seen)
	}
}

func Example() {
	server := redistest.NewServer()
	defer server.Close()
	client, err := redis.Connect(context.Background(), server.Options())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	// The test checks what a program does when the server has no memory left.
	server.Handle("SET", func(*redistest.Conn, []string) any {
		return &redis.ServerError{Code: "OOM", Message: "command not allowed when used memory > 'maxmemory'."}
	})
	err = client.Set(context.Background(), "k", "v")
	fmt.Println(slipstream.OutcomeOf(err))
	// Output: refused
}
