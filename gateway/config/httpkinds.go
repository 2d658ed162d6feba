package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// number is the kind of a decimal fraction.
func number(expected string, within func(float64) bool, s schema) kind[float64] {
	return kind[float64]{
		expected: expected,
		parse: func(t text) (float64, string) {
			n, err := strconv.ParseFloat(t.s, 64)
			// Only digits: ParseFloat also knows hexadecimal, inf and nan.
			if !t.number && !t.substituted || strings.Trim(t.s, "0123456789.") != "" || err != nil || !within(n) {
				return 0, unfit
			}
			return n, ""
		},
		schema: s,
	}
}

// perSecond is the kind of a rate.
func perSecond() kind[float64] {
	return number(fmt.Sprintf("a number above 0 and at most %d", maxRate),
		func(n float64) bool { return n > 0 && n <= maxRate },
		schema{"type": "number", "exclusiveMinimum": 0, "maximum": maxRate})
}

// fraction is the kind of a part of the whole whose 0 means none.
func fraction() kind[float64] {
	return orOff(number("a number from 0 to 1, such as 0.01 (0: none)",
		func(n float64) bool { return n >= 0 && n <= 1 }, schema{"type": "number", "minimum": 0, "maximum": 1}))
}

// trustUnix is the word for whoever connects over a unix socket.
const trustUnix = "unix"

// proxy is the kind of an address, a network of them, or the word unix.
func proxy() kind[string] {
	return keyword[string]("an address or a network, such as 10.1.2.3, 10.0.0.0/8 or fd00::/8, or the word unix",
		func(s string) string { _, problem := parseProxy(s); return problem },
		schema{"type": "string", "pattern": "^(unix|[0-9a-fA-F:.]+(/[0-9]{1,3})?)$"}).unlike(func(a, b string) bool {
		first, _ := parseProxy(a)
		second, _ := parseProxy(b)
		return first == second
	})
}

func formatProxy(n netip.Prefix) string {
	if n.IsSingleIP() {
		return n.Addr().String()
	}
	return n.String()
}

// parseProxy returns the zero network for the word unix.
func parseProxy(s string) (n netip.Prefix, problem string) {
	if s == trustUnix {
		return n, ""
	}
	n, err := netip.ParsePrefix(s) // refuses zones
	if !strings.Contains(s, "/") {
		var a netip.Addr
		if a, err = netip.ParseAddr(s); err == nil {
			n = netip.PrefixFrom(a, a.BitLen())
		}
	}
	switch {
	case err != nil:
		return n, " is neither an address nor a network"
	case strings.Contains(s, "%"):
		return n, " has a zone, which the addresses of clients do not have"
	case n.Addr().Is4In6():
		return n, " is IPv4 written as IPv6"
	case n != n.Masked():
		return n, " has bits set beyond the length of its network"
	}
	return n, ""
}

// maxHostName is the longest name of DNS.
const maxHostName = 253

// hostName is the kind of a name in Host, without its port.
func hostName() kind[string] {
	return keyword[string](`a name without a port, such as docs.example.com, or "*"`, func(s string) string {
		_, notAddress := netip.ParseAddr(s)
		switch {
		case s == AnyHost || notAddress == nil:
			return ""
		case s == "":
			return " is no name"
		case len(s) > maxHostName:
			return fmt.Sprintf(" is longer than %d bytes", maxHostName)
		case strings.Contains(s, "*"):
			return ` has a "*" inside, and names are compared whole`
		case strings.Contains(s, ":"):
			return " has a port or a scheme, and only names are compared"
		case strings.Trim(s, nameBytes) != "":
			return " is not a name that clients would send (names that are not ASCII are sent as xn--...)"
		}
		return ""
	}, schema{"type": "string", "minLength": 1, "maxLength": maxHostName, "pattern": `^(\*|[0-9A-Za-z_.-]+|[0-9a-fA-F:.]+)$`}).unlike(strings.EqualFold)
}

// nameBytes are those of names in DNS.
const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// maxOrigin is a scheme, the longest name of DNS and a port.
const maxOrigin = 300

// webOrigin is the kind of an origin of web pages, or "*".
func webOrigin() kind[string] {
	return keyword[string](`"*" or scheme://host[:port] as browsers send it, such as https://app.example`, badOrigin,
		schema{"type": "string", "maxLength": maxOrigin, "pattern": `^(\*|[a-z][a-z0-9+.-]*://[^/?#@]+)$`})
}

