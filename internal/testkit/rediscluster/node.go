package rediscluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// A Node is a server of this package: a node of a cluster, a server that Sentinels watch, or a
// Sentinel. All methods are safe for concurrent use.
type Node struct {
	// Immutable.
	setup    *setup
	dir      string
	args     func(bus int) []string // everything except the port and TLS
	password string                 // for logging in
	relayed  int                    // the port of the relay in front of the cluster bus; 0 if there is none

	// Set when the cluster is formed, under mu, and immutable after. A relay, which may run
	// earlier, reads it under mu.
	id string

	// Guarded by mu.
	mu        sync.Mutex
	process   *testkit.Process
	port      int
	bus       int  // the port of the cluster bus; only nodes of a cluster have it
	announced int  // the announced port; its own port if zero
	stopped   bool // by Stop
	conn      *conn
	asked     map[string]int64 // commands of this package, as in Commands
}

// setup holds what all servers of a test share.
type setup struct {
	owner  testing.TB // the servers end with it; operations may run in its subtests
	binary string
	client *tls.Config // nil without TLS
	files  [3]string   // certificate, key, authority
}

func newSetup(t testing.TB, binary string, encrypted bool) *setup {
	t.Helper()
	s := &setup{owner: t, binary: cmp.Or(binary, os.Getenv("SLIPSTREAM_REDIS"), "redis-server")}
	if encrypted {
		authority, dir := testkit.NewAuthority(t), t.TempDir()
		issued := authority.Issue(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}})
		cert, key := issued.Write(t, dir, "server")
		s.files = [3]string{cert, key, authority.Write(t, dir, "authority")}
		s.client = &tls.Config{RootCAs: authority.Pool}
	}
	return s
}

// listening returns the arguments for a port.
func (s *setup) listening(port int) []string {
	if s.client == nil {
		return []string{"--port", strconv.Itoa(port)}
	}
	return []string{"--port", "0", "--tls-port", strconv.Itoa(port), "--tls-cert-file", s.files[0], "--tls-key-file", s.files[1],
		"--tls-ca-cert-file", s.files[2], "--tls-auth-clients", "no", "--tls-replication", "yes"}
}

// launch starts the process on free ports. It may be called from any goroutine.
func (n *Node) launch() error {
	var problems []error
	for range 5 {
		err := n.launchAt(testkit.FreePort(n.setup.owner), testkit.FreePort(n.setup.owner))
		if err == nil {
			return nil
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// launchAt is like launch, but uses the given ports.
func (n *Node) launchAt(port, bus int) error {
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	p, err := testkit.Launch(n.setup.owner, testkit.Command{
		Path: n.setup.binary,
		Args: append(n.args(bus), n.setup.listening(port)...),
		Dir:  n.dir,
		Ready: func(context.Context) error {
			c, err := dial(addr, n.setup.client, n.password)
			if err != nil {
				return err
			}
			defer c.net.Close()
			_, err = c.do("PING")
			return err
		},
	})
	if err != nil {
		return fmt.Errorf("ports %d and %d: %w", port, bus, err)
	}
	n.mu.Lock()
	n.process, n.port, n.bus, n.announced, n.stopped = p, port, bus, 0, false
	n.asked = map[string]int64{}
	n.mu.Unlock()
	n.setup.owner.Cleanup(n.Kill) // closes the connection, too
	// Another server may have taken the port first.
	info, err := n.info("server")
	if err != nil {
		return err
	}
	if info["process_id"] != strconv.Itoa(p.PID()) {
		n.Kill()
		return fmt.Errorf("port %d: process %s is listening on it", port, info["process_id"])
	}
	return nil
}

// Addr returns the address of the node: host:port.
func (n *Node) Addr() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port))
}

// announcedAddr returns the announced address.
func (n *Node) announcedAddr() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(cmp.Or(n.announced, n.port)))
}

// Port returns the port of the node.
func (n *Node) Port() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.port
}

// PID returns the ID of the process.
func (n *Node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process.PID()
}

// ID returns the ID of a cluster's node.
func (n *Node) ID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id
}

// setID sets the ID of a node that has just started.
func (n *Node) setID(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.id = id
}

// busPort returns the port of the cluster bus.
func (n *Node) busPort() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bus
}

// String returns the name of the node in messages.
func (n *Node) String() string {
	if n.id == "" {
		return n.Addr()
	}
	return n.Addr() + " (" + n.id[:8] + ")"
}

// Running reports whether the process is running and has not been stopped.
func (n *Node) Running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil || n.stopped {
		return false
	}
	select {
	case <-n.process.Exited():
		return false
	default:
		return true
	}
}

