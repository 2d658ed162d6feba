//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// typedCalls request evilKey and decode its reply into different types.
var typedCalls = map[string]func(context.Context, *redis.Client) error{
	"Get": func(ctx context.Context, c *redis.Client) error { _, _, err := c.Get(ctx, evilKey); return err },
	"GetAppend": func(ctx context.Context, c *redis.Client) error {
		_, _, err := c.GetAppend(ctx, nil, evilKey)
		return err
	},
	"Set": func(ctx context.Context, c *redis.Client) error { return c.Set(ctx, evilKey, "") },
	"SetWith": func(ctx context.Context, c *redis.Client) error {
		_, err := c.SetWith(ctx, evilKey, "", redis.SetOptions{NX: true})
		return err
	},
	"MGet": func(ctx context.Context, c *redis.Client) error { _, err := c.MGet(ctx, evilKey, "b"); return err },
	"MGetAppend": func(ctx context.Context, c *redis.Client) error {
		_, _, err := c.MGetAppend(ctx, nil, nil, evilKey, "b")
		return err
	},
	"Del":  func(ctx context.Context, c *redis.Client) error { _, err := c.Del(ctx, evilKey); return err },
	"Incr": func(ctx context.Context, c *redis.Client) error { _, err := c.Incr(ctx, evilKey); return err },
	"Expire": func(ctx context.Context, c *redis.Client) error {
		_, err := c.Expire(ctx, evilKey, time.Second)
		return err
	},
	"ExpireTime": func(ctx context.Context, c *redis.Client) error {
		_, _, err := c.ExpireTime(ctx, evilKey)
		return err
	},
	"HTTL": func(ctx context.Context, c *redis.Client) error {
		_, err := c.HTTL(ctx, evilKey, []string{"f"})
		return err
	},
	"HExpireTime": func(ctx context.Context, c *redis.Client) error {
		_, err := c.HExpireTime(ctx, evilKey, []string{"f"})
		return err
	},
	"LPos": func(ctx context.Context, c *redis.Client) error { _, _, err := c.LPos(ctx, evilKey, ""); return err },
	"TTL":  func(ctx context.Context, c *redis.Client) error { _, _, err := c.TTL(ctx, evilKey); return err },
	"Do int8": func(ctx context.Context, c *redis.Client) error {
		return c.Do(ctx, new(int8), redis.Cmd("GET", evilKey))
	},
	"Do []int": func(ctx context.Context, c *redis.Client) error {
		return c.Do(ctx, new([]int), redis.Cmd("GET", evilKey))
	},
	"Do map": func(ctx context.Context, c *redis.Client) error {
		return c.Do(ctx, new(map[string]int), redis.Cmd("GET", evilKey))
	},
	"Do struct": func(ctx context.Context, c *redis.Client) error {
		return c.Do(ctx, new(struct{ K int }), redis.Cmd("GET", evilKey))
	},
	"Start int": func(ctx context.Context, c *redis.Client) error {
		return c.Start(ctx, redis.Cmd("GET", evilKey)).Wait(new(int))
	},
	"DoMany bool": func(ctx context.Context, c *redis.Client) error {
		return c.DoMany(ctx, []redis.Command{redis.Cmd("GET", evilKey)}, []any{new(bool)})
	},
	"DoFunc Int": intByCompleter,
}

// Every method returns a decoding error for replies that are well-formed but have the wrong type,
// and the connection remains in use, because nothing is in doubt.
func TestHostileTypes(t *testing.T) {
	testkit.NoLeaks(t)
	// takes reports whether a call accepts a reply, by the start of its name; all other calls must
	// return an error.
	takes := func(call string, begins ...string) bool {
		for _, b := range begins {
			if strings.HasPrefix(call, b) {
				return true
			}
		}
		return false
	}
	text := []string{"Get", "Do any"}
	numbers := []string{"Del", "Incr", "Expire", "TTL", "LPos", "Start", "DoFunc", "Do any"}
	for _, c := range []struct {
		name, reply string
		fits        []string
	}{
		{"an integer", ":300\r\n", numbers},
		{"an integer of 64 bits", ":9223372036854775807\r\n", numbers},
		{"a number of 70 bits", "(1180591620717411303424\r\n", text[1:]},
		{"not a number", "$3\r\nabc\r\n", text},
		{"a fraction", ",0.5\r\n", text[1:]},
		{"a greeting", "+PONG\r\n", text},
		{"nested arrays", "*2\r\n*1\r\n*0\r\n*0\r\n", nil},
		{"a map of arrays", "%2\r\n+K\r\n*0\r\n*1\r\n_\r\n+x\r\n", nil},
		{"an array of three", "*3\r\n+a\r\n+b\r\n+c\r\n", nil},
		{"a set with an error", "~2\r\n-ERR planted\r\n-ERR planted\r\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := startHostile(t, hostileCase{reply: c.reply})
			client := connect(t, redis.Options{Addr: server.addr, Retries: -1})
			for name, call := range typedCalls {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				err := call(ctx, client)
				cancel()
				if takes(name, c.fits...) {
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				var decode *redis.DecodeError
				if !errors.As(err, &decode) || slipstream.OutcomeOf(err) != slipstream.Executed && name != "DoFunc Int" {
					t.Errorf("%s: %v, expected a decoding error", name, err)
				}
			}
			must(t, honestCall(t.Context(), client, "after"))
			if n := server.connections.Load(); n != 1 {
				t.Errorf("%d connections, expected one", n)
			}
		})
	}
}

