package respfront

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Answers come in the order of commands, however long each document takes.
func TestOrder(t *testing.T) {
	slow := func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		if r == 1 {
			time.Sleep(150 * time.Millisecond)
		}
		if id == "9" {
			time.Sleep(50 * time.Millisecond)
		}
		return echo(ctx, r, id)
	}
	bothBackends(t, slow, Config{}, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		c.expect([][2]string{{"GET depts:1", dept(1)}})
		c.send("GET orders:a:1\r\nGET depts:1\r\nPING\r\nMGET depts:1 depts:9 orders:b:2 depts:2\r\nAUTH x\r\n" +
			"GET depts:9\r\nEXISTS depts:0 depts:3\r\nGET depts:1\r\nSELECT 0\r\nSTRLEN orders:c:3\r\nECHO x\r\nHELLO 3\r\nGET depts:0\r\nRESET\r\nGET depts:0\r\n")
		for i, want := range []string{
			bulk(`{"id":"1:a1"}`), dept(1), "+PONG",
			"*4\n" + dept(1) + "\n" + dept(9) + "\n" + bulk(`{"id":"1:b2"}`) + "\n" + dept(2), "-ERR AUTH*",
			dept(9), ":1", dept(1), "+OK", ":13", bulk("x"), "%7*", "_", "+RESET", "$-1",
		} {
			got := c.reply()
			if prefix, ok := strings.CutSuffix(want, "*"); got != want && !(ok && strings.HasPrefix(got, prefix)) {
				t.Errorf("reply %d: %q, want %q", i, got, want)
			}
		}
	})
}

// All misses of one read are one statement of the origin, and each ends as it would by
// itself.
func TestMissesTravelTogether(t *testing.T) {
	testkit.NoLeaks(t)
	var mu sync.Mutex
	var statements [][]string
	origin := originManyFunc(func(r cache.ResourceID, ids []string) (cache.Batch, error) {
		mu.Lock()
		statements = append(statements, ids)
		mu.Unlock()
		b := cache.Batch{Snapshot: cache.UpTo(1)}
		for _, id := range ids {
			if id == "13" {
				return cache.Batch{}, errors.New("poisoned")
			}
			body, _ := echo(context.Background(), r, id)
			b.Docs = append(b.Docs, cache.Loaded{Body: body})
		}
		return b, nil
	})
	f := newFixtureOf(t, origin, Config{})
	x := f.session()
	run := func(from, to int) (out string, statementsBefore int) {
		mu.Lock()
		before := len(statements)
		mu.Unlock()
		var in []byte
		for i := from; i <= to; i++ {
			in = append(in, command1("GET", fmt.Sprintf("depts:%d", i))...)
		}
		c := &fakeConn{at: f.cache.Now()}
		if n := x.data(c, in); n != len(in) {
			t.Errorf("%d bytes consumed, want %d", n, len(in))
		}
		// The bytes are reused from here on.
		for i := range in {
			in[i] = '#'
		}
		return string(c.take()), before
	}
	out, before := run(101, 200)
	var want strings.Builder
	for i := 101; i <= 200; i++ {
		want.WriteString(strings.ReplaceAll(dept(i), "\n", "\r\n") + "\r\n")
	}
	if out != want.String() {
		t.Errorf("got %.300q, want %.300q", out, want.String())
	}
	mu.Lock()
	if n := len(statements) - before; n != 1 || len(statements[before]) != 100 {
		t.Errorf("%d statements, want 1 with 100 keys", n)
	}
	mu.Unlock()
	// Only the one that cannot be loaded fails.
	out, _ = run(11, 15)
	got := strings.Split(strings.TrimSuffix(out, "\r\n"), "\r\n")
	if len(got) != 9 || got[4] != "-ERR the document could not be loaded" || got[1] != `{"id":"11"}` || got[8] != `{"id":"15"}` {
		t.Errorf("with a poisoned key: %q, want the others", got)
	}
	if f.server.Waiting() != 0 || f.server.Held() != 0 {
		t.Errorf("%d documents waited for and %d bytes held after all, want 0", f.server.Waiting(), f.server.Held())
	}
}

