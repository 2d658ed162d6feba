package config

import (
	"fmt"
	"io/fs"
	"net"
	"os/user"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// This file reads where a gateway listens, and refuses what would show documents or
// credentials to a network by accident.

// A Listener is an address that connections are accepted at.
type Listener struct {
	// Address is host:port; without a host, every interface. Or it is "unix:" and the path
	// of a socket, relative to the folder of the configuration file.
	Address string
	// TLS makes clients speak TLS. The zero value means clear text.
	TLS TLS
	// Plaintext permits credentials in clear text at an address that other machines can
	// reach.
	Plaintext bool
	// Open permits an address that other machines can reach although everybody may read
	// everything there.
	Open bool
	// Mode is that of a unix socket. Default 0600: the user of the gateway only.
	Mode fs.FileMode
	// Owner is the owner of a unix socket: "user", "user:group" or ":group". Default: the
	// user of the gateway.
	Owner string
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

// unixPrefix tells the path of a unix socket from host:port.
const unixPrefix = "unix:"

// Unix returns the path of a listener that is a unix socket; ok is false if it is none.
func (l Listener) Unix() (path string, ok bool) { return strings.CutPrefix(l.Address, unixPrefix) }

// Exposed reports whether other machines can reach the address.
func (l Listener) Exposed() bool {
	_, local := l.Unix()
	return !local && !isLoopback(l.Address)
}

func (l Listener) withDefaults() Listener {
	if _, ok := l.Unix(); ok {
		orElse(&l.Mode, 0o600)
	}
	return l
}

func (all Listeners) withDefaults() Listeners {
	full := make(Listeners, len(all))
	for i, l := range all {
		full[i] = l.withDefaults()
	}
	return full
}

// SocketPath returns the path of a unix socket, made absolute by the folder of the
// configuration file if that is known, "" for another address.
func (c *Config) SocketPath(l Listener) string {
	path, ok := l.Unix()
	if !ok {
		return ""
	}
	return c.path(path)
}

// Certificates returns the files of a listener's TLS as absolute paths: its certificate, its
// key, and the authorities of clients' certificates; "" for what it has not.
func (c *Config) Certificates(t TLS) TLS {
	t.Cert, t.Key, t.Clients = c.path(t.Cert), c.path(t.Key), c.path(t.Clients)
	return t
}

// maxListeners is far more than a gateway needs.
const maxListeners = 16

// maxSocketPath is what fits into a struct sockaddr_un (unix(7)), with room for the suffix of
// a hand-over.
const maxSocketPath = 100

const expectedListener = "host:port or unix:path, a mapping with an address, or a list of these"

// listenerAddress is the kind of host:port or unix:path.
func listenerAddress(example string) kind[string] {
	k := address("host:port, such as " + example + ", or unix: and the path of a socket")
	tcp := k.parse
	k.parse = func(t text) (string, string) {
		path, ok := strings.CutPrefix(t.s, unixPrefix)
		if !ok {
			return tcp(t)
		}
		if problem := badLabel(path, maxSocketPath); problem != "" {
			return "", t.String() + " names a socket whose path" + problem
		}
		if strings.HasSuffix(path, "/") || strings.HasPrefix(path, "@") {
			return "", t.String() + " is no path of a socket"
		}
		return t.s, ""
	}
	k.schema = schema{"type": "string", "pattern": "^unix:.*[^/]$|:[0-9]{1,5}$"}
	return k
}

func listenerFields(example string) []field[Listener] {
	return []field[Listener]{
		required(written(one("address", "host:port; without a host, every interface; or unix: and the path of a socket, relative to this file",
			listenerAddress(example), func(l *Listener) *string { return &l.Address }))),
		sparse(object("tls", "makes clients speak TLS; left out: they do not", tlsFields,
			func(l *Listener) *TLS { return &l.TLS })),
		written(one("plaintext", "permits credentials in clear text at an address that other machines can reach",
			truth(), func(l *Listener) *bool { return &l.Plaintext })),
		written(one("open", "permits an address that other machines can reach although everybody may read everything",
			truth(), func(l *Listener) *bool { return &l.Open })),
		written(one("mode", "the mode of a unix socket, in octal digits; left out: 0600, the user of the gateway only",
			socketMode(), func(l *Listener) *fs.FileMode { return &l.Mode })),
		written(one("owner", "the owner of a unix socket; left out: the user of the gateway",
			label("user, user:group or :group", maxLabel), func(l *Listener) *string { return &l.Owner })),
	}
}

// socketMode is the kind of permission bits.
func socketMode() kind[fs.FileMode] {
	digits := keyword[string](`octal digits, such as "0660"`, func(s string) string {
		if n, err := strconv.ParseUint(s, 8, 32); err != nil || n == 0 || n > 0o777 {
			return " is no mode of a socket"
		}
		return ""
	}, schema{"type": "string", "pattern": "^0*[0-7]{1,3}$"})
	return kind[fs.FileMode]{
		expected: digits.expected,
		parse: func(t text) (fs.FileMode, string) {
			s, problem := digits.parse(t)
			n, _ := strconv.ParseUint(s, 8, 32)
			return fs.FileMode(n), problem
		},
		format: func(m fs.FileMode) any { return fmt.Sprintf("%04o", m) },
		schema: digits.schema,
	}
}

// listenersField takes one listener, as an address or a mapping, or a list of them.
func listenersField(name, doc, example string, at func(*Frontends) *Listeners) field[Frontends] {
	fields := func() []field[Listener] { return listenerFields(example) }
	k := listenerAddress(example)
	return field[Frontends]{
		name: name, doc: doc,
		read: func(p *parser, v value, into *Frontends) {
			items := []value{v}
			if n, ok := v.node.(*ast.SequenceNode); ok {
				if len(n.Values) == 0 || len(n.Values) > maxListeners {
					p.failAt(v, "a list of %d; expected between 1 and %d listeners", len(n.Values), maxListeners)
					return
				}
				items, _ = p.items(v, expectedListener)
			}
			var all Listeners
			for _, item := range items {
				all = append(all, readListener(p, item, k, fields()))
			}
			*at(into) = all
		},
		write: func(from *Frontends) any {
			all := *at(from)
			if len(all) == 1 {
				return writeListener(fields(), &all[0])
			}
			if len(all) == 0 {
				return nil
			}
			var list []members
			for i := range all {
				full := all[i].withDefaults()
				list = append(list, writeObject(fields(), &full))
			}
			return list
		},
		schema: func() schema {
			one := []any{k.schema, objectSchema(fields())}
			return schema{"oneOf": append(one, schema{"type": "array", "items": schema{"oneOf": one}, "minItems": 1, "maxItems": maxListeners})}
		},
	}
}

func readListener(p *parser, v value, k kind[string], fields []field[Listener]) (l Listener) {
	if _, ok := entries(v.node); !ok {
		readScalar(p, v, k, &l.Address)
		return l
	}
	readObject(p, v, fields, &l)
	p.socket(v, l)
	return l
}

// socket refuses what is said of a unix socket where there is none, and owners who are not known.
func (p *parser) socket(v value, l Listener) {
	_, local := l.Unix()
	switch {
	case l.Address == "":
	case !local && (l.Mode != 0 || l.Owner != ""):
		p.failAt(v, "mode and owner are of unix sockets; expected address: unix: and a path, or neither")
	case l.Owner != "":
		if _, _, err := LookUpOwner(l.Owner); err != nil {
			p.failAt(within(v, "owner"), "%v; expected a user, user:group or :group of this machine", err)
		}
	}
}

// writeListener writes an address alone if there is nothing else to say.
func writeListener(fields []field[Listener], l *Listener) any {
	full := l.withDefaults()
	if full == (Listener{Address: l.Address}.withDefaults()) {
		return l.Address
	}
	return writeObject(fields, &full)
}

// LookUpOwner returns the numbers of "user", "user:group" or ":group", -1 for what is left
// out. Names may be numbers.
func LookUpOwner(owner string) (uid, gid int, err error) {
	name, group, _ := strings.Cut(owner, ":")
	uid, gid = -1, -1
	if name != "" {
		if uid, err = strconv.Atoi(name); err != nil {
			u, err := user.Lookup(name)
			if err != nil {
				return 0, 0, err
			}
			uid, _ = strconv.Atoi(u.Uid) // a number on systems with such sockets
		}
	}
	if group != "" {
		if gid, err = strconv.Atoi(group); err != nil {
			g, err := user.LookupGroup(group)
			if err != nil {
				return 0, 0, err
			}
			gid, _ = strconv.Atoi(g.Gid)
		}
	}
	return uid, gid, nil
}

// listenerValue returns where the i-th listener of a frontend stands.
func listenerValue(root value, name string, i int) value {
	v := within(root, "frontends", name)
	if n, ok := v.node.(*ast.SequenceNode); ok && i < len(n.Values) {
		return value{node: n.Values[i], path: fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return v
}

// asksForCertificates reports whether there is a listener whose clients need a certificate.
func (c *Config) asksForCertificates() bool {
	for _, l := range c.Frontends.HTTP {
		if l.TLS.Clients != "" {
			return true
		}
	}
	for _, l := range c.Frontends.Redis {
		if c.redisTLS(l).Clients != "" {
			return true
		}
	}
	return false
}

// redisTLS returns the TLS of a listener for Redis: its own, or that of redis.tls unless it is a
// unix socket.
func (c *Config) redisTLS(l Listener) TLS {
	if _, local := l.Unix(); l.TLS == (TLS{}) && !local {
		return c.Redis.TLS
	}
	return l.TLS
}

// exposure refuses listeners that other machines can reach where everybody may read
// everything, or where credentials could be read on their way, unless the file says that it
// is meant. A client's certificate is a rule of access.
func (p *parser) exposure(root value, c *Config) {
	rules := false
	for i := range c.Resources {
		rules = rules || c.Resources[i].Access != nil
	}
	for i, l := range c.Frontends.HTTP {
		p.exposed(listenerValue(root, "http", i), l, l.TLS, l.Open, rules)
	}
	for i, l := range c.Frontends.Redis {
		p.exposed(listenerValue(root, "redis", i), l, c.redisTLS(l), l.Open || c.Redis.Open, rules || c.RedisLogin())
	}
}

func (p *parser) exposed(v value, l Listener, t TLS, open, rules bool) {
	switch {
	case !l.Exposed() || t.Clients != "":
	case !rules && !open:
		p.failAt(v, "other machines could reach this address, and everybody may read everything there; "+
			"expected access rules (auth and access of resources, redis.users), a loopback address, or { address: %q, open: true }", l.Address)
	case rules && t == (TLS{}) && !l.Plaintext:
		p.failAt(v, "other machines could reach this address, and credentials would cross the network in clear text; "+
			"expected tls: { cert: ..., key: ... }, a loopback address, or { address: %q, plaintext: true }", l.Address)
	}
}

// collisions refuses two listeners on one address, one of which may be a default that the
// file does not show.
func (p *parser) collisions(root ast.Node, c *Config) {
	type named struct{ name, address string }
	var all []named
	for _, l := range c.Frontends.HTTP {
		all = append(all, named{"frontends.http", l.Address})
	}
	for _, l := range c.Frontends.Redis {
		all = append(all, named{"frontends.redis", l.Address})
	}
	all = append(all, named{"admin", c.Admin.Address})
	if c.Admin.Metrics.Address != "" {
		all = append(all, named{"admin.metrics", c.Admin.Metrics.Address})
	}
	for i, b := range all {
		for _, a := range all[:i] {
			if collide(a.address, b.address) {
				p.collision(root, a.name, a.address, b.name, b.address)
				return
			}
		}
	}
}

// collide says that one process cannot listen on both addresses. Port 0 is a new port each
// time, and a host that stands for every interface meets all others.
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
