package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/slipstream-go/slipstream/internal/safefile"
)

// Frontends are the addresses that documents are served on.
type Frontends struct {
	HTTP   Listeners // HTTP/JSON. Default 127.0.0.1:8080.
	Redis  Listeners // The Redis protocol. Default: not served.
	Thrift Listeners // Thrift. Default: not served.
}

// A Listener is an address at which connections are accepted.
type Listener struct {
	// Address is host:port; without a host, every interface. Or it is "unix:" and the path
	// of a socket.
	Address string
	TLS     TLS // Makes clients use TLS. The zero value means clear text.
	// Plaintext permits credentials in clear text at an address that other machines can reach.
	Plaintext bool
	// Open permits an address that other machines can reach although anyone may read
	// everything there.
	Open  bool
	Mode  fs.FileMode // Of a unix socket. Default 0600: the user of the gateway only.
	Owner string      // Of a unix socket: "user", "user:group" or ":group". Default: the gateway's user.
}

// TLS has the file names of a certificate and its key, in PEM. The zero value means no TLS.
type TLS struct {
	Cert, Key string
	// Clients is the file of the authorities, one of which must have signed the
	// certificate of each client. Default: clients need none.
	Clients    string
	MinVersion string // "1.2" or "1.3". Default 1.2.
}

// Listeners are the addresses of a frontend.
type Listeners []Listener

// ListenAt returns listeners at addresses, in clear text.
func ListenAt(addresses ...string) Listeners {
	all := make(Listeners, len(addresses))
	for i, a := range addresses {
		all[i].Address = a
	}
	return all
}

// unixPrefix distinguishes the path of a unix socket from host:port.
const unixPrefix = "unix:"

// Unix returns the path of a listener that is a unix socket; ok is false if it is not one.
func (l Listener) Unix() (path string, ok bool) { return strings.CutPrefix(l.Address, unixPrefix) }

// Exposed reports whether other machines can reach the address.
func (l Listener) Exposed() bool {
	_, local := l.Unix()
	return !local && !isLoopback(l.Address)
}

// SocketPath returns the path of a unix socket as [Config.Path] does, or "" for another address.
func (c *Config) SocketPath(l Listener) string {
	path, _ := l.Unix()
	if path == l.Address {
		return ""
	}
	return c.Path(path)
}

// Certificates returns the files of a listener's TLS as [Config.Path] does.
func (c *Config) Certificates(t TLS) TLS {
	t.Cert, t.Key, t.Clients = c.Path(t.Cert), c.Path(t.Key), c.Path(t.Clients)
	return t
}

const (
	maxListeners  = 16  // far more than a gateway needs
	maxSocketPath = 100 // fits into a struct sockaddr_un (unix(7)) with the suffix of a handover
)

func (f *Frontends) fields() []field {
	const expected = "host:port or unix:path, a mapping with an address, or a list of these"
	return []field{
		{Name: "http", Value: f.HTTP.setting(expected, "127.0.0.1:8080 or :8080"), Default: ListenAt("127.0.0.1:8080"),
			Doc: "where HTTP/JSON is served: " + expected},
		{Name: "redis", Value: f.Redis.setting(expected, "127.0.0.1:6379"),
			Doc: "where the Redis protocol is served: " + expected + "; if omitted, it is not served"},
		{Name: "thrift", Value: f.Thrift.setting(expected, "127.0.0.1:9090"),
			Doc: "where documents are served to Thrift clients: " + expected + "; if omitted, they are not"},
	}
}

// fields are those of one listener. The effect of a change is stated for the whole
// listener.
func (l *Listener) fields(example string) []field {
	return append([]field{
		{Name: "address", Value: scalar(&l.Address, listenerAddress(example)), Required: true,
			Doc: "host:port; without a host, every interface; or unix: and the path of a socket, relative to this file"},
		{Name: "tls", Value: object(l.TLS.fields), Doc: "makes clients use TLS; if omitted, they do not"},
		{Name: "plaintext", Value: scalar(&l.Plaintext, truth()),
			Doc: "permits credentials in clear text at an address that other machines can reach"},
		{Name: "open", Value: scalar(&l.Open, truth()),
			Doc: "permits an address that other machines can reach although anyone may read everything"},
	}, socketFields(&l.Address, &l.Mode, &l.Owner, "")...)
}