// A pipeline of misses beyond the bound of waiting documents continues in large
// pieces.
func TestColdPipeline(t *testing.T) {
	const n = 5000
	var statements atomic.Int64
	load := func(r cache.ResourceID, ids []string) (cache.Batch, error) {
		statements.Add(1)
		time.Sleep(time.Millisecond)
		b := cache.Batch{Snapshot: cache.UpTo(1)}
		for _, id := range ids {
			body, err := echo(context.Background(), r, id)
			if err != nil {
				return b, err
			}
			b.Docs = append(b.Docs, cache.Loaded{Body: body})
		}
		return b, nil
	}
	bothBackendsOf(t, originManyFunc(load), Config{}, func(t *testing.T, f *fixture) {
		statements.Store(0)
		c := f.dial(t)
		var all strings.Builder
		for i := range n {
			all.WriteString(command1("GET", fmt.Sprintf("depts:%d", 1+i)))
		}
		sent := make(chan error, 1)
		go func() {
			_, err := c.conn.Write([]byte(all.String()))
			sent <- err
		}()
		for i := range n {
			if got, want := c.reply(), dept(1+i); got != want {
				t.Fatalf("reply %d: %q, want %q", i, got, want)
			}
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if got, most := statements.Load(), int64(3*n/maxDeferred); got > most {
			t.Errorf("%d statements, want at most %d", got, most)
		}
	})
}

// originManyFunc is an origin that sees whole statements.
type originManyFunc func(r cache.ResourceID, ids []string) (cache.Batch, error)

func (f originManyFunc) Load(_ context.Context, r cache.ResourceID, ids []string) (cache.Batch, error) {
	return f(r, ids)
}

// Failures of loads are reported as over HTTP.
func TestLoadFailures(t *testing.T) {
	const together = "-ERR these documents are more than 67108864 bytes together: request fewer keys"
	large := bytes.Repeat([]byte("x"), 1<<20)
	for _, row := range []struct {
		name   string
		load   originFunc
		config Config
		change func(*cache.Resource)
		rows   [][2]string
	}{
		{"unavailable", func(context.Context, cache.ResourceID, string) ([]byte, error) {
			return nil, fmt.Errorf("%w: connection to 10.0.0.1 refused", cache.ErrUnavailable)
		}, Config{}, nil, [][2]string{
			{"GET depts:1", "-ERR the database cannot be reached"},
			{"MGET depts:1 depts:2", "-ERR the database cannot be reached"},
			{"EXISTS depts:1 orders:a:2", "-ERR the database cannot be reached"},
		}},
		{"error", func(_ context.Context, _ cache.ResourceID, id string) ([]byte, error) {
			if id != "2" {
				return []byte("1"), nil
			}
			return nil, errors.New(`syntax error at or near "secret"`)
		}, Config{}, nil, [][2]string{
			{"GET depts:2", "-ERR the document could not be loaded"},
			{"MGET depts:1 depts:2 depts:3", "-ERR the document could not be loaded"},
			{"MGET depts:1 depts:3", "*2\n$1\n1\n$1\n1"},
		}},
		{"too large", func(context.Context, cache.ResourceID, string) ([]byte, error) { return nil, cache.ErrTooLarge }, Config{}, nil,
			[][2]string{{"GET depts:1", "-ERR the document is larger than the configured limit"}}},
		{"timeout", func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
			<-ctx.Done() // the cache is closed
			return nil, ctx.Err()
		}, Config{ConnConfig: frontend.ConnConfig{RequestTimeout: 30 * time.Millisecond}}, nil, [][2]string{
			{"GET depts:1", "-TIMEOUT the document could not be loaded in time"},
			{"MGET depts:1 depts:2", "-TIMEOUT the document could not be loaded in time"},
		}},
		{"too many loads", func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) { return echo(ctx, r, id) },
			Config{}, func(r *cache.Resource) { r.MaxQueue = 1 },
			[][2]string{{"MGET depts:1 depts:2 depts:3", "-OVERLOADED too many documents are being loaded"}}},
		{"more than may be waited for", echo, Config{MaxWaiting: 3}, nil, [][2]string{
			{"MGET" + many("depts", 1, 20), "-OVERLOADED too many documents are being loaded"},
			{"MGET depts:1 depts:2 depts:3", "*3*"},
			{"MGET" + many("depts", 1, 12), "*12*"}, // a few for a connection that waits for nothing
			{"MGET" + many("depts", 1, 15), "*15*"},
		}},
		{"an answer that is too large", func(context.Context, cache.ResourceID, string) ([]byte, error) { return large, nil }, Config{}, nil, [][2]string{
			{"MGET" + many("depts", 1, 70), together},
			{"EXISTS" + many("depts", 1, 70), ":70"},
			{"STRLEN depts:1", ":1048576"},
			{"MGET" + strings.Repeat(" depts:1", 70), together},
		}},
		{"a key that waits for nothing", echo, Config{}, func(r *cache.Resource) { r.Policy = cache.Reload }, [][2]string{{"GET depts:1", dept(1)}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var change []func(*cache.Resource)
			if row.change != nil {
				change = append(change, row.change)
			}
			bothBackends(t, row.load, row.config, func(t *testing.T, f *fixture) {
				f.dial(t).expect(row.rows)
				testkit.Eventually(t, 5*time.Second, func() error {
					if w, h := f.server.Waiting(), f.server.Held(); w != 0 || h != 0 {
						return fmt.Errorf("%d documents are waited for and %d bytes held, want 0", w, h)
					}
					return nil
				})
			}, change...)
		})
	}
}

