package tarantool_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// instance is a Tarantool server that can be killed and restarted on the same port.
type instance struct {
	// Process is replaced by restart.
	*testkit.Process
	addr string

	// Immutable.
	command testkit.Command
	dir     string
	walMode string
}

// faultSetup creates the spaces and functions of the fault tests, also after a recovery. Sessions
// are counted, so that a test knows when the last request of a closed client has ended.
const faultSetup = `
sessions = 0
box.session.on_connect(function() sessions = sessions + 1 end)
box.session.on_disconnect(function() sessions = sessions - 1 end)
local fixed = box.schema.space.create('fixed', {if_not_exists = true, format = {{'id', 'unsigned'}, {'value', 'string'}}})
fixed:create_index('primary', {parts = {'id'}, if_not_exists = true})
local own = box.schema.space.create('own', {if_not_exists = true, format = {{'id', 'unsigned'}, {'value', 'string'}}})
own:create_index('primary', {parts = {'id'}, if_not_exists = true})
local writes = box.schema.space.create('writes', {if_not_exists = true, format = {{'id', 'unsigned'}, {'times', 'unsigned'}}})
writes:create_index('primary', {parts = {'id'}, if_not_exists = true})
local function text(id, size)
	local mark = 'fixed:' .. id .. '#0;'
	return mark:rep(math.floor(size / #mark) + 1):sub(1, math.max(size, #mark))
end
for id, size in ipairs{1, 30, 100, 700, 5000, 40000, 300000} do fixed:replace{id, text(id, size)} end
function echo(...) return ... end
function lag(x) require('fiber').sleep(math.random() * 0.006) return x end
function bump(id) box.space.writes:upsert({id, 1}, {{'+', 2, 1}}) return id end
function tell(name, n)
	for i = 1, n do box.session.push{name, i} end
	return name
end
`

// firstSpace is the number of the first space that is created, which is "fixed".
const firstSpace = 512

const instanceInit = `
box.cfg{work_dir = %q, wal_mode = %q, log_level = 1, net_msg_max = 10240, readahead = 256 * 1024}
box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})
%s
box.cfg{listen = %q}
`

// startInstance starts a server. With walMode "write", requests are written to a file before they
// are acknowledged, so that they survive when the server is killed; with "none", all data is lost.
func startInstance(t testing.TB, walMode, setup string) *instance {
	t.Helper()
	dir, port := t.TempDir(), testkit.FreePort(t)
	s := &instance{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), dir: dir, walMode: walMode}
	s.changeSetup(t, setup)
	s.command = testkit.Command{Path: "tarantool", Args: []string{filepath.Join(dir, "init.lua")}, Ready: s.ready}
	s.Process = testkit.Start(t, s.command)
	return s
}

// changeSetup changes what the next start creates.
func (s *instance) changeSetup(t testing.TB, setup string) {
	t.Helper()
	script := fmt.Appendf(nil, instanceInit, s.dir, s.walMode, setup, s.addr)
	must(t, os.WriteFile(filepath.Join(s.dir, "init.lua"), script, 0o644))
}

// ready returns nil if the server sends a greeting.
func (s *instance) ready(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	_, err = io.ReadFull(conn, make([]byte, 128))
	return err
}

// restart kills the server if it is still running, and starts another one.
func (s *instance) restart(t testing.TB) {
	t.Helper()
	s.Kill()
	s.Process = testkit.Start(t, s.command)
}
