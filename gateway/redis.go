package gateway

import (
	"encoding/hex"
	"fmt"
	"net"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/config"
	front "github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/respfront"
)

// protocolRedis is the Redis protocol.
var protocolRedis = protocol{
	name:      ListenRedis,
	listeners: func(cfg *config.Config) *config.Listeners { return &cfg.Frontends.Redis },
	tls:       func(cfg *config.Config) config.TLS { return cfg.Redis.TLS },
	limits: func(cfg *config.Config) config.Limits {
		l := &cfg.Redis.Limits
		return config.Limits{
			Client: l.Client, Caller: l.Caller, RequestTimeout: l.RequestTimeout, IdleTimeout: l.IdleTimeout,
			StallTimeout: l.StallTimeout, Connections: l.Connections, PerAddress: l.PerAddress,
		}
	},
	expose: (*Exposure).exposeRedis,
	open:   openRedis,
}

// redisFrontend is the frontend for Redis clients.
type redisFrontend struct{ *respfront.Server }

func openRedis(g *Gateway, first *generation, resources []front.Resource, conns front.ConnConfig, requests front.RequestConfig) (frontend, error) {
	settings, err := redisConfig(first.config, requests)
	if err != nil {
		return nil, err
	}
	settings.ConnConfig = conns
	settings.LoginTimeout = first.config.Redis.Limits.LoginTimeout
	s, err := respfront.New(g.cache, resources, settings)
	if err != nil {
		return nil, err
	}
	return redisFrontend{s}, nil
}

// prepare implements frontend.
func (r redisFrontend) prepare(next *generation, resources []front.Resource, requests front.RequestConfig) (func(), error) {
	settings, err := redisConfig(next.config, requests)
	if err != nil {
		return nil, err
	}
	view, err := r.Next(resources, settings)
	if err != nil {
		return nil, err
	}
	return func() { r.Swap(view) }, nil
}

// redisConfig returns which commands a generation answers, and for which users.
func redisConfig(cfg *config.Config, requests front.RequestConfig) (respfront.Config, error) {
	c := respfront.Config{RequestConfig: requests, RequireAuth: cfg.RedisLogin()}
	for _, u := range cfg.Redis.Users {
		user := respfront.User{Name: u.Name}
		// Validate has checked the digits.
		if _, err := hex.Decode(user.PasswordHash[:], []byte(strings.TrimPrefix(u.Password, "sha256:"))); err != nil {
			return c, fmt.Errorf("redis.users.%s: %w", u.Name, err)
		}
		c.Users = append(c.Users, user)
	}
	return c, nil
}

// RedisAddr returns the address of the Redis frontend, or nil if there is none. Call it
// after Start.
func (g *Gateway) RedisAddr() net.Addr { return g.addr(ListenRedis) }

// Metrics that only Redis has.
var (
	redisCommands  = newMetric("redis_commands_total", "Commands that the Redis frontend answered, by group.", "group")
	redisErrors    = newMetric("redis_errors_total", "Commands that the Redis frontend answered with an error, by kind; wrongpass counts failed logins.", "kind")
	redisDurations = newMetric("redis_command_duration_seconds", "Time from the end of reading a command to its answer, by the source of the answer; a hit counts with the time of all commands of the same read. Buckets are accurate to 3.2 %.", "source")
	redisBytes     = newMetric("redis_body_bytes_total", "Bytes of documents in answers of the Redis frontend.")
	redisStale     = newMetric("redis_stale_answers_total", "Answers of the Redis frontend with a document that may be older than promised, which the policy of its resource allows.")
	redisWaiting   = newMetric("redis_waiting_documents", "Documents that commands wait for.")
	redisHeld      = newMetric("redis_held_bytes", "Bytes of loaded documents that wait for their turn in an answer.")
	redisSpokeHTTP = newMetric("redis_spoke_http_total", "Connections of the Redis frontend that were closed because they spoke HTTP.")
)

// collect implements frontend.
func (r redisFrontend) collect(f *front.Figures, to sink) {
	r.EachGroup(func(group string, n int64) {
		to.send(redisCommands, float64(n), group)
	})
	r.EachFailure(func(kind string, n int64) {
		to.send(redisErrors, float64(n), kind)
	})
	collectDurations(redisDurations, f.Answers, to)
	to.send(redisBytes, float64(f.Answers.Bytes()))
	to.send(redisStale, float64(r.StaleAnswers()))
	to.send(redisWaiting, float64(r.Waiting()))
	to.send(redisHeld, float64(r.Held()))
	to.send(redisSpokeHTTP, float64(r.SpokeHTTP()))
}
