package config

import (
	"io/fs"
	"slices"
)

// This file reads where operators find the gateway, and what they need there.

// Admin is the listener of operators: health, metrics, profiles, purge. Callers on this machine,
// over loopback or a unix socket, may do everything; others only read /metrics, /live and /ready
// unless they bring a token, or a certificate that TLS.Clients vouches for.
type Admin struct {
	// Address is host:port, or "unix:" and the path of a socket, relative to the folder of the
	// configuration file. Default 127.0.0.1:9100.
	Address string
	// TLS makes clients speak TLS. The zero value means clear text.
	TLS TLS
	// Plaintext permits a token in clear text at an address that other machines can reach.
	Plaintext bool
	// Mode is that of a unix socket. Default 0600: the user of the gateway only.
	Mode fs.FileMode
	// Owner is the owner of a unix socket: "user", "user:group" or ":group". Default: the
	// user of the gateway.
	Owner string
	// AllowRemote permits an Address that other machines can reach without a token and without
	// certificates of clients. They read /metrics, /live and /ready there, and nothing else.
	AllowRemote bool
	// Token is the file of the bearer tokens' digests, relative to the folder of the
	// configuration file; see [Config.TokenPath]. Default: there are no tokens.
	Token string
	// Metrics is a second listener, which serves only /metrics, /live and /ready, to everybody.
	// The zero value means that there is none.
	Metrics Listener
	// NoProfiles leaves /debug/pprof/ out: "profiles: false" in the file.
	NoProfiles bool
	// Line is the line of the listener in the configuration file, or 0 if it is not there.
	Line int
}

// Listener returns where the pages of operators are.
func (a Admin) Listener() Listener {
	return Listener{Address: a.Address, TLS: a.TLS, Plaintext: a.Plaintext, Mode: a.Mode, Owner: a.Owner}
}

// TokenPath returns the file of the admin listener's tokens, made absolute by the folder of the
// configuration file if that is known; "" if there is none.
func (c *Config) TokenPath() string { return c.path(c.Admin.Token) }

// adminAddress is the default of [Admin.Address].
const adminAddress = "127.0.0.1:9100"

func adminFields() []field[Admin] {
	return []field[Admin]{
		{Name: "address", Doc: "host:port of the admin listener; or unix: and the path of a socket, relative to this file",
			Value: scalar(listenerAddress(adminAddress), func(a *Admin) *string { return &a.Address }), Default: adminAddress, Reload: listener},
		{Name: "tls", Doc: "makes operators speak TLS; a certificate that clients vouches for counts as a token; left out: they do not",
			Value: object(tlsFields, func(a *Admin) *TLS { return &a.TLS }), Omit: ifZero, Reload: listener},
		{Name: "plaintext", Doc: "permits a token in clear text at an address that other machines can reach",
			Value: scalar(truth(), func(a *Admin) *bool { return &a.Plaintext }), Omit: ifZero, Reload: listener},
		{Name: "mode", Doc: modeDoc, Default: func(a *Admin) any { return defaultMode(a.Listener()) },
			Value: scalar(socketMode(), func(a *Admin) *fs.FileMode { return &a.Mode }), Omit: ifZero, Reload: listener},
		{Name: "owner", Doc: ownerDoc,
			Value: scalar(socketOwner(), func(a *Admin) *string { return &a.Owner }), Omit: ifZero, Reload: listener},
		{Name: "allow_remote", Doc: "permits an address that other machines can reach without a token; they read /metrics, /live and /ready there and nothing else",
			Value: scalar(truth(), func(a *Admin) *bool { return &a.AllowRemote }), Default: false, Omit: ifZero, Reload: listener},
		{Name: "token", Doc: "the file of the tokens that let other machines do everything: sha256: and the digest of one a line; left out: none does",
			Value: scalar(fileName("a file, relative to this one, such as admin.token"), func(a *Admin) *string { return &a.Token }), Omit: ifZero, Reload: swap},
		{Name: "metrics", Doc: "a second listener that serves only /metrics, /live and /ready, to everybody: host:port, unix:path, or a mapping with an address; left out: none",
			Value: oneListener("127.0.0.1:9101", metricsFields, func(a *Admin) *Listener { return &a.Metrics }), Reload: listener},
		{Name: "profiles", Doc: "serves profiles of the process at /debug/pprof/; left out: true",
			Value: scalar(inverted(), func(a *Admin) *bool { return &a.NoProfiles }), Omit: ifZero, Reload: swap},
	}
}

// metricsFields are those of a listener that takes no credentials and shows no documents.
func metricsFields() []field[Listener] {
	return slices.DeleteFunc(listenerFields("127.0.0.1:9101"), func(f field[Listener]) bool { return f.Name == "plaintext" || f.Name == "open" })
}

// adminSetting takes an address, or a mapping that says more.
func adminSetting() setting[Config] {
	address := scalar(listenerAddress(adminAddress), func(c *Config) *string { return &c.Admin.Address })
	s := either(address, object(adminFields, func(c *Config) *Admin { return &c.Admin }), func(c *Config) bool {
		_, local := c.Admin.Listener().Unix()
		return !local && c.Admin == Admin{Address: c.Admin.Address, Line: c.Admin.Line}
	})
	read := s.read
	s.read = func(p *parser, v value, into *Config) {
		into.Admin.Line = v.line()
		read(p, v, into)
		p.admin(v, &into.Admin)
	}
	return s
}

// admin refuses an address that other machines can reach unless what they may do there is
// meant, and a token that could be read on its way.
func (p *parser) admin(v value, a *Admin) {
	if a.Address == "" {
		return
	}
	l := a.Listener()
	p.socket(v, l)
	switch {
	case !l.Exposed() || l.TLS.Clients != "":
	case a.Token != "" && l.TLS == (TLS{}) && !l.Plaintext:
		p.failAt(v, "other machines could reach this address, and the token would cross the network in clear text; "+
			"expected tls: { cert: ..., key: ... }, a loopback address, or plaintext: true")
	case a.Token == "" && !a.AllowRemote:
		p.failAt(v, "other machines could reach this address, and there is neither a token nor tls.clients; "+
			"expected a loopback address, unix: and a path, token: and a file, or { address: ..., allow_remote: true }, which shows them /metrics, /live and /ready")
	}
}
