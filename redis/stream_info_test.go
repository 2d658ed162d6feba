//go:build unix

package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// TestStreamInfo checks what a server reports about streams, groups and consumers.
func TestStreamInfo(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *redis.Client, is func(got, want string)) {
		ctx := t.Context()
		is(say(c.XGroupCreateMkStream(ctx, "s", "g", "0")), "<nil>")
		empty, err := c.XInfoStream(ctx, "s")
		is(say(empty.Length, empty.First, empty.Last, empty.LastID, err), "0 <nil> <nil> 0-0 <nil>")
		for _, id := range []string{"1-1", "2-1", "3-1", "4-1"} {
			_, err := c.XAdd(ctx, "s", id, fieldsOf("id", id)...)
			must(t, err)
		}
		_, err = c.XReadGroup(ctx, "g", "me", redis.XReadOptions{Count: 3}, redis.StreamPosition{Stream: "s", ID: ">"})
		must(t, err)
		is(say(c.XDel(ctx, "s", "2-1")), "1 <nil>")
		info, err := c.XInfoStream(ctx, "s")
		is(say(info.Length, info.Groups, info.LastID, *info.First, *info.Last, err), "3 1 4-1 {1-1 [{id 1-1}]} {4-1 [{id 4-1}]} <nil>")
		is(say(info.MaxDeletedID, info.EntriesAdded, info.RecordedFirstID, info.RadixTreeKeys, info.RadixTreeNodes), "2-1 4 1-1 1 2")
		is(say(c.XInfoGroups(ctx, "s")), "[{g 1 3 3-1 3 1}] <nil>")
		is(say(c.XGroupCreate(ctx, "s", "later", "2-0")), "<nil>")
		groups, err := c.XInfoGroups(ctx, "s") // the server does not know how many entries precede 2-0
		is(say(groups[1], err), "{later 0 0 2-0 -1 -1} <nil>")
		is(say(c.XPending(ctx, "s", "g")), "{3 1-1 3-1 [{me 3}]} <nil>")
		pending, err := c.XPendingRange(ctx, "s", "g", "(1-1", "+", 1)
		is(say(len(pending), pending[0].ID, pending[0].Consumer, pending[0].Deliveries, pending[0].Idle < time.Minute, err), "1 2-1 me 1 true <nil>")
		time.Sleep(3 * time.Millisecond)
		consumers, err := c.XInfoConsumers(ctx, "s", "g")
		me := consumers[0]
		is(say(len(consumers), me.Name, me.Pending, me.Idle > 0, me.Idle < time.Minute, me.Inactive < time.Minute, err), "1 me 3 true true true <nil>")

		is(say(c.XClaim(ctx, "s", "g", "other", time.Hour, "1-1")), "[] <nil>")
		is(say(c.XClaim(ctx, "s", "g", "other", 0, "1-1")), "[{1-1 [{id 1-1}]}] <nil>")
		is(say(c.XAutoClaim(ctx, "s", "g", "other", 0, "2-0")), "{0-0 [{3-1 [{id 3-1}]}] [2-1]} <nil>")
		is(say(c.XAutoClaim(ctx, "s", "g", "other", time.Hour, "0")), "{0-0 [] []} <nil>")
		is(say(c.XPending(ctx, "s", "g")), "{2 1-1 3-1 [{other 2}]} <nil>")
		is(say(c.XPendingRange(ctx, "s", "g", "9-0", "+", 1)), "[] <nil>")
		_, err = c.XInfoStream(ctx, "none")
		var e *redis.ServerError
		is(say(errors.As(err, &e), slipstream.OutcomeOf(err)), "true executed")
		_, err = c.XPending(ctx, "s", "none")
		is(say(errors.As(err, &e), e.Code), "true NOGROUP")

		// Everything else is sent by Do.
		var v redis.Value
		is(say(c.Do(ctx, &v, redis.Cmd("XINFO", "STREAM", "s", "FULL"))), "<nil>")
		var ids []string
		is(say(c.Do(ctx, &ids, redis.Cmd("XCLAIM", "s", "g", "me", 0, "1-1", "JUSTID"))), "<nil>")
		is(say(ids), "[1-1]")
	})
}

// streamCalls request evilKey and decode its reply into different types.
var streamCalls = map[string]func(context.Context, *redis.Client) (any, error){
	"pending": func(ctx context.Context, c *redis.Client) (any, error) { return c.XPending(ctx, evilKey, "g") },
	"range": func(ctx context.Context, c *redis.Client) (any, error) {
		return c.XPendingRange(ctx, evilKey, "g", "-", "+", 9)
	},
	"claim": func(ctx context.Context, c *redis.Client) (any, error) {
		return c.XClaim(ctx, evilKey, "g", "me", 0, "1-1")
	},
	"autoclaim": func(ctx context.Context, c *redis.Client) (any, error) {
		return c.XAutoClaim(ctx, evilKey, "g", "me", 0, "0")
	},
	"stream":    func(ctx context.Context, c *redis.Client) (any, error) { return c.XInfoStream(ctx, evilKey) },
	"groups":    func(ctx context.Context, c *redis.Client) (any, error) { return c.XInfoGroups(ctx, evilKey) },
	"consumers": func(ctx context.Context, c *redis.Client) (any, error) { return c.XInfoConsumers(ctx, evilKey, "g") },
	"entries":   func(ctx context.Context, c *redis.Client) (any, error) { return c.XRange(ctx, evilKey, "-", "+", 0) },
	"positions": func(ctx context.Context, c *redis.Client) (any, error) { return c.GeoPos(ctx, evilKey, "m") },
	"places":    func(ctx context.Context, c *redis.Client) (any, error) { return c.GeoSearchWith(ctx, evilKey, "q") },
}

