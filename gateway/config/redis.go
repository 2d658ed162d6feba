package config

import (
	"regexp"
	"strings"
	"time"
)

// Redis says how documents are served over the Redis protocol, besides its addresses,
// which are [Frontends.Redis]. Without these everything here means nothing
// and is refused. The zero value of a field means its default.
type Redis struct {
	// Users are those who may log in with a password of their own (AUTH name password), besides the
	// holders of API keys (AUTH key, or AUTH name key) and the bearers of tokens (AUTH token, or
	// AUTH subject token). To an [Access] a user is the API key of that name.
	Users []RedisUser
	// Open lets clients ask without a login for what everybody may read. Without it they must
	// log in where there are users, API keys or tokens; where there are none, an address that
	// other machines can reach is refused.
	Open   bool
	TLS    TLS // That of all listeners of the frontend that have none of their own.
	Limits RedisLimits
}

// RedisUser is somebody who may log in. The password is "sha256:" and 64 hexadecimal digits: the
// digest of one that nobody can guess, as "slipstream key new" makes them.
type RedisUser struct{ Name, Password string }

// RedisLimits bounds what clients may ask of the Redis frontend. An IPv6 network of 64 bits counts
// as one address.
type RedisLimits struct {
	Client         Rate          // Of one client address. Default: no limit.
	Caller         Rate          // Of one user, API key or token subject. Default: no limit.
	RequestTimeout time.Duration // Of a command, its load included. Default 10 s.
	IdleTimeout    time.Duration // Of a connection without a command. Default 5 min; negative: none.
	StallTimeout   time.Duration // Of a client that reads next to nothing of what it is owed. Default 30 s.
	LoginTimeout   time.Duration // From the connection to a login, where clients must. Default 10 s.
	Connections    int           // Open connections; for one more an idle one is closed. Default 17,000.
	PerAddress     int           // As in [Limits].
}

// RedisLogin reports whether clients of the Redis frontend must log in before they
// ask for anything.
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
			Doc: "who may log in by AUTH name password: names to sha256: and the digest of the password; " +
				"besides the API keys of auth.keys and the tokens of auth.jwt"},
		{Name: "open", Value: scalar(&r.Open, truth()), Reload: AtReload,
			Doc: "lets clients ask without a login for what everybody may read, from other machines too; " +
				"left out: they must log in where there are users or auth.keys"},
		{Name: "tls", Value: object(r.TLS.fields), Reload: AtRestart,
			Doc: "makes clients speak TLS; left out: they do not"},
		{Name: "limits", Value: object(r.Limits.fields), Doc: "what clients may ask of the Redis frontend"},
	}
}

// digest is the kind of a hashed password. Somebody may write the password itself,
// so that no problem repeats any of it.
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
			Doc: "the rate of one client address, an IPv6 network of 64 bits counting as one; left out: no limit"},
		{Name: "caller", Value: object(l.Caller.fields), Reload: AtReload,
			Doc: "the rate of one user, API key or token subject; left out: no limit"},
		{Name: "request_timeout", Value: scalar(&l.RequestTimeout, requestTimeout()), Default: 10 * time.Second, Reload: AtRestart,
			Doc: "how long a command may take, its load included"},
		{Name: "idle_timeout", Value: scalar(&l.IdleTimeout, durationOrOff(24*time.Hour)), Default: 5 * time.Minute, Reload: AtRestart,
			Doc: "how long a connection may stay open without a command; 0s: for ever"},
		{Name: "stall_timeout", Value: scalar(&l.StallTimeout, duration(leastTimeout, mostTimeout)),
			Default: 30 * time.Second, Reload: AtRestart,
			Doc: "how long a client may read next to nothing of what it is owed"},
		{Name: "login_timeout", Value: scalar(&l.LoginTimeout, duration(leastTimeout, mostTimeout)),
			Default: 10 * time.Second, Reload: AtRestart,
			Doc: "how long after it connected a client must have logged in, where it must"},
		{Name: "connections", Value: scalar(&l.Connections, count(1, maxConnections)), Default: 17_000, Reload: AtRestart,
			Doc: "the open connections; for one more an idle one is closed"},
		{Name: "connections_per_address", Value: scalar(&l.PerAddress, count(1, maxConnections)), Reload: AtRestart,
			Doc: "the open connections of one client address, an IPv6 network of 64 bits counting as one; " +
				"not of loopback and http.trusted_proxies; left out: no limit"},
	}
}

// redis refuses settings that nothing would obey.
func (p *parser) redis(root value, c *Config) {
	if len(c.Frontends.Redis) == 0 && len(writeObject(c.Redis.fields())) > 0 {
		p.failKey(within(root, "redis"), "frontends.redis is not set, so that nothing of this would be obeyed; expected an address there")
	}
}
