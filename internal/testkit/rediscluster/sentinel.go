package rediscluster

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// SentinelOptions are the options of [StartSentinels]. The zero value describes a master with two
// replicas and three Sentinels, two of which must agree.
type SentinelOptions struct {
	// Name is the name of the master. If empty, it is mymaster.
	Name string
	// Replicas is the number of replicas. If zero, it is 2.
	Replicas int
	// Sentinels is the number of Sentinels. If zero, it is 3.
	Sentinels int
	// Quorum is how many Sentinels must agree that the master is down. Zero means 2.
	Quorum int
	// DownAfter is how long a server must be silent to be down. Zero means 500 ms.
	DownAfter time.Duration
	// Binary is the server program. If empty, it is the one that testkit.StartRedis starts.
	Binary string
	// Password is the password of the servers, SentinelPassword that of the Sentinels. If empty, no
	// login is required.
	Password, SentinelPassword string
	// TLS encrypts all connections; see [Sentinels.TLS].
	TLS bool
	// Args are additional arguments for every server except the Sentinels. They follow those of the
	// package, so they take precedence.
	Args []string
}

// Sentinels is a running master with replicas, and the Sentinels that watch them. Its methods
// may be called from any goroutine that may fail the test, one operation at a time.
type Sentinels struct {
	// Immutable.
	Name    string // of the master
	options SentinelOptions
	setup   *setup
	servers []*Node
	watches []*Node
}

// StartSentinels starts a master, its replicas and Sentinels. It returns when all Sentinels
// know each other and all servers, and the replicas are in sync.
func StartSentinels(t testing.TB, o SentinelOptions) *Sentinels {
	t.Helper()
	o.Name = cmp.Or(o.Name, "mymaster")
	o.Replicas, o.Sentinels, o.Quorum = cmp.Or(o.Replicas, 2), cmp.Or(o.Sentinels, 3), cmp.Or(o.Quorum, 2)
	o.DownAfter = cmp.Or(o.DownAfter, 500*time.Millisecond)
	s := &Sentinels{Name: o.Name, options: o, setup: newSetup(t, o.Binary, o.TLS)}
	for range 1 + o.Replicas {
		s.servers = append(s.servers, s.newServer(t))
	}
	if err := launchAll(s.servers); err != nil {
		t.Fatal(err)
	}
	for _, n := range s.servers[1:] {
		n.Do(t, "REPLICAOF", "127.0.0.1", strconv.Itoa(s.servers[0].Port()))
	}
	for i := range o.Sentinels {
		s.watches = append(s.watches, s.newSentinel(t, i))
	}
	if err := launchAll(s.watches); err != nil {
		t.Fatal(err)
	}
	for _, n := range s.watches {
		s.hurry(t, n)
	}
	s.Settle(t)
	return s
}

func (s *Sentinels) newServer(t testing.TB) *Node {
	t.Helper()
	n := &Node{setup: s.setup, dir: t.TempDir(), password: s.options.Password}
	n.args = func(int) []string {
		args := []string{
			"--bind", "127.0.0.1", "--protected-mode", "no", "--dir", n.dir, "--save", "", "--appendonly", "no",
			"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
		}
		if s.options.Password != "" {
			args = append(args, "--requirepass", s.options.Password, "--masterauth", s.options.Password)
		}
		return append(args, s.options.Args...)
	}
	return n
}

