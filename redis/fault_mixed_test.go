//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// mixture is a server that dies repeatedly, with concurrent users of everything that needs more
// than a reply to a command: subscriptions, cached replies, blocked calls, transactions and
// sessions. Every value starts with its key and a colon, so that a reply to the wrong caller is
// detected.
type mixture struct {
	t *testing.T
	// c is under test; other writes the keys that c reads, on its own connection.
	c, other *redis.Client

	over     chan struct{}
	workers  sync.WaitGroup
	problems atomic.Int32

	newest [mixtureKeys]atomic.Int64 // newest value that a reader of the cache has received

	mu sync.Mutex
	// Guarded by mu.
	unheard   map[string]bool   // messages that may or may not have been published
	pushed    [][]uint8         // for each queue, what is known about each element
	doubts    [mixtureKeys]int  // pops that may have taken an element
	done      [mixtureKeys]int  // transactions
	maybe     [mixtureKeys]int  // transactions in doubt
	delivered map[string]uint64 // what was done, by its name
}

const (
	mixtureKeys = 4
	// What is known about an element: it is certainly in the queue, or it was popped.
	isPushed, isPopped = 1, 2
)

// problem fails the test; at most twenty problems are reported.
func (m *mixture) problem(format string, args ...any) {
	if m.problems.Add(1) <= 20 {
		m.t.Errorf(format, args...)
	}
}

// did counts an operation.
func (m *mixture) did(what string) {
	m.mu.Lock()
	m.delivered[what]++
	m.mu.Unlock()
}

// number returns the number after "key:".
func (m *mixture) number(key, value string) int {
	text, ok := strings.CutPrefix(value, key+":")
	n, err := strconv.Atoi(text)
	if !ok || err != nil {
		m.problem("the reply for %s is %.60q", key, value)
		return -1
	}
	return n
}

func numbered(key string, n int) string { return key + ":" + strconv.Itoa(n) }

// start runs a worker until the end of the test: f is called repeatedly, with a context that ends
// after some time.
func (m *mixture) start(seed, n uint64, patience time.Duration, f func(ctx context.Context, r *rand.Rand)) {
	r := testkit.Fork(seed, n)
	m.workers.Go(func() { // ends with over
		for {
			select {
			case <-m.over:
				return
			default:
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			f(ctx, r)
			cancel()
			time.Sleep(time.Duration(r.IntN(1000)) * time.Microsecond)
		}
	})
}

// cached reads keys that other changes: once a reader has received a value, no reader may get an
// older one.
func (m *mixture) cached(ctx context.Context, r *rand.Rand) {
	for range 200 {
		k := r.IntN(mixtureKeys)
		key := "c" + strconv.Itoa(k)
		floor := m.newest[k].Load()
		value, found, err := m.c.GetCached(ctx, key)
		if err != nil {
			return
		}
		m.did("cached")
		n := int64(0)
		if found {
			n = int64(m.number(key, value))
		}
		if n < floor {
			m.problem("%s was %d, and then %d again", key, floor, n)
		}
		for old := m.newest[k].Load(); n > old && !m.newest[k].CompareAndSwap(old, n); old = m.newest[k].Load() {
		}
	}
}

// changes writes one of these keys.
func (m *mixture) changes(k int) func(context.Context, *rand.Rand) {
	key, n := "c"+strconv.Itoa(k), 0
	return func(ctx context.Context, _ *rand.Rand) {
		n++
		if m.other.Set(ctx, key, numbered(key, n)) == nil {
			m.did("changes")
		}
	}
}

// publishes publishes consecutive numbers to a channel.
func (m *mixture) publishes(k int) func(context.Context, *rand.Rand) {
	channel, n := "p"+strconv.Itoa(k), 0
	return func(ctx context.Context, _ *rand.Rand) {
		n++
		message := numbered(channel, n)
		if _, err := m.other.Publish(ctx, channel, message); err != nil {
			m.mu.Lock()
			m.unheard[message] = true
			m.mu.Unlock()
		}
	}
}

// listens receives messages for a while: numbers only increase, and none is missing without a gap.
func (m *mixture) listens(ctx context.Context, r *rand.Rand) {
	var topics redis.Topics
	if topics.Patterns = []string{"p[01]"}; r.IntN(2) == 0 {
		topics = redis.Topics{Channels: []string{"p" + strconv.Itoa(r.IntN(mixtureKeys)), "p3"}}
	}
	s, err := m.c.Subscribe(ctx, topics)
	if err != nil {
		return
	}
	defer s.Close()
	last := make(map[string]int)
	for range 1 + r.IntN(500) {
		message, err := s.Receive(ctx)
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				m.problem("Receive: %v", err)
			}
			return
		}
		if message.Kind == redis.Gap {
			m.did("gaps")
			clear(last)
			continue
		}
		m.did("messages")
		n := m.number(message.Channel, message.Payload)
		if before, ok := last[message.Channel]; ok {
			m.missing(message.Channel, before, n)
		}
		last[message.Channel] = n
	}
}

