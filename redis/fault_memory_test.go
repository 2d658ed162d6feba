//go:build !race && unix

// The race detector adds its own memory to the measurement.

package redis_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// idleLimit is the amount of memory that an idle connection may use.
const idleLimit = 18 << 10

// A thousand idle clients with one connection each take less than 18 KiB each of heap and stacks,
// even after heavy use.
func TestMemoryOfIdleConnections(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	for _, c := range []struct {
		name string
		n    int
		use  func(t testing.TB, c *redis.Client)
	}{
		{"used once", 1000, func(t testing.TB, c *redis.Client) { must(t, c.Ping(t.Context())) }},
		{"after lone calls", 200, func(t testing.TB, c *redis.Client) {
			for range 70 { // from now on the caller reads its own replies
				must(t, c.Ping(t.Context()))
			}
		}},
		{"after a burst", 1000, func(t testing.TB, c *redis.Client) { burst(t, c, 300, 1<<10) }},
		{"after large values", 200, func(t testing.TB, c *redis.Client) { burst(t, c, 2, 256<<10) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Memory retained after a burst is released within some rounds, each a tenth of this.
			o := redis.Options{Addr: server.Addr, StallTimeout: time.Second}
			first := connect(t, o) // allocates what all clients share
			c.use(t, first)
			heap, stacks := heapInUse()
			clients := make([]*redis.Client, c.n)
			for i := range clients {
				var err error
				clients[i], err = redis.Connect(t.Context(), o)
				must(t, err)
			}
			defer func() {
				var all sync.WaitGroup
				for _, client := range clients {
					all.Go(func() { client.Close() })
				}
				all.Wait()
			}()
			var using sync.WaitGroup
			const hands = 8
			for i := range hands {
				using.Go(func() {
					for j := i; j < c.n; j += hands {
						c.use(t, clients[j])
					}
				})
			}
			using.Wait()
			time.Sleep(400 * time.Millisecond)
			var each int64
			testkit.Eventually(t, 5*time.Second, func() error {
				h, s := heapInUse()
				each = (h - heap + s - stacks) / int64(c.n)
				if each >= idleLimit {
					return errTooMuch(each)
				}
				return nil
			})
			t.Logf("%.1f KiB for each idle connection", float64(each)/1024)
		})
	}
}

// errTooMuch is an error that says how many bytes a connection takes.
type errTooMuch int64

func (e errTooMuch) Error() string {
	return strconv.FormatInt(int64(e), 10) + " bytes for each idle connection, expected less than " + strconv.Itoa(idleLimit)
}

// burst writes and reads values of the given size, many concurrently, so that all buffers grow.
func burst(t testing.TB, c *redis.Client, calls, size int) {
	value := string(make([]byte, size))
	cmds := make([]redis.Command, 0, 2*calls)
	for range calls {
		cmds = append(cmds, redis.Cmd("SET", "burst", value))
	}
	for range calls {
		cmds = append(cmds, redis.Cmd("GET", "burst"))
	}
	if err := c.DoMany(t.Context(), cmds, nil); err != nil {
		t.Error(err)
	}
}
