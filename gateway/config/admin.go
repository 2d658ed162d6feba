package config

import (
	"io/fs"
	"slices"
)

// Admin is the listener of operators: health, metrics, profiles, purge. Callers on this machine,
// over loopback or a unix socket, may do everything; others may only read /metrics, /live and /ready
// unless they present a token, or a certificate signed by an authority in TLS.Clients. Address, TLS,
// Mode and Owner are as in [Listener].
type Admin struct {
	Address   string // Default 127.0.0.1:9100.
	TLS       TLS
	Plaintext bool // Permits a token in clear text at an address that other machines can reach.
	Mode      fs.FileMode
	Owner     string
	// AllowRemote permits an Address that other machines can reach without a token and without
	// certificates of clients. Such machines can read /metrics, /live and /ready there, and
	// nothing else.
	AllowRemote bool
	Token       string // The file of the bearer tokens' digests. Default: no tokens.
	// Metrics is a second listener, which serves only /metrics, /live and /ready, to everyone. The
	// zero value means that there is none.
	Metrics    Listener
	NoProfiles bool // Leaves /debug/pprof/ out: "profiles: false" in the file.
	Line       int  // The line of the listener in the configuration file, or 0 if it is not there.
}

// Listener returns the listener of the pages for operators.
func (a *Admin) Listener() Listener {
	return Listener{Address: a.Address, TLS: a.TLS, Plaintext: a.Plaintext, Mode: a.Mode, Owner: a.Owner}
}

// Addresses of the default, and of an example of [Admin.Metrics].
const (
	adminAddress   = "127.0.0.1:9100"
	metricsAddress = "127.0.0.1:9101"
)

func (a *Admin) fields() []field {
	return slices.Concat([]field{
		{Name: "address", Value: scalar(&a.Address, listenerAddress(adminAddress)), Default: adminAddress, Reload: AtRestart,
			Doc: "host:port of the admin listener; or unix: and the path of a socket, relative to this file"},
		{Name: "tls", Value: object(a.TLS.fields), Reload: AtRestart,
			Doc: "makes operators use TLS; a client certificate signed by an authority in clients counts as a token; if omitted, they do not"},
		{Name: "plaintext", Value: scalar(&a.Plaintext, truth()), Reload: AtRestart,
			Doc: "permits a token in clear text at an address that other machines can reach"},
	}, socketFields(&a.Address, &a.Mode, &a.Owner, AtRestart), []field{
		{Name: "allow_remote", Value: scalar(&a.AllowRemote, truth()), Default: false, Reload: AtRestart,
			Doc: "permits an address that other machines can reach without a token; " +
				"such machines can read /metrics, /live and /ready there and nothing else"},
		{Name: "token", Value: scalar(&a.Token, fileName("a file, relative to this one, such as admin.token")), Reload: AtReload,
			Doc: "the file of the tokens that let other machines do everything, " +
				"one per line, as sha256: and its digest; if omitted, there are none"},
		{Name: "metrics", Value: a.Metrics.setting(metricsAddress, metricsFields), Reload: AtRestart,
			Doc: "a second listener that serves only /metrics, /live and /ready, to everyone: " +
				"host:port, unix:path, or a mapping with an address; if omitted, none"},
		{Name: "profiles", Value: scalar(&a.NoProfiles, inverted()), Reload: AtReload,
			Doc: "serves profiles of the process at /debug/pprof/; if omitted, true"},
	})
}

// metricsFields are the fields of a listener that accepts no credentials and serves no
// documents.
func metricsFields(l *Listener) []field {
	return slices.DeleteFunc(l.fields(metricsAddress), func(f field) bool { return f.Name == "plaintext" || f.Name == "open" })
}

// setting accepts an address, or a mapping with more settings.
func (a *Admin) setting() setting {
	return either(scalar(&a.Address, listenerAddress(adminAddress)), object(a.fields), func() bool {
		_, local := a.Listener().Unix()
		return !local && *a == Admin{Address: a.Address, Line: a.Line}
	}).then(func(p *parser, v value) {
		a.Line = v.line()
		p.admin(v, a)
	})
}

// admin refuses an address that other machines can reach unless the file says what they may
// do there, and a token that would cross the network in clear text.
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
			"expected a loopback address, unix: and a path, token: and a file, or { address: ..., allow_remote: true }, which lets them read /metrics, /live and /ready")
	}
}
