package redis_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// clientInfo returns the fields of CLIENT INFO.
func clientInfo(t *testing.T, c *redis.Client) map[string]string {
	t.Helper()
	var line string
	must(t, c.Do(t.Context(), &line, redis.Cmd("CLIENT", "INFO")))
	info := make(map[string]string)
	for field := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(field, "=")
		info[name] = value
	}
	return info
}

// requirePassword sets the password of the default user. The readiness probe of the server cannot
// handle a password that is set from the start.
func requirePassword(t *testing.T, addr, password string) {
	t.Helper()
	c, err := redis.Connect(t.Context(), redis.Options{Addr: addr})
	must(t, err)
	defer c.Close()
	must(t, c.Do(t.Context(), nil, redis.Cmd("CONFIG", "SET", "requirepass", password)))
}

func TestGreeting(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	for _, test := range []struct {
		o    redis.Options
		want string
	}{
		{redis.Options{}, "resp=3 name= db=0"},
		{redis.Options{Protocol: 3, ClientName: "api", DB: 5}, "resp=3 name=api db=5"},
		{redis.Options{Protocol: 2, ClientName: "api", DB: 7}, "resp=2 name=api db=7"},
	} {
		test.o.Addr = server.Addr
		info := clientInfo(t, connect(t, test.o))
		// Redis 7.0 does not show the protocol in CLIENT INFO, but HELLO does.
		got := fmt.Sprintf("resp=%s name=%s db=%s", info["resp"], info["name"], info["db"])
		if got != test.want {
			t.Errorf("%v: %s, want %s", test.o, got, test.want)
		}
	}
	_, err := redis.Connect(t.Context(), redis.Options{Addr: server.Addr, DB: 99})
	if err == nil || !strings.Contains(err.Error(), "SELECT: ERR DB index is out of range") || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("a database that does not exist: %v", err)
	}
}

func TestServersWithoutHello(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t, "--rename-command", "HELLO", "")
	requirePassword(t, server.Addr, "opensesame")
	for _, o := range []redis.Options{
		{Password: "opensesame", DB: 2, ClientName: "old"},
		{User: "default", Password: "opensesame", DB: 2, ClientName: "old"},
	} {
		o.Addr = server.Addr
		info := clientInfo(t, connect(t, o))
		if info["resp"] != "2" || info["db"] != "2" || info["name"] != "old" {
			t.Errorf("%v", info)
		}
	}
	_, err := redis.Connect(t.Context(), redis.Options{Addr: server.Addr, Protocol: 3, Password: "opensesame"})
	// Valkey 9.1 replies with NOAUTH instead of ERR, because the connection is not
	// authenticated.
	if err == nil || !strings.Contains(err.Error(), "HELLO: ") || slipstream.OutcomeOf(err) != slipstream.NotSent || strings.Contains(err.Error(), "opensesame") {
		t.Errorf("version 3 was required: %v", err)
	}
	_, err = redis.Connect(t.Context(), redis.Options{Addr: server.Addr, Password: "wrong"})
	if err == nil || !strings.Contains(err.Error(), "AUTH: WRONGPASS") {
		t.Errorf("a wrong password: %v", err)
	}
}

func TestServersThatRefuseVersion3(t *testing.T) {
	testkit.NoLeaks(t)
	for _, refusal := range []string{"-NOPROTO unsupported protocol version\r\n", "-ERR unknown command `HELLO`, with args beginning with: `3`\r\n",
		"-NOAUTH Authentication required.\r\n"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		got := make(chan string, 1)
		served := make(chan struct{})
		go func() {
			defer close(served)
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			buf := make([]byte, 4096)
			conn.Read(buf)
			// The replies to the commands that were sent with HELLO do not count either.
			conn.Write([]byte(refusal + "-NOAUTH\r\n-NOAUTH\r\n-NOAUTH\r\n"))
			n, _ := conn.Read(buf)
			got <- string(buf[:n])
			conn.Write([]byte("+OK\r\n+OK\r\n-ERR\r\n-ERR\r\n"))
			conn.Read(buf)
		}()
		c, err := redis.Connect(t.Context(), redis.Options{Addr: l.Addr().String(), Password: "pw", DB: 1})
		must(t, err)
		if text := <-got; !strings.HasPrefix(text, "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n") {
			t.Errorf("%q", text)
		}
		c.Close()
		l.Close()
		<-served
	}
}