// socketFields are those of unix sockets only.
func socketFields(address *string, mode *fs.FileMode, owner *string, reload Effect) []field {
	return []field{
		{Name: "mode", Value: scalar(mode, socketMode()), Reload: reload,
			Doc: "the mode of a unix socket, in octal digits; if omitted, 0600: only the user of the gateway",
			Default: func() any {
				if strings.HasPrefix(*address, unixPrefix) {
					return fs.FileMode(0o600)
				}
				return nil
			}},
		{Name: "owner", Value: scalar(owner, label("user, user:group or :group", maxLabel)), Reload: reload,
			Doc: "the owner of a unix socket; if omitted, the user of the gateway"},
	}
}

// fields are those of a certificate. The effect of a change is stated for the mapping.
func (t *TLS) fields() []field {
	return []field{
		{Name: "cert", Value: scalar(&t.Cert, fileName("a file, relative to this one, such as cert.pem")), Required: true,
			Doc: "the file of the certificate, followed by those that lead to its root, in PEM"},
		{Name: "key", Value: scalar(&t.Key, fileName("a file, relative to this one, such as key.pem")), Required: true,
			Doc: "the file of its key, in PEM"},
		{Name: "clients", Value: scalar(&t.Clients, fileName("a file, relative to this one, such as clients.pem")),
			Doc: "the file of the authorities, in PEM, one of which must have signed each client's certificate; " +
				"if omitted, clients need none"},
		{Name: "min_version", Value: scalar(&t.MinVersion, oneOf("1.2", "1.3")),
			Doc: "the minimum version of TLS; if omitted, 1.2"},
	}
}

// listenerAddress is the kind of host:port or unix:path.
func listenerAddress(example string) kind[string] {
	return keyword[string]("host:port, such as "+example+", or unix: and the path of a socket", func(s string) string {
		path, ok := strings.CutPrefix(s, unixPrefix)
		if !ok {
			return badAddress(s)
		}
		if problem := badLabel(path, maxSocketPath); problem != "" {
			return " names a socket whose path" + problem
		}
		return when(strings.HasSuffix(path, "/") || strings.HasPrefix(path, "@"), " is not a path of a socket")
	}, schema{"type": "string", "pattern": "^unix:.*[^/]$|:[0-9]{1,5}$"})
}

// badAddress says what is wrong with host:port.
func badAddress(s string) string {
	host, port, err := net.SplitHostPort(s)
	n, notPort := strconv.ParseUint(port, 10, 16)
	foreign := func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune("/@?#\\", c) }
	return cmp.Or(
		when(err != nil, " is not host:port"),
		when(notPort != nil || strconv.FormatUint(n, 10) != port, " has no port between 0 and 65535"),
		when(strings.ContainsFunc(host, foreign), " has no host before its port"))
}

// isLoopback reports whether other machines cannot reach the address.
func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// socketMode is the kind of permission bits.
func socketMode() kind[fs.FileMode] {
	digits := keyword[string](`octal digits, such as "0660"`, func(s string) string {
		n, err := strconv.ParseUint(s, 8, 32)
		return when(err != nil || n == 0 || n > 0o777, " is not a mode of a socket")
	}, schema{"type": "string", "pattern": "^0*[0-7]{1,3}$"})
	return converted(digits, func(s string) fs.FileMode {
		n, _ := strconv.ParseUint(s, 8, 32) // digits has checked it
		return fs.FileMode(n)
	}, func(m fs.FileMode) string { return fmt.Sprintf("%04o", m) })
}

// setting accepts an address, or a mapping with more settings.
func (l *Listener) setting(example string, fields func(*Listener) []field) setting {
	mapping := object(func() []field { return fields(l) })
	return either(scalar(&l.Address, listenerAddress(example)), mapping, func() bool {
		bare := Listener{Address: l.Address}
		fill(fields(&bare))
		return *l == bare
	}).then(func(p *parser, v value) { p.socket(v, *l) })
}

// setting accepts one listener, or a list of them.
func (all *Listeners) setting(expected, example string) setting {
	fields := func(l *Listener) []field { return l.fields(example) }
	one := func(l *Listener) setting { return l.setting(example, fields) }
	s := mappings((*[]Listener)(all), expected, "listeners", maxListeners, one, fields)
	list := s
	s.read = func(p *parser, v value) {
		if _, ok := v.node.(*ast.SequenceNode); ok {
			list.read(p, v)
			return
		}
		*all = make(Listeners, 1)
		one(&(*all)[0]).read(p, v)
	}
	s.write = func() any {
		if len(*all) == 1 {
			return one(&(*all)[0]).write()
		}
		return list.write()
	}
	s.schema = func() schema {
		return schema{"oneOf": append(one(new(Listener)).schema()["oneOf"].([]any), list.schema())}
	}
	s.set = func(def any) { *all = def.(Listeners) }
	s.fill = func() { fillEach((*[]Listener)(all), fields) }
	return s
}

