package redis_test

import (
	"testing"

	"github.com/slipstream-go/slipstream/redis"
)

// TestCacheKeepsPlainReplies: a GET whose reply does not have the form that Redis uses is decoded
// correctly by each method, each time, and is not cached. Replies to other commands are cached in
// any form.
func TestCacheKeepsPlainReplies(t *testing.T) {
	for name, c := range map[string]struct {
		reply, want string
		found, kept bool
	}{
		"a string":              {"$5\r\nvalue\r\n", "value", true, true},
		"an empty string":       {"$0\r\n\r\n", "", true, true},
		"a null":                {"_\r\n", "", false, true},
		"a null of RESP2":       {"$-1\r\n", "", false, false},
		"attributes":            {"|1\r\n+ttl\r\n:5\r\n$5\r\nvalue\r\n", "value", true, false},
		"attributes and a null": {"|1\r\n$3\r\nttl\r\n$1\r\n5\r\n_\r\n", "", false, false},
		"a streamed string":     {"$?\r\n;3\r\nval\r\n;2\r\nue\r\n;0\r\n", "value", true, false},
		"a status":              {"+value\r\n", "value", true, false},
		"a verbatim string":     {"=9\r\ntxt:value\r\n", "value", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := fake(t, func(_ int, args []string) string {
				switch args[0] {
				case "CLIENT":
					return "+OK\r\n"
				case "PTTL":
					return ":-1\r\n"
				}
				return c.reply
			})
			client := connect(t, redis.Options{Addr: s.Addr, Cache: &redis.CacheOptions{}})
			ctx := t.Context()
			for range 3 {
				got, found, err := client.GetCached(ctx, "k")
				if got != c.want || found != c.found || err != nil {
					t.Errorf("GetCached: %q, %t, %v", got, found, err)
				}
				var p *string
				for _, cmd := range []redis.Command{redis.Cmd("GET", "k"), redis.Cmd("HGET", "k", "f")} {
					if err := client.DoCached(ctx, &p, cmd); err != nil || (p != nil) != c.found || p != nil && *p != c.want {
						t.Errorf("DoCached of %v: %v, %v", cmd, p, err)
					}
				}
			}
			asked := make(map[string]int)
			for _, command := range s.seen() {
				asked[command]++
			}
			want := 6
			if c.kept {
				want = 1
			}
			if n, h := asked["GET k"], asked["HGET k f"]; n != want || h != 1 {
				t.Errorf("the server received GET %d times, want %d; and HGET %d times, want once", n, want, h)
			}
		})
	}
}

// TestCacheHearsInvalidationsWithinReplies: Redis 6 may write an invalidation between the elements
// of an array.
func TestCacheHearsInvalidationsWithinReplies(t *testing.T) {
	s := fake(t, func(_ int, args []string) string {
		switch args[0] {
		case "CLIENT":
			return "+OK\r\n"
		case "PTTL":
			return ":-1\r\n"
		case "LRANGE":
			return "*2\r\n$1\r\na\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n$1\r\nb\r\n"
		}
		return "$5\r\nvalue\r\n"
	})
	client := connect(t, redis.Options{Addr: s.Addr, Cache: &redis.CacheOptions{}})
	for i := range 3 {
		for range 2 {
			_, _, err := client.GetCached(t.Context(), "k")
			must(t, err)
		}
		list, err := client.LRange(t.Context(), "l", 0, -1)
		if len(list) != 2 || list[1] != "b" || err != nil {
			t.Errorf("got %v, %v", list, err)
		}
		if st := client.Stats().Cache; st.Entries != 0 || st.Hits != uint64(i+1) || st.Misses != uint64(i+1) {
			t.Errorf("round %d: %+v", i, st)
		}
	}
}
