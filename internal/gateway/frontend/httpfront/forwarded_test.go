package httpfront

import (
	"net/netip"
	"strings"
	"testing"
)

// networks are proxies of TCP only.
func networks(list ...string) proxies { return proxies{networks: prefixes(list...)} }

func prefixes(list ...string) (all []netip.Prefix) {
	for _, p := range list {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
}

func TestClientAddr(t *testing.T) {
	trusted := networks("10.0.0.0/8", "192.168.1.1/32", "fd00::/8", "::ffff:172.16.0.0/108")
	lines := func(l ...string) []string { return l }
	for _, test := range []struct {
		name   string
		remote string
		fields []string
		want   string
	}{
		{"no field", "192.0.2.1", nil, "192.0.2.1"},
		{"not a proxy", "192.0.2.1", lines("198.51.100.1"), "192.0.2.1"},
		{"a proxy without a field", "10.0.0.1", nil, "10.0.0.1"},
		{"a proxy with an empty field", "10.0.0.1", lines(""), "10.0.0.1"},
		{"a proxy with a field of commas", "10.0.0.1", lines(" ,,\t, ", ","), "10.0.0.1"},
		{"one proxy", "10.0.0.1", lines("198.51.100.1"), "198.51.100.1"},
		{"what the client wrote is left", "10.0.0.1", lines("1.1.1.1, 10.9.9.9, 198.51.100.1"), "198.51.100.1"},
		{"two proxies", "10.0.0.1", lines("1.1.1.1, 198.51.100.1, 10.0.0.2"), "198.51.100.1"},
		{"two lines", "10.0.0.1", lines("1.1.1.1, 198.51.100.1", "10.0.0.2"), "198.51.100.1"},
		{"two lines, the client's left alone", "10.0.0.1", lines("1.1.1.1", "198.51.100.1"), "198.51.100.1"},
		{"lines in between are empty", "10.0.0.1", lines("198.51.100.1", "", "10.0.0.2,"), "198.51.100.1"},
		{"all are proxies", "10.0.0.1", lines("10.0.0.3, 192.168.1.1, 10.0.0.2"), "10.0.0.3"},
		{"an address beside a trusted one", "10.0.0.1", lines("1.1.1.1, 192.168.1.2"), "192.168.1.2"},
		{"white space", "10.0.0.1", lines("\t 198.51.100.1 \t,\t 10.0.0.2  "), "198.51.100.1"},
		{"no white space", "10.0.0.1", lines("198.51.100.1,10.0.0.2"), "198.51.100.1"},

		{"IPv6 client", "10.0.0.1", lines("2001:db8::1"), "2001:db8::1"},
		{"IPv6 proxy", "fd00::1", lines("2001:db8::1, fd12::1"), "2001:db8::1"},
		{"remote is IPv4 in IPv6", "::ffff:10.0.0.1", lines("198.51.100.1"), "198.51.100.1"},
		{"remote is IPv4 in IPv6, not a proxy", "::ffff:192.0.2.1", lines("198.51.100.1"), "192.0.2.1"},
		{"client is IPv4 in IPv6", "10.0.0.1", lines("::ffff:198.51.100.1"), "198.51.100.1"},
		{"proxy is IPv4 in IPv6", "10.0.0.1", lines("198.51.100.1, ::ffff:10.0.0.2"), "198.51.100.1"},
		{"network is IPv4 in IPv6", "172.20.0.1", lines("198.51.100.1"), "198.51.100.1"},
		{"not in that network", "172.32.0.1", lines("198.51.100.1"), "172.32.0.1"},
		{"remote with a zone", "fd00::1%eth0", lines("198.51.100.1"), "198.51.100.1"},
		{"client with a zone", "10.0.0.1", lines("fe80::1%eth0"), "fe80::1"},

		{"port", "10.0.0.1", lines("198.51.100.1:4711"), "198.51.100.1"},
		{"IPv6 with brackets", "10.0.0.1", lines("[2001:db8::1]"), "2001:db8::1"},
		{"IPv6 with port", "10.0.0.1", lines("[2001:db8::1]:4711, 10.0.0.2:80"), "2001:db8::1"},
		{"IPv6 with zone and port", "10.0.0.1", lines("[fe80::1%eth0]:80"), "fe80::1"},

		{"unknown", "10.0.0.1", lines("unknown"), "10.0.0.1"},
		{"unknown behind a proxy", "10.0.0.1", lines("198.51.100.1, unknown, 10.0.0.2"), "10.0.0.2"},
		{"nonsense the client wrote", "10.0.0.1", lines("\x00\xff, 198.51.100.1"), "198.51.100.1"},
		{"a name", "10.0.0.1", lines("client.example"), "10.0.0.1"},
		{"quoted", "10.0.0.1", lines(`"198.51.100.1"`), "10.0.0.1"},
		{"leading zero", "10.0.0.1", lines("010.0.0.9"), "10.0.0.1"},
		{"brackets around IPv4", "10.0.0.1", lines("[198.51.100.1]:80"), "10.0.0.1"},
		{"bracket left open", "10.0.0.1", lines("[2001:db8::1"), "10.0.0.1"},
		{"only brackets", "10.0.0.1", lines("[]"), "10.0.0.1"},
		{"something after brackets", "10.0.0.1", lines("[2001:db8::1]x"), "10.0.0.1"},
		{"no port after the colon", "10.0.0.1", lines("198.51.100.1:"), "10.0.0.1"},
		{"port of letters", "10.0.0.1", lines("198.51.100.1:http"), "10.0.0.1"},
		{"port too long", "10.0.0.1", lines("198.51.100.1:123456"), "10.0.0.1"},
		{"semicolons", "10.0.0.1", lines("198.51.100.1; 10.0.0.2"), "10.0.0.1"},
		{"white space between", "10.0.0.1", lines("198.51.100.1 10.0.0.2"), "10.0.0.1"},

		{"64 hops", "10.0.0.1", lines("198.51.100.1" + strings.Repeat(", 10.0.0.2", maxHops-1)), "198.51.100.1"},
		{"65 hops", "10.0.0.1", lines("198.51.100.1" + strings.Repeat(", 10.0.0.2", maxHops)), "10.0.0.2"},
		{"a million", "10.0.0.1", lines(strings.Repeat("198.51.100.1,", 1_000_000)), "198.51.100.1"},
		{"a socket without addresses", "", lines("198.51.100.1"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var remote, want netip.Addr
			if test.remote != "" {
				remote = netip.MustParseAddr(test.remote)
			}
			if test.want != "" {
				want = netip.MustParseAddr(test.want)
			}
			if got := clientAddr(remote, test.fields, trusted); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// TestClientAddrOfUnix: a peer of a unix socket is trusted only if the configuration says so.
func TestClientAddrOfUnix(t *testing.T) {
	trusted := networks("10.0.0.0/8")
	trusted.unix = true
	client := netip.MustParseAddr("198.51.100.1")
	for _, test := range []struct {
		name, fields string
		trusted      proxies
		want         netip.Addr
	}{
		{"one proxy", "1.1.1.1, 198.51.100.1", trusted, client},
		{"two proxies", "1.1.1.1, 198.51.100.1, 10.0.0.2", trusted, client},
		{"no address", "nonsense", trusted, netip.Addr{}},
		{"no field", "", trusted, netip.Addr{}},
		{"not believed", "198.51.100.1", networks("0.0.0.0/0", "::/0"), netip.Addr{}},
	} {
		if got := clientAddr(netip.Addr{}, []string{test.fields}, test.trusted); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestClientAddrAllocations(t *testing.T) {
	trusted := networks("10.0.0.0/8", "fd00::/8")
	fields := []string{"1.1.1.1, [2001:db8::1]:80", "10.0.0.2:80, fd00::1"}
	for _, remote := range []string{"192.0.2.1", "2001:db8::1", "10.0.0.1"} {
		addr := netip.MustParseAddr(remote)
		if got := testing.AllocsPerRun(100, func() { clientAddr(addr, fields, trusted) }); got != 0 {
			t.Errorf("%s: got %v allocations, want 0", remote, got)
		}
	}
}

func FuzzClientAddr(f *testing.F) {
	f.Add("1.1.1.1, 198.51.100.1, 10.0.0.2", "[2001:db8::1]:80")
	f.Add("", ",,")
	f.Add("[", "::ffff:10.0.0.1%x")
	trusted := networks("10.0.0.0/8", "fd00::/8")
	proxy, stranger := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("203.0.113.9")
	f.Fuzz(func(t *testing.T, a, b string) {
		if got := clientAddr(stranger, []string{a, b}, trusted); got != stranger {
			t.Errorf("%q, %q: an untrusted client passes for %v", a, b, got)
		}
		got := clientAddr(proxy, []string{a, b}, trusted)
		if !got.IsValid() || got.Zone() != "" || got.Is4In6() {
			t.Errorf("%q, %q: got %v, want a plain address", a, b, got)
		}
		// Whatever a client sends, the address that the proxy adds on the right
		// decides.
		for _, fields := range [][]string{{a, b, "198.51.100.1"}, {a, b + ", 198.51.100.1"}, {a + "," + b + ",198.51.100.1:80, fd00::1"}} {
			if got := clientAddr(proxy, fields, trusted); got != netip.MustParseAddr("198.51.100.1") {
				t.Errorf("%q: got %v, want 198.51.100.1", fields, got)
			}
		}
	})
}
