package respfront

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// wholeAnswer sends data on a new connection and returns everything that comes until its
// end, or "waits" if the server keeps waiting.
func wholeAnswer(t *testing.T, f *fixture, data string) string {
	t.Helper()
	c, err := net.Dial("tcp", f.server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() { _, _ = c.Write([]byte(data)) }()
	if err := c.SetReadDeadline(time.Now().Add(400 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		return string(all) + "waits"
	}
	return string(all)
}

// Malformed commands are answered with the messages of Redis, and the connection
// is closed.
func TestProtocolErrors(t *testing.T) {
	const big = "\r\n$1048577\r\n"
	for _, login := range []bool{false, true} {
		config := Config{}
		if login {
			config = Config{Users: users(), RequireAuth: true}
		}
		unauthenticated := func(known, stranger string) string {
			if login {
				return stranger
			}
			return known
		}
		bothBackends(t, echo, config, func(t *testing.T, f *fixture) {
			for _, row := range []struct{ name, data, want string }{
				{"count that is none", "*a\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
				{"negative count", "*-5\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
				{"huge count", "*99999999999999999999\r\n", unauthenticated("-ERR Protocol error: invalid multibulk length\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n")},
				{"count of a billion", "*1000000000\r\n", unauthenticated("-ERR Protocol error: invalid multibulk length\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n")},
				{"one argument too many", "*16386\r\n", unauthenticated("-ERR Protocol error: invalid multibulk length\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n")},
				{"11 arguments", "*11\r\n", unauthenticated("waits", "-ERR Protocol error: unauthenticated multibulk length\r\n")},
				{"endless count", "*" + strings.Repeat("1", 100), "-ERR Protocol error: invalid multibulk length\r\n"},
				{"another kind", "*1\r\n:3\r\n", "-ERR Protocol error: expected '$', got ':'\r\n"},
				{"an array inside", "*2\r\n*1\r\n", "-ERR Protocol error: expected '$', got '*'\r\n"},
				{"a byte that cannot be printed", "*1\r\n\x01", "-ERR Protocol error: expected '$', got '?'\r\n"},
				{"length that is none", "*1\r\n$a\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
				{"negative length", "*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
				{"huge length", "*1\r\n$99999999999\r\n", unauthenticated("-ERR Protocol error: invalid bulk length\r\n", "-ERR Protocol error: unauthenticated bulk length\r\n")},
				{"more than a command may be", "*2" + big, unauthenticated("-ERR Protocol error: invalid bulk length\r\n", "-ERR Protocol error: unauthenticated bulk length\r\n")},
				{"16 KiB", "*2\r\n$4\r\nECHO\r\n$16384\r\n", unauthenticated("waits", "-ERR Protocol error: unauthenticated bulk length\r\n")},
				{"argument without its end", "*1\r\n$4\r\nPINGxx", "-ERR Protocol error: expected CR LF after an argument or its length\r\n"},
				{"quotes without an end", "GET \"abc\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"},
				{"quotes before a letter", "GET \"abc\"d\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"},
				{"zero byte in a line", "GET a\x00b\r\n", "-ERR Protocol error: zero byte in an inline request\r\n"},
				{"endless line", strings.Repeat("x", 70_000), "-ERR Protocol error: too big inline request\r\n"},
				{"deep arrays", strings.Repeat("*1\r\n", 10_000), "-ERR Protocol error: expected '$', got '*'\r\n"},
				{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "-ERR Protocol error: zero byte in an inline request\r\n"},
				{"empty lines and arrays", "\r\n\r\n*0\r\n*-1\r\n\r\nQUIT\r\n", "+OK\r\n"},
				{"commands before it", "RESET\r\n*1\r\n$5\r\nRESET\r\n*x\r\nRESET\r\n", "+RESET\r\n+RESET\r\n-ERR Protocol error: invalid multibulk length\r\n"},
				{"nothing but a begin", "*1\r\n$4\r\nPI", "waits"},

				{"POST", "POST / HTTP/1.1\r\nHost: x\r\n\r\n", ""},
				{"post", "post\r\n", ""},
				{"Host", "Host: localhost\r\n", ""},
				{"GET", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", ""},
				{"GET without a version", "GET /depts/1\r\n", ""},
				{"GET of a proxy", "GET http://x/ HTTP/1.1\r\n", ""},
				{"OPTIONS", "OPTIONS * HTTP/1.1\r\n", ""},
				{"PUT", "PUT /x HTTP/1.1\r\nContent-Length: 100\r\n\r\nSET a b\r\n", ""},
				{"POST as an array", "*1\r\n$4\r\nPOST\r\n", ""},
			} {
				if got := wholeAnswer(t, f, row.data); got != row.want {
					t.Errorf("%s: got %.300q, want %q", row.name, got, row.want)
				}
			}
			if got := f.server.SpokeHTTP(); got != 9 {
				t.Errorf("%d connections that spoke HTTP, want 9", got)
			}
			c := f.dial(t)
			c.expect([][2]string{{"RESET", "+RESET"}})
		})
	}
}

// After a login the bounds are those of known clients, even in the same packet.
func TestBoundsAfterLogin(t *testing.T) {
	bothBackends(t, echo, Config{Users: users(), RequireAuth: true}, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		many := append([]string{"MGET"}, strings.Split(strings.TrimSuffix(strings.Repeat("depts:0 ", 16_384), " "), " ")...)
		long := strings.Repeat("x", 500_000)
		c.send(command1("AUTH", otherPassword) + command1(many...) + command1("ECHO", long) + "PING " + strings.Repeat("y", 60_000) + "\r\n" + "RESET\r\n" + command1("ECHO", long))
		for i, want := range []string{"+OK", "*16384\n" + strings.Repeat("$-1\n", 16_383) + "$-1", bulk(long), bulk(strings.Repeat("y", 60_000)), "+RESET", "-ERR Protocol error: unauthenticated bulk length", "EOF"} {
			if got := c.reply(); got != want {
				t.Errorf("reply %d: %.200q, want %.200q", i, got, want)
			}
		}
	})
}

// A client that sends byte by byte is answered like any other.
func TestByteByByte(t *testing.T) {
	bothBackends(t, echo, Config{}, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		for _, b := range []byte(command1("MGET", "depts:1", "depts:2") + "GET 'depts:3'\r\n" + command1("PING")) {
			c.send(string([]byte{b}))
			time.Sleep(50 * time.Microsecond)
		}
		for _, want := range []string{"*2\n" + dept(1) + "\n" + dept(2), dept(3), "+PONG"} {
			if got := c.reply(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

// A pipeline whose answers are not read at first is answered completely and in order,
// and so is one whose sender has closed its side.
func TestPipelines(t *testing.T) {
	const n = 10_000
	bothBackends(t, echo, Config{}, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		var all strings.Builder
		for i := range n {
			all.WriteString(command1("GET", fmt.Sprintf("depts:%d", 1+i%3000)))
		}
		sent := make(chan error, 1)
		go func() {
			_, err := c.conn.Write([]byte(all.String()))
			if err == nil {
				err = c.conn.(*net.TCPConn).CloseWrite()
			}
			sent <- err
		}()
		time.Sleep(100 * time.Millisecond)
		for i := range n {
			if got, want := c.reply(), dept(1+i%3000); got != want {
				t.Fatalf("reply %d: %q, want %q", i, got, want)
			}
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if got := c.reply(); got != "EOF" {
			t.Errorf("after the last: %q, want the end", got)
		}
	})
}

// Clients that never read are cut off, and others are not affected.
func TestClientsThatNeverRead(t *testing.T) {
	bothBackends(t, echo, Config{ConnConfig: frontend.ConnConfig{StallTimeout: 500 * time.Millisecond}}, func(t *testing.T, f *fixture) {
		var wait sync.WaitGroup
		for range 20 {
			c, err := net.Dial("tcp", f.server.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
				t.Fatal(err)
			}
			wait.Go(func() {
				if err := c.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
					t.Error(err)
				}
				for range 10_000 {
					if _, err := c.Write([]byte(strings.Repeat("GET depts:1000000\r\n", 100))); err != nil {
						return
					}
				}
				t.Error("a client that never reads sends forever")
			})
		}
		other := f.dial(t)
		for range 100 {
			other.expect([][2]string{{"GET depts:1", dept(1)}})
		}
		wait.Wait()
		testkit.Eventually(t, 10*time.Second, func() error {
			if n := f.server.Connections(); n != 1 {
				return fmt.Errorf("%d connections, want those of clients that never read ended", n)
			}
			return nil
		})
		other.expect([][2]string{{"GET depts:1", dept(1)}})
	})
}

// HTTP on the port is logged, at most once a second.
func TestHTTPIsLogged(t *testing.T) {
	var mu sync.Mutex
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lockedWriter{&mu, &text}, nil))
	bothBackends(t, echo, Config{ConnConfig: frontend.ConnConfig{Log: log}}, func(t *testing.T, f *fixture) {
		for range 5 {
			if got := wholeAnswer(t, f, "POST / HTTP/1.1\r\n"); got != "" {
				t.Errorf("POST is answered with %q", got)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if n := strings.Count(text.String(), "sent HTTP"); n != 1 {
			t.Errorf("%d lines about HTTP, want 1:\n%s", n, text.String())
		}
		if !strings.Contains(text.String(), "client=127.0.0.1") {
			t.Errorf("the line does not name the client: %s", text.String())
		}
		text.Reset()
	})
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}