// TestHostileStreams: for replies that are well-formed but not what a server sends for streams or
// places, each method returns a decoding error, or what it can decode. The connection remains in
// use.
func TestHostileStreams(t *testing.T) {
	testkit.NoLeaks(t)
	// Fits contains the results of the calls that can decode a reply; all other calls must return
	// an error.
	for _, c := range []struct {
		name, reply string
		fits        map[string]string
	}{
		{"an integer", ":7\r\n", nil},
		{"a string", "$3\r\nabc\r\n", nil},
		{"a nested error", "*1\r\n-ERR planted\r\n", nil},
		{"a null", "_\r\n", map[string]string{"range": "[]", "claim": "[]", "groups": "[]", "consumers": "[]", "entries": "[]", "positions": "[]", "places": "[]"}},
		{"an empty array", "*0\r\n", map[string]string{
			"range": "[]", "claim": "[]", "groups": "[]", "consumers": "[]", "entries": "[]", "positions": "[]", "places": "[]"}},
		{"nulls", "*4\r\n_\r\n_\r\n_\r\n_\r\n", map[string]string{"claim": "[]", "positions": "[{0 0 false} {0 0 false} {0 0 false} {0 0 false}]"}},
		{"a summary without consumers", "*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n", map[string]string{"pending": "{0   []}"}},
		{"a summary with half a consumer", "*4\r\n:1\r\n$3\r\n1-1\r\n$3\r\n1-1\r\n*1\r\n*1\r\n$1\r\na\r\n", nil},
		{"an age that is too large", "*1\r\n*4\r\n$3\r\n1-1\r\n$1\r\na\r\n:9223372036854775807\r\n:1\r\n", map[string]string{"range": "[{1-1 a 2562047h47m16.854s 1}]"}},
		{"an age that is too small", "*1\r\n*6\r\n$4\r\nname\r\n$1\r\nx\r\n$4\r\nidle\r\n:-9223372036854775808\r\n$1\r\na\r\n*1\r\n:1\r\n", map[string]string{"consumers": "[{x 0 -2562047h47m16.854s -1ms}]", "groups": "[{x 0 0  -1 -1}]"}},
		{"an odd number of properties and values", "*3\r\n$4\r\nname\r\n$1\r\na\r\n$4\r\nidle\r\n", map[string]string{"places": "[{{name 0 0} 0 0} {{a 0 0} 0 0} {{idle 0 0} 0 0}]"}},
		{"properties of wrong types", "%2\r\n$6\r\nlength\r\n*0\r\n$11\r\nfirst-entry\r\n:1\r\n", nil},
		{"a property with a nested error", "%1\r\n$6\r\nlength\r\n-ERR planted\r\n", nil},
		{"unknown properties", "%3\r\n$3\r\nnew\r\n*1\r\n%1\r\n+a\r\n*1\r\n_\r\n$6\r\nlength\r\n:5\r\n:1\r\n-ERR planted\r\n", map[string]string{"stream": "{5 0  <nil> <nil>   -1 0 0}"}},
		{"a streamed map", "%?\r\n+length\r\n:2\r\n.\r\n", map[string]string{"stream": "{2 0  <nil> <nil>   -1 0 0}", "places": "[{{length 0 0} 0 0} {{2 0 0} 0 0}]"}},
		{"an entry of one", "*1\r\n*1\r\n$3\r\n1-1\r\n", map[string]string{"places": "[{{1-1 0 0} 0 0}]"}},
		{"a position of three", "*1\r\n*3\r\n,1\r\n,2\r\n,3\r\n", map[string]string{"places": "[{{1 0 0} 3 0}]"}},
		{"a place without a name", "*1\r\n*0\r\n", nil},
		{"a place nowhere", "*1\r\n*2\r\n+a\r\n*2\r\n+x\r\n+y\r\n", map[string]string{"entries": "[{a [{x y}]}]", "claim": "[{a [{x y}]}]"}},
		{"deep arrays", strings.Repeat("*1\r\n", 30) + ":1\r\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := startHostile(t, hostileCase{reply: c.reply})
			client := connect(t, redis.Options{Addr: server.addr, Retries: -1})
			for name, call := range streamCalls {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				got, err := call(ctx, client)
				cancel()
				if want, fits := c.fits[name]; fits {
					if err != nil || say(got) != want {
						t.Errorf("%s: %v, %v, want %s", name, got, err, want)
					}
					continue
				}
				var decode *redis.DecodeError
				if !errors.As(err, &decode) || slipstream.OutcomeOf(err) != slipstream.Executed {
					t.Errorf("%s: %v, %v, expected a decoding error", name, got, err)
				}
			}
			must(t, honestCall(t.Context(), client, "after"))
			if n := server.connections.Load(); n != 1 {
				t.Errorf("%d connections, expected one", n)
			}
		})
	}
}