func many(name string, from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, " %s:%d", name, i)
	}
	return b.String()
}

// While the promise cannot be kept, the policy of the resource applies.
func TestPolicies(t *testing.T) {
	for _, row := range []struct {
		policy cache.Policy
		want   string
		stale  int64
	}{
		{cache.Unavailable, "-UNVERIFIED the document's freshness cannot be promised at present", 0},
		{cache.ServeStale, "$1\n1", 1},
		{cache.Reload, "$1\n2", 0},
	} {
		var version atomic.Int32
		version.Store(1)
		load := func(context.Context, cache.ResourceID, string) ([]byte, error) {
			return fmt.Appendf(nil, "%d", version.Load()), nil
		}
		bothBackends(t, load, Config{}, func(t *testing.T, f *fixture) {
			version.Store(1)
			c := f.dial(t)
			c.expect([][2]string{{"GET depts:1", "$1\n1"}, {"GET depts:1", "$1\n1"}})
			version.Store(2)
			f.cache.SetPromise(1, false, "test") // of another resource: no effect
			c.expect([][2]string{{"GET depts:1", "$1\n1"}})
			f.cache.Advance(-time.Hour, cache.UpTo(1)) // the stream is far behind
			c.expect([][2]string{{"GET depts:1", row.want}})
			if got := f.server.StaleAnswers(); got != row.stale {
				t.Errorf("policy %d: %d stale answers, want %d", row.policy, got, row.stale)
			}
		}, func(r *cache.Resource) { r.Policy = row.policy })
	}
}

// The commands of a broken connection end long before they would time out. A connection
// that is closed in order cannot be distinguished from one whose client still reads.
func TestClientsThatLeave(t *testing.T) {
	load := func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		<-ctx.Done() // the cache is closed
		return nil, ctx.Err()
	}
	bothBackends(t, load, Config{}, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		c.send("GET depts:1\r\nMGET depts:2 orders:a:3\r\n")
		waits := func(want int64) func() error {
			return func() error {
				if got := f.server.Waiting(); got != want {
					return fmt.Errorf("%d documents are waited for, want %d", got, want)
				}
				return nil
			}
		}
		testkit.Eventually(t, 5*time.Second, waits(3))
		if err := c.conn.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		c.conn.Close() // with a reset
		testkit.Eventually(t, 5*time.Second, waits(0))
	})
}

