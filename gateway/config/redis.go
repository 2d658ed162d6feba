package config

import "time"

// Redis says how documents are served over the Redis protocol, besides its addresses,
// which are [Frontends.Redis]. Without these everything here means nothing
// and is refused. The zero value of a field means its default.
type Redis struct {
	// Users are those who may log in with a password of their own (AUTH name
	// password), besides the holders of API keys (AUTH key, or AUTH name key) and the
	// bearers of tokens (AUTH token, or AUTH subject token).
	// To an [Access] a user is the API key of that name.
	Users []RedisUser
	// Open lets clients ask without a login for what everybody may read. Without
	// it they must log in where there are users, API keys or tokens; where there are
	// none, an address that other machines can reach is refused.
	Open bool
	// TLS is that of all listeners of the frontend that have none of their own.
	TLS TLS

	Limits RedisLimits
}

// RedisUser is somebody who may log in.
type RedisUser struct {
	Name string
	// Password is "sha256:" and 64 hexadecimal digits: the digest of a password
	// that nobody can guess, as "slipstream key new" makes them.
	Password string
}

// TLS names the files of a certificate and its key, in PEM, relative to the folder
// of the configuration file. The zero value means no TLS.
type TLS struct {
	Cert, Key string
	// Clients is the file of the authorities, one of which must have signed the
	// certificate of each client. Default: clients need none.
	Clients string
	// MinVersion is "1.2" or "1.3". Default 1.2.
	MinVersion string
}

// RedisLimits bounds what clients may ask of the Redis frontend.
type RedisLimits struct {
	// Client is the rate of one client address, an IPv6 network of 64 bits
	// counting as one. Default: no limit.
	Client Rate
	// Caller is the rate of one user, API key or token subject. Default: no limit.
	Caller Rate
	// RequestTimeout bounds a command, its load included. Default 10 s.
	RequestTimeout time.Duration
	// IdleTimeout is how long a connection may stay open without a command.
	// Default 5 min; negative: for ever, as Redis has it.
	IdleTimeout time.Duration
	// StallTimeout is how long a client may read next to nothing of what it is
	// owed. Default 30 s.
	StallTimeout time.Duration
	// LoginTimeout is how long after it was accepted a connection must have logged in,
	// where clients must. Default 10 s.
	LoginTimeout time.Duration
	// Connections is the number of open connections; for one more an idle one is
	// closed. Default 17,000.
	Connections int
	// PerAddress is as in [Limits].
	PerAddress int
}

// RedisLogin reports whether clients of the Redis frontend must log in before they
// ask for anything.
func (c *Config) RedisLogin() bool {
	return !c.Redis.Open && (len(c.Redis.Users) > 0 || c.Auth.Keys != "" || c.Auth.JWT.Known())
}

// Drain says how a gateway ends. The zero value of a field means its default.
type Drain struct {
	// Grace is how long HTTP connections that ask nothing stay open for one more
	// request, so that none is sent into a connection that is being closed; less
	// than Timeout. Redis cannot say that a connection ends, so its connections
	// have none. Default 2 s, at most half of Timeout; negative: not at all.
	Grace time.Duration
	// Timeout is how long requests in flight may take. Default 15 s.
	Timeout time.Duration
}
