package testkit

import (
	"cmp"
	"context"
	"net"
	"os"
	"strconv"
	"testing"
)

// redisVariable is the environment variable with the program that [StartRedis] starts. If it is
// empty, redis-server is used.
const redisVariable = "SLIPSTREAM_REDIS"

// Redis is a running redis-server without persistence.
type Redis struct {
	// Process is replaced by Restart.
	*Process
	// Addr is its address on loopback, host:port. Restart keeps it.
	Addr string

	command Command // immutable
}

// UseRedis8 lets [StartRedis] start redis-server-8 until the test ends: Redis 8.0, or what is in
// PATH under this name. Neither the test nor any of its parents may be parallel.
func UseRedis8(t testing.TB) {
	t.Helper()
	t.Setenv(redisVariable, "redis-server-8")
}

// StartRedis starts a redis-server on a free port, or the server that SLIPSTREAM_REDIS
// names. Extra arguments follow ours on its command line, so they win: "--appendonly",
// "yes".
func StartRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	port := FreePort(t)
	c := Command{
		Path: cmp.Or(os.Getenv(redisVariable), "redis-server"),
		Args: append([]string{
			"--port", strconv.Itoa(port), "--bind", "127.0.0.1",
			"--save", "", "--appendonly", "no", "--dir", t.TempDir(),
		}, args...),
		Ready: func(ctx context.Context) error { return exchange(ctx, port, "PING\r\n", "+PONG\r\n") },
	}
	return &Redis{Process: Start(t, c), Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), command: c}
}

// Restart kills the server if it is still running and starts it again, on the same port and in the
// same directory, so persisted data is available again. It returns when the server answers. No
// other method may run in the meantime.
func (r *Redis) Restart(t testing.TB) {
	t.Helper()
	r.Kill()
	r.Process = Start(t, r.command)
}
