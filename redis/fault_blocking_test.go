//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// deliveries records what happened to elements: which were certainly added, which were delivered
// and how often, and how many calls may have taken one without returning it.
type deliveries struct {
	mu sync.Mutex
	// Guarded by mu.
	put    []string
	got    map[string]int
	doubts int
	calls  map[slipstream.Outcome]int
	taken  int
}

// note records the end of a call that waited for an element.
func (d *deliveries) note(elements []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range elements {
		d.got[e]++
		d.taken++
	}
	if err == nil {
		return
	}
	outcome := slipstream.OutcomeOf(err)
	d.calls[outcome]++
	if outcome == slipstream.MaybeExecuted {
		d.doubts++
	}
}

// enough reports whether enough has happened for the test to be meaningful.
func (d *deliveries) enough() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taken < 200 || d.calls[slipstream.Refused] < 50 {
		return fmt.Errorf("%d elements taken, outcomes %v: too few for a meaningful test", d.taken, d.calls)
	}
	return nil
}

// consumption is a way to take elements out of "queue".
type consumption struct {
	put  func(ctx context.Context, c *redis.Client, element string) error // RPUSH if nil
	take func(ctx context.Context, c *redis.Client, worker int) ([]string, error)
	// left returns the elements that were not delivered: those in the queue, and those that the
	// server keeps until they are requested.
	left func(t *testing.T, c *redis.Client) []string
	// stays means that delivered elements may remain, too.
	stays bool
}

var consumptions = map[string]consumption{
	"XREADGROUP": {
		put: func(ctx context.Context, c *redis.Client, element string) error {
			_, err := c.XAdd(ctx, "stream", "*", redis.Field{Name: "e", Value: element})
			return err
		},
		take: func(ctx context.Context, c *redis.Client, worker int) ([]string, error) {
			streams, err := c.XReadGroup(ctx, "g", "worker"+strconv.Itoa(worker), redis.XReadOptions{Count: 1, Block: -1}, redis.StreamPosition{Stream: "stream", ID: ">"})
			if err != nil || len(streams) == 0 {
				return nil, err
			}
			e := streams[0].Entries[0]
			_, _ = c.XAck(context.WithoutCancel(ctx), "stream", "g", e.ID) // if it fails, the entry stays pending
			return []string{e.Fields[0].Value}, nil
		},
		left: pendingOrUnread, stays: true,
	},
	"BLPOP": {
		take: func(ctx context.Context, c *redis.Client, _ int) ([]string, error) {
			_, e, found, err := c.BLPop(ctx, 0, "queue")
			return one(e, found), err
		},
		left: func(t *testing.T, c *redis.Client) []string { return everything(t, c, "queue") },
	},
	"BLMOVE": {
		take: func(ctx context.Context, c *redis.Client, _ int) ([]string, error) {
			e, found, err := c.BLMove(ctx, 0, "queue", "done", "LEFT", "RIGHT")
			return one(e, found), err
		},
		// An element that was moved but not delivered is in the other list.
		left: func(t *testing.T, c *redis.Client) []string { return everything(t, c, "queue") },
	},
	"BLMPOP": {
		take: func(ctx context.Context, c *redis.Client, _ int) ([]string, error) {
			_, list, err := c.BLMPop(ctx, 0, "LEFT", 3, "queue")
			return list, err
		},
		left: func(t *testing.T, c *redis.Client) []string { return everything(t, c, "queue") },
	},
}

func one(e string, found bool) []string {
	if !found {
		return nil
	}
	return []string{e}
}

// pendingOrUnread returns the elements of the stream that were given to a worker that has not
// acknowledged them, and those that were not delivered.
func pendingOrUnread(t *testing.T, c *redis.Client) (list []string) {
	t.Helper()
	pending, err := c.XPendingRange(t.Context(), "stream", "g", "-", "+", 1e6)
	must(t, err)
	for _, p := range pending {
		entries, err := c.XRange(t.Context(), "stream", p.ID, p.ID, 0)
		must(t, err)
		list = append(list, entries[0].Fields[0].Value)
	}
	groups, err := c.XInfoGroups(t.Context(), "stream")
	must(t, err)
	unread, err := c.XRange(t.Context(), "stream", "("+groups[0].LastDelivered, "+", 0)
	must(t, err)
	for _, e := range unread {
		list = append(list, e.Fields[0].Value)
	}
	return list
}

func everything(t *testing.T, c *redis.Client, key string) []string {
	t.Helper()
	list, err := c.LRange(t.Context(), key, 0, -1)
	must(t, err)
	return list
}

// TestFaultBlocking: blocked calls are canceled at random while elements arrive and the server is
// killed and restarted. No element is delivered twice, and each missing one is accounted for by a
// call whose error says that its outcome is uncertain.
func TestFaultBlocking(t *testing.T) {
	for name, how := range consumptions {
		t.Run(name, func(t *testing.T) {
			testkit.NoLeaks(t)
			server := testkit.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
			o := redis.Options{Addr: server.Addr, Backoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond}
			consumer, producer := connect(t, o), connect(t, o)
			must(t, producer.XGroupCreateMkStream(t.Context(), "stream", "g", "0"))
			put := how.put
			if put == nil {
				put = func(ctx context.Context, c *redis.Client, element string) error {
					_, err := c.RPush(ctx, "queue", element)
					return err
				}
			}
			d := &deliveries{got: make(map[string]int), calls: make(map[slipstream.Outcome]int)}
			random := testkit.Rand(t)
			stop := make(chan struct{})
			var workers sync.WaitGroup
			for i := range 12 {
				r := testkit.Fork(random.Uint64(), uint64(i))
				workers.Go(func() { consume(t, d, how, consumer, r, i, stop) })
			}
			var putting sync.WaitGroup
			putting.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					if err := put(t.Context(), producer, strconv.Itoa(i)); err == nil {
						d.mu.Lock()
						d.put = append(d.put, strconv.Itoa(i))
						d.mu.Unlock()
					}
				}
			})
			for range 3 {
				time.Sleep(250 * time.Millisecond)
				server.Restart(t)
			}
			time.Sleep(250 * time.Millisecond)
			testkit.Eventually(t, time.Minute, d.enough)
			close(stop)
			putting.Wait()
			workers.Wait()
			d.judge(t, how.left(t, producer), how.stays)
			t.Logf("%+v", consumer.Stats().Exclusive)
		})
	}
}

func consume(t *testing.T, d *deliveries, how consumption, c *redis.Client, r *rand.Rand, worker int, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(5000))*time.Microsecond)
		d.note(how.take(ctx, c, worker))
		cancel()
	}
}

// judge compares the elements that were added with those that were delivered and those that are
// left.
func (d *deliveries) judge(t *testing.T, left []string, stays bool) {
	t.Helper()
	missing := 0
	for _, e := range d.put {
		switch n := d.got[e]; {
		case n > 1:
			t.Errorf("%s was delivered %d times", e, n)
		case n == 1 && !stays && slices.Contains(left, e):
			t.Errorf("%s was delivered and is still in the queue", e)
		case n == 0 && !slices.Contains(left, e):
			missing++
		}
	}
	const perCall = 3 // of BLMPOP
	t.Logf("%d added, %d taken, %d left, %d missing; outcomes %s", len(d.put), d.taken, len(left), missing, fmt.Sprint(d.calls))
	if missing > perCall*d.doubts {
		t.Errorf("%d elements are missing, but only %d calls are in doubt", missing, d.doubts)
	}
}
