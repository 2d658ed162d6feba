package gateway

import (
	"encoding/hex"
	"fmt"
	"net"
	"strings"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/respfront"
)

// newRedis returns the Redis frontend, nil if it is not configured.
func newRedis(c *cache.Cache, cfg *config.Config, s *surface, opts Options, shared *sharedBounds) (*respfront.Server, error) {
	if len(cfg.Frontends.Redis) == 0 {
		return nil, nil
	}
	settings, err := redisConfig(cfg, s, opts)
	if err != nil {
		return nil, err
	}
	settings.Budget, settings.MaxConnections = shared.memory, shared.redisPlaces
	return respfront.New(c, servedRedis(cfg, firstIDs(len(cfg.Resources)), nil), settings)
}

func redisConfig(cfg *config.Config, s *surface, opts Options) (respfront.Config, error) {
	l := &cfg.Redis.Limits
	c := respfront.Config{
		Gate:           s.gate,
		RequireAuth:    cfg.RedisLogin(),
		ClientLimit:    s.limiter("redis.client", l.Client),
		CallerLimit:    s.limiter("redis.caller", l.Caller),
		RequestTimeout: l.RequestTimeout,
		IdleTimeout:    l.IdleTimeout,
		StallTimeout:   l.StallTimeout,
		LoginTimeout:   l.LoginTimeout,
		MaxPerAddress:  l.PerAddress,
		TrustedProxies: cfg.HTTP.TrustedProxies,
		MaxPending:     maxPending(cfg),
		Requests:       s.requests,
		LoginFailed:    opts.loginFailed("redis"),
		SlowerThan:     cfg.Log.Slow,
		Log:            opts.Logger,
	}
	for _, u := range cfg.Redis.Users {
		user := respfront.User{Name: u.Name}
		// Validate has looked at the digits.
		if _, err := hex.Decode(user.PasswordHash[:], []byte(strings.TrimPrefix(u.Password, "sha256:"))); err != nil {
			return c, fmt.Errorf("redis.users.%s: %w", u.Name, err)
		}
		c.Users = append(c.Users, user)
	}
	return c, nil
}

// RedisAddr returns the address of the Redis frontend, nil if there is none. Call it
// after Start.
func (g *Gateway) RedisAddr() net.Addr {
	if g.redis == nil {
		return nil
	}
	return g.redis.Addr()
}