// socket refuses settings of a unix socket where there is none, and unknown owners.
func (p *parser) socket(v value, l Listener) {
	_, local := l.Unix()
	switch {
	case l.Address == "":
	case !local && (l.Mode != 0 || l.Owner != ""):
		p.failAt(v, "mode and owner apply only to unix sockets; expected address: unix: and a path, or neither of them")
	case l.Owner != "":
		if _, _, err := safefile.LookUpOwner(l.Owner); err != nil {
			p.failAt(within(v, "owner"), "%v; expected a user, user:group or :group of this machine", err)
		}
	}
}

// frontend is what a configuration must know about a frontend to check its listeners.
type frontend struct {
	name      string    // in frontends
	listeners Listeners // with the TLS that they serve with
	open      bool      // anyone may read at all of them
	login     bool      // callers need credentials that no resource requires
}

// frontends returns those that a configuration can have. Listeners for Redis and Thrift that are not
// unix sockets have the TLS of redis.tls and thrift.tls unless they have their own.
func (c *Config) frontends() []frontend {
	return []frontend{
		{name: "http", listeners: c.Frontends.HTTP},
		{name: "redis", listeners: withTLS(c.Frontends.Redis, c.Redis.TLS), open: c.Redis.Open, login: c.RedisLogin()},
		{name: "thrift", listeners: withTLS(c.Frontends.Thrift, c.Thrift.TLS)},
	}
}

// at returns the value of the i-th listener of a frontend.
func (f *frontend) at(root value, i int) value {
	v := within(root, "frontends", f.name)
	if n, ok := v.node.(*ast.SequenceNode); ok && i < len(n.Values) {
		return value{node: n.Values[i], path: fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return v
}

// asksForCertificates reports whether there is a listener whose clients need a certificate.
func (c *Config) asksForCertificates() bool {
	return slices.ContainsFunc(c.frontends(), func(f frontend) bool {
		return slices.ContainsFunc(f.listeners, func(l Listener) bool { return l.TLS.Clients != "" })
	})
}

// exposure refuses listeners that other machines can reach where anyone may read everything,
// or where credentials would cross the network in clear text, unless the file permits it. A
// client's certificate is a rule of access.
func (p *parser) exposure(root value, c *Config) {
	ruled := slices.ContainsFunc(c.Resources, func(r Resource) bool { return r.Access != nil })
	for _, f := range c.frontends() {
		rules := ruled || f.login
		for i, l := range f.listeners {
			switch {
			case !l.Exposed() || l.TLS.Clients != "":
			case !rules && !l.Open && !f.open:
				p.failAt(f.at(root, i), "other machines could reach this address, and anyone may read everything there; "+
					"expected access rules (auth and access of resources, redis.users), a loopback address, or { address: %q, open: true }", l.Address)
			case rules && l.TLS == (TLS{}) && !l.Plaintext:
				p.failAt(f.at(root, i), "other machines could reach this address, and credentials would cross the network in clear text; "+
					"expected tls: { cert: ..., key: ... }, a loopback address, or { address: %q, plaintext: true }", l.Address)
			}
		}
	}
}

// collisions refuses two listeners on one address, one of which may be a default that the
// file does not show.
func (p *parser) collisions(root value, c *Config) {
	type place struct {
		name, address string
		at            value
	}
	var all []place
	for _, f := range c.frontends() {
		for i, l := range f.listeners {
			all = append(all, place{"frontends." + f.name, l.Address, f.at(root, i)})
		}
	}
	all = append(all, place{"admin", c.Admin.Address, within(root, "admin")},
		place{"admin.metrics", c.Admin.Metrics.Address, within(root, "admin", "metrics")})
	for i, b := range all {
		for _, a := range all[:i] {
			if !collide(a.address, b.address) {
				continue
			}
			at := b.at
			if at.path == "" { // b is a default
				at = a.at
			}
			p.failAt(at, "%s is %s and %s is %s, which is the same address; expected two addresses", a.name, a.address, b.name, b.address)
			return
		}
	}
}

// collide reports whether one process cannot listen on both addresses. Port 0 is a new port each
// time, and a host that stands for every interface collides with all others.
func collide(a, b string) bool {
	if strings.HasPrefix(a, unixPrefix) || strings.HasPrefix(b, unixPrefix) {
		return a == b
	}
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	every := func(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
	return every(hostA) || every(hostB) || strings.EqualFold(hostA, hostB)
}
