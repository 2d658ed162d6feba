package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/redis/redistest"
)

// newCluster starts a cluster in memory that ends with the test, and whose nodes answer INFO and
// CONFIG GET.
func newCluster(t *testing.T, o redistest.ClusterOptions) *redistest.Cluster {
	t.Helper()
	cluster := redistest.NewCluster(o)
	t.Cleanup(cluster.Close)
	cluster.Handle("INFO", func(c *redistest.Conn, args []string) any {
		if args[1] == "server" {
			return "# Server\r\nredis_version:7.0.15\r\nredis_mode:cluster\r\n"
		}
		for _, master := range cluster.Nodes() {
			if slices.Contains(cluster.ReplicasOf(master), c.Node()) {
				return "role:slave\r\nmaster_link_status:up\r\nslave_repl_offset:1207\r\nmaster_repl_offset:1207\r\n"
			}
		}
		return "role:master\r\nmaster_repl_offset:1221\r\n"
	})
	cluster.Handle("CONFIG", func(_ *redistest.Conn, args []string) any { return map[string]any{args[2]: "yes"} })
	return cluster
}

// lookAt does what the command does, at a cluster whose nodes have the ports 7001 and so on, and
// replaces what is measured.
func lookAt(t *testing.T, cluster *redistest.Cluster, f clusterFlags) *clusterReport {
	t.Helper()
	f.timeout, f.pings, f.readFrom = 30*time.Second, 3, cmp.Or(f.readFrom, "master")
	o, err := f.options("127.0.0.1:7001")
	if err != nil {
		t.Fatal(err)
	}
	names, addrs := make(map[string]string), make(map[string]string)
	for i, n := range cluster.Nodes() {
		name := fmt.Sprintf("127.0.0.1:%d", 7001+i)
		names[n.Addr()], addrs[name] = name, n.Addr()
	}
	o.MapAddr = func(addr string) string { return cmp.Or(names[addr], addr) }
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addrs[addr])
		if err != nil {
			return nil, errors.New("connection refused")
		}
		return conn, nil
	}
	r, err := f.look(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.decide(f.readFrom)
	if f.key != "" {
		r.route(f.key)
	}
	for i := range r.Nodes {
		if trip := r.Nodes[i].RoundTrip; trip != nil {
			if trip.Pings != f.pings || trip.Min > trip.Median || trip.Median > trip.Max {
				t.Errorf("%s: round trips %+v", r.Nodes[i].Addr, *trip)
			}
			*trip = tripsReport{Pings: f.pings, Min: 84, Median: 97, Max: 1208}
		}
	}
	return r
}

func printed(t *testing.T, r *clusterReport) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.print(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRedisClusterThatIsWell: the tables, and the members of the JSON, which scripts read.
func TestRedisClusterThatIsWell(t *testing.T) {
	testkit.NoLeaks(t)
	cluster := newCluster(t, redistest.ClusterOptions{Masters: 2, ReplicasPer: 1})
	r := lookAt(t, cluster, clusterFlags{readFrom: "replica", key: "user:1"})
	if len(r.Problems) > 0 {
		t.Errorf("problems: %q", r.Problems)
	}
	testkit.Golden(t, "redis-cluster-well.txt", printed(t, r))
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "redis-cluster-well.json", append(text, '\n'))
}

// nodeLines returns a reply to CLUSTER NODES: a line for each node of its flags, link state and slots,
// all with that epoch.
func nodeLines(cluster *redistest.Cluster, epoch int, lines ...string) string {
	var b strings.Builder
	for i, n := range cluster.Nodes() {
		flags, rest, _ := strings.Cut(lines[i], " ")
		link, slots, _ := strings.Cut(rest, " ")
		fmt.Fprintf(&b, "%s %s@1 %s - 0 0 %d %s %s\n", n.ID(), n.Addr(), flags, epoch, link, slots)
	}
	return b.String()
}

func answer(reply any) redistest.Handler { return func(*redistest.Conn, []string) any { return reply } }

var errNotKnown = &redis.ServerError{Code: "ERR", Message: "unknown subcommand"}

