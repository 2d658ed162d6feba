package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/gateway/access"
	"github.com/slipstream-go/slipstream/gateway/config"
	httpfront "github.com/slipstream-go/slipstream/gateway/frontend/http"
	"github.com/slipstream-go/slipstream/gateway/limit"
	"github.com/slipstream-go/slipstream/gateway/otel"
	"github.com/slipstream-go/slipstream/gateway/requestlog"
)

// surface is what stands between clients and the cache: who may ask, how often, and
// who hears of it.
type surface struct {
	// Immutable after newSurface.
	gate        *access.Gate    // nil without credentials
	certificate *certificate    // of the Redis frontend; nil without TLS
	spans       *otel.Exporter  // nil without tracing
	requests    *requestlog.Log // nil without a log of requests
}

// newSurface opens what the configuration names. The caller closes it.
func newSurface(cfg *config.Config, opts Options) (*surface, error) {
	s := &surface{}
	var err error
	if cfg.Auth.Keys != "" || cfg.Auth.JWT.Keys != "" {
		if s.gate, err = access.Open(accessConfig(cfg, opts)); err != nil {
			return nil, fmt.Errorf("auth: %w", err)
		}
	}
	if cert, key := cfg.TLSPaths(); cert != "" && cfg.Frontends.Redis != "" {
		if s.certificate, err = newCertificate(cert, key, opts.Logger); err != nil {
			return nil, errors.Join(fmt.Errorf("redis.tls: %w", err), s.close(context.Background()))
		}
	}
	if cfg.Tracing.Endpoint != "" {
		s.spans, err = otel.New(context.Background(), otel.Config{
			Endpoint: cfg.Tracing.Endpoint, Service: cfg.Tracing.Service, Ratio: max(cfg.Tracing.Sample, 0), Log: opts.Logger,
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("tracing: %w", err), s.close(context.Background()))
		}
	}
	if path := cfg.RequestLogPath(); path != "" {
		if s.requests, err = requestlog.Open(requestlog.Config{Path: path, Sample: cfg.Log.RequestSample, Slow: cfg.Log.Slow, Log: opts.Logger}); err != nil {
			return nil, errors.Join(fmt.Errorf("log.requests: %w", err), s.close(context.Background()))
		}
	}
	return s, nil
}

func accessConfig(cfg *config.Config, opts Options) access.Config {
	return access.Config{
		KeysFile: cfg.KeysPath(), JWKSFile: cfg.JWKSPath(),
		Issuer: cfg.Auth.JWT.Issuer, Audience: cfg.Auth.JWT.Audience,
		Algorithms: cfg.Auth.JWT.Algorithms, Leeway: cfg.Auth.JWT.Leeway,
		Log: opts.Logger,
	}
}

// close ends what newSurface opened; spans and lines that wait are sent until ctx
// ends.
func (s *surface) close(ctx context.Context) error {
	if s.gate != nil {
		s.gate.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, flushPatience)
	defer cancel()
	var errs []error
	if s.spans != nil {
		if err := s.spans.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("tracing: %w", err))
		}
	}
	if s.requests != nil {
		errs = append(errs, s.requests.Close(ctx))
	}
	return errors.Join(errs...)
}

// flushPatience bounds how long a collector that does not answer, or a disk, keeps a
// gateway from ending.
const flushPatience = 2 * time.Second

// serviceConfig says how documents are served over HTTP.
func (s *surface) serviceConfig(cfg *config.Config, opts Options) httpfront.ServiceConfig {
	c := httpfront.ServiceConfig{
		Compression: cfg.HTTP.Compression,
		MaxBatch:    cfg.HTTP.Batch,
		CORS: httpfront.CORS{
			Origins: cfg.HTTP.CORS.Origins, Headers: cfg.HTTP.CORS.Headers,
			Credentials: cfg.HTTP.CORS.Credentials, MaxAge: cfg.HTTP.CORS.MaxAge,
		},
		Gate:        s.gate,
		ClientLimit: newLimiter(cfg.HTTP.Limits.Client),
		CallerLimit: newLimiter(cfg.HTTP.Limits.Caller),
		Requests:    s.requests,
		SlowerThan:  cfg.Log.Slow,
		Log:         opts.Logger,
	}
	if s.spans != nil { // a nil *Exporter in the interface would not be nil
		c.Spans = s.spans
	}
	return c
}

func newLimiter(r config.Rate) *limit.Limiter {
	return limit.New(limit.Config{Rate: r.PerSecond, Burst: r.Burst})
}

func accessRule(a *config.Access) *access.Rule {
	if a == nil {
		return nil
	}
	return &access.Rule{Keys: a.Keys, JWT: a.JWT, Claims: a.Claims}
}

// listenConfig says what the HTTP listener bounds.
func listenConfig(cfg *config.Config, opts Options) httpfront.Config {
	l := &cfg.HTTP.Limits
	engine := httpfront.EngineLoop
	if cfg.HTTP.Engine == config.NetHTTP {
		engine = httpfront.EngineNetHTTP
	}
	return httpfront.Config{
		Engine:         engine,
		DrainGrace:     cfg.Drain.Grace,
		RequestTimeout: l.RequestTimeout,
		HeaderTimeout:  l.HeaderTimeout,
		IdleTimeout:    l.IdleTimeout,
		StallTimeout:   l.StallTimeout,
		MaxHeader:      int(l.Header),
		MaxConnections: l.Connections,
		MaxPending:     maxPending(cfg),
		TrustedProxies: cfg.HTTP.TrustedProxies,
		Log:            opts.Logger,
	}
}

// maxPending bounds the large answers of a frontend that wait for clients.
func maxPending(cfg *config.Config) int64 { return max(256<<20, cfg.Tiers.Memory/4) }

// ReopenRequestLog makes the log of requests go on in a new file after the old one was
// renamed, and reports whether there is such a file. It does not wait for it.
func (g *Gateway) ReopenRequestLog() bool {
	if path := g.config.RequestLogPath(); path == "" || path == "-" {
		return false
	}
	g.surface.requests.Reopen()
	return true
}
