package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file has the rules for PostgreSQL, and parses its connection URLs. They are not standard URLs
// ("postgres://a:5432,b:5432/shop" names two hosts), so net/url cannot parse them. This parser is
// stricter than the driver: every part is unambiguous, so that the password in it can always be found
// and hidden.

// postgresSchemes are those that the driver accepts, in lower case only.
var postgresSchemes = []string{"postgres://", "postgresql://"}

const postgresExample = `"postgres://user@host/database"`

var postgresRules = originRules{
	driver:    PostgreSQL,
	schemes:   []string{"postgres", "postgresql"},
	needsHost: `no "//" after the scheme; expected ` + postgresExample,
	check:     func(o Origin) error { _, err := parsePostgresURL(o.URL); return err },
	redact: func(raw string) (string, bool) {
		u, err := parsePostgresURL(raw)
		return u.redacted(), err == nil
	},
	defaults: func(c *Config) {
		if c.Origin.Connections == 0 {
			c.Origin.Connections = c.loadsAtOnce()
		}
	},
	restarts: postgresRestarts,
}

// maxDefaultConnections is more than the number of cores of most servers; more
// statements would only wait for one another there.
const maxDefaultConnections = 16

// loadsAtOnce returns how many statements all resources may run concurrently.
func (c *Config) loadsAtOnce() int {
	sum := 0
	for i := range c.Resources {
		sum += c.Resources[i].Load.Concurrency
	}
	return min(sum, maxDefaultConnections)
}

// postgresRestarts reports whether a change concerns a setting with which the connections and the
// stream were started.
func postgresRestarts(running *Config, ch *Change) bool {
	now, err := time.ParseDuration(ch.New)
	switch {
	case err != nil:
		return false
	case resourceOf(ch.Key) != "" && strings.HasSuffix(ch.Key, ".load.timeout"):
		// The longest is statement_timeout of the connections.
		return !slices.ContainsFunc(running.Resources, func(r Resource) bool { return now <= r.Load.Timeout })
	case ch.Key == "freshness" || strings.HasSuffix(ch.Key, ".freshness"):
		// How often the stream verifies triggers follows from the shortest promise at the start: an
		// eighth of it, or this.
		return now < 8*max(100*time.Millisecond, running.Origin.Poll) && now < running.MinFreshness()
	}
	return false
}

// maxURL bounds a connection URL; ten hosts with long names need 3,000 bytes.
const maxURL = 8 << 10

// postgresURL is a connection URL in parts, percent-encoded as written.
type postgresURL struct {
	scheme      string // with "://"
	user        string
	password    string
	hasUser     bool
	hasPassword bool
	hosts       string // "a:5432,b", may be empty
	path        string // "", "/" or "/database"
	query       []parameter
}

type parameter struct{ name, value string }

// parsePostgresURL parses a connection URL. The errors do not repeat any of it: a
// typing mistake can put the password anywhere.
func parsePostgresURL(raw string) (u postgresURL, err error) {
	rest := ""
	for _, scheme := range postgresSchemes {
		if len(raw) >= len(scheme) && strings.EqualFold(raw[:len(scheme)], scheme) {
			u.scheme, rest = raw[:len(scheme)], raw[len(scheme):]
		}
	}
	switch {
	case u.scheme == "":
		return u, errors.New("not a connection URL of PostgreSQL; expected " + postgresExample)
	case u.scheme != strings.ToLower(u.scheme):
		return u, errors.New("the scheme is not in lower case; expected " + postgresExample)
	case len(raw) > maxURL:
		return u, fmt.Errorf("a URL of %d bytes; expected at most %d", len(raw), maxURL)
	case strings.ContainsFunc(rest, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '#' }):
		return u, errors.New(`a space, a control character or "#" in the URL; expected %20, %23 and so on`)
	case !isPercentEncoded(rest):
		return u, errors.New(`a "%" that is not followed by two hexadecimal digits, or %00; expected "%25" for a percent sign`)
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	if strings.Count(authority, "@") > 1 || strings.Contains(tail, "@") {
		return u, errors.New(`an "@" that does not end user and password; expected %40 for the character itself, and %2F and %3F for "/" and "?" in a password`)
	}
	if before, after, found := strings.Cut(authority, "@"); found {
		u.hasUser, authority = true, after
		u.user, u.password, u.hasPassword = strings.Cut(before, ":")
		if strings.Contains(u.password, ":") {
			return u, errors.New(`a ":" in the password; expected %3A`)
		}
	}
	u.hosts = authority
	if err := checkHosts(u.hosts); err != nil {
		return u, err
	}
	query, hasQuery := "", false
	u.path, query, hasQuery = strings.Cut(tail, "?")
	if strings.Count(u.path, "/") > 1 {
		return u, errors.New(`more than one "/" before the parameters; expected one database, with %2F for the sign in its name`)
	}
	if hasQuery {
		u.query, err = parseParameters(query)
	}
	return u, err
}

// isPercentEncoded reports whether each "%" is followed by two hexadecimal digits that are not 00.
func isPercentEncoded(s string) bool {
	decoded, err := url.PathUnescape(s)
	return err == nil && !strings.ContainsRune(decoded, 0)
}

func checkHosts(hosts string) error {
	for host := range strings.SplitSeq(hosts, ",") {
		name, port, hasPort := strings.Cut(host, ":")
		if strings.HasPrefix(host, "[") {
			inside, after, closed := strings.Cut(host[1:], "]")
			if !closed || inside == "" || after != "" && after[0] != ':' {
				return errors.New("an IPv6 address without its brackets; expected [::1] or [::1]:5432")
			}
			name, port, hasPort = inside, strings.TrimPrefix(after, ":"), after != ""
		}
		if strings.ContainsAny(name, "[]") {
			return errors.New("a bracket in the name of a host; expected names, IPv4 addresses, or IPv6 addresses in brackets")
		}
		if n, err := strconv.ParseUint(port, 10, 16); hasPort && port != "" && (err != nil || n == 0) {
			return errors.New(`no port from 1 to 65535 after a host and ":"; expected host:port, several with commas between, ` +
				`and %3A for ":" in user or password`)
		}
	}
	return nil
}

func parseParameters(query string) ([]parameter, error) {
	var all []parameter
	seen := make(map[string]bool)
	for pair := range strings.SplitSeq(query, "&") {
		name, value, found := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(name)
		if !found || name == "" || err != nil || strings.Contains(value, "=") {
			return nil, errors.New(`a parameter that is not name=value; expected name=value with "&" between, and %3D for "=" in a value`)
		}
		if seen[decoded] {
			return nil, errors.New("a parameter appears twice; expected each once")
		}
		seen[decoded] = true
		all = append(all, parameter{decoded, value})
	}
	return all, nil
}

// redacted writes the URL with its passwords hidden.
func (u postgresURL) redacted() string {
	s := u.scheme
	if u.hasUser {
		s += u.user
		if u.hasPassword {
			s += ":" + hidden
		}
		s += "@"
	}
	s += u.hosts + u.path
	separator := "?"
	for _, p := range u.query {
		if isSecretParameter(p.name) {
			p.value = hidden
		}
		s += separator + url.QueryEscape(p.name) + "=" + p.value
		separator = "&"
	}
	return s
}

// isSecretParameter distinguishes passwords from parameters with similar names:
// files, and the one that chooses how a password is sent.
func isSecretParameter(name string) bool {
	return soundsSecret(name) && !slices.Contains([]string{"passfile", "sslkey", "require_auth"}, name)
}
