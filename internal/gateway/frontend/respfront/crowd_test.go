package respfront

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Many clients send pipelines of all commands while documents are dropped: each reply
// belongs to its command.
func TestCrowd(t *testing.T) {
	const clients, rounds, documents = 24, 12, 300
	seed := testkit.Seed(t)
	slow := func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		if strings.HasSuffix(id, "77") {
			time.Sleep(time.Millisecond)
		}
		return echo(ctx, r, id)
	}
	bothBackends(t, slow, Config{}, func(t *testing.T, f *fixture) {
		stop := make(chan struct{})
		var changes, all sync.WaitGroup
		changes.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				for k := range 10 {
					f.cache.Purge(cache.Key{ID: fmt.Sprint(1 + (n*10+k)%documents)})
				}
				if n%20 == 0 {
					f.cache.PurgeResource(1)
				}
			}
		})
		for i := range clients {
			conn, err := net.Dial("tcp", f.server.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			all.Go(func() {
				c := &client{t: t, conn: conn}
				rnd := rand.New(rand.NewPCG(seed, uint64(i)))
				// Continues until enough was loaded again, however late the changes
				// come.
				for n := 0; n < rounds || f.server.Answers().Latency(frontend.SourceLoad).Snapshot().Count() < 2*documents; n++ {
					if !c.pipeline(rnd, documents) {
						return
					}
				}
			})
		}
		all.Wait()
		close(stop)
		changes.Wait()
		if w, h := f.server.Waiting(), f.server.Held(); w != 0 || h != 0 {
			t.Errorf("%d documents waited for and %d bytes held after all, want 0", w, h)
		}
	})
}

// pipeline sends some commands together and checks the replies.
func (c *client) pipeline(rnd *rand.Rand, documents int) bool {
	var in strings.Builder
	var wanted []string
	for range 1 + rnd.IntN(60) {
		a, b := 1+rnd.IntN(documents), 1+rnd.IntN(documents)
		words, want := []string{"GET", fmt.Sprintf("depts:%d", a)}, dept(a)
		switch rnd.IntN(8) {
		case 0:
			words, want = []string{"MGET", fmt.Sprintf("depts:%d", a), fmt.Sprintf("orders:x:%d", b), "depts:0"},
				"*3\n"+dept(a)+"\n"+bulk(fmt.Sprintf(`{"id":"1:x%d"}`, b))+"\n$-1"
		case 1:
			words, want = []string{"EXISTS", fmt.Sprintf("depts:%d", a), "depts:0", fmt.Sprintf("depts:%d", b)}, ":2"
		case 2:
			words, want = []string{"ECHO", fmt.Sprint(a)}, bulk(fmt.Sprint(a))
		case 3:
			words, want = []string{"GET", "depts:x" + fmt.Sprint(a)}, fmt.Sprintf("-ERR resource depts, key column deptno: expected a decimal integer without '+' or leading zeros, got \"x%d\"; expected depts:{deptno}", a)
		case 4:
			words, want = []string{"GETRANGE", fmt.Sprintf("depts:%d", a), "7", "-3"}, bulk(fmt.Sprint(a))
		}
		in.WriteString(command1(words...))
		wanted = append(wanted, want)
	}
	if _, err := c.conn.Write([]byte(in.String())); err != nil {
		c.t.Errorf("write: %v", err)
		return false
	}
	for _, want := range wanted {
		got, err := c.next()
		if err != nil || got != want {
			c.t.Errorf("got %q, %v, want %q", got, err, want)
			return false
		}
	}
	return true
}