// missing checks that nothing can have been published between two messages.
func (m *mixture) missing(channel string, before, n int) {
	if n <= before {
		m.problem("%s: %d behind %d", channel, n, before)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := before + 1; i < n; i++ {
		if !m.unheard[numbered(channel, i)] {
			m.problem("%s: %d after %d, without a gap", channel, n, before)
			return
		}
	}
}

// pushes fills a queue.
func (m *mixture) pushes(k int) func(context.Context, *rand.Rand) {
	queue, n := "q"+strconv.Itoa(k), 0
	return func(ctx context.Context, _ *rand.Rand) {
		_, err := m.other.RPush(ctx, queue, numbered(queue, n))
		m.mu.Lock()
		for len(m.pushed[k]) <= n {
			m.pushed[k] = append(m.pushed[k], 0)
		}
		if err == nil {
			m.pushed[k][n] |= isPushed
		}
		m.mu.Unlock()
		n++
	}
}

// pops waits for an element of a queue, often for too short a time.
func (m *mixture) pops(ctx context.Context, r *rand.Rand) {
	k := r.IntN(mixtureKeys)
	queue := "q" + strconv.Itoa(k)
	if r.IntN(2) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(3000))*time.Microsecond)
		defer cancel()
	}
	var pair []string
	err := m.c.Do(ctx, &pair, redis.Cmd("BLPOP", queue, 0))
	if err != nil {
		m.did("pops without a result")
		if slipstream.OutcomeOf(err) == slipstream.MaybeExecuted {
			m.mu.Lock()
			m.doubts[k]++
			m.mu.Unlock()
		}
		return
	}
	m.did("pops")
	if len(pair) != 2 || pair[0] != queue {
		m.problem("BLPOP %s returned %q", queue, pair)
		return
	}
	m.popped(k, m.number(queue, pair[1]))
}

// popped records that an element was taken: none may be taken twice.
func (m *mixture) popped(k, n int) {
	if n < 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.pushed[k]) <= n { // the worker that pushed it has not recorded that yet
		m.pushed[k] = append(m.pushed[k], 0)
	}
	if m.pushed[k][n]&isPopped != 0 {
		m.problem("q%d: element %d was delivered twice", k, n)
	}
	m.pushed[k][n] |= isPopped
}

// watches increments a number unless another caller does so in the meantime.
func (m *mixture) watches(ctx context.Context, r *rand.Rand) {
	k := r.IntN(mixtureKeys)
	key := "w" + strconv.Itoa(k)
	err := m.c.Watch(ctx, func(tx *redis.Tx) error {
		var value *string
		if err := tx.Do(ctx, &value, redis.Cmd("GET", key)); err != nil {
			return err
		}
		n := 0
		if value != nil {
			n = m.number(key, *value)
		}
		tx.Add(nil, redis.Cmd("SET", key, numbered(key, n+1)))
		return nil
	}, key)
	m.did("transactions")
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.done[k]++
	case slipstream.OutcomeOf(err) == slipstream.MaybeExecuted:
		m.maybe[k]++
	case slipstream.OutcomeOf(err) == slipstream.Executed:
		m.problem("a transaction: %v", err)
	}
}

// converses uses another database for a while, and leaves the connection in any state.
func (m *mixture) converses(ctx context.Context, r *rand.Rand) {
	s, err := m.c.Session(ctx)
	if err != nil {
		return
	}
	defer s.Close()
	db := 1 + r.IntN(3)
	if s.Do(ctx, nil, redis.Cmd("SELECT", db)) != nil {
		return
	}
	for range 1 + r.IntN(5) {
		n := r.IntN(1000)
		key := fmt.Sprint("s", r.Uint64())
		var got string
		if s.Do(ctx, nil, redis.Cmd("SET", key, numbered(key, n), "EX", 10)) != nil || s.Do(ctx, &got, redis.Cmd("GET", key)) != nil {
			return
		}
		if m.number(key, got) != n {
			m.problem("%s in database %d is %q", key, db, got)
		}
		if _, found, err := m.c.Get(ctx, key); found && err == nil {
			m.problem("%s of database %d is in database 0", key, db)
		}
		m.did("sessions")
	}
	if r.IntN(2) == 0 {
		_ = s.Do(ctx, nil, redis.Cmd("MULTI")) // and nothing after it
	}
}

// echoes makes an ordinary call, on its own or in a transaction.
func (m *mixture) echoes(ctx context.Context, r *rand.Rand) {
	var b redis.Batch
	var got [3]string
	var want [3]string
	for i := range want {
		want[i] = strconv.FormatUint(r.Uint64(), 36)
		b.Add(&got[i], redis.Cmd("ECHO", want[i]))
	}
	var err error
	switch r.IntN(3) {
	case 0:
		err = m.c.DoTransaction(ctx, &b)
	case 1:
		err = m.c.DoBatch(ctx, &b)
	default:
		want[1], want[2] = "", ""
		err = m.c.Do(ctx, &got[0], redis.Cmd("ECHO", want[0]))
	}
	if err == nil {
		m.did("echoes")
		if got != want {
			m.problem("ECHO %q returned %q", want, got)
		}
	}
}

