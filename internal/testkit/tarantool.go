package testkit

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Tarantool is a running tarantool without a write-ahead log, whose guest user has all privileges.
type Tarantool struct {
	*Process
	// Addr is the address of its binary protocol: host:port.
	Addr string

	command Command // immutable
}

// tarantoolInit opens the port last: when a client gets the greeting, the privileges and everything
// that setup creates exist.
const tarantoolInit = `
box.cfg{work_dir = %q, wal_mode = 'none', log_level = 4}
box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})
%s
box.cfg{listen = '127.0.0.1:%d'}
`

// StartTarantool starts a tarantool on a free port after it has run setup, a
// piece of Lua that creates spaces and functions.
func StartTarantool(t testing.TB, setup string) *Tarantool {
	t.Helper()
	dir, port := t.TempDir(), FreePort(t)
	script := filepath.Join(dir, "init.lua")
	if err := os.WriteFile(script, fmt.Appendf(nil, tarantoolInit, dir, setup, port), 0o644); err != nil {
		t.Fatal(err)
	}
	c := Command{
		Path:  "tarantool",
		Args:  []string{script},
		Ready: func(ctx context.Context) error { return exchange(ctx, port, "", "Tarantool ") },
	}
	return &Tarantool{Process: Start(t, c), Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), command: c}
}

// Restart kills the server if it is still running and starts it again on the same port. Without a
// write-ahead log, it then contains only what setup creates. No other method may run in the
// meantime.
func (s *Tarantool) Restart(t testing.TB) {
	t.Helper()
	s.Kill()
	s.Process = Start(t, s.command)
}