func TestAuthentication(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	admin := connect(t, redis.Options{Addr: server.Addr})
	must(t, admin.Do(t.Context(), nil, redis.Cmd("ACL", "SETUSER", "app", "on", ">one", "~app:*", "+@all", "-flushall")))
	for _, protocol := range []int{2, 3} {
		c := connect(t, redis.Options{Addr: server.Addr, User: "app", Password: "one", Protocol: protocol})
		var who string
		must(t, c.Do(t.Context(), &who, redis.Cmd("ACL", "WHOAMI")))
		if who != "app" {
			t.Errorf("the user is %s", who)
		}
		err := c.Do(t.Context(), nil, redis.Cmd("FLUSHALL"))
		var e *redis.ServerError
		if !errors.As(err, &e) || e.Code != "NOPERM" || slipstream.OutcomeOf(err) != slipstream.Refused {
			t.Errorf("a command that is not allowed: %v", err)
		}
		if err := c.Set(t.Context(), "other", "x"); slipstream.OutcomeOf(err) != slipstream.Refused {
			t.Errorf("a key that is not allowed: %v", err)
		}
		for _, o := range []redis.Options{{User: "app", Password: "two"}, {User: "nobody", Password: "one"}} {
			o.Addr, o.Protocol = server.Addr, protocol
			_, err := redis.Connect(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), o.Password) {
				t.Errorf("%v: %v", o, err)
			}
		}
	}
	requirePassword(t, server.Addr, "closed")
	if _, err := redis.Connect(t.Context(), redis.Options{Addr: server.Addr}); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without a password: %v", err)
	}
}

// Credentials change while the client is running, and the next connection uses the new ones.
func TestCredentialRotation(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	admin := connect(t, redis.Options{Addr: server.Addr})
	must(t, admin.Do(t.Context(), nil, redis.Cmd("ACL", "SETUSER", "app", "on", ">one", "allkeys", "+@all")))
	var password atomic.Value
	password.Store("one")
	var asked atomic.Int32
	var mu sync.Mutex
	var failures []error
	c := connect(t, redis.Options{
		Addr: server.Addr, Backoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond, FailFast: true,
		Credentials: func(context.Context) (string, string, error) {
			asked.Add(1)
			return "app", password.Load().(string), nil
		},
		OnEvent: func(e redis.Event) {
			if e.Kind == redis.DialFailed {
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, e.Err)
			}
		},
	})
	must(t, c.Set(t.Context(), "k", "v"))
	// First, there is a time when the client still has the old password.
	must(t, admin.Do(t.Context(), nil, redis.Cmd("ACL", "SETUSER", "app", "resetpass", ">two")))
	must(t, admin.Do(t.Context(), nil, redis.Cmd("CLIENT", "KILL", "USER", "app")))
	testkit.Eventually(t, 5*time.Second, func() error {
		mu.Lock()
		defer mu.Unlock()
		if len(failures) == 0 {
			return errors.New("no attempt has failed")
		}
		return nil
	})
	if _, _, err := c.Get(t.Context(), "k"); slipstream.OutcomeOf(err) != slipstream.NotSent || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("a call while no connection can be opened: %v", err)
	}
	password.Store("two")
	testkit.Eventually(t, 5*time.Second, func() error { return c.Ping(t.Context()) })
	if v, _, err := c.Get(t.Context(), "k"); v != "v" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if asked.Load() < 3 {
		t.Errorf("Credentials was called %d times", asked.Load())
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(failures[0].Error(), "WRONGPASS") {
		t.Errorf("the first failure: %v", failures[0])
	}
}

func TestUnixSocket(t *testing.T) {
	testkit.NoLeaks(t)
	dir, err := os.MkdirTemp("", "redis") // t.TempDir may be too long for a socket
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "r.sock")
	server := testkit.StartRedis(t, "--unixsocket", path)
	requirePassword(t, server.Addr, "pw")
	o, err := redis.ParseURL("unix://:pw@" + path + "?db=3")
	must(t, err)
	c := connect(t, o)
	must(t, c.Set(t.Context(), "k", "v"))
	if info := clientInfo(t, c); info["db"] != "3" || !strings.HasPrefix(info["laddr"], path) && !strings.Contains(info["addr"], path) {
		t.Errorf("%v", info)
	}
	_, _, err = c.Get(t.Context(), "k")
	must(t, err)
	server.Kill()
	testkit.Eventually(t, 5*time.Second, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := c.Ping(ctx); err == nil || !strings.Contains(err.Error(), path) {
			return fmt.Errorf("after the server ended: %v", err)
		}
		return nil
	})
}

// certificates writes a key pair for localhost and returns a pool that trusts it.
func certificates(t *testing.T) (dir string, pool *x509.CertPool) {
	t.Helper()
	one := testkit.SelfSigned(t, &x509.Certificate{DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature})
	dir = t.TempDir()
	one.WritePair(t, dir)
	return dir, one.Pool()
}

func TestTLS(t *testing.T) {
	testkit.NoLeaks(t)
	dir, pool := certificates(t)
	port := strconv.Itoa(testkit.FreePort(t))
	cert := filepath.Join(dir, "cert.pem")
	testkit.StartRedis(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", filepath.Join(dir, "key.pem"),
		"--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	for _, host := range []string{"localhost", "127.0.0.1"} {
		o, err := redis.ParseURL("rediss://" + host + ":" + port + "/1")
		must(t, err)
		o.TLS.RootCAs = pool
		c := connect(t, o)
		large := slices.Repeat([]byte("x"), 1<<20)
		must(t, c.SetBytes(t.Context(), "large", large))
		if b, _, err := c.GetAppend(t.Context(), nil, "large"); len(b) != len(large) || err != nil {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				key := "k" + strconv.Itoa(i)
				for range 50 {
					if err := c.Set(t.Context(), key, key); err != nil {
						t.Error(err)
					}
					if v, _, err := c.Get(t.Context(), key); v != key || err != nil {
						t.Errorf("%q, %v", v, err)
					}
				}
			})
		}
		all.Wait()
	}
	// A client that does not trust the certificate does not connect.
	_, err := redis.Connect(t.Context(), redis.Options{Addr: "127.0.0.1:" + port, TLS: &tls.Config{}})
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("an unknown certificate: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := redis.Connect(ctx, redis.Options{Addr: "127.0.0.1:" + port}); err == nil {
		t.Error("a client without TLS connected to a TLS port")
	}
}

