package httpfront

import (
	"net/netip"
	"strings"
)

// maxHops bounds how far a chain of proxies is followed.
const maxHops = 64

// clientAddr returns the address of the client: remote, the peer of the connection,
// or the client named by the proxies in trusted. Each proxy adds the address that it
// sees to the right end of X-Forwarded-For (whose lines forwardedFor are, in order),
// so the list is read from there, and the first address that is not a trusted proxy
// is the client: anything left of it may come from the client. If all are proxies, it
// is the leftmost. If the list becomes invalid, or after 64 hops, it is the last
// valid address: the proxy that passed on invalid text is responsible for it.
//
// A peer of a unix socket has no address; it is a proxy if trusted says so.
//
// The address is without zone, and IPv4 if it is an IPv4 address in an IPv6 one.
// Nothing is allocated unless remote is trusted and passed on invalid text.
func clientAddr(remote netip.Addr, forwardedFor []string, trusted proxies) netip.Addr {
	client := plain(remote)
	hops := 0
	for i := len(forwardedFor) - 1; i >= 0; i-- {
		rest, more := forwardedFor[i], true
		for more {
			if !trusted.include(client) {
				return client
			}
			var hop string
			rest, hop, more = lastElement(rest)
			if hop == "" {
				continue // of a list, as any other (RFC 9110, section 5.6.1)
			}
			addr, ok := parseHop(hop)
			if hops++; !ok || hops > maxHops {
				return client
			}
			client = addr
		}
	}
	return client
}

// lastElement cuts a list before its last element.
func lastElement(list string) (rest, last string, more bool) {
	i := strings.LastIndexByte(list, ',')
	last = strings.Trim(list[i+1:], " \t")
	if i < 0 {
		return "", last, false
	}
	return list[:i], last, true
}

// parseHop parses an address with or without port: 192.0.2.1, 192.0.2.1:80,
// 2001:db8::1, [2001:db8::1], [2001:db8::1]:80. The field has no standard, and
// proxies write all of these.
func parseHop(s string) (netip.Addr, bool) {
	port := ""
	switch colon := strings.IndexByte(s, ':'); {
	case s[0] == '[':
		end := strings.IndexByte(s, ']')
		if end < 0 || strings.IndexByte(s[:end], ':') < 0 {
			return netip.Addr{}, false
		}
		s, port = s[1:end], s[end+1:]
	case colon >= 0 && colon == strings.LastIndexByte(s, ':'):
		s, port = s[:colon], s[colon:]
	}
	if port != "" && !isPort(port) {
		return netip.Addr{}, false
	}
	// A zone is a name of the proxy's interfaces, and means nothing here.
	s, _, _ = strings.Cut(s, "%")
	addr, err := netip.ParseAddr(s)
	return plain(addr), err == nil
}

// isPort reports whether s is a colon and one to five digits.
func isPort(s string) bool {
	if s[0] != ':' || len(s) < 2 || len(s) > 6 {
		return false
	}
	for i := 1; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// proxies are those whose X-Forwarded-For is trusted.
type proxies struct {
	networks []netip.Prefix
	unix     bool // all peers of unix sockets
}

// include reports whether the plain address is in one of the networks.
func (p proxies) include(addr netip.Addr) bool {
	if !addr.IsValid() {
		return p.unix
	}
	for _, network := range p.networks {
		if network.Contains(addr) {
			return true
		}
		// ::ffff:10.0.0.0/104 is a way to write 10.0.0.0/8.
		if addr.Is4() && network.Addr().Is4In6() && network.Contains(netip.AddrFrom16(addr.As16())) {
			return true
		}
	}
	return false
}
