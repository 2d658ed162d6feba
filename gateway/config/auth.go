package config

import (
	"path/filepath"
	"strings"
	"time"
)

// Auth says how callers are identified. With the zero value they are not, and no
// resource can have an [Access].
type Auth struct {
	// Keys is the file of API keys, lines of a name and a digest, relative to
	// the folder of the configuration file; see [Config.KeysPath].
	Keys string
	JWT  JWT
}

// JWT says which tokens are believed (RFC 7519).
type JWT struct {
	// Keys are the keys that sign tokens, a JSON Web Key Set (RFC 7517): a file,
	// relative to the folder of the configuration file, see [Config.JWKSPath], or the
	// URL of one. Keys or Discovery is required where another field is set.
	Keys string
	// Discovery is the URL of an issuer whose discovery document says where its key
	// set is (OpenID Connect Discovery 1.0). It is the Issuer, too.
	Discovery string
	// CA is the file of the certificates that those of such servers must lead to,
	// relative to the folder of the configuration file. Default: the system's.
	CA string
	// Refresh is how often a key set is fetched again. Default 5 min.
	Refresh time.Duration
	// Issuer is what the claim iss must be. Default: not compared.
	Issuer string
	// Audience is what the claim aud must be or contain, or [AnyAudience]. Required: a
	// key set that several services share lets tokens for any of them in.
	Audience string
	// Algorithms are the signatures that are believed. Default: those that fit
	// the keys of the file.
	Algorithms []string
	// Leeway is how far clocks may be apart. Default 30 s; negative: not at all.
	Leeway time.Duration
}

// AnyAudience is the [JWT.Audience] that waives the comparison of the claim aud.
const AnyAudience = "any"

// Access says who may read a resource: the holders of the API keys in Keys, the
// bearers of tokens that JWT or Claims let in, and the clients whose certificates have one
// of the names in Certificates.
type Access struct {
	// Keys are the names of API keys, and of users of Redis; "*" is any of them.
	Keys []string
	// JWT lets the bearers of every valid token read, provided that it has the
	// Claims.
	JWT bool
	// Claims are those that a token must have, all of them: each claim is one
	// of its values here, or a list with one of them. They imply JWT.
	Claims map[string][]string
	// Certificates are names (SAN) in the certificates of clients: DNS names, URIs, email and
	// IP addresses, compared as they stand, DNS names without regard to case. "*" is any
	// certificate that a listener with [TLS.Clients] accepted.
	Certificates []string
}

// nobody reports whether no caller could read.
func (a *Access) nobody() bool {
	return len(a.Keys) == 0 && !a.JWT && len(a.Claims) == 0 && len(a.Certificates) == 0
}

// KeysPath returns the file of API keys, made absolute by the folder of the
// configuration file if that is known; "" if there is none.
func (c *Config) KeysPath() string { return c.path(c.Auth.Keys) }

// JWKSPath returns the file of the keys that sign tokens, made absolute by the
// folder of the configuration file if that is known; "" if there is none.
func (c *Config) JWKSPath() string {
	if isURL(c.Auth.JWT.Keys) {
		return ""
	}
	return c.path(c.Auth.JWT.Keys)
}

// JWKSURL returns where the keys that sign tokens are fetched from; "" if Keys is no URL.
func (c *Config) JWKSURL() string {
	if isURL(c.Auth.JWT.Keys) {
		return c.Auth.JWT.Keys
	}
	return ""
}

// CAPath returns the file of [JWT.CA], made absolute by the folder of the configuration file if
// that is known; "" if there is none.
func (c *Config) CAPath() string { return c.path(c.Auth.JWT.CA) }

func isURL(keys string) bool { return strings.Contains(keys, "://") }

// Known reports whether tokens are believed.
func (j *JWT) Known() bool { return j.Keys != "" || j.Discovery != "" }

// fetched reports whether the keys come from another machine.
func (j *JWT) fetched() bool { return j.Discovery != "" || isURL(j.Keys) }

// RequestLogPath returns the file of the log of requests, made absolute by the folder
// of the configuration file if that is known; "-" for standard output, "" if there
// is none.
func (c *Config) RequestLogPath() string {
	if c.Log.Requests == "-" {
		return "-"
	}
	return c.path(c.Log.Requests)
}

// AuditPath returns the file of the audit log, made absolute by the folder of the configuration
// file if that is known; "" if there is none.
func (c *Config) AuditPath() string { return c.path(c.Log.Audit) }

// path resolves the name of a file.
func (c *Config) path(name string) string {
	if name == "" {
		return ""
	}
	name = filepath.FromSlash(name)
	if c.Origin.Dir != "" && !filepath.IsAbs(name) {
		name = filepath.Join(c.Origin.Dir, name)
	}
	return name
}
