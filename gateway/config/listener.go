package config

import (
	"fmt"
	"io/fs"
	"net"
	"os/user"
	"slices"
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

// defaultMode is that of a unix socket, and nil of another address.
func defaultMode(l Listener) any {
	if _, ok := l.Unix(); ok {
		return fs.FileMode(0o600)
	}
	return nil
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
		if strings.HasSuffix(path, "/") || strings.HasPrefix(path, "@") {
			return " is no path of a socket"
		}
		return ""
	}, schema{"type": "string", "pattern": "^unix:.*[^/]$|:[0-9]{1,5}$"})
}

const (
	modeDoc  = "the mode of a unix socket, in octal digits; left out: 0600, the user of the gateway only"
	ownerDoc = "the owner of a unix socket; left out: the user of the gateway"
)

func socketOwner() kind[string] { return label("user, user:group or :group", maxLabel) }

// listenerFields are those of one listener. What it costs to change one is said of the listener.
func listenerFields(example string) []field[Listener] {
	return []field[Listener]{
		{Name: "address", Doc: "host:port; without a host, every interface; or unix: and the path of a socket, relative to this file",
			Value: scalar(listenerAddress(example), func(l *Listener) *string { return &l.Address }), Omit: ifZero, Required: true},
		{Name: "tls", Doc: "makes clients speak TLS; left out: they do not",
			Value: object(tlsFields, func(l *Listener) *TLS { return &l.TLS }), Omit: ifZero},
		{Name: "plaintext", Doc: "permits credentials in clear text at an address that other machines can reach",
			Value: scalar(truth(), func(l *Listener) *bool { return &l.Plaintext }), Omit: ifZero},
		{Name: "open", Doc: "permits an address that other machines can reach although everybody may read everything",
			Value: scalar(truth(), func(l *Listener) *bool { return &l.Open }), Omit: ifZero},
		{Name: "mode", Doc: modeDoc, Default: func(l *Listener) any { return defaultMode(*l) },
			Value: scalar(socketMode(), func(l *Listener) *fs.FileMode { return &l.Mode }), Omit: ifZero},
		{Name: "owner", Doc: ownerDoc,
			Value: scalar(socketOwner(), func(l *Listener) *string { return &l.Owner }), Omit: ifZero},
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

// oneListener takes an address, or a mapping that says more.
func oneListener[T any](example string, fields func() []field[Listener], at func(*T) *Listener) setting[T] {
	address := scalar(listenerAddress(example), func(t *T) *string { return &at(t).Address })
	s := either(address, object(fields, at), func(t *T) bool {
		bare := Listener{Address: at(t).Address}
		fill(fields(), &bare)
		return *at(t) == bare
	})
	read := s.read
	s.read = func(p *parser, v value, into *T) {
		read(p, v, into)
		p.socket(v, *at(into))
	}
	return s
}

// listeners takes one listener, or a list of them.
func listeners(expected, example string, at func(*Frontends) *Listeners) setting[Frontends] {
	fields := func() []field[Listener] { return listenerFields(example) }
	one := oneListener(example, fields, func(l *Listener) *Listener { return l })
	return setting[Frontends]{
		read: func(p *parser, v value, into *Frontends) {
			items := []value{v}
			if n, ok := v.node.(*ast.SequenceNode); ok {
				if len(n.Values) == 0 || len(n.Values) > maxListeners {
					p.failAt(v, "a list of %d; expected between 1 and %d listeners", len(n.Values), maxListeners)
					return
				}
				items, _ = p.items(v, expected)
			}
			all := make(Listeners, len(items))
			for i, item := range items {
				one.read(p, item, &all[i])
			}
			*at(into) = all
		},
		write: func(from *Frontends) any {
			all := *at(from)
			if len(all) == 1 {
				return one.write(&all[0])
			}
			if len(all) == 0 {
				return nil
			}
			var list []members
			for i := range all {
				list = append(list, writeObject(fields(), &all[i]))
			}
			return list
		},
		schema: func() schema {
			list := schema{"type": "array", "items": one.schema(), "minItems": 1, "maxItems": maxListeners}
			return schema{"oneOf": append(one.schema()["oneOf"].([]any), list)}
		},
		set: func(into *Frontends, def any) { *at(into) = def.(Listeners) },
		fill: func(into *Frontends) {
			*at(into) = slices.Clone(*at(into))
			for i := range *at(into) {
				fill(fields(), &(*at(into))[i])
			}
		},
	}
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

// frontendRules are what a configuration must know of a frontend to judge its listeners.
type frontendRules struct {
	name      string // in frontends
	listeners func(*Config) Listeners
	tls       func(*Config, Listener) TLS  // what a listener serves with
	open      func(*Config, Listener) bool // everybody may read there
	login     func(*Config) bool           // callers need credentials that no resource asks for
}

// frontends are those that a configuration can have.
var frontends = []frontendRules{
	{
		name:      "http",
		listeners: func(c *Config) Listeners { return c.Frontends.HTTP },
		tls:       func(_ *Config, l Listener) TLS { return l.TLS },
		open:      func(_ *Config, l Listener) bool { return l.Open },
		login:     func(*Config) bool { return false },
	},
	{
		name:      "redis",
		listeners: func(c *Config) Listeners { return c.Frontends.Redis },
		tls:       (*Config).redisTLS,
		open:      func(c *Config, l Listener) bool { return l.Open || c.Redis.Open },
		login:     (*Config).RedisLogin,
	},
}

// asksForCertificates reports whether there is a listener whose clients need a certificate.
func (c *Config) asksForCertificates() bool {
	for _, f := range frontends {
		for _, l := range f.listeners(c) {
			if f.tls(c, l).Clients != "" {
				return true
			}
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
	for _, f := range frontends {
		for i, l := range f.listeners(c) {
			p.exposed(listenerValue(root, f.name, i), l, f.tls(c, l), f.open(c, l), rules || f.login(c))
		}
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
func (p *parser) collisions(root value, c *Config) {
	type place struct {
		name, address string
		at            value
	}
	var all []place
	for _, f := range frontends {
		for i, l := range f.listeners(c) {
			all = append(all, place{"frontends." + f.name, l.Address, listenerValue(root, f.name, i)})
		}
	}
	all = append(all, place{"admin", c.Admin.Address, within(root, "admin")})
	if c.Admin.Metrics.Address != "" {
		all = append(all, place{"admin.metrics", c.Admin.Metrics.Address, within(root, "admin", "metrics")})
	}
	for i, b := range all {
		for _, a := range all[:i] {
			if !collide(a.address, b.address) {
				continue
			}
			at := b.at
			if at.path == "" { // b is a default
				at = a.at
			}
			p.failAt(at, "%s is %s and %s %s, which is one address; expected two", a.name, a.address, b.name, b.address)
			return
		}
	}
}

// collide reports whether one process cannot listen on both addresses. Port 0 is a new port each
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
