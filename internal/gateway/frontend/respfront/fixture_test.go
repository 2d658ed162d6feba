package respfront

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/memory"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/cachekit"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// originFunc loads documents one by one.
type originFunc = cachekit.Origin

// echo answers with the ID that arrived; id "0" and "missing" do not exist, "big" and
// numbers from a million on are large.
func echo(_ context.Context, _ cache.ResourceID, id string) ([]byte, error) {
	switch {
	case id == "0" || id == "missing":
		return nil, nil
	case len(id) == 7 && id[0] == '1':
		return append(append([]byte(`"`), bytes.Repeat([]byte("x"), 100_000)...), '"'), nil
	}
	return json.Marshal(map[string]string{"id": id})
}

const (
	webPassword   = "web-password-0123456789"
	otherPassword = "other-password-0123456789"
)

func users() []User {
	return []User{
		{Name: "web", PasswordHash: sha256.Sum256([]byte("old"))},
		{Name: "web", PasswordHash: sha256.Sum256([]byte(webPassword))},
		{Name: "default", PasswordHash: sha256.Sum256([]byte(otherPassword))},
	}
}

// fixture serves depts:{integer}, orders:{text}:{integer}, blobs:{bytes}, which only the
// user web, the API key web and tokens with the scope blobs:read may read, and late, whose key is not known yet.
type fixture struct {
	cache  *cache.Cache
	server *Server
}

func newFixture(t testing.TB, load originFunc, config Config, change ...func(*cache.Resource)) *fixture {
	t.Helper()
	return newFixtureOf(t, load, config, change...)
}

// newFixtureOf is newFixture for an origin that sees whole statements.
func newFixtureOf(t testing.TB, origin cache.Origin, config Config, change ...func(*cache.Resource)) *fixture {
	t.Helper()
	tier, err := memory.New(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	var resources []cache.Resource
	var served []frontend.Resource
	for _, n := range []string{"depts", "orders", "blobs", "late"} {
		r := cache.Resource{Name: n}
		for _, f := range change {
			f(&r)
		}
		resources = append(resources, r)
		served = append(served, frontend.Resource{Name: n})
	}
	served[2].Access = &access.Rule{Keys: []string{"web"}, Claims: map[string][]string{"scope": {"blobs:read"}}}
	c := cachekit.New(t, origin, tier, resources...)
	s, err := New(c, served, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	for i, columns := range [][]resource.KeyColumn{
		{{Name: "deptno", Kind: resource.Integer}},
		{{Name: "region", Kind: resource.Text}, {Name: "order_no", Kind: resource.Integer}},
		{{Name: "hash", Kind: resource.Bytes}},
	} {
		if err := s.SetColumns(cache.ResourceID(i), columns); err != nil {
			t.Fatal(err)
		}
	}
	return &fixture{cache: c, server: s}
}

// listen starts serving at a separate port, over TLS if there is a configuration of it.
func (f *fixture) listen(t testing.TB, secure ...*tls.Config) {
	t.Helper()
	listeners, err := loop.Listen("tcp", "127.0.0.1:0", runtime.GOMAXPROCS(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range secure {
		for i, l := range listeners {
			listeners[i] = loop.Secure(l, config)
		}
	}
	if err := f.server.Serve(listeners...); err != nil {
		t.Fatal(err)
	}
}

// bothBackends runs a test against a listening server with each backend.
func bothBackends(t *testing.T, load originFunc, config Config, run func(t *testing.T, f *fixture), change ...func(*cache.Resource)) {
	t.Helper()
	bothBackendsOf(t, load, config, run, change...)
}

func bothBackendsOf(t *testing.T, origin cache.Origin, config Config, run func(t *testing.T, f *fixture), change ...func(*cache.Resource)) {
	t.Helper()
	for _, b := range []loop.Backend{loop.Epoll, loop.Goroutines} {
		t.Run(b.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			config.Backend = b
			f := newFixtureOf(t, origin, config, change...)
			f.listen(t)
			run(t, f)
		})
	}
}

// client is a connection that reads replies.
type client struct {
	t    testing.TB
	conn net.Conn
	in   []byte
	buf  []byte
}

func (f *fixture) dial(t testing.TB) *client {
	t.Helper()
	return dialAddr(t, f.server.Addr().String())
}

func dialAddr(t testing.TB, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t: t, conn: c}
}

// send writes bytes as they are.
func (c *client) send(data string) {
	c.t.Helper()
	if _, err := c.conn.Write([]byte(data)); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// reply reads one reply and returns it with \n for CR LF and without the last one; "EOF"
// at the end of the connection.
func (c *client) reply() string {
	c.t.Helper()
	one, err := c.next()
	if err != nil {
		c.t.Fatal(err)
	}
	return one
}

// next is reply for goroutines other than the test's.
func (c *client) next() (string, error) {
	s := resp.NewScanner(resp.Limits{})
	for {
		if len(c.in) > 0 {
			n, v, err := s.Scan(c.in)
			if err != nil {
				return "", fmt.Errorf("reply %q: %w", c.in[:min(len(c.in), 200)], err)
			}
			if v != resp.More {
				one := string(c.in[:n])
				c.in = c.in[n:]
				return strings.ReplaceAll(strings.TrimSuffix(one, "\r\n"), "\r\n", "\n"), nil
			}
		}
		if c.buf == nil {
			c.buf = make([]byte, 64<<10)
		}
		if err := c.conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			return "", err
		}
		n, err := c.conn.Read(c.buf)
		c.in = append(c.in, c.buf[:n]...)
		if n == 0 && err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				return "", fmt.Errorf("no reply within 30 s, only %.200q", c.in)
			}
			return "EOF", nil
		}
	}
}

