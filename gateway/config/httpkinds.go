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
			// Only digits: ParseFloat also knows hexadecimal, inf and nan.
			if !t.number && !t.substituted || strings.Trim(t.s, "0123456789.") != "" {
				return 0, t.String()
			}
			n, err := strconv.ParseFloat(t.s, 64)
			if err != nil || !within(n) {
				return 0, t.String()
			}
			return n, ""
		},
		format: func(v float64) any { return v },
		schema: s,
	}
}

// perSecond is the kind of a rate.
func perSecond() kind[float64] {
	return number(fmt.Sprintf("a number above 0 and at most %d", maxRate),
		func(n float64) bool { return n > 0 && n <= maxRate },
		schema{"type": "number", "exclusiveMinimum": 0, "maximum": maxRate})
}

// fraction is the kind of a part of the whole whose 0 means none, which Go's side
// of the configuration writes as a negative number.
func fraction() kind[float64] {
	k := number("a number from 0 to 1, such as 0.01 (0: none)",
		func(n float64) bool { return n >= 0 && n <= 1 }, schema{"type": "number", "minimum": 0, "maximum": 1})
	within := k.parse
	k.parse = func(t text) (float64, string) {
		n, problem := within(t)
		if problem == "" && n == 0 {
			n = -1
		}
		return n, problem
	}
	k.format = func(v float64) any {
		if v < 0 {
			return 0
		}
		return v
	}
	return k
}

// hint suggests the right spelling of a text, unless the text came from the
// environment: then it is not shown.
func (t text) hint(better string) string {
	if t.substituted {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", better)
}

// trustee is whom the gateway believes: a network, or whoever connects over a unix socket.
type trustee struct {
	network netip.Prefix
	unix    bool
}

// proxy is the kind of an address, a network of them, or the word unix.
func proxy() kind[trustee] {
	const unix = "unix"
	return kind[trustee]{
		expected: "an address or a network, such as 10.1.2.3, 10.0.0.0/8 or fd00::/8, or the word unix",
		parse: func(t text) (trustee, string) {
			if t.s == unix {
				return trustee{unix: true}, ""
			}
			n, problem := parseProxy(t)
			return trustee{network: n}, problem
		},
		format: func(one trustee) any {
			if one.unix {
				return unix
			}
			return formatProxy(one.network)
		},
		schema: schema{"type": "string", "pattern": "^(unix|[0-9a-fA-F:.]+(/[0-9]{1,3})?)$"},
	}
}

func formatProxy(n netip.Prefix) string {
	if n.IsSingleIP() {
		return n.Addr().String()
	}
	return n.String()
}

func parseProxy(t text) (netip.Prefix, string) {
	var none netip.Prefix
	if (t.number || t.truth) && !t.substituted {
		return none, t.String() + " (quotes would make it a text)"
	}
	n, err := netip.ParsePrefix(t.s) // refuses zones
	if !strings.Contains(t.s, "/") {
		var a netip.Addr
		if a, err = netip.ParseAddr(t.s); err == nil {
			n = netip.PrefixFrom(a, a.BitLen())
		}
	}
	switch {
	case err != nil:
		return none, t.String() + " is neither an address nor a network"
	case strings.Contains(t.s, "%"):
		return none, t.String() + " has a zone, which the addresses of clients do not have"
	case n.Addr().Is4In6():
		better := ""
		if n.Bits() >= 96 {
			better = t.hint(formatProxy(netip.PrefixFrom(n.Addr().Unmap(), n.Bits()-96).Masked()))
		}
		return none, t.String() + " is IPv4 written as IPv6" + better
	case n != n.Masked():
		return none, t.String() + " has bits set beyond the length of its network" + t.hint(n.Masked().String())
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
	}, schema{"type": "string", "minLength": 1, "maxLength": maxHostName, "pattern": `^(\*|[0-9A-Za-z_.-]+|[0-9a-fA-F:.]+)$`})
}

// nameBytes are those of names in DNS.
const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// maxOrigin is a scheme, the longest name of DNS and a port.
const maxOrigin = 300

