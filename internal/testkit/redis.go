package testkit

import (
	"context"
	"net"
	"strconv"
	"testing"
)

// Redis is a running redis-server without persistence.
type Redis struct {
	*Process
	// Addr is its address on loopback: host:port.
	Addr string
}

// StartRedis starts a redis-server on a free port. Extra arguments follow ours
// on its command line, so they win: "--appendonly", "yes".
func StartRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	port := FreePort(t)
	p := Start(t, Command{
		Path: "redis-server",
		Args: append([]string{
			"--port", strconv.Itoa(port), "--bind", "127.0.0.1",
			"--save", "", "--appendonly", "no", "--dir", t.TempDir(),
		}, args...),
		Ready: func(ctx context.Context) error { return exchange(ctx, port, "PING\r\n", "+PONG\r\n") },
	})
	return &Redis{Process: p, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
}
