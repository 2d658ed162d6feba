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

// TarantoolNode is an instance of a replica set. It syncs its write-ahead log to disk before it
// acknowledges a write, so that it can be killed and restarted.
//
// Restart must not run while another goroutine uses its Process.
type TarantoolNode struct {
	*Process
	// Addr is the address of its binary protocol: host:port.
	Addr string

	dir, setup  string
	ready       string
	port, other int
	born        bool // it has data
}

// tarantoolNodeInit opens the port immediately, because replicas need that, and reports at the end
// that it is ready. A replica waits for both instances; otherwise it might create its own replica
// set. A later start does not wait.
const tarantoolNodeInit = `
box.cfg{
	work_dir = %[1]q, wal_mode = 'fsync', log_level = 4, memtx_memory = 64 * 1024 * 1024,
	listen = '127.0.0.1:%[2]d', replication = {%[3]s}, read_only = %[4]t,
	replication_connect_quorum = %[5]d, replication_timeout = 0.2, replication_sync_lag = 60,
}
%[6]s
box.cfg{replication_connect_quorum = 0}
require('fio').open(%[7]q, {'O_CREAT', 'O_WRONLY'}, tonumber('644', 8)):close()
`

// StartTarantoolPair starts a master, which has run setup, and a read-only replica of it. Each of
// them follows the other, so that their roles can be swapped with box.cfg{read_only = ...}. The
// guest user has all privileges.
func StartTarantoolPair(t testing.TB, setup string) (master, replica *TarantoolNode) {
	t.Helper()
	master = &TarantoolNode{port: FreePort(t), setup: "box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})\n" + setup}
	replica = &TarantoolNode{port: FreePort(t)}
	master.other, replica.other = replica.port, master.port
	for _, n := range []*TarantoolNode{master, replica} {
		n.Addr, n.dir = net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)), t.TempDir()
		n.ready = filepath.Join(n.dir, "ready")
		n.Restart(t, n == replica)
	}
	return master, replica
}

// Restart starts the instance again, with the data that it has, after it has ended or been
// killed.
func (n *TarantoolNode) Restart(t testing.TB, readOnly bool) {
	t.Helper()
	if n.Process != nil {
		n.Kill()
	}
	if err := os.RemoveAll(n.ready); err != nil {
		t.Fatal(err)
	}
	both := fmt.Sprintf("'127.0.0.1:%d', '127.0.0.1:%d'", n.port, n.other)
	setup, replication, quorum := "", both, 0
	if !n.born {
		if readOnly {
			quorum = 2
		} else {
			// There is no other instance yet.
			setup = n.setup + "\nbox.cfg{replication_connect_quorum = 0, replication = {" + both + "}}"
			replication = ""
		}
	}
	script := filepath.Join(n.dir, "init.lua")
	text := fmt.Appendf(nil, tarantoolNodeInit, n.dir, n.port, replication, readOnly, quorum, setup, n.ready)
	if err := os.WriteFile(script, text, 0o644); err != nil {
		t.Fatal(err)
	}
	n.Process = Start(t, Command{
		Path: "tarantool",
		Args: []string{script},
		Ready: func(context.Context) error {
			_, err := os.Stat(n.ready)
			return err
		},
	})
	n.born = true
}
