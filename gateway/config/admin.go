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

func (a Admin) withDefaults() Admin {
	orElse(&a.Address, "127.0.0.1:9100")
	a.Mode = a.Listener().withDefaults().Mode
	a.Metrics = a.Metrics.withDefaults()
	return a
}

// TokenPath returns the file of the admin listener's tokens, made absolute by the folder of the
// configuration file if that is known; "" if there is none.
func (c *Config) TokenPath() string { return c.path(c.Admin.Token) }

const expectedAdmin = "127.0.0.1:9100"

func adminFields() []field[Admin] {
	def := Default().Admin
	return []field[Admin]{
		withDefault(one("address", "host:port of the admin listener; or unix: and the path of a socket, relative to this file",
			listenerAddress(expectedAdmin), func(a *Admin) *string { return &a.Address }), &def),
		sparse(object("tls", "makes operators speak TLS; a certificate that clients vouches for counts as a token; left out: they do not", tlsFields,
			func(a *Admin) *TLS { return &a.TLS })),
		written(one("plaintext", "permits a token in clear text at an address that other machines can reach",
			truth(), func(a *Admin) *bool { return &a.Plaintext })),
		written(one("mode", "the mode of a unix socket, in octal digits; left out: 0600, the user of the gateway only",
			socketMode(), func(a *Admin) *fs.FileMode { return &a.Mode })),
		written(one("owner", "the owner of a unix socket; left out: the user of the gateway",
			label("user, user:group or :group", maxLabel), func(a *Admin) *string { return &a.Owner })),
		written(withDefault(one("allow_remote", "permits an address that other machines can reach without a token; they read /metrics, /live and /ready there and nothing else",
			truth(), func(a *Admin) *bool { return &a.AllowRemote }), &def)),
		written(one("token", "the file of the tokens that let other machines do everything: sha256: and the digest of one a line; left out: none does",
			fileName("a file, relative to this one, such as admin.token"), func(a *Admin) *string { return &a.Token })),
		metricsField(),
		profilesField(),
	}
}

// metricsFields are those of a listener that takes no credentials and shows no documents.
func metricsFields() []field[Listener] {
	return slices.DeleteFunc(listenerFields("127.0.0.1:9101"), func(f field[Listener]) bool { return f.name == "plaintext" || f.name == "open" })
}

func metricsField() field[Admin] {
	k := listenerAddress("127.0.0.1:9101")
	return field[Admin]{
		name: "metrics", doc: "a second listener that serves only /metrics, /live and /ready, to everybody: host:port, unix:path, or a mapping with an address; left out: none",
		read: func(p *parser, v value, into *Admin) { into.Metrics = readListener(p, v, k, metricsFields()) },
		write: func(from *Admin) any {
			if from.Metrics.Address == "" {
				return nil
			}
			return writeListener(metricsFields(), &from.Metrics)
		},
		schema: func() schema { return schema{"oneOf": []any{k.schema, objectSchema(metricsFields())}} },
	}
}

// profilesField is true in the file for what is false in Go, so that both have the default that
// says nothing.
func profilesField() field[Admin] {
	k := truth()
	return field[Admin]{
		name: "profiles", doc: "serves profiles of the process at /debug/pprof/; left out: true",
		read: func(p *parser, v value, into *Admin) {
			shown := true
			readScalar(p, v, k, &shown)
			into.NoProfiles = !shown
		},
		write: func(from *Admin) any {
			if !from.NoProfiles {
				return nil
			}
			return false
		},
		schema: func() schema { return k.schema },
	}
}

// adminField takes an address, or a mapping that says more.
func adminField() field[Config] {
	def := Default()
	k := listenerAddress(expectedAdmin)
	return field[Config]{
		name: "admin", doc: "the listener of operators: host:port, unix:path, or a mapping",
		read: func(p *parser, v value, into *Config) {
			into.Admin.Line = position(v.node).Line
			if v.key != nil {
				into.Admin.Line = position(v.key).Line
			}
			if _, ok := entries(v.node); ok {
				readObject(p, v, adminFields(), &into.Admin)
			} else if !readScalar(p, v, k, &into.Admin.Address) {
				return
			}
			p.admin(v, &into.Admin)
		},
		write: func(from *Config) any {
			a := from.Admin
			a.Line = 0
			if _, local := a.Listener().Unix(); !local && a == (Admin{Address: a.Address}) {
				return a.Address
			}
			return writeObject(adminFields(), &a)
		},
		schema: func() schema {
			return schema{"oneOf": []any{k.schema, objectSchema(adminFields())}, "default": def.Admin.Address}
		},
	}
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
