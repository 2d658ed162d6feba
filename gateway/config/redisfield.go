package config

import (
	"encoding/hex"
	"strings"
	"time"
)

// This file reads how documents are served over the Redis protocol, and how a
// gateway ends.

const (
	maxUsers = 1000

	digestPrefix = "sha256:"
	digestDigits = 64
)

func redisFields() []field[Redis] {
	return []field[Redis]{
		usersField(),
		written(one("open", "lets clients ask without a login for what everybody may read, from other machines too; left out: they must log in where there are users or auth.keys",
			truth(), func(r *Redis) *bool { return &r.Open })),
		sparse(object("tls", "makes clients speak TLS; left out: they do not", tlsFields,
			func(r *Redis) *TLS { return &r.TLS })),
		sparse(object("limits", "what clients may ask of the Redis frontend", redisLimitFields,
			func(r *Redis) *RedisLimits { return &r.Limits })),
	}
}

func usersField() field[Redis] {
	d := digest()
	return named("users", "who may log in by AUTH name password: names to sha256: and the digest of the password; "+
		"besides the API keys of auth.keys and the tokens of auth.jwt", "names to digests", maxUsers,
		namedOf[Redis, RedisUser]{
			at: func(r *Redis) *[]RedisUser { return &r.Users },
			read: func(p *parser, name string, v value, into *Redis) {
				if !isKeyName(name) {
					p.failKey(v, `not the name of a user; expected 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-"`)
					return
				}
				u := RedisUser{Name: name}
				if readScalar(p, v, d, &u.Password) {
					into.Users = append(into.Users, u)
				}
			},
			write:  func(u *RedisUser) (string, any) { return u.Name, u.Password },
			names:  schema{"pattern": "^[A-Za-z0-9._-]{1,64}$"},
			schema: func() schema { return d.schema },
		})
}

// digest is the kind of a hashed password. Somebody may write the password itself,
// so that no problem repeats any of it.
func digest() kind[string] {
	return kind[string]{
		expected: "sha256: and 64 hexadecimal digits, as slipstream key new --redis prints them",
		parse: func(t text) (string, string) {
			digits, ok := strings.CutPrefix(t.s, digestPrefix)
			if _, err := hex.DecodeString(digits); !ok || err != nil || len(digits) != digestDigits {
				return "", "this is not the digest of a password"
			}
			return strings.ToLower(t.s), ""
		},
		format: func(s string) any { return s },
		schema: schema{"type": "string", "pattern": "^sha256:[0-9A-Fa-f]{64}$"},
	}
}

func tlsFields() []field[TLS] {
	return []field[TLS]{
		required(written(one("cert", "the file of the certificate, with those that lead to its root behind it, in PEM",
			fileName("a file, relative to this one, such as cert.pem"), func(t *TLS) *string { return &t.Cert }))),
		required(written(one("key", "the file of its key, in PEM",
			fileName("a file, relative to this one, such as key.pem"), func(t *TLS) *string { return &t.Key }))),
		written(one("clients", "the file of the authorities, in PEM, one of which must have signed each client's certificate; left out: clients need none",
			fileName("a file, relative to this one, such as clients.pem"), func(t *TLS) *string { return &t.Clients })),
		written(one("min_version", "the least version of TLS; left out: 1.2",
			oneOf("1.2", "1.3"), func(t *TLS) *string { return &t.MinVersion })),
	}
}

func redisLimitFields() []field[RedisLimits] {
	def := Redis{}.withDefaults().Limits
	timeout := func(name, doc string, k kind[time.Duration], at func(*RedisLimits) *time.Duration) field[RedisLimits] {
		return withoutZero(withDefault(one(name, doc, k, at), &def), func(l *RedisLimits) bool { return *at(l) == 0 })
	}
	return []field[RedisLimits]{
		sparse(object("client", "the rate of one client address, an IPv6 network of 64 bits counting as one; left out: no limit",
			rateFields, func(l *RedisLimits) *Rate { return &l.Client })),
		sparse(object("caller", "the rate of one user, API key or token subject; left out: no limit",
			rateFields, func(l *RedisLimits) *Rate { return &l.Caller })),
		timeout("request_timeout", "how long a command may take, its load included",
			duration(10*time.Millisecond, 10*time.Minute), func(l *RedisLimits) *time.Duration { return &l.RequestTimeout }),
		timeout("idle_timeout", "how long a connection may stay open without a command; 0s: for ever",
			durationOrOff(24*time.Hour), func(l *RedisLimits) *time.Duration { return &l.IdleTimeout }),
		timeout("stall_timeout", "how long a client may read next to nothing of what it is owed",
			duration(250*time.Millisecond, 10*time.Minute), func(l *RedisLimits) *time.Duration { return &l.StallTimeout }),
		timeout("login_timeout", "how long after it connected a client must have logged in, where it must",
			duration(250*time.Millisecond, 10*time.Minute), func(l *RedisLimits) *time.Duration { return &l.LoginTimeout }),
		written(withDefault(one("connections", "the open connections; for one more an idle one is closed",
			count(1, 1_000_000), func(l *RedisLimits) *int { return &l.Connections }), &def)),
		written(one("connections_per_address", "the open connections of one client address, an IPv6 network of 64 bits counting as one; not of loopback and http.trusted_proxies; left out: no limit",
			count(1, 1_000_000), func(l *RedisLimits) *int { return &l.PerAddress })),
	}
}

func drainFields() []field[Drain] {
	def := Drain{}.withDefaults()
	return []field[Drain]{
		withDefault(one("grace", "how long HTTP connections that ask nothing stay open for one more request, less than timeout; 0s: not at all",
			durationOrOff(time.Minute), func(d *Drain) *time.Duration { return &d.Grace }), &def),
		withDefault(one("timeout", "how long requests in flight may take",
			duration(10*time.Millisecond, time.Hour), func(d *Drain) *time.Duration { return &d.Timeout }), &def),
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