// TestSoakMixed kills the server at random times, with kill -9, for the duration of a soak test.
func TestSoakMixed(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	// Acknowledged writes survive a restart, because only the process is killed, not the machine.
	server := testkit.StartRedis(t, "--appendonly", "yes", "--appendfsync", "no")
	o := redis.Options{Addr: server.Addr, Backoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond, StallTimeout: 2 * time.Second, MaxExclusive: 12, WaitWhenFull: true}
	m := &mixture{t: t, other: connect(t, o), over: make(chan struct{}), unheard: make(map[string]bool), pushed: make([][]uint8, mixtureKeys), delivered: make(map[string]uint64)}
	o.Cache = &redis.CacheOptions{MaxBytes: 1 << 20}
	m.c = connect(t, o)
	n := uint64(0)
	add := func(count int, patience time.Duration, f func(context.Context, *rand.Rand)) {
		for range count {
			n++
			m.start(seed, n, patience, f)
		}
	}
	for k := range mixtureKeys {
		add(1, time.Second, m.changes(k))
		add(1, time.Second, m.publishes(k))
		add(1, time.Second, m.pushes(k))
	}
	add(4, time.Second, m.cached)
	add(6, 500*time.Millisecond, m.listens)
	add(8, 300*time.Millisecond, m.pops)
	add(4, time.Second, m.watches)
	add(3, time.Second, m.converses)
	add(3, time.Second, m.echoes)
	kills, grown := m.kill(testkit.Fork(seed, 0), server, testkit.SoakTime(t, 3*time.Second))
	close(m.over)
	m.workers.Wait()
	m.judge(kills, grown)
}

// tried returns an error that says what has not happened yet, or nil.
func (m *mixture) tried(kills int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, what := range []string{"cached", "changes", "messages", "gaps", "pops", "pops without a result", "transactions", "sessions", "echoes"} {
		if m.delivered[what] == 0 {
			return fmt.Errorf("no %s", what)
		}
	}
	if s := m.c.Stats(); kills == 0 || s.Cache.Hits == 0 || s.Cache.Invalidated == 0 || s.Exclusive.Unblocked == 0 {
		return fmt.Errorf("%d kills, %+v, %+v: too few for a meaningful test", kills, s.Cache, s.Exclusive)
	}
	return nil
}

// kill ends and restarts the server and cuts connections, for d, or longer if something has not
// happened by then. It returns the number of restarts, and by how many bytes the heap has grown
// since a third of the time had passed.
func (m *mixture) kill(r *rand.Rand, server *testkit.Redis, d time.Duration) (kills int, grown int64) {
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	before := int64(0)
	for began := time.Now(); time.Since(began) < d || m.tried(kills) != nil && time.Since(began) < d+time.Minute; {
		time.Sleep(time.Duration(20+r.IntN(500)) * time.Millisecond)
		switch r.IntN(4) {
		case 0:
			_ = m.other.Do(m.t.Context(), nil, redis.Cmd("CLIENT", "KILL", "TYPE", "pubsub"))
		case 1:
			_ = m.other.Do(m.t.Context(), nil, redis.Cmd("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
		default:
			server.Kill()
			time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
			server.Restart(m.t)
			kills++
		}
		if before == 0 && time.Since(began) > d/3 {
			before = heap()
		}
	}
	return kills, heap() - before
}

// judge compares what is left with what is expected.
func (m *mixture) judge(kills int, grown int64) {
	t, ctx := m.t, m.t.Context()
	testkit.Eventually(t, 10*time.Second, func() error { return errors.Join(m.c.Ping(ctx), m.other.Ping(ctx)) })
	for k := range mixtureKeys {
		queue := "q" + strconv.Itoa(k)
		left, err := m.other.LRange(ctx, queue, 0, -1)
		must(t, err)
		for _, e := range left {
			m.popped(k, m.number(queue, e))
		}
		missing := 0
		for _, known := range m.pushed[k] {
			if known == isPushed {
				missing++
			}
		}
		if missing > m.doubts[k] {
			t.Errorf("%s: %d elements are missing, but only %d calls are in doubt", queue, missing, m.doubts[k])
		}
		key := "w" + strconv.Itoa(k)
		value, found, err := m.c.Get(ctx, key)
		must(t, err)
		n := 0
		if found {
			n = m.number(key, value)
		}
		if n < m.done[k] || n > m.done[k]+m.maybe[k] {
			t.Errorf("%s is %d after %d transactions and %d in doubt", key, n, m.done[k], m.maybe[k])
		}
	}
	s := m.c.Stats()
	t.Logf("%d kills; %v; doubts %v; transactions %v, in doubt %v; %+v; %+v; the heap grew by %d KiB",
		kills, m.delivered, m.doubts, m.done, m.maybe, s.Exclusive, s.Cache, grown>>10)
	if s.Exclusive.Lent != 0 || s.Exclusive.Idle > 12 || s.Cache.Bytes > 1<<20 {
		t.Errorf("%+v, %+v", s.Exclusive, s.Cache)
	}
	if grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if err := m.tried(kills); err != nil {
		t.Error(err)
	}
}
