package config

import (
	"regexp"
	"strings"
	"time"
)

// This file reads how documents are served over the Redis protocol, and how a
// gateway ends.

const (
	maxUsers = 1000
)

func redisFields() []field[Redis] {
	return []field[Redis]{
		{Name: "users", Doc: "who may log in by AUTH name password: names to sha256: and the digest of the password; " +
			"besides the API keys of auth.keys and the tokens of auth.jwt", Value: users(), Reload: swap},
		{Name: "open", Doc: "lets clients ask without a login for what everybody may read, from other machines too; left out: they must log in where there are users or auth.keys",
			Value: scalar(truth(), func(r *Redis) *bool { return &r.Open }), Omit: ifZero, Reload: swap},
		{Name: "tls", Doc: "makes clients speak TLS; left out: they do not",
			Value: object(tlsFields, func(r *Redis) *TLS { return &r.TLS }), Omit: ifZero, Reload: listener},
		{Name: "limits", Doc: "what clients may ask of the Redis frontend",
			Value: object(redisLimitFields, func(r *Redis) *RedisLimits { return &r.Limits }), Omit: ifZero},
	}
}

func users() setting[Redis] {
	d := digest()
	return named("names to digests", maxUsers, namedOf[Redis, RedisUser]{
		at: func(r *Redis) *[]RedisUser { return &r.Users },
		read: func(p *parser, name string, v value, into *Redis) {
			if !keyName.MatchString(name) {
				p.failKey(v, `not the name of a user; expected 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-"`)
				return
			}
			u := RedisUser{Name: name}
			if readScalar(p, v, d, &u.Password) {
				into.Users = append(into.Users, u)
			}
		},
		write:  func(u *RedisUser) (string, any) { return u.Name, u.Password },
		names:  schema{"pattern": keyName.String()},
		schema: func() schema { return d.schema },
	})
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
		format: func(s string) any { return s },
		schema: schema{"type": "string", "pattern": pattern.String()},
	}
}

// tlsFields are those of a certificate. What it costs to change one is said of the mapping.
func tlsFields() []field[TLS] {
	return []field[TLS]{
		{Name: "cert", Doc: "the file of the certificate, with those that lead to its root behind it, in PEM",
			Value: scalar(fileName("a file, relative to this one, such as cert.pem"), func(t *TLS) *string { return &t.Cert }), Omit: ifZero, Required: true},
		{Name: "key", Doc: "the file of its key, in PEM",
			Value: scalar(fileName("a file, relative to this one, such as key.pem"), func(t *TLS) *string { return &t.Key }), Omit: ifZero, Required: true},
		{Name: "clients", Doc: "the file of the authorities, in PEM, one of which must have signed each client's certificate; left out: clients need none",
			Value: scalar(fileName("a file, relative to this one, such as clients.pem"), func(t *TLS) *string { return &t.Clients }), Omit: ifZero},
		{Name: "min_version", Doc: "the least version of TLS; left out: 1.2",
			Value: scalar(oneOf("1.2", "1.3"), func(t *TLS) *string { return &t.MinVersion }), Omit: ifZero},
	}
}

func redisLimitFields() []field[RedisLimits] {
	const least, most = 250 * time.Millisecond, 10 * time.Minute
	return []field[RedisLimits]{
		{Name: "client", Doc: "the rate of one client address, an IPv6 network of 64 bits counting as one; left out: no limit",
			Value: object(rateFields, func(l *RedisLimits) *Rate { return &l.Client }), Omit: ifZero, Reload: swap},
		{Name: "caller", Doc: "the rate of one user, API key or token subject; left out: no limit",
			Value: object(rateFields, func(l *RedisLimits) *Rate { return &l.Caller }), Omit: ifZero, Reload: swap},
		{Name: "request_timeout", Doc: "how long a command may take, its load included",
			Value: scalar(duration(10*time.Millisecond, most), func(l *RedisLimits) *time.Duration { return &l.RequestTimeout }), Default: 10 * time.Second, Omit: ifZero, Reload: listener},
		{Name: "idle_timeout", Doc: "how long a connection may stay open without a command; 0s: for ever",
			Value: scalar(durationOrOff(24*time.Hour), func(l *RedisLimits) *time.Duration { return &l.IdleTimeout }), Default: 5 * time.Minute, Omit: ifZero, Reload: listener},
		{Name: "stall_timeout", Doc: "how long a client may read next to nothing of what it is owed",
			Value: scalar(duration(least, most), func(l *RedisLimits) *time.Duration { return &l.StallTimeout }), Default: 30 * time.Second, Omit: ifZero, Reload: listener},
		{Name: "login_timeout", Doc: "how long after it connected a client must have logged in, where it must",
			Value: scalar(duration(least, most), func(l *RedisLimits) *time.Duration { return &l.LoginTimeout }), Default: 10 * time.Second, Omit: ifZero, Reload: listener},
		{Name: "connections", Doc: "the open connections; for one more an idle one is closed",
			Value: scalar(count(1, 1_000_000), func(l *RedisLimits) *int { return &l.Connections }), Default: 17_000, Omit: ifZero, Reload: listener},
		{Name: "connections_per_address", Doc: "the open connections of one client address, an IPv6 network of 64 bits counting as one; not of loopback and http.trusted_proxies; left out: no limit",
			Value: scalar(count(1, 1_000_000), func(l *RedisLimits) *int { return &l.PerAddress }), Omit: ifZero, Reload: listener},
	}
}

func drainFields() []field[Drain] {
	return []field[Drain]{
		{Name: "grace", Doc: "how long HTTP connections that ask nothing stay open for one more request, less than timeout; 0s: not at all",
			Value:   scalar(durationOrOff(time.Minute), func(d *Drain) *time.Duration { return &d.Grace }),
			Default: func(d *Drain) any { return min(2*time.Second, d.Timeout/2) }, Reload: listener},
		{Name: "timeout", Doc: "how long requests in flight may take",
			Value: scalar(duration(10*time.Millisecond, time.Hour), func(d *Drain) *time.Duration { return &d.Timeout }), Default: 15 * time.Second, Reload: swap},
	}
}

// redis refuses settings that nothing would obey.
func (p *parser) redis(root value, c *Config) {
	if len(c.Frontends.Redis) == 0 && len(writeObject(redisFields(), &c.Redis)) > 0 {
		p.failKey(within(root, "redis"), "frontends.redis is not set, so that nothing of this would be obeyed; expected an address there")
	}
}

// drain refuses a grace that would take all the time there is: connections that ask
// nothing would be cut off as if they had asked.
func (p *parser) drain(root value, c *Config) {
	if c.Drain.Grace >= c.Drain.Timeout {
		p.failAt(within(root, "drain"), "a grace of %s in a drain of %s; expected less", formatDuration(c.Drain.Grace), formatDuration(c.Drain.Timeout))
	}
}
