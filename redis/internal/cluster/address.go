package cluster

import (
	"net/netip"
	"strconv"
	"strings"
)

// Addresses maps the addresses that servers announce to the addresses to dial. The rules, in this
// order:
//
//   - An empty or null host means the host that was asked. So does "?", which a server sends if it
//     is configured to announce a host name and has none, unless the reply contains the IP address.
//   - A loopback address means the host that was asked, unless that is a loopback address as well.
//     A server in a container may not know any other address of itself, and no server may make a
//     client connect to services on the client's machine.
//   - A node without a port has no usable address. With TLS, the TLS port is used. If a server
//     announces none, its plain port is dialed, as if a proxy terminated TLS there.
//   - Map is applied to the address.
//   - A link-local address, the address of the metadata service of a cloud, and the like make the whole
//     reply invalid, unless an address of Seeds is in the same range.
//
// The zero value is ready to use. All methods are safe for concurrent use.
type Addresses struct {
	// TLS says whether the client uses TLS.
	TLS bool
	// Map, if set, returns the address to dial for an address that a server announces. Clients that reach
	// the cluster through network address translation need it. Both addresses are host:port. It is
	// called for each address in each reply and redirect, by several goroutines.
	Map func(addr string) string
	// Seeds are the addresses in the user's options.
	Seeds []string
}

// forbidden are ranges in which no node of a cluster is expected. By making a client connect there, a
// server could reach services that trust the client's machine.
var forbidden = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),     // link-local; the metadata services of most clouds
	netip.MustParsePrefix("fe80::/10"),          // link-local
	netip.MustParsePrefix("fd00:ec2::/32"),      // metadata and other services of Amazon's cloud
	netip.MustParsePrefix("fd20:ce::254/128"),   // metadata service of Google's cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // services of the host in Microsoft's cloud
	netip.MustParsePrefix("100.100.100.200/32"), // metadata service of Alibaba's cloud
	netip.MustParsePrefix("192.0.0.192/32"),     // metadata service of Oracle's cloud
	netip.MustParsePrefix("0.0.0.0/8"),          // this machine
	netip.MustParsePrefix("::/128"),             // this machine
	netip.MustParsePrefix("224.0.0.0/4"),        // multicast
	netip.MustParsePrefix("ff00::/8"),           // multicast
	netip.MustParsePrefix("255.255.255.255/32"), // broadcast
}

// translated is the prefix of the IPv6 addresses that a NAT64 gateway translates to the IPv4 address in
// their last four bytes.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// plain returns the address to which packets for ip are delivered.
func plain(ip netip.Addr) netip.Addr {
	ip = ip.WithZone("").Unmap()
	if translated.Contains(ip) {
		b := ip.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip
}

// Allowed reports whether ip may be dialed as the address of a node. The dialer also calls it with the
// addresses to which a host name resolves.
func (a *Addresses) Allowed(ip netip.Addr) bool {
	ip = plain(ip)
	for _, p := range forbidden {
		if p.Contains(ip) {
			return a.seeded(p)
		}
	}
	return true
}

// seeded reports whether a seed address is in p.
func (a *Addresses) seeded(p netip.Prefix) bool {
	for _, seed := range a.Seeds {
		host, _, _ := splitAddr(seed)
		if ip, err := netip.ParseAddr(host); err == nil && p.Contains(plain(ip)) {
			return true
		}
	}
	return false
}

// An addressError says why an announced address was rejected.
type addressError struct{ wrong, expected string }

func (e *addressError) Error() string { return e.wrong + ", expected " + e.expected }

// dial returns the address to dial for host and port, which the node at asked has announced. It returns
// an empty address if the node has no usable one.
func (a *Addresses) dial(asked, host string, port int) (string, *addressError) {
	if port == 0 {
		return "", nil
	}
	if port < 0 || port > 65535 {
		return "", &addressError{"port " + strconv.Itoa(port), "at most 65535"}
	}
	from, _, _ := splitAddr(asked)
	if host == "" || host == "?" || isLoopback(host) && !isLoopback(from) {
		if from == "" {
			return "", nil
		}
		host = from
	}
	host, wrong := a.checkHost(host)
	if wrong != nil {
		return "", wrong
	}
	addr := joinAddr(host, port)
	if a.Map != nil {
		if addr, wrong = a.mapped(addr); wrong != nil {
			return "", wrong
		}
		host, port, ok := splitAddr(addr)
		if !ok {
			return "", &addressError{"a result " + quoted(addr) + " of MapAddr", "host:port"}
		}
		if host, wrong = a.checkHost(host); wrong != nil {
			return "", wrong
		}
		addr = joinAddr(host, port)
	}
	if host, _, _ := splitAddr(addr); !a.allowedHost(host) {
		return "", &addressError{"the address " + quoted(addr), "an address that a node may have, not a link-local address or one of a cloud service; if a node has this address, add it to the addresses in the options"}
	}
	return addr, nil
}

// mapped calls the user's function.
func (a *Addresses) mapped(addr string) (mapped string, wrong *addressError) {
	defer func() {
		if recover() != nil {
			wrong = &addressError{"a panic of MapAddr", "host:port"}
		}
	}()
	return a.Map(addr), nil
}

func (a *Addresses) allowedHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err != nil || a.Allowed(ip)
}

// checkHost returns host in its canonical form.
func (a *Addresses) checkHost(host string) (string, *addressError) {
	if ip, err := netip.ParseAddr(host); err == nil {
		if strings.ContainsFunc(ip.Zone(), isNotOfZone) {
			return "", &addressError{"the host " + quoted(host), "an IP address or a host name"}
		}
		return ip.Unmap().String(), nil
	}
	if len(host) > maxHost {
		return "", &addressError{"a host name of " + strconv.Itoa(len(host)) + " bytes", "at most " + strconv.Itoa(maxHost)}
	}
	if !isHostName(host) {
		return "", &addressError{"the host " + quoted(host), "an IP address or a host name"}
	}
	return strings.ToLower(host), nil
}

// isNotOfZone reports whether a character does not occur in the names of network interfaces, which
// are the zones of IPv6 addresses. Servers announce addresses, and the client prints them.
func isNotOfZone(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_'
}

// isHostName reports whether host is a host name. Its last label must not start with a digit,
// because resolvers interpret 2852039166 and 0xa9fea9fe as IPv4 addresses.
func isHostName(host string) bool {
	for i := range len(host) {
		switch c := host[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		case c == '.' && i > 0 && host[i-1] != '.':
		default:
			return false
		}
	}
	last := strings.TrimSuffix(host, ".")
	last = last[strings.LastIndexByte(last, '.')+1:]
	return last != "" && (last[0] < '0' || last[0] > '9')
}

func isLoopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return plain(ip).IsLoopback()
	}
	return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}

// splitAddr splits an address at its last colon. IPv6 addresses may be in brackets; Redis writes
// them without brackets.
func splitAddr(addr string) (host string, port int, ok bool) {
	colon := strings.LastIndexByte(addr, ':')
	if colon < 0 {
		return "", 0, false
	}
	host = addr[:colon]
	if n := len(host); n >= 2 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	port, ok = number(addr[colon+1:], 65535)
	return host, port, ok
}

func joinAddr(host string, port int) string {
	if strings.IndexByte(host, ':') >= 0 {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
}

// number parses a decimal number without a sign. It accepts at most nine digits, and values up to most.
func number[T string | []byte](text T, most int) (int, bool) {
	if len(text) == 0 || len(text) > 9 {
		return 0, false
	}
	n := 0
	for i := range len(text) {
		c := text[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int(c)
	}
	return n, n <= most
}
