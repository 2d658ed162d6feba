//go:build unix

package redis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis"
)

// scriptedNode is a node of a cluster whose replies, except to the greeting, are returned by a
// function.
type scriptedNode struct {
	addr     string
	requests atomic.Int64 // after the greeting
	logins   atomic.Int64 // greetings
	open     atomic.Int64 // connections
	tls      *tls.Config  // nil if connections are not encrypted
}

// startScripted starts a node that ends with the test. Answer returns an encoded reply, or hangUp.
func startScripted(t *testing.T, answer func(args []string) string) *scriptedNode {
	t.Helper()
	n := &scriptedNode{}
	n.start(t, answer)
	return n
}

// start is like startScripted, for a node whose fields are already set.
func (n *scriptedNode) start(t *testing.T, answer func(args []string) string) {
	t.Helper()
	n.addr = testkit.Serve(t, func(conn net.Conn, _ int) {
		n.open.Add(1)
		defer n.open.Add(-1)
		if n.tls != nil {
			conn = tls.Server(conn, n.tls)
		}
		scanner := resp.NewCommandScanner(resp.Limits{})
		var in []byte
		chunk := make([]byte, 64<<10)
		for {
			m, err := conn.Read(chunk)
			if err != nil {
				return
			}
			for in = append(in, chunk[:m]...); len(in) > 0; {
				length, words, verdict, err := scanner.Scan(in)
				if err != nil || verdict != resp.Done {
					break
				}
				args := make([]string, len(words))
				for i, word := range words {
					args[i] = string(word)
				}
				in = in[length:]
				var reply string
				switch {
				case args[0] == "HELLO":
					n.logins.Add(1)
					reply = "%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n"
				case args[0] == "CLIENT":
					reply = "+OK\r\n"
				default:
					n.requests.Add(1)
					reply = answer(args)
				}
				if reply == hangUp {
					return
				}
				if _, err := io.WriteString(conn, reply); err != nil {
					return
				}
			}
		}
	}).Addr
}

// shards answers CLUSTER SHARDS and INFO for nodes of which the first owns all slots, and passes
// all other commands to other.
func shards(nodes func() []string, other func(args []string) string) func(args []string) string {
	return func(args []string) string {
		switch strings.Join(args, " ") {
		case "CLUSTER SHARDS":
			var b strings.Builder
			list := nodes()
			fmt.Fprintf(&b, "*%d\r\n", len(list))
			for i, addr := range list {
				host, port, _ := net.SplitHostPort(addr)
				slots := "*0\r\n"
				if i == 0 {
					slots = "*2\r\n:0\r\n:16383\r\n"
				}
				fmt.Fprintf(&b, "*4\r\n$5\r\nslots\r\n%s$5\r\nnodes\r\n*1\r\n*12\r\n", slots)
				for _, field := range [][2]string{{"id", fmt.Sprintf("$40\r\n%040d\r\n", i)}, {"port", ":" + port + "\r\n"},
					{"ip", fmt.Sprintf("$%d\r\n%s\r\n", len(host), host)}, {"endpoint", fmt.Sprintf("$%d\r\n%s\r\n", len(host), host)},
					{"role", "$6\r\nmaster\r\n"}, {"health", "$6\r\nonline\r\n"}} {
					fmt.Fprintf(&b, "$%d\r\n%s\r\n%s", len(field[0]), field[0], field[1])
				}
			}
			return b.String()
		case "CLUSTER INFO":
			return "$21\r\ncluster_state:ok\r\nx:1\r\n"
		}
		if args[0] == "CLUSTER" {
			return "-ERR not known\r\n"
		}
		return other(args)
	}
}

// No connection is opened to an address that a redirect names and no node lists, whatever listens
// there.
func TestRedirectsToUnlistedAddresses(t *testing.T) {
	stranger := startScripted(t, func([]string) string { return "+OK\r\n" })
	t.Run("all", func(t *testing.T) { redirectTo(t, stranger) })
	if n := stranger.logins.Load(); n != 0 {
		t.Errorf("%d connections to an address that no node lists", n)
	}
}

