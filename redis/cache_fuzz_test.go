package redis

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// FuzzInvalidations: whatever a server sends, and however it is split into reads, the cache ends up
// with the same entries: none for a key that was named, and none that was being loaded.
func FuzzInvalidations(f *testing.F) {
	for _, data := range []string{
		">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n", ">2\r\n+invalidate\r\n*3\r\n+a\r\n+b\r\n+zz\r\n", ">2\r\n$10\r\ninvalidate\r\n_\r\n", ">2\r\n$10\r\ninvalidate\r\n*-1\r\n",
		"$1\r\nx\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\nkey\r\n:1\r\n", ">3\r\n$10\r\ninvalidate\r\n*1\r\n+a\r\n+b\r\n", ">1\r\n$10\r\ninvalidate\r\n", ">2\r\n$10\r\ninvalidate\r\n*2\r\n*1\r\n+a\r\n+b\r\n",
		"*2\r\n$1\r\nx\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n$1\r\ny\r\n", ">2\r\n+message\r\n+a\r\n", ">2\r\n$10\r\ninvalidate\r\n*0\r\n", ">2\r\n+invalidate\r\n*?\r\n+a\r\n.\r\n", ">2\r\n+invalidate\r\n*1\r\n:1\r\n",
		"|1\r\n+a\r\n+b\r\n>2\r\n+invalidate\r\n~1\r\n$?\r\n;1\r\na\r\n;0\r\n", "*100\r\n", "?",
	} {
		f.Add([]byte(data), uint64(len(data)))
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		want := left(t, data, func() int { return len(data) })
		for name, piece := range map[string]func() int{"byte by byte": func() int { return 1 }, "at random": func() int { return 1 + r.IntN(20) }} {
			if got := left(t, data, piece); !slices.Equal(got, want) {
				t.Fatalf("%s: %q remain in the cache, but %q after a single read", name, got, want)
			}
		}
		if gone := saysOf(data); gone != nil {
			for _, key := range want {
				if gone[key] || gone["*"] {
					t.Fatalf("%s remains in the cache, but %v were reported as changed", key, gone)
				}
			}
			if len(gone) == 0 && len(want) != 2*len(fuzzKeys) {
				t.Fatalf("%q remain in the cache, but nothing was reported as changed", want)
			}
		}
	})
}

var fuzzKeys = []string{"a", "b", "key", "1"}

// left returns the keys that have cached or loading replies after a server has sent data.
func left(t *testing.T, data []byte, piece func() int) (keys []string) {
	c := &core{cache: newReplyCache(&CacheOptions{}), opts: Options{Limits: fuzzLimits}}
	p := newProtocol(&c.opts)
	p.aside = c.cache.empty
	var loads []*cacheLoad
	for _, key := range fuzzKeys {
		l := c.cache.begin(key)
		c.cache.keep(l, "", "$1\r\nv\r\n", 0)
		loads = append(loads, l)
	}
	s := p.NewScanner()
	conn := &piecewise{data: data, piece: piece}
	var in []byte
	chunk := make([]byte, len(data)+1)
	for failed := false; !failed; {
		n, err := conn.Read(chunk)
		if err != nil {
			break
		}
		in = append(in, chunk[:n]...)
		for len(in) > 0 && !failed {
			frame, err := s.Scan(in)
			if failed = err != nil; failed || frame.Verdict == pipe.More {
				break
			}
			if frame.Verdict == pipe.Push {
				c.pushed(in[:frame.Len:frame.Len], c.cache.empty)
			}
			in = in[frame.Len:]
		}
	}
	held := 0
	for i := range c.cache.shards {
		held += len(c.cache.shards[i].keys)
	}
	if held != len(fuzzKeys) || c.cache.stats().Entries > len(fuzzKeys) { // their loads have not ended
		t.Fatalf("%d keys are held, %d entries", held, c.cache.stats().Entries)
	}
	for i, key := range fuzzKeys {
		if _, kept := c.cache.get(key, ""); kept {
			keys = append(keys, key)
		}
		if !loads[i].dirty {
			keys = append(keys, key)
		}
	}
	return keys
}

// saysOf returns the keys that data reports as changed, "*" for all keys, or nil if data cannot be
// parsed completely.
func saysOf(data []byte) map[string]bool {
	gone := make(map[string]bool)
	for len(data) > 0 {
		v, rest, err := resp.Parse(data, newProtocol(&Options{Limits: fuzzLimits}).limits)
		if err != nil {
			return nil
		}
		message := string(data[:len(data)-len(rest)])
		data = rest
		says := v.Kind == resp.Push && len(v.Elems) > 0 && string(v.Elems[0].Str) == "invalidate"
		if n := strings.Count(message, "$10\r\ninvalidate\r\n"); n > 1 || n == 1 && (!says || len(v.Attr) > 0) {
			return nil // an invalidation within another reply
		}
		switch {
		case !says:
		case len(v.Elems) != 2 || v.Elems[1].Null || !slices.Contains(aggregates, v.Elems[1].Kind):
			gone["*"] = true
		default:
			for _, key := range v.Elems[1].Elems {
				switch {
				case key.Null || slices.Contains(aggregates, key.Kind):
					gone["*"] = true
				case key.Kind == resp.Integer:
					gone[strconv.FormatInt(key.Int, 10)] = true
				case key.Kind == resp.Double:
					return nil // the text as it was sent is unknown
				default:
					gone[string(key.Str)] = true
				}
			}
		}
	}
	return gone
}

var aggregates = []resp.Kind{resp.Array, resp.Set, resp.Map, resp.Push}