// badOrigin compares with what browsers send (RFC 6454, section 6.2): origins that differ from it
// would match no page.
func badOrigin(s string) string {
	switch {
	case s == "*":
		return ""
	case len(s) > maxOrigin:
		return fmt.Sprintf(" is longer than %d bytes", maxOrigin)
	case s == "null":
		return " is the origin of all sandboxed pages and local files, regardless of their author"
	case strings.Contains(s, "*"):
		return ` has a "*" inside, and origins are compared whole`
	case !strings.Contains(s, "://"):
		return " has no scheme"
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || s != strings.ToLower(u.Scheme+"://"+u.Host) {
		return " is not only a scheme, a host and a port in lower case"
	}
	host, port := u.Hostname(), u.Port()
	if strings.Contains(host, ":") {
		if a, err := netip.ParseAddr(host); err != nil || a.String() != host || a.Zone() != "" {
			return " has no IPv6 address in its shortest form"
		}
	} else if strings.Trim(host, nameBytes) != "" {
		return " has no host that browsers would send (names that are not ASCII are sent as xn--...)"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case port == "" && !strings.HasSuffix(s, ":"):
		return ""
	case err != nil || n == 0 || strconv.FormatUint(n, 10) != port:
		return " has no port from 1 to 65535"
	case u.Scheme == "https" && n == 443 || u.Scheme == "http" && n == 80:
		return " has the default port of its scheme, which browsers leave out"
	}
	return ""
}

// headerName is the kind of the name of an HTTP field.
func headerName() kind[string] {
	return keyword[string]("the name of a request field, such as X-Custom", func(s string) string {
		switch {
		case s == "*":
			return " is not a name, and browsers do not take it for all of them"
		case len(s) > 128:
			return " is longer than 128 bytes"
		case !httpToken.MatchString(s):
			return " is not the name of a field"
		}
		return ""
	}, schema{"type": "string", "minLength": 1, "maxLength": 128, "pattern": httpToken.String()}).unlike(strings.EqualFold)
}

// collector is the kind of the URL of a collector of spans.
func collector() kind[string] {
	return keyword[string]("http://host:port or https://host:port, such as http://127.0.0.1:4318", badEndpoint, urlSchema())
}

func urlSchema() schema {
	return schema{"type": "string", "pattern": "^https?://[^?#]+$", "maxLength": maxURL}
}

// badEndpoint is stricter than the standard: there is no place for a password. Somebody may write
// one nevertheless, so that no problem repeats any of the URL.
func badEndpoint(s string) string {
	u, err := url.Parse(s)
	switch {
	case len(s) > maxURL:
		return fmt.Sprintf("a URL of %d bytes, which is more than %d", len(s), maxURL)
	case err != nil:
		return "not a URL"
	case !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://"):
		return "not a URL of the schemes http and https, in lower case"
	case u.Hostname() == "":
		return "no host in the URL"
	case strings.ContainsAny(s, "?#"):
		return `"?" or "#" in the URL, which has no parameters here`
	case u.User != nil || strings.Contains(u.EscapedPath(), "@"):
		return `an "@" in the URL, which takes no credentials: put them into OTEL_EXPORTER_OTLP_HEADERS`
	}
	if _, port, err := net.SplitHostPort(u.Host); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "no port from 1 to 65535 in the URL"
		}
	}
	return ""
}

// secureURL is the kind of the URL of an issuer. It has no place for a password or a
// parameter, so that logs may show it.
func secureURL() kind[string] {
	return keyword[string]("https://host/path; http:// for a loopback address alone", badSecureURL, urlSchema())
}

func badSecureURL(s string) string {
	if strings.Contains(s, "@") {
		return `an "@" in the URL, which takes no name or password`
	}
	if problem := badEndpoint(s); problem != "" {
		return problem
	}
	u, _ := url.Parse(s) // badEndpoint has
	a, err := netip.ParseAddr(u.Hostname())
	if u.Scheme == "http" && u.Hostname() != "localhost" && (err != nil || !a.IsLoopback()) {
		return "plain http, so that whoever is on the way could sign tokens"
	}
	return ""
}

// keySet is the kind of the name of a file or of a URL.
func keySet() kind[string] {
	return keyword[string]("a file, relative to this one, such as jwks.json, or https://host/path; http:// for a loopback address alone", func(s string) string {
		if isURL(s) {
			return badSecureURL(s)
		}
		return badFileName(s)
	}, schema{"type": "string", "minLength": 1, "maxLength": maxPath})
}

// redactEndpoint hides a URL that is none that the gateway takes: it may hold a password.
func redactEndpoint(raw string) string {
	if raw != "" && badEndpoint(raw) != "" {
		return hidden
	}
	return raw
}