// newSentinel writes the configuration of a Sentinel, which the Sentinel rewrites.
func (s *Sentinels) newSentinel(t testing.TB, number int) *Node {
	t.Helper()
	o := s.options
	n := &Node{setup: s.setup, dir: t.TempDir(), password: o.SentinelPassword}
	lines := []string{
		"bind 127.0.0.1", "protected-mode no", "dir " + n.dir,
		fmt.Sprintf("sentinel myid %040x", number+1),
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d %d", o.Name, s.servers[0].Port(), o.Quorum),
		fmt.Sprintf("sentinel down-after-milliseconds %s %d", o.Name, o.DownAfter.Milliseconds()),
		fmt.Sprintf("sentinel failover-timeout %s 2000", o.Name),
		fmt.Sprintf("sentinel parallel-syncs %s %d", o.Name, o.Replicas),
	}
	if o.Password != "" {
		lines = append(lines, fmt.Sprintf("sentinel auth-pass %s %s", o.Name, o.Password))
	}
	if o.SentinelPassword != "" {
		lines = append(lines, "requirepass "+o.SentinelPassword, "sentinel sentinel-pass "+o.SentinelPassword)
	}
	if err := os.WriteFile(n.file("sentinel.conf"), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	n.args = func(int) []string { return []string{n.file("sentinel.conf"), "--sentinel"} }
	return n
}

// hurry makes a Sentinel check servers and communicate with other Sentinels more often than by
// default. The setting is lost in a restart.
func (s *Sentinels) hurry(t testing.TB, n *Node) {
	t.Helper()
	n.Do(t, "SENTINEL", "DEBUG", "INFO-PERIOD", "200", "PUBLISH-PERIOD", "200", "ASK-PERIOD", "100", "TILT-PERIOD", "1000")
}

// TLS returns the configuration of clients, or nil if connections are not encrypted.
func (s *Sentinels) TLS() *tls.Config {
	if s.setup.client == nil {
		return nil
	}
	return s.setup.client.Clone()
}

// Addrs returns the addresses of the Sentinels.
func (s *Sentinels) Addrs() []string {
	var addrs []string
	for _, n := range s.watches {
		addrs = append(addrs, n.Addr())
	}
	return addrs
}

// Sentinels returns all Sentinels, whether or not they are running.
func (s *Sentinels) Sentinels() []*Node { return slices.Clone(s.watches) }

// Servers returns the servers that the Sentinels watch, whether or not they are running. The first
// one was the master at the start.
func (s *Sentinels) Servers() []*Node { return slices.Clone(s.servers) }

// Master waits until all running Sentinels name the same running server as the master, and
// returns it.
func (s *Sentinels) Master(t testing.TB) *Node {
	t.Helper()
	var master *Node
	s.await(t, "all Sentinels name a running master", func() (err error) {
		master, err = s.master()
		return err
	})
	return master
}

func (s *Sentinels) master() (*Node, error) {
	var master *Node
	for _, n := range s.running(s.watches) {
		v, err := n.Ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
		if len(v.Elems) != 2 {
			return nil, fmt.Errorf("%s does not know a master", n)
		}
		named := s.byAddr(net.JoinHostPort(text(v.Elems[0]), text(v.Elems[1])))
		if named == nil || !named.Running() || master != nil && master != named {
			return nil, fmt.Errorf("%s names %v, the others %v", n, words(v), master)
		}
		master = named
	}
	if master == nil {
		return nil, errors.New("no Sentinel is running")
	}
	return master, nil
}

func (s *Sentinels) byAddr(addr string) *Node {
	i := slices.IndexFunc(s.servers, func(n *Node) bool { return n.Addr() == addr })
	if i < 0 {
		return nil
	}
	return s.servers[i]
}

func (s *Sentinels) running(nodes []*Node) []*Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return !n.Running() })
}

// Settle waits until all running Sentinels agree on the master and know each other and all
// running servers, and the replicas are in sync with the master.
func (s *Sentinels) Settle(t testing.TB) {
	t.Helper()
	s.await(t, "the Sentinels have settled", s.settled)
}

func (s *Sentinels) settled() error {
	master, err := s.master()
	if err != nil {
		return err
	}
	servers, watches := s.running(s.servers), s.running(s.watches)
	for _, n := range servers {
		f, err := n.info("replication")
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", n, err)
		case n == master && f["role"] != "master":
			return fmt.Errorf("%s has the role %s", n, f["role"])
		case n != master && (f["role"] != "slave" || f["master_link_status"] != "up" || f["master_port"] != strconv.Itoa(master.Port())):
			return fmt.Errorf("%s is not a replica in sync with %s: %v", n, master, f)
		}
	}
	for _, n := range watches {
		if err := s.knowsAll(n, master, servers, watches); err != nil {
			return fmt.Errorf("%s: %w", n, err)
		}
	}
	return nil
}

