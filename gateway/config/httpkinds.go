package config

import (
	"cmp"
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

// fraction is the kind of a fraction whose 0 means none.
func fraction() kind[float64] {
	return orOff(number("a number from 0 to 1, such as 0.01 (0 means none)",
		func(n float64) bool { return n >= 0 && n <= 1 }, schema{"type": "number", "minimum": 0, "maximum": 1}))
}

// trustUnix is the word for all clients of unix sockets.
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
		if _, err := netip.ParseAddr(s); s == AnyHost || err == nil {
			return ""
		}
		return cmp.Or(
			when(s == "", " is not a name"),
			tooLong(s, maxHostName),
			when(strings.Contains(s, "*"), ` has a "*" inside, and names must match exactly`),
			when(strings.Contains(s, ":"), " has a port or a scheme, and only names are compared"),
			when(strings.Trim(s, nameBytes) != "",
				" is not a name that clients would send (names that are not ASCII are sent as xn--...)"))
	}, schema{"type": "string", "minLength": 1, "maxLength": maxHostName,
		"pattern": `^(\*|[0-9A-Za-z_.-]+|[0-9a-fA-F:.]+)$`}).unlike(strings.EqualFold)
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
	if s == "*" {
		return ""
	}
	problem := cmp.Or(
		tooLong(s, maxOrigin),
		when(s == "null", " is the origin of all sandboxed pages and local files, regardless of their author"),
		when(strings.Contains(s, "*"), ` has a "*" inside, and origins must match exactly`),
		when(!strings.Contains(s, "://"), " has no scheme"))
	if problem != "" {
		return problem
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || s != strings.ToLower(u.Scheme+"://"+u.Host) {
		return " is not only a scheme, a host and a port in lower case"
	}
	host, port := u.Hostname(), u.Port()
	isIPv6, hasPort := strings.Contains(host, ":"), port != "" || strings.HasSuffix(s, ":")
	a, err := netip.ParseAddr(host)
	n, notPort := strconv.ParseUint(port, 10, 16)
	return cmp.Or(
		when(isIPv6 && (err != nil || a.String() != host || a.Zone() != ""), " has an IPv6 address that is not in its shortest form"),
		when(!isIPv6 && strings.Trim(host, nameBytes) != "",
			" has no host that browsers would send (names that are not ASCII are sent as xn--...)"),
		when(hasPort && (notPort != nil || n == 0 || strconv.FormatUint(n, 10) != port), " has no port from 1 to 65535"),
		when(u.Scheme == "https" && n == 443 || u.Scheme == "http" && n == 80,
			" has the default port of its scheme, which browsers leave out"))
}

// headerName is the kind of the name of an HTTP field.
func headerName() kind[string] {
	const limit = 128
	return keyword[string]("the name of a request field, such as X-Custom", func(s string) string {
		return cmp.Or(
			when(s == "*", " is not a name, and browsers do not treat it as all of them"),
			tooLong(s, limit),
			when(!httpToken.MatchString(s), " is not the name of a field"))
	}, schema{"type": "string", "minLength": 1, "maxLength": limit, "pattern": httpToken.String()}).unlike(strings.EqualFold)
}

// collector is the kind of the URL of a collector of spans.
func collector() kind[string] {
	return keyword[string]("http://host:port or https://host:port, such as http://127.0.0.1:4318", badEndpoint, urlSchema())
}

func urlSchema() schema {
	return schema{"type": "string", "pattern": "^https?://[^?#]+$", "maxLength": maxURL}
}

// badEndpoint is stricter than the standard: a password is not allowed. Someone may still write one,
// so no problem repeats any part of the URL.
func badEndpoint(s string) string {
	u, err := url.Parse(s)
	if len(s) > maxURL {
		return fmt.Sprintf("a URL of %d bytes, which is more than %d", len(s), maxURL)
	}
	if err != nil {
		return "not a URL"
	}
	_, port, noPort := net.SplitHostPort(u.Host)
	n, notPort := strconv.ParseUint(port, 10, 16)
	return cmp.Or(
		when(!strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://"),
			"not a URL of the schemes http and https, in lower case"),
		when(u.Hostname() == "", "no host in the URL"),
		when(strings.ContainsAny(s, "?#"), `"?" or "#" in the URL, which has no parameters here`),
		when(u.User != nil || strings.Contains(u.EscapedPath(), "@"),
			`an "@" in the URL, which takes no credentials: put them into OTEL_EXPORTER_OTLP_HEADERS`),
		when(noPort == nil && (notPort != nil || n == 0), "no port from 1 to 65535 in the URL"))
}

// secureURL is the kind of the URL of an issuer. It has no place for a password or a
// parameter, so that logs may show it.
func secureURL() kind[string] {
	return keyword[string]("https://host/path; http:// only for a loopback address", badSecureURL, urlSchema())
}

func badSecureURL(s string) string {
	if strings.Contains(s, "@") {
		return `an "@" in the URL, which takes no name or password`
	}
	if problem := badEndpoint(s); problem != "" {
		return problem
	}
	u, _ := url.Parse(s) // badEndpoint has parsed it before
	a, err := netip.ParseAddr(u.Hostname())
	if u.Scheme == "http" && u.Hostname() != "localhost" && (err != nil || !a.IsLoopback()) {
		return "plain http, with which anyone on the network path could sign tokens"
	}
	return ""
}

// keySet is the kind of the name of a file or of a URL.
func keySet() kind[string] {
	const expected = "a file, relative to this one, such as jwks.json, " +
		"or https://host/path; http:// only for a loopback address"
	return keyword[string](expected, func(s string) string {
		if isURL(s) {
			return badSecureURL(s)
		}
		return badFileName(s)
	}, schema{"type": "string", "minLength": 1, "maxLength": maxPath})
}

// redactEndpoint hides a URL that the gateway does not accept: it may hold a password.
func redactEndpoint(raw string) string {
	if raw != "" && badEndpoint(raw) != "" {
		return hidden
	}
	return raw
}
