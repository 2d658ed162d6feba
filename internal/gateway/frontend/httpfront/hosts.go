package httpfront

import (
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
)

// Hosts says where the Host of requests is compared with names, and which names are accepted
// there in addition to localhost, names that end in .localhost, and IP addresses. The zero value
// compares nothing.
//
// A web page can make its own name resolve to the address of a gateway that its visitor can reach
// (DNS rebinding). Then the browser treats the gateway's documents as the page's own; only the
// page's name in Host reveals it. Addresses and localhost cannot resolve to another machine, so
// they are accepted at every listener. So is a request without Host, which no browser sends.
type Hosts struct {
	// Names are compared without the port, in upper or lower case.
	Names []string
	// Loopback and Elsewhere turn the comparison on at listeners that are bound to a loopback
	// address, and at all others.
	Loopback, Elsewhere bool
}

// maxRememberedHost bounds the Host that a connection keeps, in bytes. Longer ones are checked with
// each request.
const maxRememberedHost = 64

// maxHost is the longest name of DNS.
const maxHost = 253

// hostRule compares Host with the names.
type hostRule struct {
	// Immutable after newHostRule.
	names map[string]struct{}

	// last was accepted most recently, so that most connections share it. Atomic: written
	// and read by sessions; nil if none was.
	last atomic.Pointer[knownHost]
}

// knownHost is a Host that a rule has accepted. It is immutable.
type knownHost struct {
	rule *hostRule
	text string
}

func newHostRule(names []string) *hostRule {
	r := &hostRule{names: make(map[string]struct{})}
	for _, name := range names {
		r.names[strings.ToLower(strings.TrimSuffix(name, "."))] = struct{}{}
	}
	return r
}

// hostRules returns the rules of listeners at loopback addresses and of the others, or nil for
// none.
func hostRules(h Hosts) (loopback, elsewhere *hostRule) {
	rule := newHostRule(h.Names)
	if h.Loopback {
		loopback = rule
	}
	if h.Elsewhere {
		elsewhere = rule
	}
	return loopback, elsewhere
}

// hostRule returns the rule for the Host of requests at a listener, or nil if there is
// none.
func (s *Service) hostRule(atLoopback bool) *hostRule {
	if atLoopback {
		return s.hostsAtLoopback
	}
	return s.hostsElsewhere
}

// remember returns what a connection may keep of a Host that was accepted, or nil if it is too long.
func (r *hostRule) remember(host string) *knownHost {
	if len(host) > maxRememberedHost {
		return nil
	}
	if last := r.last.Load(); last != nil && last.text == host {
		return last
	}
	known := &knownHost{rule: r, text: strings.Clone(host)}
	r.last.Store(known)
	return known
}

// accepts reports whether a Host, with or without port, cannot be that of a foreign page. It does
// not allocate.
func (r *hostRule) accepts(host string) bool {
	if host == "" {
		return true
	}
	if host[0] == '[' {
		end := strings.IndexByte(host, ']')
		if end < 0 || !isHostPort(host[end+1:]) {
			return false
		}
		addr, err := netip.ParseAddr(host[1:end])
		return err == nil && addr.Is6()
	}
	name := host
	if colon := strings.IndexByte(host, ':'); colon >= 0 {
		if name = host[:colon]; !isHostPort(host[colon:]) {
			return false
		}
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > maxHost {
		return false
	}
	if c := name[len(name)-1]; '0' <= c && c <= '9' {
		if addr, err := netip.ParseAddr(name); err == nil && addr.Is4() {
			return true
		}
	}
	var buf [maxHost]byte
	lower := buf[:copy(buf[:], name)]
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	if string(lower) == "localhost" || strings.HasSuffix(text(lower), ".localhost") {
		return true
	}
	_, ok := r.names[string(lower)]
	return ok
}

// isHostPort reports whether s is what may follow a name in Host: nothing, or a colon and digits,
// of which there may be none (RFC 3986, section 3.2.3).
func isHostPort(s string) bool {
	if s == "" {
		return true
	}
	return s[0] == ':' && strings.Trim(s[1:], "0123456789") == ""
}

// misdirected answers a request whose Host the listener does not accept. This comes before the limit
// of the client's address: otherwise a page could use up the limit of its visitor.
func (s *Service) misdirected(req *Request, rsp *Response) {
	s.figures.misdirected.Add(1)
	if leftOut, ok := s.strangers.Take(req.Start); ok {
		host := req.WrongHost
		if len(host) > maxTargetText {
			host = host[:maxTargetText] + "..."
		}
		s.log.Warn("a request is refused because of its Host, which a web page of another site may have sent (DNS rebinding); "+
			"if the name is yours, add it to http.hosts, and if a proxy on this machine passes it on, the address of the proxy to http.trusted_proxies",
			"host", strings.Clone(host), "client", req.Client.String(), "left_out", leftOut)
	}
	s.problem(rsp, http.StatusMisdirectedRequest, "the Host of the request is neither an IP address nor localhost nor one of http.hosts; "+
		"if a proxy passes Host on, list it in http.trusted_proxies")
}