// redirectTo redirects calls to addresses that no node lists, including that of stranger.
func redirectTo(t *testing.T, stranger *scriptedNode) {
	for name, target := range map[string]string{
		"loopback":   stranger.addr,
		"metadata":   "169.254.169.254:80",
		"link-local": "[fe80::1]:6379",
		"a name":     "localhost:" + stranger.addr[strings.LastIndexByte(stranger.addr, ':')+1:],
	} {
		for _, code := range []string{"MOVED", "ASK"} {
			t.Run(code+" to "+name, func(t *testing.T) {
				t.Parallel()
				var self *scriptedNode
				self = startScripted(t, shards(func() []string { return []string{self.addr} }, func(args []string) string {
					return "-" + code + " 12539 " + target + "\r\n"
				}))
				c, err := redis.ConnectCluster(t.Context(), redis.ClusterOptions{Seeds: []string{self.addr}, Options: redis.Options{
					DialTimeout: 2 * time.Second, Password: "secret",
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_, _, err = c.Get(t.Context(), "key")
				if e, ok := errors.AsType[*redis.ServerError](err); !ok || e.Code != code || slipstream.OutcomeOf(err) != slipstream.Refused {
					t.Errorf("GET: %v", err)
				}
				var b redis.Batch
				for range 3 {
					b.AddStrings(nil, "GET", "key")
				}
				if e, ok := errors.AsType[*redis.ServerError](c.DoBatch(t.Context(), &b)); !ok || e.Code != code || b.Err(2) == nil {
					t.Errorf("a batch: %v, %v", e, b.Err(2))
				}
				done := make(ended, 1)
				if err := c.DoFunc(t.Context(), redis.Cmd("GET", "key"), done); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err == nil {
					t.Error("GET by a completer succeeded")
				}
			})
		}
	}
}

// If two nodes redirect to each other forever, each call sends a bounded number of requests.
func TestRedirectsInACircle(t *testing.T) {
	var a, b *scriptedNode
	nodes := func() []string { return []string{a.addr, b.addr} }
	for _, code := range []string{"MOVED", "ASK"} {
		t.Run(code, func(t *testing.T) {
			a = startScripted(t, shards(nodes, func(args []string) string {
				if args[0] == "ASKING" {
					return "+OK\r\n"
				}
				return "-" + code + " 12539 " + b.addr + "\r\n"
			}))
			b = startScripted(t, shards(nodes, func(args []string) string {
				if args[0] == "ASKING" {
					return "+OK\r\n"
				}
				return "-" + code + " 12539 " + a.addr + "\r\n"
			}))
			c, err := redis.ConnectCluster(t.Context(), redis.ClusterOptions{Seeds: []string{a.addr}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			before := a.requests.Load() + b.requests.Load()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if _, _, err = c.Get(ctx, "key"); err == nil || ctx.Err() != nil {
				t.Errorf("GET: %v", err)
			}
			if n := a.requests.Load() + b.requests.Load() - before; n > 60 {
				t.Errorf("%d requests for one call", n)
			}
		})
	}
}

// A call that ASK redirects to a node without a connection waits for the connection. The redirects
// of its attempts do not count as a circle.
//
// mutant: redis-cluster-ask-without-a-connection
func TestAskToANodeThatIsNotConnectedYet(t *testing.T) {
	var a, b *scriptedNode
	nodes := func() []string { return []string{a.addr, b.addr} }
	a = startScripted(t, shards(nodes, func(args []string) string {
		if args[0] == "SET" {
			return "+OK\r\n"
		}
		return "-ASK 12539 " + b.addr + "\r\n"
	}))
	b = startScripted(t, shards(nodes, func([]string) string { return "+OK\r\n" }))
	began := time.Now()
	c, err := redis.ConnectCluster(t.Context(), redis.ClusterOptions{Seeds: []string{a.addr}, Options: redis.Options{
		DialTimeout: 20 * time.Second,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == b.addr && time.Since(began) < time.Second {
				return nil, errors.New("not yet")
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var callers sync.WaitGroup
	for style := range 4 {
		// Ends with its call; the test waits for it.
		callers.Go(func() {
			if err := inStyle(t, style, c, redis.Cmd("GET", "key")); err != nil {
				t.Errorf("style %d: %v", style, err)
			}
		})
	}
	callers.Wait()
}

// A node that reports an invalid view of the cluster is rejected with an error that says what is
// wrong.
func TestNonsenseTopology(t *testing.T) {
	for reply, want := range map[string]string{
		"*1\r\n$1\r\nx\r\n": "CLUSTER SLOTS, range 0",
		"*1073741824\r\n":   "expected at most 1048576",
		"-ERR This instance has cluster support disabled\r\n": "cluster support disabled",
	} {
		n := startScripted(t, func(args []string) string { return reply })
		_, err := redis.ConnectCluster(t.Context(), redis.ClusterOptions{Seeds: []string{n.addr}, Options: redis.Options{DialTimeout: time.Second}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("after %q: %v, want an error that says %q", reply, err, want)
		}
	}
}

// TestClusterRedirectIsLearned: after one MOVED, the calls for its slot go to the new owner before
// any refresh.
func TestClusterRedirectIsLearned(t *testing.T) {
	var a, b *scriptedNode
	nodes := func() []string { return []string{a.addr, b.addr} }
	a = startScripted(t, shards(nodes, func([]string) string { return "-MOVED 12539 " + b.addr + "\r\n" }))
	b = startScripted(t, shards(nodes, func([]string) string { return "$1\r\nv\r\n" }))
	c, err := redis.ConnectCluster(t.Context(), redis.ClusterOptions{Seeds: []string{a.addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// At the next refresh, the view of node a returns the slot to it, so only the first calls
	// count.
	gets := 0
	before := a.requests.Load()
	for began := time.Now(); time.Since(began) < 300*time.Millisecond && gets < 20; gets++ {
		if v, _, err := c.Get(t.Context(), "key"); err != nil || v != "v" {
			t.Fatalf("%q, %v", v, err)
		}
	}
	if n := a.requests.Load() - before; gets == 20 && n > 10 {
		t.Errorf("%d of %d calls went to the node that redirects", n, gets)
	}
}

// A command that is split by slots, and of which nothing was sent, is not in doubt.
func TestNothingOfACutCommandWasSent(t *testing.T) {
	var n *scriptedNode
	n = startScripted(t, shards(func() []string { return []string{n.addr} }, func([]string) string { return ":1\r\n" }))
	c, err := redis.ConnectCluster(t.Context(), redis.ClusterOptions{Seeds: []string{n.addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := n.requests.Load()
	if _, err := c.Exists(ctx, "a", "b", "c"); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("EXISTS: %v, want the outcome NotSent", err)
	}
	if got := n.requests.Load(); got != before {
		t.Errorf("%d requests were sent", got-before)
	}
	if sum, err := c.Exists(t.Context(), "a", "b", "c"); err != nil || sum != 3 {
		t.Errorf("EXISTS: %d, %v", sum, err)
	}
}