// TestRedisClusterWithProblems: an unreachable node, an old view, slots without an owner and a slot
// that moves are all reported, with what the client does.
func TestRedisClusterWithProblems(t *testing.T) {
	testkit.NoLeaks(t)
	cluster := newCluster(t, redistest.ClusterOptions{})
	nodes := cluster.Nodes()
	cluster.Handle("CLUSTER SHARDS", answer(errNotKnown))
	cluster.Handle("CLUSTER SLOTS", answer(errNotKnown))
	nodes[0].Handle("CLUSTER NODES", answer(nodeLines(cluster, 9,
		"myself,master connected 0-5000 [100->-"+nodes[1].ID()+"]", "master connected 5001-10000", "master,fail disconnected 10001-16000")))
	nodes[1].Handle("CLUSTER NODES", answer(nodeLines(cluster, 8,
		"master connected 100-5000", "myself,master connected 0-99 5001-10000", "master connected 10001-16000")))
	nodes[0].Handle("CLUSTER INFO", answer("cluster_state:ok\r\ncluster_current_epoch:9\r\n"))
	nodes[1].Handle("CLUSTER INFO", answer("cluster_state:ok\r\ncluster_current_epoch:8\r\n"))
	nodes[1].Handle("CONFIG", answer(map[string]any{"cluster-require-full-coverage": "no"}))
	nodes[2].Stop()
	r := lookAt(t, cluster, clusterFlags{key: "{16200}\n"})
	testkit.Golden(t, "redis-cluster-problems.txt", printed(t, r))
}

// TestRedisClusterBehindTranslation: if a cluster announces addresses that lead nowhere from here, its
// topology is still printed, with the option that helps.
func TestRedisClusterBehindTranslation(t *testing.T) {
	testkit.NoLeaks(t)
	cluster := newCluster(t, redistest.ClusterOptions{})
	f := clusterFlags{timeout: 30 * time.Second, pings: 1, readFrom: "master"}
	o, err := f.options("redis.example:6379")
	if err != nil {
		t.Fatal(err)
	}
	o.DialTimeout = 200 * time.Millisecond
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr != "redis.example:6379" {
			return nil, errors.New("no route to host")
		}
		return new(net.Dialer).DialContext(ctx, network, cluster.Addrs()[0])
	}
	r, err := f.look(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.decide(f.readFrom)
	if text := string(printed(t, r)); len(r.Problems) != 3 || !strings.Contains(text, "MapAddr") || !strings.Contains(text, "no route to host") {
		t.Errorf("%d problems:\n%s", len(r.Problems), text)
	}
}

// TestRedisClusterWithSilentNodes: a node that never greets, and one that greets and falls silent,
// are unreachable, and the others are printed.
func TestRedisClusterWithSilentNodes(t *testing.T) {
	testkit.NoLeaks(t)
	cluster := newCluster(t, redistest.ClusterOptions{})
	nodes := cluster.Nodes()
	nodes[1].Handle("HELLO", answer(redistest.Silence))
	for _, command := range []string{"PING", "INFO", "CONFIG", "CLUSTER"} {
		nodes[2].Handle(command, answer(redistest.Silence)) // which of these comes first does not matter: replies come in order
	}
	f := clusterFlags{timeout: time.Minute, pings: 2, readFrom: "master"}
	o, err := f.options("redis://" + nodes[0].Addr() + "?dial_timeout=500ms")
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.look(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"ok", "unreachable", "unreachable"} {
		if n := r.node(nodes[i].Addr()); n == nil || n.State != want || (n.Error == "") != (want == "ok") {
			t.Errorf("node %d: %+v, expected to be %s", i+1, n, want)
		}
	}
	if r.Views.Answered != 1 {
		t.Errorf("%d views", r.Views.Answered)
	}
}

