package config

import (
	"fmt"
	"net"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// This file compares listeners with one another and with who may read, and refuses what would
// show documents or credentials to a network by accident.

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
