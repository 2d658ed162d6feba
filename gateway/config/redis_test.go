package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var digestOfAll = "sha256:" + strings.Repeat("0", 64)

// TestDefaultsOfRedis: a gateway without the frontend has none of its settings, one
// with it has all of them.
func TestDefaultsOfRedis(t *testing.T) {
	if c := declared(Resource{}).WithDefaults(); c.Redis.Limits != (RedisLimits{}) || c.Drain != (Drain{2 * time.Second, 15 * time.Second}) || c.Log.Requests != "" {
		t.Errorf("got %+v, %+v, %+v; want no Redis, 2s and 15s, no log", c.Redis, c.Drain, c.Log)
	}
	c := declared(Resource{})
	c.Drain.Timeout = time.Second
	if got := c.WithDefaults().Drain.Grace; got != time.Second/2 {
		t.Errorf("got a grace of %v in a drain of 1s, want half", got)
	}
	c.Frontends.Redis = ListenAt("127.0.0.1:6379")
	c.Redis.Limits.Client.PerSecond = 1.5
	c = c.WithDefaults()
	want := RedisLimits{Client: Rate{1.5, 2}, RequestTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute, StallTimeout: 30 * time.Second, LoginTimeout: 10 * time.Second, Connections: 17_000}
	if c.Redis.Limits != want {
		t.Errorf("got %+v, want %+v", c.Redis.Limits, want)
	}
}

// TestValidateRedis: settings that have no effect or would admit anyone are
// refused.
func TestValidateRedis(t *testing.T) {
	local := func(c *Config) { c.Frontends.Redis = ListenAt("localhost:6379") }
	everybody := func(c *Config) { c.Frontends.Redis = ListenAt("0.0.0.0:6379") }
	user := func(name, digest string) func(*Config) {
		return func(c *Config) { c.Redis.Users = append(c.Redis.Users, RedisUser{name, digest}) }
	}
	secure := func(c *Config) { c.Redis.TLS = TLS{Cert: "a", Key: "b"} }
	plaintext := func(c *Config) { c.Frontends.Redis[0].Plaintext = true }
	const clear = "frontends.redis: other machines could reach this address, and credentials"
	const open, unobeyed = "frontends.redis: other machines", "redis: frontends.redis is not set"
	for name, test := range map[string]struct {
		changes []func(*Config)
		want    string // "" accepted
	}{
		"off":                 {nil, ""},
		"loopback":            {[]func(*Config){local}, ""},
		"everybody":           {[]func(*Config){everybody}, open},
		"everybody, TLS":      {[]func(*Config){everybody, secure}, open},
		"everybody, meant":    {[]func(*Config){everybody, func(c *Config) { c.Redis.Open = true }}, ""},
		"users":               {[]func(*Config){everybody, user("web", digestOfAll)}, clear},
		"users, TLS":          {[]func(*Config){everybody, secure, user("web", digestOfAll)}, ""},
		"users, meant so":     {[]func(*Config){everybody, plaintext, user("web", digestOfAll)}, ""},
		"certificates":        {[]func(*Config){everybody, secure, func(c *Config) { c.Redis.TLS.Clients = "c" }}, ""},
		"keys":                {[]func(*Config){everybody, secure, func(c *Config) { c.Auth.Keys = "keys.txt" }}, ""},
		"tokens":              {[]func(*Config){everybody, func(c *Config) { c.Auth.JWT = JWT{Keys: "jwks.json", Audience: "shop"} }}, clear},
		"users, meant":        {[]func(*Config){everybody, user("web", digestOfAll), func(c *Config) { c.Redis.Open = true }}, ""},
		"users without":       {[]func(*Config){user("web", digestOfAll)}, unobeyed},
		"open without":        {[]func(*Config){func(c *Config) { c.Redis.Open = true }}, unobeyed},
		"limits without":      {[]func(*Config){func(c *Config) { c.Redis.Limits.IdleTimeout = -1 }}, unobeyed},
		"password":            {[]func(*Config){local, user("web", "hunter2")}, "redis.users.web: this is not the digest"},
		"no password":         {[]func(*Config){local, user("web", "")}, "redis.users.web: this is not the digest"},
		"nameless":            {[]func(*Config){local, user("", digestOfAll)}, "redis.users: an empty key"},
		"twice":               {[]func(*Config){local, user("web", digestOfAll), user("web", digestOfAll)}, "redis.users.web: is a duplicate"},
		"half of TLS":         {[]func(*Config){local, func(c *Config) { c.Redis.TLS.Key = "a" }}, `redis.tls: field "cert" is missing`},
		"access by users":     {[]func(*Config){local, user("web", digestOfAll), func(c *Config) { c.Resources[0].Access = &Access{Keys: []string{"web"}} }}, ""},
		"access without them": {[]func(*Config){local, func(c *Config) { c.Resources[0].Access = &Access{Keys: []string{"web"}} }}, "no API key is known"},
		"engine":              {[]func(*Config){func(c *Config) { c.HTTP.Engine = "epoll" }}, "http.engine: "},
	} {
		c := declared(Resource{})
		for _, change := range test.changes {
			change(&c)
		}
		if err := c.Validate(); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// TestRedactedUsers: digests are not shown, and showing them changes nothing.
func TestRedactedUsers(t *testing.T) {
	c := declared(Resource{})
	c.Frontends.Redis = ListenAt("127.0.0.1:6379")
	c.Redis.Users = []RedisUser{{"web", digestOfAll}}
	if shown := string(c.Redacted()); strings.Contains(shown, "sha256") || !strings.Contains(shown, "web: hidden") || c.Redis.Users[0].Password != digestOfAll {
		t.Errorf("got\n%s", shown)
	}
}

// TestPathsOfRedis: files are relative to the configuration file, and "-" is not a
// file.
func TestPathsOfRedis(t *testing.T) {
	dir := filepath.FromSlash("/etc/shop")
	c := Config{Origin: Origin{Dir: dir}, Redis: Redis{TLS: TLS{Cert: "tls/cert.pem", Key: "/run/key.pem"}}, Log: Log{Requests: "requests.log"}}
	files := c.Certificates(c.Redis.TLS)
	cert, key := files.Cert, files.Key
	if cert != filepath.Join(dir, "tls", "cert.pem") || key != filepath.FromSlash("/run/key.pem") || c.RequestLogPath() != filepath.Join(dir, "requests.log") {
		t.Errorf("got %s, %s and %s", cert, key, c.RequestLogPath())
	}
	for _, as := range []string{"-", ""} {
		if c.Log.Requests = as; c.RequestLogPath() != as {
			t.Errorf("%q: got %q", as, c.RequestLogPath())
		}
	}
}
