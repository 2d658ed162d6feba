package redis_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipstream-go/slipstream/redis"
)

// TestCachedCommandsAreBounded: the details of 10,000 unlisted commands are cached; further commands are
// looked up each time.
func TestCachedCommandsAreBounded(t *testing.T) {
	const maxCached = 10_000
	var lookups atomic.Int32
	s := fake(t, func(_ int, args []string) string {
		switch strings.ToUpper(args[0]) {
		case "COMMAND":
			lookups.Add(1)
			return "*1\r\n*-1\r\n"
		case "CLIENT":
			return ":9\r\n"
		}
		return "+OK\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr, Protocol: 2, OmitClientInfo: true})
	for i := range maxCached {
		must(t, c.Do(t.Context(), nil, redis.Cmd("X.N"+strconv.Itoa(i), "k")))
	}
	if n := lookups.Load(); n != maxCached {
		t.Fatalf("%d lookups of %d commands", n, maxCached)
	}
	for _, test := range []struct {
		name string
		want int32
	}{{"X.N0", 0}, {"X.N" + strconv.Itoa(maxCached-1), 0}, {"X.MORE", 3}} {
		before := lookups.Load()
		for range 3 {
			must(t, c.Do(t.Context(), nil, redis.Cmd(test.name, "k")))
		}
		if n := lookups.Load() - before; n != test.want {
			t.Errorf("%s: %d lookups, want %d", test.name, n, test.want)
		}
	}
}