// TestRedisClusterExitCodes: scripts distinguish failures by the exit code.
func TestRedisClusterExitCodes(t *testing.T) {
	cluster := newCluster(t, redistest.ClusterOptions{Masters: 2, ReplicasPer: 1})
	seed := cluster.Addrs()[0]
	blackbox.Expect(t, exitOK, "16384 of 16384 slots have an owner, state ok", "", "redis", "cluster", seed, "--key", "user:1")
	r := blackbox.Expect(t, exitOK, "", "", "redis", "cluster", "redis://"+seed+"?dial_timeout=2s", "--json")
	var report clusterReport
	if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil || len(report.Nodes) != 4 || report.Key != nil {
		t.Errorf("%v: %s", err, r.Stdout)
	}
	cluster.Nodes()[3].Stop()
	blackbox.Expect(t, exitIncomplete, cluster.Nodes()[3].Addr()+" cannot be reached", "problem", "redis", "cluster", seed)
	cluster.Nodes()[0].Stop()
	blackbox.Expect(t, exitUnreachable, "", "connection refused", "redis", "cluster", seed)

	alone := newCluster(t, redistest.ClusterOptions{Masters: 1})
	alone.Handle("CLUSTER", answer(&redis.ServerError{Code: "ERR", Message: "This instance has cluster support disabled"}))
	blackbox.Expect(t, exitFailure, "", "is a Redis that is not a node of a cluster", "redis", "cluster", alone.Addrs()[0])
	alone.Handle("CLUSTER", answer(&redis.ServerError{Code: "ERR", Message: "unknown command 'CLUSTER'"}))
	blackbox.Expect(t, exitFailure, "", "is it a Sentinel or a proxy?", "redis", "cluster", alone.Addrs()[0])
	alone.Handle("CLUSTER", answer(&redis.ServerError{Code: "NOPERM", Message: "this user has no permissions to run the 'cluster|shards' command"}))
	blackbox.Expect(t, exitFailure, "", "+cluster|nodes", "redis", "cluster", alone.Addrs()[0])
}

// TestRedisClusterUsage: mistakes in the command line are reported before any connection is made.
func TestRedisClusterUsage(t *testing.T) {
	noPassword := blackbox.WriteFile(t, "password", "\n")
	noCertificate := blackbox.WriteFile(t, "ca.pem", "nothing")
	for _, test := range []struct {
		stderr string
		args   []string
	}{
		{"accepts 1 arg", nil},
		{"expected master, replica, any, nearest or zone", []string{"127.0.0.1:1", "--read-from", "slave"}},
		{"--zone has no effect", []string{"127.0.0.1:1", "--zone", "a"}},
		{"expected 1 to 1000", []string{"127.0.0.1:1", "--pings", "0"}},
		{"--timeout", []string{"127.0.0.1:1", "--timeout", "0s"}},
		{"without a password", []string{"redis://ops@127.0.0.1:1"}},
		{"without a password", []string{"127.0.0.1:1", "--user", "ops"}},
		{"a cluster has only database 0", []string{"redis://127.0.0.1:1/2"}},
		{"unknown option", []string{"redis://127.0.0.1:1?color=red"}},
		{"does not hold a password", []string{"127.0.0.1:1", "--password-file", noPassword}},
		{"none.pem", []string{"127.0.0.1:1", "--tls-ca", "none.pem"}},
		{"holds no certificate", []string{"127.0.0.1:1", "--tls-ca", noCertificate}},
		{"tls-key", []string{"127.0.0.1:1", "--tls-cert", noCertificate}},
		{"127.0.0.1", []string{"127.0.0.1"}},
	} {
		blackbox.Expect(t, exitUsage, "", test.stderr, append([]string{"redis", "cluster"}, test.args...)...)
	}
}

// TestRedisClusterKeepsSecrets: the password is sent to the server and printed nowhere.
func TestRedisClusterKeepsSecrets(t *testing.T) {
	const secret = "open-sesame"
	cluster := newCluster(t, redistest.ClusterOptions{Masters: 1})
	said := make(chan []string, 100)
	cluster.Handle("HELLO", func(_ *redistest.Conn, args []string) any {
		said <- args
		return &redis.ServerError{Code: "WRONGPASS", Message: "invalid username-password pair or user is disabled."}
	})
	seed := cluster.Addrs()[0]
	file := blackbox.WriteFile(t, "password", secret+"\n")
	t.Setenv(passwordVariable, "another")
	for _, args := range [][]string{
		{seed, "--user", "ops", "--password-file", file},
		{"redis://ops:" + secret + "@" + seed},
		{"redis://ops@" + seed, "--password-file", file, "--json"},
	} {
		r := blackbox.Expect(t, exitUnreachable, "", passwordVariable, append([]string{"redis", "cluster"}, args...)...)
		if strings.Contains(r.Stdout+r.Stderr, secret) {
			t.Errorf("%q prints the password: %s%s", args, r.Stdout, r.Stderr)
		}
		if words := <-said; !slices.Contains(words, secret) || !slices.Contains(words, "ops") {
			t.Errorf("%q logs in with %q", args, words)
		}
		for len(said) > 0 {
			<-said
		}
	}
	blackbox.Expect(t, exitUnreachable, "", "", "redis", "cluster", seed)
	if words := <-said; !slices.Contains(words, "another") {
		t.Errorf("with the password only in the environment it logs in with %q", words)
	}
}

