//go:build unix

package redis_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// serverNames contains the names for which a client has verified certificates, by address.
type serverNames struct {
	mu   sync.Mutex
	seen []string
}

// note implements tls.Config.VerifyConnection, which is called after the certificate has been
// verified.
func (s *serverNames) note(state tls.ConnectionState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, state.ServerName)
	return nil
}

// all returns the names and clears them.
func (s *serverNames) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// oneNode returns a reply to CLUSTER SHARDS for one node that owns all slots.
func oneNode(addr, hostname string) string {
	host, port, _ := net.SplitHostPort(addr)
	text := func(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }
	return "*1\r\n*4\r\n" + text("slots") + "*2\r\n:0\r\n:16383\r\n" + text("nodes") + "*1\r\n*12\r\n" +
		text("id") + text(strings.Repeat("0", 40)) + text("port") + ":" + port + "\r\n" + text("endpoint") + text(host) +
		text("hostname") + text(hostname) + text("role") + text("master") + text("health") + text("online")
}

// TestNamesOfNodes: the certificate of a node must be valid for the host name that the node
// announces. A string that is not a host name is ignored, and then the certificate must be valid
// for the address. No part of such a string gets into the handshake or into errors.
//
// mutant: cluster-any-text-is-a-name
func TestNamesOfNodes(t *testing.T) {
	authority := testkit.NewAuthority(t)
	issued := authority.Issue(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"node.example", "a_b.example"}})
	for name, test := range map[string]struct {
		hostname string
		verified string // the name for which the certificate was verified; if empty, the address
		wrong    string // or a part of the error
	}{
		"announced":       {hostname: "node.example", verified: "node.example"},
		"upper case":      {hostname: "NODE.Example", verified: "NODE.Example"},
		"underscore":      {hostname: "a_b.example", verified: "a_b.example"},
		"another":         {hostname: "evil.example", wrong: "evil.example"},
		"wildcard":        {hostname: "*.example", verified: ""},
		"none":            {hostname: "", verified: ""},
		"IP address":      {hostname: "127.0.0.2", verified: ""},
		"IPv6 address":    {hostname: "::1", verified: ""},
		"number":          {hostname: "2130706434", verified: ""},
		"dots":            {hostname: "..", verified: ""},
		"space":           {hostname: "node.example evil", verified: ""},
		"NUL":             {hostname: "node.example\x00evil", verified: ""},
		"new line":        {hostname: "node.example\r\nevil", verified: ""},
		"slash":           {hostname: "node.example/..", verified: ""},
		"port":            {hostname: "node.example:443", verified: ""},
		"no ASCII":        {hostname: "nöde.example", verified: ""},
		"no UTF-8":        {hostname: "node\xff.example", verified: ""},
		"10 KB":           {hostname: strings.Repeat("a", 10<<10), wrong: "a host name of at most"},
		"10 KB of labels": {hostname: strings.Repeat("a.", 5<<10), wrong: "a host name of at most"},
	} {
		t.Run(name, func(t *testing.T) {
			n := &scriptedNode{tls: &tls.Config{Certificates: []tls.Certificate{issued.Certificate}}}
			n.start(t, func(args []string) string {
				switch strings.Join(args, " ") {
				case "CLUSTER SHARDS":
					return oneNode(n.addr, test.hostname)
				case "CLUSTER INFO":
					return "$18\r\ncluster_state:ok\r\n\r\n"
				}
				if args[0] == "CLUSTER" {
					return "-ERR not known\r\n"
				}
				return "$1\r\nv\r\n"
			})
			var verified serverNames
			c, err := redis.ConnectCluster(t.Context(), redis.ClusterOptions{Seeds: []string{n.addr}, Options: redis.Options{
				DialTimeout: 2 * time.Second, TLS: &tls.Config{RootCAs: authority.Pool, VerifyConnection: verified.note},
				OnEvent: func(e redis.Event) {
					if e.Err != nil && strings.ContainsAny(e.Err.Error(), "\x00\r\n") {
						t.Errorf("an event with the error %q", e.Err)
					}
				},
			}})
			if err == nil {
				defer c.Close()
				_, _, err = c.Get(t.Context(), "key")
			}
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) || len(err.Error()) > 2000 {
					t.Errorf("%v, want an error that says %q", err, test.wrong)
				}
				return
			}
			seen := verified.all()
			if err != nil || len(seen) == 0 || seen[len(seen)-1] != test.verified {
				t.Errorf("verified for %q, %v; want %q", seen, err, test.verified)
			}
		})
	}
}

// TestNamesThatNodesLearn: if a node starts to announce a host name, new connections to it expect
// that name, including those of a client that was already connected.
//
// mutant: redis-node-keeps-its-first-name
func TestNamesThatNodesLearn(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{TLS: true})
	var verified serverNames
	c := connectCluster(t, cluster, func(o *redis.ClusterOptions) {
		o.TLS = cluster.TLS()
		o.TLS.VerifyConnection = verified.note
		o.RefreshEvery = 50 * time.Millisecond
	})
	for _, name := range verified.all() {
		if name != "" { // TLS verifies no name for an IP address
			t.Errorf("verified for %q", name)
		}
	}
	cluster.SetConfig(t, "cluster-announce-hostname", "localhost")
	testkit.Eventually(t, 30*time.Second, func() error {
		verified.all()
		for _, n := range cluster.Nodes() {
			n.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		}
		for i := range 40 {
			if _, _, err := c.Get(t.Context(), fmt.Sprint("key", i)); err != nil {
				return err
			}
		}
		names := verified.all()
		for _, name := range names {
			if name != "localhost" {
				return fmt.Errorf("verified for %q", names)
			}
		}
		if len(names) < len(cluster.Nodes()) {
			return errors.New("the connections have not ended")
		}
		return nil
	})
	// A session, and a client that starts now, expect the name, too.
	s, err := c.Session(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	late := connectCluster(t, cluster, func(o *redis.ClusterOptions) {
		o.TLS = cluster.TLS()
		o.TLS.VerifyConnection = verified.note
	})
	must(t, late.Ping(t.Context()))
	names, called := verified.all(), 0
	for _, name := range names {
		if name == "localhost" {
			called++
		}
	}
	if called < 1+len(cluster.Nodes()) { // one for the session; for the seed, the address may be expected
		t.Errorf("verified for %q", names)
	}
}