func command1(words ...string) string { return string(resp.AppendCommand(nil, words...)) }

// line sends an inline command and returns the reply.
func (c *client) line(text string) string {
	c.t.Helper()
	c.send(text + "\r\n")
	return c.reply()
}

// expect runs rows of an inline command and the reply wanted. A wanted text that ends
// with an asterisk is a prefix.
func (c *client) expect(rows [][2]string) {
	c.t.Helper()
	for _, r := range rows {
		got := c.line(r[0])
		if prefix, ok := strings.CutSuffix(r[1], "*"); ok && strings.HasPrefix(got, prefix) && prefix != "" {
			continue
		}
		if got != r[1] {
			c.t.Errorf("%.100s: got %.300q, want %.300q", r[0], got, r[1])
		}
	}
}

// bulk is the text of a bulk string in a reply.
func bulk(s string) string { return fmt.Sprintf("$%d\n%s", len(s), s) }

// dept is the document of a department.
func dept(id int) string { return bulk(fmt.Sprintf(`{"id":"%d"}`, id)) }

// fakeConn is a connection without an engine.
type fakeConn struct {
	parts   []*part
	writing *part
	at      time.Duration
	ended   bool
	aborted error
	most    int // deferred answers before it is full
	paused  bool
	spent   int // units of the engine
}

// part is a piece of the output, or an answer that comes later.
type writer interface{ write(c conn) }

type part struct {
	out  loop.Output
	w    writer
	done chan struct{}
}

func (p *part) Complete() { close(p.done) }

func (p *part) Weigh(int) {}

func (c *fakeConn) Output() *loop.Output {
	if c.writing != nil {
		return &c.writing.out
	}
	if n := len(c.parts); n > 0 && c.parts[n-1].w == nil {
		return &c.parts[n-1].out
	}
	c.parts = append(c.parts, new(part))
	return &c.parts[len(c.parts)-1].out
}

func (c *fakeConn) Owed() (n int) {
	for _, p := range c.parts {
		if p.w != nil {
			n++
		}
	}
	return n
}

func (c *fakeConn) Full() bool {
	return c.ended || c.aborted != nil || c.paused || c.most > 0 && c.Owed() >= c.most
}
func (c *fakeConn) Pause(on bool)            { c.paused = on }
func (c *fakeConn) AdmitsLarge(int) bool     { return true }
func (c *fakeConn) Prove()                   {}
func (c *fakeConn) Lane() int                { return 0 }
func (c *fakeConn) ReadAt() time.Duration    { return c.at }
func (c *fakeConn) Context() context.Context { return context.Background() }
func (c *fakeConn) Spend(units int)          { c.spent += units }
func (c *fakeConn) End()                     { c.ended = true }
func (c *fakeConn) Abort(err error)          { c.aborted = err }

func (c *fakeConn) Defer(r loop.Reply) completer {
	p := &part{w: r.(writer), done: make(chan struct{})}
	c.parts = append(c.parts, p)
	return p
}

// take waits for all answers and returns them.
func (c *fakeConn) take() []byte {
	var all []byte
	for _, p := range c.parts {
		if p.w != nil {
			<-p.done
			c.writing = p
			p.w.write(c)
			c.writing = nil
		}
		all = append(all, p.out.B...)
	}
	c.parts = nil
	return all
}

func (f *fixture) session() *session {
	return f.server.open(1, netip.MustParseAddrPort("192.0.2.1:1234"))
}