// A host name is resolved for every attempt, so a server that has moved is found.
func TestNamesAreResolvedAgain(t *testing.T) {
	testkit.NoLeaks(t)
	one, two := testkit.StartRedis(t), testkit.StartRedis(t)
	var now atomic.Value
	now.Store(one.Addr)
	var dials atomic.Int32
	c := connect(t, redis.Options{
		Addr: "redis.internal:6379", Backoff: time.Millisecond,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			if network != "tcp" || addr != "redis.internal:6379" {
				return nil, fmt.Errorf("asked for %s %s", network, addr)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", now.Load().(string))
		},
	})
	must(t, c.Set(t.Context(), "k", "one"))
	now.Store(two.Addr)
	one.Kill()
	testkit.Eventually(t, 10*time.Second, func() error { return c.Set(t.Context(), "k", "two") })
	direct := connect(t, redis.Options{Addr: two.Addr})
	if v, _, err := direct.Get(t.Context(), "k"); v != "two" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if dials.Load() < 2 {
		t.Errorf("%d dials", dials.Load())
	}
}

func TestDialersThatMisbehave(t *testing.T) {
	testkit.NoLeaks(t)
	for _, c := range []struct {
		dial func(context.Context, string, string) (net.Conn, error)
		want string
	}{
		{func(context.Context, string, string) (net.Conn, error) { return nil, errPlanted }, "planted"},
		{func(context.Context, string, string) (net.Conn, error) { return nil, nil }, "connect 127.0.0.1:6379: function Dialer returned neither"},
		{func(context.Context, string, string) (net.Conn, error) { panic("dialer") }, "connect 127.0.0.1:6379: function Dialer panicked"},
	} {
		_, err := redis.Connect(t.Context(), redis.Options{Dialer: c.dial})
		if err == nil || !strings.Contains(err.Error(), c.want) || slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if _, err := redis.Connect(t.Context(), redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, errPlanted }}); !errors.Is(err, errPlanted) {
		t.Errorf("the dialer's error is not in the chain: %v", err)
	}
}

// A server that has no room for another client reports that and hangs up.
func TestServersThatHangUpOnTheGreeting(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t, "--maxclients", "1")
	first := connect(t, redis.Options{Addr: server.Addr})
	must(t, first.Ping(t.Context()))
	_, err := redis.Connect(t.Context(), redis.Options{Addr: server.Addr, DB: 1})
	if err == nil || !strings.Contains(err.Error(), "max number of clients") && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("%v", err)
	}
}

// If a server answers a greeting with anything else, Connect fails soon, whatever the server sends.
func TestHostileGreetings(t *testing.T) {
	testkit.NoLeaks(t)
	for name, greeting := range map[string]string{
		"nothing":              "",
		"garbage":              "HTTP/1.1 400 Bad Request\r\n\r\n",
		"another type":         "+OK\r\n+OK\r\n+OK\r\n",
		"a huge length":        "$2147483647\r\n",
		"a huge map":           "%9223372036854775807\r\n",
		"a negative length":    "*-7\r\n",
		"endless nesting":      strings.Repeat("*1\r\n", 2000),
		"an endless line":      "+" + strings.Repeat("x", 1<<20),
		"endless pushes":       strings.Repeat(">1\r\n+x\r\n", 100_000),
		"an endless stream":    "$?\r\n" + strings.Repeat(";4\r\nabcd\r\n", 100_000),
		"a wrong second reply": "%0\r\n:5\r\n:5\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			served := make(chan struct{})
			go func() {
				defer close(served)
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					conn.Read(make([]byte, 4096))
					conn.Write([]byte(greeting))
					conn.SetReadDeadline(time.Now().Add(5 * time.Second))
					conn.Read(make([]byte, 4096)) // until the client gives up
					conn.Close()
				}
			}()
			began := time.Now()
			c, err := redis.Connect(t.Context(), redis.Options{Addr: l.Addr().String(), DialTimeout: 300 * time.Millisecond, DB: 1})
			if err == nil {
				c.Close()
				t.Error("Connect succeeded")
			} else if slipstream.OutcomeOf(err) != slipstream.NotSent || !strings.Contains(err.Error(), "greeting") {
				t.Errorf("%v", err)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("took %v", took)
			}
			l.Close()
			<-served
		})
	}
}
