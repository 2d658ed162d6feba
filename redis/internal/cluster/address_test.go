package cluster

import (
	"net/netip"
	"strings"
	"testing"
)

func TestAddressesToDial(t *testing.T) {
	for _, c := range []struct {
		asked, host string
		port        int
		want        string // an address, or the start of the error
	}{
		{"10.0.0.1:1", "10.0.0.2", 7, "10.0.0.2:7"},
		{"10.0.0.1:1", "", 7, "10.0.0.1:7"},
		{"10.0.0.1:1", "?", 7, "10.0.0.1:7"},
		{"", "", 7, ""},
		{"10.0.0.1:1", "10.0.0.2", 0, ""},
		{"10.0.0.1:1", "10.0.0.2", 65536, "port 65536"},
		{"[fd00::1]:1", "", 7, "[fd00::1]:7"},
		{"10.0.0.1:1", "FD00:0::2", 7, "[fd00::2]:7"},
		{"10.0.0.1:1", "::ffff:10.0.0.9", 7, "10.0.0.9:7"},
		{"10.0.0.1:1", "Redis-1.Example.com.", 7, "redis-1.example.com.:7"},
		{"10.0.0.1:1", "redis_1", 7, "redis_1:7"},
		{"10.0.0.1:1", "127.0.0.1", 7, "10.0.0.1:7"},
		{"10.0.0.1:1", "::1", 7, "10.0.0.1:7"},
		{"10.0.0.1:1", "LocalHost", 7, "10.0.0.1:7"},
		{"127.0.0.1:1", "127.0.0.2", 7, "127.0.0.2:7"},
		{"localhost:1", "127.0.0.1", 7, "127.0.0.1:7"},
		{"[::1]:1", "127.0.0.1", 7, "127.0.0.1:7"},
		{"redis.example:1", "127.0.0.1", 7, "redis.example:7"},
		{"10.0.0.1:1", "2852039166", 7, `the host "2852039166"`},
		{"10.0.0.1:1", "0xa9fea9fe", 7, `the host "0xa9fea9fe"`},
		{"10.0.0.1:1", "a.1", 7, `the host "a.1"`},
		{"10.0.0.1:1", "a..b", 7, `the host "a..b"`},
		{"10.0.0.1:1", ".", 7, `the host "."`},
		{"10.0.0.1:1", "a:b", 7, `the host "a:b"`},
		{"10.0.0.1:1", "a\r\nb", 7, `the host "a\r\nb"`},
		{"10.0.0.1:1", "2001:db8::1%eth0.1", 7, "[2001:db8::1%eth0.1]:7"},
		{"10.0.0.1:1", "2001:db8::1%\x1b[31m", 7, `the host "2001:db8::1%\x1b[31m"`},
		{"10.0.0.1:1", strings.Repeat("a.", 127), 7, "a host name of 254 bytes"},
		{"10.0.0.1:1", "169.254.169.254", 80, `the address "169.254.169.254:80"`},
		{"10.0.0.1:1", "::ffff:169.254.169.254", 80, `the address "169.254.169.254:80"`},
		{"10.0.0.1:1", "64:ff9b::a9fe:a9fe", 80, `the address "[64:ff9b::a9fe:a9fe]:80"`},
		{"10.0.0.1:1", "fe80::1%eth0", 80, `the address "[fe80::1%eth0]:80"`},
		{"10.0.0.1:1", "fd00:ec2::254", 80, `the address "[fd00:ec2::254]:80"`},
		{"10.0.0.1:1", "fd20:ce::254", 80, `the address "[fd20:ce::254]:80"`},
		{"10.0.0.1:1", "100.100.100.200", 80, `the address "100.100.100.200:80"`},
		{"10.0.0.1:1", "0.0.0.0", 80, `the address "0.0.0.0:80"`},
		{"10.0.0.1:1", "::", 80, `the address "[::]:80"`},
		{"10.0.0.1:1", "ff02::1", 80, `the address "[ff02::1]:80"`},
		{"10.0.0.1:1", "100.100.100.201", 80, "100.100.100.201:80"},
	} {
		got, wrong := (&Addresses{Seeds: []string{c.asked}}).dial(c.asked, c.host, c.port)
		if wrong != nil {
			got = wrong.wrong
		}
		if got != c.want && (wrong == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("dial(%q, %q, %d) = %q, expected %q", c.asked, c.host, c.port, got, c.want)
		}
	}
}

func TestAddressesAreMapped(t *testing.T) {
	a := &Addresses{Map: func(addr string) string {
		switch addr {
		case "10.0.0.1:1":
			return "nat.example:9001"
		case "10.0.0.2:1":
			return "nonsense"
		case "10.0.0.3:1":
			return "169.254.169.254:80"
		case "10.0.0.4:1":
			panic("a bug")
		case "169.254.0.9:1":
			return "[FD00::9]:1"
		}
		return addr
	}}
	for _, c := range []struct{ host, want string }{
		{"10.0.0.1", "nat.example:9001"}, {"10.0.0.9", "10.0.0.9:1"}, {"169.254.0.9", "[fd00::9]:1"},
		{"10.0.0.2", `a result "nonsense" of MapAddr, expected host:port`},
		{"10.0.0.4", "a panic of MapAddr, expected host:port"},
		{"10.0.0.3", `the address "169.254.169.254:80", expected an address that a node may have, not a link-local address or one of a cloud service; if a node has this address, add it to the addresses in the options`},
	} {
		got, wrong := a.dial("10.1.1.1:1", c.host, 1)
		if wrong != nil {
			got = wrong.Error()
		}
		if got != c.want {
			t.Errorf("%s is dialed at %q, expected %q", c.host, got, c.want)
		}
	}
}

func TestRangesOfSeedsAreAllowed(t *testing.T) {
	local := netip.MustParseAddr("169.254.7.7")
	for _, c := range []struct {
		seeds string
		want  bool
	}{
		{"10.0.0.1:1", false}, {"169.254.0.1:6379", true}, {"[::ffff:169.254.0.1]:6379", true}, {"[fe80::1%eth0]:6379", false}, {"redis:1", false}, {"", false},
	} {
		a := &Addresses{Seeds: []string{"10.9.9.9:1", c.seeds}}
		if a.Allowed(local) != c.want {
			t.Errorf("with the seed %q %v is allowed: %v", c.seeds, local, !c.want)
		}
		if a.Allowed(netip.MustParseAddr("fd00:ec2::254")) {
			t.Errorf("with the seed %q another range is allowed", c.seeds)
		}
	}
	if !(&Addresses{}).Allowed(netip.MustParseAddr("10.0.0.1")) || !(&Addresses{}).Allowed(netip.MustParseAddr("127.0.0.1")) {
		t.Error("an address of a private network or of this machine is refused")
	}
}

// One node with a forbidden address is enough to reject the whole reply, because the server cannot
// be trusted.
func TestForbiddenNodesRefuseTheReply(t *testing.T) {
	reply := append(threeShards(), shard([]any{}, shardNode("e", 80, "master", "endpoint", "169.254.169.254")))
	_, err := parse(3, &Addresses{}, map[Command]any{Shards: reply})
	if err == nil || !strings.HasPrefix(err.Error(), `reply to CLUSTER SHARDS, node `+id("e")+`: the address "169.254.169.254:80", expected`) {
		t.Error(err)
	}
	if _, err := parse(3, &Addresses{Seeds: []string{"169.254.1.1:1"}}, map[Command]any{Shards: reply}); err != nil {
		t.Error(err)
	}
}