// Shutdown waits for commands in flight, and cuts them off at its deadline.
func TestShutdown(t *testing.T) {
	var slow atomic.Int64
	load := func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		time.Sleep(time.Duration(slow.Load()))
		return echo(ctx, r, id)
	}
	bothBackends(t, load, Config{}, func(t *testing.T, f *fixture) {
		slow.Store(int64(200 * time.Millisecond))
		c, idle := f.dial(t), f.dial(t)
		idle.expect([][2]string{{"PING", "+PONG"}})
		c.send("GET depts:1\r\n")
		testkit.Eventually(t, 5*time.Second, func() error {
			if f.server.Waiting() == 0 {
				return errors.New("nothing is being loaded")
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := f.server.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if got := c.reply(); got != dept(1) {
			t.Errorf("the command in flight: %q, want its document", got)
		}
		if got := c.reply(); got != "EOF" {
			t.Errorf("after it: %q, want the end", got)
		}
		if got := idle.reply(); got != "EOF" {
			t.Errorf("the idle connection: %q, want the end", got)
		}
	})
	bothBackends(t, load, Config{}, func(t *testing.T, f *fixture) {
		slow.Store(int64(1500 * time.Millisecond))
		c := f.dial(t)
		c.send("GET depts:1\r\n")
		testkit.Eventually(t, 5*time.Second, func() error {
			if f.server.Waiting() == 0 {
				return errors.New("nothing is being loaded")
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := f.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v, want the error of its context", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("Shutdown took %v, want it to end with its context", took)
		}
		if got := c.reply(); got != "EOF" {
			t.Errorf("the command in flight: %q, want the end", got)
		}
	})
}

// The number of connections in the middle of a large command is bounded.
func TestLargeCommands(t *testing.T) {
	testkit.NoLeaks(t)
	f := newFixture(t, echo, Config{})
	begin := []byte("*2\r\n$4\r\nECHO\r\n$500000\r\nxxx")
	sessions := make([]*session, maxLarge+1)
	for i := range sessions {
		sessions[i] = f.session()
		c := &fakeConn{}
		n := sessions[i].data(c, begin)
		refused := i == maxLarge
		if refused != c.ended || !refused && (n != 0 || len(c.take()) > 0) {
			t.Fatalf("connection %d: consumed %d, ended %v", i, n, c.ended)
		}
		if refused && string(c.take()) != "-OVERLOADED too many clients are sending large commands\r\n" {
			t.Error("the last one does not get the reason")
		}
	}
	// One command completes, one connection closes: two others may start.
	c := &fakeConn{}
	whole := append(bytes.Clone(begin[:len(begin)-3]), strings.Repeat("x", 500_000)+"\r\n"...)
	if n := sessions[0].data(c, whole); n != len(whole) || len(c.take()) == 0 {
		t.Errorf("a large command that is whole: %d bytes consumed, want %d", n, len(whole))
	}
	sessions[1].close()
	for i := range 3 {
		c := &fakeConn{}
		f.session().data(c, begin)
		if c.ended != (i == 2) {
			t.Errorf("connection %d after two have ended: ended %v", i, c.ended)
		}
	}
}

// A large answer that waits for an earlier one counts as memory.
func TestLargeAnswersBehindOthers(t *testing.T) {
	var blocked atomic.Pointer[chan struct{}]
	load := func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		if r == 1 {
			<-*blocked.Load()
		}
		return echo(ctx, r, id)
	}
	bothBackends(t, load, Config{ConnConfig: frontend.ConnConfig{Large: loop.NewLargeBudget(110_000)}}, func(t *testing.T, f *fixture) {
		block := make(chan struct{})
		blocked.Store(&block)
		c := f.dial(t)
		c.expect([][2]string{{"GET depts:1000001", "$100002*"}, {"GET depts:1000002", "$100002*"}, {"GET depts:1", dept(1)}})
		c.send("GET orders:a:1\r\nGET depts:1000001\r\nGET depts:1\r\nGET depts:1000002\r\nMGET depts:1000001 depts:1000002\r\nGET depts:1\r\n")
		testkit.Eventually(t, 5*time.Second, func() error {
			if got := f.server.Held(); got < 100_000 {
				return fmt.Errorf("%d bytes are held, want those of a large answer", got)
			}
			return nil
		})
		close(block)
		for i, want := range []string{bulk(`{"id":"1:a1"}`), "$100002\n\"x", dept(1),
			"-OVERLOADED too many bytes of documents wait for clients to read them",
			"-OVERLOADED too many bytes of documents wait for clients to read them", dept(1)} {
			if got := c.reply(); !strings.HasPrefix(got, want) {
				t.Errorf("reply %d: %.100q, want %.100q", i, got, want)
			}
		}
		testkit.Eventually(t, 5*time.Second, func() error {
			if got := f.server.Held(); got != 0 {
				return fmt.Errorf("%d bytes are held after all, want 0", got)
			}
			return nil
		})
	})
}
