package config

import (
	"regexp"
	"strings"
	"time"
)

// Redis says how documents are served over the Redis protocol, apart from the addresses,
// which are in [Frontends.Redis]. Without addresses, these settings have no effect and
// are refused. The zero value of a field means its default.
type Redis struct {
	// Users are the users that may log in with their own password (AUTH name password), in addition to
	// holders of API keys (AUTH key, or AUTH name key) and bearers of tokens (AUTH token, or AUTH
	// subject token). In an [Access], a user counts as the API key of that name.
	Users []RedisUser
	// Open lets clients read without a login what anyone may read. If false, they must log in if
	// there are users, API keys or tokens; if there are none, an address that other machines can
	// reach is refused.
	Open   bool
	TLS    TLS // For all listeners of the frontend without their own.
	Limits RedisLimits
}

// RedisUser is a user that may log in. The password is "sha256:" and 64 hexadecimal digits: the
// digest of a password that cannot be guessed, as made by "slipstream key new".
type RedisUser struct{ Name, Password string }

// RedisLimits bounds the use of the Redis frontend by clients. An IPv6 network of 64 bits counts as
// one address.
type RedisLimits struct {
	Client         Rate          // Rate of one client address. Default: no limit.
	Caller         Rate          // Rate of one user, API key or token subject. Default: no limit.
	RequestTimeout time.Duration // Maximum duration of a command, its load included. Default 10 s.
	IdleTimeout    time.Duration // How long a connection may stay open without a command. Default 5 min; if negative, there is no limit.
	StallTimeout   time.Duration // How long a client may read next to nothing of its replies. Default 30 s.
	LoginTimeout   time.Duration // Maximum time from the connection to a required login. Default 10 s.
	Connections    int           // Maximum number of open connections; at the limit an idle one is closed for a new one. Default 17,000.
	PerAddress     int           // As in [Limits].
}

// RedisLogin reports whether clients of the Redis frontend must log in before any
// other command.
func (c *Config) RedisLogin() bool {
	return !c.Redis.Open && (len(c.Redis.Users) > 0 || c.Auth.Keys != "" || c.Auth.JWT.Known())
}

const maxUsers = 1000

func (r *Redis) fields() []field {
	users := pairs(&r.Users, "names to digests", maxUsers, digest(), schema{"pattern": keyName.String()},
		func(name string) string {
			return when(!keyName.MatchString(name), `not the name of a user; expected 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-"`)
		}, func(u *RedisUser) (name, text *string) { return &u.Name, &u.Password })
	return []field{
		{Name: "users", Value: users, Reload: AtReload,
			Doc: "the users that may log in with AUTH name password: names to sha256: and the digest of the password; " +
				"the API keys of auth.keys and the tokens of auth.jwt may log in, too"},
		{Name: "open", Value: scalar(&r.Open, truth()), Reload: AtReload,
			Doc: "lets clients read without a login what anyone may read, from other machines too; " +
				"if omitted, they must log in if there are users or auth.keys"},
		{Name: "tls", Value: object(r.TLS.fields), Reload: AtRestart,
			Doc: "makes clients use TLS; if omitted, they do not"},
		{Name: "limits", Value: object(r.Limits.fields), Doc: "limits for clients of the Redis frontend"},
	}
}

// digest is the kind of a hashed password. The text may be the password itself, so no
// problem repeats any of it.
func digest() kind[string] {
	pattern := regexp.MustCompile("^sha256:[0-9A-Fa-f]{64}$")
	return kind[string]{
		expected: "sha256: and 64 hexadecimal digits, as slipstream key new --redis prints them",
		parse: func(t text) (string, string) {
			if !pattern.MatchString(t.s) {
				return "", "this is not the digest of a password"
			}
			return strings.ToLower(t.s), ""
		},
		schema: schema{"type": "string", "pattern": pattern.String()},
	}
}

func (l *RedisLimits) fields() []field {
	return []field{
		{Name: "client", Value: object(l.Client.fields), Reload: AtReload,
			Doc: "the rate of one client address, an IPv6 network of 64 bits counting as one; if omitted, no limit"},
		{Name: "caller", Value: object(l.Caller.fields), Reload: AtReload,
			Doc: "the rate of one user, API key or token subject; if omitted, no limit"},
		{Name: "request_timeout", Value: scalar(&l.RequestTimeout, requestTimeout()), Default: 10 * time.Second, Reload: AtRestart,
			Doc: "how long a command may take, its load included"},
		{Name: "idle_timeout", Value: scalar(&l.IdleTimeout, durationOrOff(24*time.Hour)), Default: 5 * time.Minute, Reload: AtRestart,
			Doc: "how long a connection may stay open without a command; 0s means no limit"},
		{Name: "stall_timeout", Value: scalar(&l.StallTimeout, duration(leastTimeout, mostTimeout)),
			Default: 30 * time.Second, Reload: AtRestart,
			Doc: "how long a client may read next to nothing of its replies"},
		{Name: "login_timeout", Value: scalar(&l.LoginTimeout, duration(leastTimeout, mostTimeout)),
			Default: 10 * time.Second, Reload: AtRestart,
			Doc: "how long after connecting a client must have logged in, if a login is required"},
		{Name: "connections", Value: scalar(&l.Connections, count(1, maxConnections)), Default: 17_000, Reload: AtRestart,
			Doc: "the maximum of open connections; at the limit an idle one is closed for a new one"},
		{Name: "connections_per_address", Value: scalar(&l.PerAddress, count(1, maxConnections)), Reload: AtRestart,
			Doc: "the maximum of open connections of one client address, an IPv6 network of 64 bits counting as one; " +
				"loopback and http.trusted_proxies are exempt; if omitted, no limit"},
	}
}

// redis refuses settings without effect.
func (p *parser) redis(root value, c *Config) {
	if len(c.Frontends.Redis) == 0 && len(writeObject(c.Redis.fields())) > 0 {
		p.failKey(within(root, "redis"), "frontends.redis is not set, so these settings would have no effect; expected an address there")
	}
}