func TestClusterOptionsOfTLS(t *testing.T) {
	dir := t.TempDir()
	authority := testkit.NewAuthority(t)
	ca := authority.Write(t, dir, "authority")
	f := clusterFlags{readFrom: "master", pings: 1, timeout: time.Second, ca: ca}
	for addr, name := range map[string]string{"rediss://node-1:6379": "", "node-1:6379": "redis.example"} {
		f.name = name
		o, err := f.options(addr)
		if err != nil {
			t.Fatal(err)
		}
		if o.TLS == nil || o.TLS.ServerName != name || o.TLS.InsecureSkipVerify || !o.TLS.RootCAs.Equal(authority.Pool) {
			t.Errorf("%s: %+v", addr, o.TLS)
		}
	}
	plain := clusterFlags{readFrom: "master", pings: 1, timeout: time.Second}
	if o, err := plain.options("node-1:6379"); err != nil || o.TLS != nil {
		t.Errorf("without a flag: %v, TLS %+v", err, o.TLS)
	}
	if o, err := plain.options("rediss://node-1:6379"); err != nil || o.TLS == nil || o.TLS.ServerName != "" {
		t.Errorf("rediss: %v, TLS %+v; expected one without the name of the seed", err, o.TLS)
	}
}

func isHarmless(c rune) bool { return c == '\n' || unicode.IsPrint(c) }

// TestHostileTextIsEscaped: no server writes control characters to the terminal.
func TestHostileTextIsEscaped(t *testing.T) {
	const bad = "\x1b]0;gone\x07\u202e\u009b31m"
	cluster := newCluster(t, redistest.ClusterOptions{Masters: 3})
	nodes := cluster.Nodes()
	cluster.Handle("INFO", answer("redis_version:7"+bad+"\r\nrole:"+bad+"\r\nmaster_repl_offset:"+bad+"\r\n"))
	cluster.Handle("CONFIG", answer(map[string]any{"cluster-require-full-coverage": bad}))
	nodes[1].Handle("PING", answer(&redis.ServerError{Code: "ERR", Message: bad}))
	for _, command := range []string{"NODES", "SHARDS", "SLOTS"} {
		nodes[2].Handle("CLUSTER "+command, answer(&redis.ServerError{Code: "ERR", Message: bad}))
	}
	r := lookAt(t, cluster, clusterFlags{key: bad})
	text := string(printed(t, r))
	inJSON, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text, string(inJSON)} {
		if at := strings.IndexFunc(out, func(c rune) bool { return !isHarmless(c) }); at >= 0 {
			t.Errorf("%q in\n%s", out[at:min(at+20, len(out))], out)
		}
	}
	if !strings.Contains(text, `7\x1b]0;gone`) || r.Views.Silent["127.0.0.1:7003"] == "" {
		t.Errorf("the text is not shown:\n%s", text)
	}
	cluster.Handle("CLUSTER", answer(&redis.ServerError{Code: "ERR", Message: bad}))
	out := blackbox.Expect(t, exitFailure, "", "gone", "redis", "cluster", cluster.Addrs()[0]).Stderr
	if strings.ContainsFunc(out, func(c rune) bool { return !isHarmless(c) }) {
		t.Errorf("standard error has %q", out)
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain text": "plain text", "größe\t": `größe\t`, "\x1b[2J": `\x1b[2J`, "\xff\x00": `\xff\x00`, "\u200b\ufffd": `\u200b` + "\ufffd",
		strings.Repeat("x", 30): strings.Repeat("x", 20) + "...",
	} {
		if got := printable(text, 20); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