func intByCompleter(ctx context.Context, c *redis.Client) error {
	ended := make(chan error, 1)
	err := c.DoFunc(ctx, redis.Cmd("GET", evilKey), completerFunc(func(r redis.Reply, err error) {
		if err == nil {
			_, err = r.Int()
		}
		ended <- err
	}))
	if err != nil {
		return err
	}
	return <-ended
}

// A client that has lost its connection connects to something that is not a server. It retries
// until there is a server, and until then calls wait or end with an error.
func TestHostileGreetingOfReconnect(t *testing.T) {
	testkit.NoLeaks(t)
	for name, greeting := range map[string]string{
		"half a greeting": "%1\r\n+proto\r\n:", "errors only": strings.Repeat("-ERR no\r\n", 5), "unknown users": "-NOAUTH HELLO must be called with the client already authenticated\r\n+OK\r\n+OK\r\n",
		"an endless line": "+" + strings.Repeat("x", 1<<20), "512 MiB": "$536870912\r\n", "a map of 2^62": "%4611686018427387904\r\n", "deep maps": strings.Repeat("%1\r\n+k\r\n", 3000),
		"a reply too many": "%1\r\n+proto\r\n:3\r\n+OK\r\n+OK\r\n:1\r\n", "a push flood": strings.Repeat(">1\r\n+x\r\n", 200_000),
		"TLS": "\x15\x03\x03\x00\x02\x02\x46", "nothing": "", "version 2": "*2\r\n$5\r\nproto\r\n:2\r\n+OK\r\n+OK\r\n", "loading": "-LOADING Redis is loading the dataset in memory\r\n+OK\r\n+OK\r\n",
		"a streamed map": "%?\r\n" + strings.Repeat("+k\r\n+v\r\n", 200_000), "attributes": strings.Repeat("|1\r\n+k\r\n+v\r\n", 200_000),
	} {
		t.Run(name, func(t *testing.T) {
			if greeting == "" {
				greeting = "\r" // half a line end, which has no meaning
			}
			server := startHostile(t, hostileCase{end: true, greeting: greeting})
			growth := testkit.HeapGrowth(t)
			client := connect(t, redis.Options{Addr: server.addr, Retries: -1, DialTimeout: 80 * time.Millisecond, Backoff: time.Millisecond, MaxBackoff: time.Millisecond})
			_, _, err := client.Get(t.Context(), evilKey)
			if slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || err == nil {
				t.Errorf("%v, expected that the connection was closed", err)
			}
			testkit.Eventually(t, 10*time.Second, func() error {
				err := honestCall(t.Context(), client, "after")
				if err != nil && slipstream.OutcomeOf(err) != slipstream.NotSent {
					t.Errorf("%v, expected the outcome NotSent", err)
				}
				return err
			})
			if n := server.connections.Load(); n < 3 {
				t.Errorf("%d connections, expected that the second one was refused", n)
			}
			if grown := growth(); grown >= 64<<20 {
				t.Errorf("the heap grew by %d MiB", grown>>20)
			}
		})
	}
}

// A reply that exceeds Options.Limits is refused at its first line, or when the limit is reached.
// Each limit is tested separately.
func TestHostileLimits(t *testing.T) {
	testkit.NoLeaks(t)
	for _, c := range []struct {
		limits redis.Limits
		reply  string
	}{
		{redis.Limits{Bulk: 1 << 20}, "$1048577\r\n"},
		{redis.Limits{Line: 100}, "+" + strings.Repeat("x", 101)},
		{redis.Limits{Elements: 10}, "*11\r\n"},
		{redis.Limits{Elements: 10}, "%6\r\n"},
		{redis.Limits{Elements: 10}, "*2\r\n*5\r\n" + strings.Repeat(":1\r\n", 5) + "*4\r\n"},
		{redis.Limits{Depth: 3}, strings.Repeat("*1\r\n", 4)},
		{redis.Limits{Frame: 1000}, "*2\r\n$600\r\n" + strings.Repeat("x", 600) + "\r\n$600\r\n"},
		{redis.Limits{Streamed: 1000}, "$?\r\n;600\r\n" + strings.Repeat("x", 600) + "\r\n;600\r\n"},
	} {
		t.Run(fmt.Sprintf("%+v %.10q", c.limits, c.reply), func(t *testing.T) {
			server := startHostile(t, hostileCase{reply: c.reply, mute: true})
			client := connect(t, redis.Options{Addr: server.addr, Retries: -1, Limits: c.limits, StallTimeout: -1, Backoff: time.Millisecond})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if _, _, err := client.Get(ctx, evilKey); err == nil || !strings.Contains(err.Error(), doubt) {
				t.Errorf("%v, expected a protocol error", err)
			}
			testkit.Eventually(t, 5*time.Second, func() error { return honestCall(ctx, client, "after") })
			testkit.Eventually(t, 5*time.Second, func() error {
				if server.ended.Load() != 1 {
					return errors.New("the connection was not closed")
				}
				return nil
			})
		})
	}
}