// Kill kills the process with SIGKILL and waits until it has ended.
func (n *Node) Kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process.Kill()
	n.hangUp()
}

// hangUp closes the connection of this package. The caller holds mu.
func (n *Node) hangUp() {
	if n.conn != nil {
		n.conn.net.Close()
		n.conn = nil
	}
}

// Log returns everything the last process of the node has written.
func (n *Node) Log() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process.Log()
}

// Ask sends a command on this package's connection to the node, and returns the reply. An error
// reply is a [ReplyError].
func (n *Node) Ask(args ...string) (resp.Value, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn == nil {
		c, err := dial(net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)), n.setup.client, n.password)
		if err != nil {
			return resp.Value{}, fmt.Errorf("%s: %w", args[0], err)
		}
		n.conn = c
	}
	v, err := n.conn.do(args...)
	if !isReply(err) {
		n.hangUp()
		return v, err
	}
	n.count(args)
	return v, err
}

// count counts a command of this package. The caller holds mu.
func (n *Node) count(args []string) {
	if n.asked == nil {
		return
	}
	name := strings.ToLower(args[0])
	switch {
	case name == "config" && len(args) > 1 && strings.EqualFold(args[1], "RESETSTAT"):
		n.asked = map[string]int64{} // the server counts this command after it has reset the counters
		name = "config|resetstat"
	case len(args) > 1 && (name == "cluster" || name == "client" || name == "config"):
		name += "|" + strings.ToLower(args[1])
	}
	n.asked[name]++
}

// Do is like Ask, but fails the test if there is an error.
func (n *Node) Do(t testing.TB, args ...string) resp.Value {
	t.Helper()
	v, err := n.Ask(args...)
	if err != nil {
		t.Fatalf("%s: %s: %v", n, strings.Join(args, " "), err)
	}
	return v
}

// info returns the fields of a section of INFO.
func (n *Node) info(section string) (map[string]string, error) {
	v, err := n.Ask("INFO", section)
	if err != nil {
		return nil, err
	}
	return fields(text(v)), nil
}

// fields reads lines of the form name:value.
func fields(lines string) map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(lines) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}

// SetConfig changes a setting of the node.
func (n *Node) SetConfig(t testing.TB, name, value string) {
	t.Helper()
	n.Do(t, "CONFIG", "SET", name, value)
}

// Commands returns how often the node has executed each command since its start or
// [Node.ResetCommands], by names such as get and config|set. The commands of this package are
// included.
func (n *Node) Commands(t testing.TB) map[string]int64 {
	t.Helper()
	calls := make(map[string]int64)
	for name, value := range fields(text(n.Do(t, "INFO", "commandstats"))) {
		name, ok := strings.CutPrefix(name, "cmdstat_")
		if !ok {
			continue
		}
		first, _, _ := strings.Cut(value, ",")
		count, err := strconv.ParseInt(strings.TrimPrefix(first, "calls="), 10, 64)
		if err != nil {
			t.Fatalf("%s: INFO commandstats contains %s:%s", n, name, value)
		}
		calls[name] = count
	}
	return calls
}

// CommandsOfClients is Commands without those that this package has sent with [Node.Ask].
func (n *Node) CommandsOfClients(t testing.TB) map[string]int64 {
	t.Helper()
	n.mu.Lock()
	own := maps.Clone(n.asked)
	n.mu.Unlock()
	calls := n.Commands(t)
	for name := range calls {
		calls[name] -= own[name]
	}
	return calls
}

// ResetCommands sets the counters of [Node.Commands] to zero.
func (n *Node) ResetCommands(t testing.TB) {
	t.Helper()
	n.Do(t, "CONFIG", "RESETSTAT")
}

// Connections returns the IDs of the connections of clients, in the order in which they were
// opened. Connections of this package and of other nodes are not included.
func (n *Node) Connections(t testing.TB) []int64 {
	t.Helper()
	own := n.Do(t, "CLIENT", "ID").Int
	var ids []int64
	for line := range strings.Lines(text(n.Do(t, "CLIENT", "LIST"))) {
		var id int64
		flags := ""
		for _, field := range strings.Fields(line) {
			name, value, _ := strings.Cut(field, "=")
			switch name {
			case "id":
				id, _ = strconv.ParseInt(value, 10, 64) // 0 is not an ID
			case "flags":
				flags = value
			}
		}
		if id == 0 {
			t.Fatalf("%s: CLIENT LIST contains %s", n, line)
		}
		if id != own && !strings.ContainsAny(flags, "SM") {
			ids = append(ids, id)
		}
	}
	return ids
}

// file returns a path in the directory of the node.
func (n *Node) file(name string) string { return filepath.Join(n.dir, name) }