// webOrigin is the kind of an origin of web pages, or "*".
func webOrigin() kind[string] {
	return kind[string]{
		expected: `"*" or scheme://host[:port], such as https://app.example`,
		parse: func(t text) (string, string) {
			if (t.number || t.truth) && !t.substituted {
				return "", t.String() + " (quotes would make it a text)"
			}
			if t.s == "*" {
				return t.s, ""
			}
			if problem := badOrigin(t); problem != "" {
				return "", t.String() + problem
			}
			return t.s, ""
		},
		format: func(s string) any { return s },
		schema: schema{"type": "string", "maxLength": maxOrigin, "pattern": `^(\*|[a-z][a-z0-9+.-]*://[^/?#@]+)$`},
	}
}

func badOrigin(t text) string {
	switch {
	case t.s == "":
		return " is empty"
	case len(t.s) > maxOrigin:
		return fmt.Sprintf(" is longer than %d bytes", maxOrigin)
	case t.s == "null":
		return " is the origin of all sandboxed pages and local files, regardless of their author"
	case strings.Contains(t.s, "*"):
		return ` has a "*" inside, and origins are compared whole`
	case !strings.Contains(t.s, "://"):
		if canonical, ok := canonicalOrigin("https://" + t.s); ok {
			return " has no scheme" + t.hint(canonical)
		}
		return " has no scheme"
	}
	canonical, ok := canonicalOrigin(t.s)
	switch {
	case !ok:
		return " has no host and port that browsers would send (names that are not ASCII are sent as xn--...)"
	case canonical != t.s:
		return " is not as browsers send it, in lower case, without a default port and with nothing after the host" + t.hint(canonical)
	}
	return ""
}

// canonicalOrigin returns the origin of a URL as browsers write it (RFC 6454,
// section 6.2).
func canonicalOrigin(s string) (string, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return "", false
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		a, err := netip.ParseAddr(host)
		if err != nil || a.Zone() != "" {
			return "", false
		}
		host = "[" + a.String() + "]"
	} else if host == "" || strings.ContainsFunc(host, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
	}) {
		return "", false
	}
	port := u.Port()
	if port == "" {
		return scheme + "://" + host, true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", false
	}
	if scheme == "https" && n == 443 || scheme == "http" && n == 80 {
		return scheme + "://" + host, true
	}
	return fmt.Sprintf("%s://%s:%d", scheme, host, n), true
}

// fieldName is the kind of the name of an HTTP field.
func fieldName() kind[string] {
	return keyword[string]("the name of a request field, such as X-Custom", func(s string) string {
		switch {
		case s == "*":
			return " is not a name, and browsers do not take it for all of them"
		case len(s) > 128:
			return " is longer than 128 bytes"
		case !isToken(s):
			return " is not the name of a field"
		}
		return ""
	}, schema{"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"})
}

// collector is the kind of the URL of a collector of spans. Somebody may write a
// password into it, so that no problem repeats any of it.
func collector() kind[string] {
	return kind[string]{
		expected: "http://host:port or https://host:port, such as http://127.0.0.1:4318",
		parse: func(t text) (string, string) {
			if (t.number || t.truth) && !t.substituted {
				return "", t.String() + " (quotes would make it a text)"
			}
			if _, problem := parseEndpoint(t.s); problem != "" {
				return "", problem
			}
			return t.s, ""
		},
		format: func(s string) any { return s },
		schema: schema{"type": "string", "pattern": "^https?://[^?#]+$", "maxLength": maxURL},
	}
}

// parseEndpoint is stricter than the standard: there is no place for a password.
func parseEndpoint(s string) (*url.URL, string) {
	u, err := url.Parse(s)
	switch {
	case len(s) > maxURL:
		return nil, fmt.Sprintf("a URL of %d bytes, which is more than %d", len(s), maxURL)
	case err != nil:
		return nil, "not a URL"
	case !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://"):
		return nil, "not a URL of the schemes http and https, in lower case"
	case u.Hostname() == "":
		return nil, "no host in the URL"
	case strings.ContainsAny(s, "?#"):
		return nil, `"?" or "#" in the URL, which has no parameters here`
	case u.User != nil || strings.Contains(u.EscapedPath(), "@"):
		return nil, `an "@" in the URL, which takes no credentials: put them into OTEL_EXPORTER_OTLP_HEADERS`
	}
	if _, port, err := net.SplitHostPort(u.Host); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, "no port from 1 to 65535 in the URL"
		}
	}
	return u, ""
}

// redactEndpoint hides a URL that is none that the gateway takes: it may hold a
// password.
func redactEndpoint(raw string) string {
	if raw == "" {
		return ""
	}
	if _, problem := parseEndpoint(raw); problem != "" {
		return hidden
	}
	return raw
}
