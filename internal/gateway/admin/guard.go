package admin

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// guard rejects web pages. A page in the machine's browser can send requests to a
// loopback address, and read the answers once its own name resolves to 127.0.0.1
// (DNS rebinding); both leave marks in the headers.
type guard struct {
	hosts map[string]bool
	cross *http.CrossOriginProtection
}

func newGuard(hosts []string) guard {
	g := guard{hosts: map[string]bool{"localhost": true}, cross: http.NewCrossOriginProtection()}
	for _, h := range hosts {
		g.hosts[strings.ToLower(h)] = true
	}
	return g
}

// check returns why a request is refused, or "" if it is not.
func (g guard) check(r *http.Request) (status int, why string) {
	if !g.knows(r.Host) {
		return http.StatusMisdirectedRequest, "the Host header names another machine; expected an IP address, localhost or the configured name"
	}
	// For POST and similar methods, Sec-Fetch-Site and Origin must not be foreign.
	if err := g.cross.Check(r); err != nil {
		return http.StatusForbidden, "the request comes from a web page of another origin"
	}
	if !g.mayGet(r) {
		return http.StatusForbidden, "the request comes from a web page of another origin"
	}
	return 0, ""
}

// mayGet decides about a GET, which has effects here, too: a profile costs CPU. A link that
// a person follows is a navigation; an image, a script or a frame of a page is not. A profile
// can only be reached from its own index and the address bar, because a page can navigate its
// frames repeatedly (Fetch Metadata Request Headers, W3C).
func (g guard) mayGet(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if strings.HasPrefix(r.URL.Path, "/debug/pprof") {
		return site == "" || site == "none" || site == "same-origin"
	}
	destination := r.Header.Get("Sec-Fetch-Dest")
	return site != "cross-site" || r.Header.Get("Sec-Fetch-Mode") == "navigate" && (destination == "" || destination == "document")
}

// knows reports whether the Host header cannot be that of a foreign page.
func (g guard) knows(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return g.hosts[strings.ToLower(host)]
}
