package redis_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipstream-go/slipstream/redis"
)

// TestLearnedNamesAreBounded: of 10,000 unknown commands it is remembered whether they wait; the
// server is asked each time about more.
func TestLearnedNamesAreBounded(t *testing.T) {
	const most = 10_000
	var asked atomic.Int32
	s := fake(t, func(_ int, args []string) string {
		switch strings.ToUpper(args[0]) {
		case "COMMAND":
			asked.Add(1)
			return "*1\r\n*-1\r\n"
		case "CLIENT":
			return ":9\r\n"
		}
		return "+OK\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr, Protocol: 2, OmitClientInfo: true})
	for i := range most {
		must(t, c.Do(t.Context(), nil, redis.Cmd("X.N"+strconv.Itoa(i), "k")))
	}
	if n := asked.Load(); n != most {
		t.Fatalf("the server was asked %d times about %d commands", n, most)
	}
	for _, test := range []struct {
		name string
		want int32
	}{{"X.N0", 0}, {"X.N" + strconv.Itoa(most-1), 0}, {"X.MORE", 3}} {
		before := asked.Load()
		for range 3 {
			must(t, c.Do(t.Context(), nil, redis.Cmd(test.name, "k")))
		}
		if n := asked.Load() - before; n != test.want {
			t.Errorf("%s: the server was asked %d times, want %d", test.name, n, test.want)
		}
	}
}