// knowsAll returns an error unless a Sentinel reports that all running servers and Sentinels
// are healthy.
func (s *Sentinels) knowsAll(n, master *Node, servers, watches []*Node) error {
	v, err := n.Ask("SENTINEL", "MASTER", s.Name)
	if err != nil {
		return err
	}
	if flags := pairs(v)["flags"]; flags != "master" {
		return fmt.Errorf("the master has the flags %s", flags)
	}
	if v, err = n.Ask("SENTINEL", "REPLICAS", s.Name); err != nil {
		return err
	}
	replicas := list(v)
	if v, err = n.Ask("SENTINEL", "SENTINELS", s.Name); err != nil {
		return err
	}
	others := list(v)
	for _, server := range servers {
		if r := replicas[server.Addr()]; server != master && (r["flags"] != "slave" || r["master-link-status"] != "ok" || r["master-port"] != strconv.Itoa(master.Port())) {
			return fmt.Errorf("the replica %s is %v", server, r)
		}
	}
	for _, other := range watches {
		if o := others[other.Addr()]; other != n && o["flags"] != "sentinel" {
			return fmt.Errorf("the Sentinel %s is %v", other, o)
		}
	}
	return nil
}

// list returns the result of a SENTINEL command that lists servers, by address.
func list(v resp.Value) map[string]map[string]string {
	m := make(map[string]map[string]string)
	for _, e := range v.Elems {
		p := pairs(e)
		m[net.JoinHostPort(p["ip"], p["port"])] = p
	}
	return m
}

// AwaitSwitch waits until the Sentinels have replaced the master old and have settled, and returns
// the new master.
func (s *Sentinels) AwaitSwitch(t testing.TB, old *Node) *Node {
	t.Helper()
	var master *Node
	s.await(t, "the Sentinels have replaced "+old.String(), func() (err error) {
		if master, err = s.master(); err != nil {
			return err
		}
		if master == old {
			return fmt.Errorf("%s is the master", old)
		}
		return s.settled()
	})
	return master
}

// Failover makes a Sentinel replace the master with SENTINEL FAILOVER, waits until all have
// settled, and returns the new master. On a busy machine, Sentinels may consider the new master
// dead and return to the old one; in that case, Failover tries again.
func (s *Sentinels) Failover(t testing.TB) *Node {
	t.Helper()
	old := s.Master(t)
	var master *Node
	s.await(t, "a failover replaces "+old.String(), func() (err error) {
		if master, err = s.master(); err != nil {
			return err
		}
		// Once all have settled, no failover is in progress.
		if err = s.settled(); err != nil || master != old {
			return err
		}
		_, err = s.running(s.watches)[0].Ask("SENTINEL", "FAILOVER", s.Name)
		return fmt.Errorf("%s is the master; the answer to SENTINEL FAILOVER: %v", old, err)
	})
	return master
}

// Restart kills a server or a Sentinel if it is running, starts it again on the same port, and
// waits until everything has settled. A server then has no keys; a Sentinel keeps its ID and its
// state.
func (s *Sentinels) Restart(t testing.TB, n *Node) {
	t.Helper()
	port := n.Port()
	n.Kill()
	if err := n.launchAt(port, 0); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(s.watches, n) {
		s.hurry(t, n)
	}
	s.Settle(t)
}

func (s *Sentinels) await(t testing.TB, what string, cond func() error) {
	t.Helper()
	await(t, Patience, what, s.State, cond)
}

// State describes every server and Sentinel, for messages of tests that fail.
func (s *Sentinels) State() string {
	var b []byte
	describe := func(n *Node, questions ...[]string) {
		b = fmt.Appendf(b, "--- %s, running: %t\n", n, n.Running())
		if !n.Running() {
			return
		}
		for _, question := range questions {
			v, err := n.Ask(question...)
			switch {
			case err != nil:
				b = fmt.Appendf(b, "%v: %v\n", question, err)
			case v.Kind == resp.Array:
				for _, e := range v.Elems {
					b = fmt.Appendf(b, "%v: %v\n", question, pairs(e))
				}
			default:
				b = append(b, text(v)...)
			}
		}
	}
	for _, n := range s.servers {
		describe(n, []string{"INFO", "replication"})
	}
	for _, n := range s.watches {
		describe(n, []string{"SENTINEL", "MASTERS"}, []string{"SENTINEL", "REPLICAS", s.Name}, []string{"SENTINEL", "SENTINELS", s.Name})
	}
	return string(b)
}
