package thriftfront

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/thriftdoc"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/memory"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/cachekit"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// echo returns a document with the requested ID; "0" does not exist, "13" cannot be loaded, "17" does not fit its type,
// and documents numbered one million or more are large.
func echo(_ context.Context, _ cache.ResourceID, id string) ([]byte, error) {
	text := ""
	switch {
	case id == "0":
		return nil, nil
	case id == "13":
		return nil, errors.New("broken")
	case id == "17":
		return []byte(`{"id":{},"n":1}`), nil
	case len(id) == 7 && id[0] == '1':
		text = strings.Repeat("x", 100_000)
	}
	return fmt.Appendf(nil, `{"id":%q,"n":%d,"text":%q}`, id, len(id), text), nil
}

const webKey = "web-key-with-many-characters-0123456789"

// shapeOf returns the shape of all documents.
func shapeOf() *resource.Shape {
	return &resource.Shape{Fields: []resource.Field{
		{Name: "id", Type: resource.JSONString}, {Name: "n", Type: resource.JSONInteger, Format: "int64"}, {Name: "text", Type: resource.JSONString},
	}}
}

func fieldIDs(id, n, text int) (f resource.FieldIDs) {
	for _, one := range []resource.FieldID{{Name: "id", ID: id}, {Name: "n", ID: n}, {Name: "text", ID: text}} {
		if one.ID > 0 {
			f.Fields = append(f.Fields, one)
		}
	}
	return f
}

// fixture serves depts/{integer}, orders/{text}/{integer}, secrets/{integer}, which only the API key web may read,
// totals/{integer} as JSON, late, whose key columns are not known yet, and bare, whose fields have no numbers.
type fixture struct {
	cache  *cache.Cache
	server *Server
	shape  atomic.Pointer[resource.Shape]
	loads  atomic.Int64
}

func resources() []Resource {
	all := []Resource{}
	for _, name := range []string{"depts", "orders", "secrets", "totals", "late", "bare"} {
		all = append(all, Resource{Resource: frontend.Resource{Name: name}, Fields: fieldIDs(1, 2, 3)})
	}
	all[2].Access = &access.Rule{Keys: []string{"web"}}
	all[3].JSON = true
	all[5].Fields = resource.FieldIDs{}
	for i := range all {
		all[i].ID = cache.ResourceID(i)
	}
	return all
}

var keys = [][]resource.KeyColumn{
	{{Name: "deptno", Kind: resource.Integer}},
	{{Name: "region", Kind: resource.Text}, {Name: "order_no", Kind: resource.Integer}},
	{{Name: "id", Kind: resource.Integer}},
	{{Name: "id", Kind: resource.Integer}},
}

func newFixture(t testing.TB, load cachekit.Origin, config Config, change ...func(*cache.Resource)) *fixture {
	t.Helper()
	tier, err := memory.New(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{}
	f.shape.Store(shapeOf())
	var all []cache.Resource
	for _, r := range resources() {
		one := cache.Resource{Name: r.Name}
		for _, c := range change {
			c(&one)
		}
		all = append(all, one)
	}
	f.cache = cachekit.New(t, cachekit.Origin(func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		f.loads.Add(1)
		return load(ctx, r, id)
	}), tier, all...)
	config.Shape = func(cache.ResourceID) *resource.Shape { return f.shape.Load() }
	if f.server, err = New(f.cache, resources(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := f.server.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	for i, columns := range keys {
		if err := f.server.SetColumns(cache.ResourceID(i), columns); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// gate returns a gate that accepts the API key web.
func gate(t testing.TB) *access.Gate {
	t.Helper()
	hash := sha256.Sum256([]byte(webKey))
	other := sha256.Sum256([]byte("other"))
	path := filepath.Join(t.TempDir(), "keys.txt")
	text := "web sha256:" + hex.EncodeToString(hash[:]) + "\nother sha256:" + hex.EncodeToString(other[:]) + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := access.Open(access.Config{KeysFile: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func (f *fixture) listen(t testing.TB) {
	t.Helper()
	listeners, err := loop.Listen("tcp", "127.0.0.1:0", runtime.GOMAXPROCS(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.server.Serve(listeners...); err != nil {
		t.Fatal(err)
	}
}

// bothBackends runs a test against a listening server with each backend.
func bothBackends(t *testing.T, load cachekit.Origin, config Config, run func(t *testing.T, f *fixture), change ...func(*cache.Resource)) {
	t.Helper()
	for _, b := range []loop.Backend{loop.Epoll, loop.Goroutines} {
		t.Run(b.String(), func(t *testing.T) {
			testkit.NoLeaks(t)
			config.Backend = b
			f := newFixture(t, load, config, change...)
			f.listen(t)
			run(t, f)
		})
	}
}

// client calls methods according to the printed IDL.
type client struct {
	t    testing.TB
	rpc  *rpc.Client
	call *genericrpc.Client
}

func (f *fixture) client(t testing.TB, config rpc.ClientConfig) *client {
	t.Helper()
	config.Addr = f.server.Addr().String()
	c, err := rpc.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	var all []thriftdoc.Resource
	ids := fieldIDs(1, 2, 3)
	for _, r := range resources() {
		one := thriftdoc.Resource{Name: r.Name, Layout: thriftdoc.New(shapeOf(), &ids)}
		if r.JSON {
			one.Layout = nil
		}
		all = append(all, one)
	}
	text := thriftdoc.IDL(all)
	program, err := idl.Load(idl.Config{ReadFile: func(string) ([]byte, error) { return text, nil }}, "x.thrift")
	if err != nil {
		t.Fatal(err)
	}
	g, err := genericrpc.NewClient(c, program.Roots[0].Service(thriftdoc.ServiceName), genericrpc.Config{Compact: config.Compact})
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, rpc: c, call: g}
}

// do returns the result or the error of a call as text.
func (c *client) do(ctx context.Context, method, args string) string {
	b, err := c.call.Call(ctx, method, []byte(args))
	if e, ok := errors.AsType[*genericrpc.Exception](err); ok {
		return "error: " + err.Error() + " " + string(e.JSON)
	} else if err != nil {
		return "error: " + err.Error()
	}
	return string(b)
}

// expect runs calls, each given as a method, its arguments, and text that the answer must contain.
func (c *client) expect(ctx context.Context, rows [][3]string) {
	c.t.Helper()
	for _, r := range rows {
		if got := c.do(ctx, r[0], r[1]); !strings.Contains(got, r[2]) || r[2] == "" {
			c.t.Errorf("%s(%s): got %.300s, want %s", r[0], r[1], got, r[2])
		}
	}
}

// raw is a client connection that sends arbitrary bytes.
type raw struct {
	t    testing.TB
	conn net.Conn
	in   []byte
}

func (f *fixture) raw(t testing.TB) *raw {
	t.Helper()
	c, err := net.Dial("tcp", f.server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &raw{t: t, conn: c}
}

func (r *raw) send(b []byte) {
	r.t.Helper()
	if _, err := r.conn.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

// ended waits until the server closes the connection, and returns the bytes that it sent before that.
func (r *raw) ended() []byte {
	r.t.Helper()
	if err := r.conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		r.t.Fatal(err)
	}
	var all bytes.Buffer
	if _, err := all.ReadFrom(r.conn); err != nil {
		if e, ok := err.(net.Error); ok && e.Timeout() {
			r.t.Fatalf("the connection is open; got %.200q", all.Bytes())
		}
	}
	return all.Bytes()
}
