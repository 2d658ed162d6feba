//go:build unix

package redis_test

import (
	"testing"

	"github.com/slipstream-go/slipstream/redis"
)

// TestAddressesBehindTranslation: a cluster announces addresses that only its nodes can reach. The
// client dials the addresses that MapAddr returns, also after a redirect.
//
// mutant: cluster-redirect-is-not-mapped
func TestAddressesBehindTranslation(t *testing.T) {
	announced := []string{"192.0.2.1:7000", "192.0.2.2:7001"}
	nodes := func() []string { return announced }
	a := startScripted(t, shards(nodes, func([]string) string { return "-MOVED 12539 " + announced[1] + "\r\n" }))
	b := startScripted(t, shards(nodes, func([]string) string { return "$1\r\nv\r\n" }))
	c := connectScripted(t, redis.ClusterOptions{Seeds: []string{a.addr}, MapAddr: func(addr string) string {
		switch addr {
		case announced[0]:
			return a.addr
		case announced[1]:
			return b.addr
		}
		return addr
	}})
	for style := range 3 {
		if err := inStyle(t, style, c, redis.Cmd("GET", "key")); err != nil {
			t.Errorf("style %d: %v", style, err)
		}
	}
	for _, n := range c.Nodes() {
		if n.Addr != a.addr && n.Addr != b.addr {
			t.Errorf("the client knows %s, want %s and %s", n.Addr, a.addr, b.addr)
		}
	}
}
