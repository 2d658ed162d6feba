package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/audit"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/gateway/otel"
	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
)

// surface is the layer between clients and the cache: access rules, rate limits, and
// logs.
type surface struct {
	// Immutable after newSurface.
	gate         *access.Gate                // nil without credentials
	certificates map[config.TLS]*certificate // by their files
	spans        *otel.Exporter              // nil without tracing
	requests     *requestlog.Log             // nil without a log of requests
	tokens       *access.Tokens              // of the admin listener; nil without a file
	audit        *audit.Log

	// Owned by the goroutine that makes the frontends' configurations from it.
	limiters, before map[string]rated
}

// newSurface opens what the configuration names. The caller closes it.
func newSurface(cfg *config.Config, opts Options) (*surface, error) {
	return nextSurface(&surface{}, &config.Config{}, cfg, opts)
}

// nextSurface opens what cfg names and old does not have; old was made from the configuration
// was. The rest is shared. The caller closes what only one of them uses: see unshared.
func nextSurface(old *surface, was, cfg *config.Config, opts Options) (*surface, error) {
	s := &surface{limiters: make(map[string]rated), before: old.limiters}
	fail := func(what string, err error) (*surface, error) {
		return nil, errors.Join(fmt.Errorf("%s: %w", what, err), s.unshared(old).close(context.Background()))
	}
	err := s.openAudit(old, was, cfg, opts)
	if err != nil {
		return fail("log.audit", err)
	}
	if err = s.openTokens(old, was, cfg, opts); err != nil {
		return fail("admin.token", err)
	}
	if is := accessConfig(cfg, opts); reflect.DeepEqual(is, accessConfig(was, opts)) {
		s.gate = old.gate
	} else if is.KeysFile != "" || cfg.Auth.JWT.Known() {
		is.Changed = opts.fileChanged // functions cannot be compared
		if s.gate, err = access.Open(is); err != nil {
			return fail("auth", err)
		}
		s.gate.Inherit(old.gate)
		warnIssuer(cfg, opts.Logger)
	}
	s.certificates = old.certificates // others need a restart
	if s.certificates == nil {
		if s.certificates, err = newCertificates(cfg, opts.Logger, opts.fileChanged); err != nil {
			return fail("tls", err)
		}
	}
	if cfg.Tracing == was.Tracing {
		s.spans = old.spans
	} else if cfg.Tracing.Endpoint != "" {
		s.spans, err = otel.New(context.Background(), otel.Config{
			Endpoint: cfg.Tracing.Endpoint, Service: cfg.Tracing.Service, Ratio: max(cfg.Tracing.Sample, 0), Log: opts.Logger,
		})
		if err != nil {
			return fail("tracing", err)
		}
	}
	if is := requestLogConfig(cfg, opts); is == requestLogConfig(was, opts) {
		s.requests = old.requests
	} else if is.Path != "" {
		if s.requests, err = requestlog.Open(is); err != nil {
			return fail("log.requests", err)
		}
	}
	return s, nil
}

// openAudit opens the audit log unless old has it.
func (s *surface) openAudit(old *surface, was, cfg *config.Config, opts Options) (err error) {
	if old.audit != nil && cfg.Path(cfg.Log.Audit) == was.Path(was.Log.Audit) {
		s.audit = old.audit
		return nil
	}
	s.audit, err = audit.Open(audit.Config{Path: cfg.Path(cfg.Log.Audit), Log: opts.Logger})
	return err
}

// openTokens reads the tokens of the admin listener unless old has them.
func (s *surface) openTokens(old *surface, was, cfg *config.Config, opts Options) (err error) {
	file := cfg.Path(cfg.Admin.Token)
	if file == was.Path(was.Admin.Token) {
		s.tokens = old.tokens
		return nil
	}
	if file == "" {
		return nil
	}
	s.tokens, err = access.OpenTokens(access.TokensConfig{File: file, Changed: opts.fileChanged, Log: opts.Logger})
	return err
}

func requestLogConfig(cfg *config.Config, opts Options) requestlog.Config {
	c := requestlog.Config{Path: cfg.RequestLogPath(), Log: opts.Logger}
	if c.Path != "" {
		c.Sample, c.Slow = cfg.Log.RequestSample, cfg.Log.Slow
	}
	return c
}

// unshared returns what s has and other does not.
func (s *surface) unshared(other *surface) *surface {
	left := *s
	if s.gate == other.gate {
		left.gate = nil
	}
	if s.spans == other.spans {
		left.spans = nil
	}
	if s.requests == other.requests {
		left.requests = nil
	}
	if s.tokens == other.tokens {
		left.tokens = nil
	}
	if s.audit == other.audit {
		left.audit = nil
	}
	return &left
}

// empty reports whether there is nothing to close.
func (s *surface) empty() bool {
	return s.gate == nil && s.spans == nil && s.requests == nil && s.tokens == nil && s.audit == nil
}

// rated is a limiter and the rate that it was made for.
type rated struct {
	rate    config.Rate
	limiter *limit.Limiter
}

// limiter returns the limiter of a name: the one of the previous surface, if the rate is the
// same, so that a reload gives no caller a new burst.
func (s *surface) limiter(name string, r config.Rate) *limit.Limiter {
	if known, ok := s.before[name]; ok && known.rate == r {
		s.limiters[name] = known
	} else if _, ok := s.limiters[name]; !ok {
		s.limiters[name] = rated{r, limit.New(limit.Config{Rate: r.PerSecond, Burst: r.Burst})}
	}
	return s.limiters[name].limiter
}

func accessConfig(cfg *config.Config, opts Options) access.Config {
	j := &cfg.Auth.JWT
	c := access.Config{
		KeysFile: cfg.Path(cfg.Auth.Keys),
		JWKSURL:  j.KeysURL(), Discovery: j.Discovery, CAFile: cfg.Path(j.CA), Refresh: j.Refresh,
		Issuer: j.Issuer, Audience: j.Audience,
		Algorithms: j.Algorithms, Leeway: j.Leeway,
		Log: opts.Logger,
	}
	if c.JWKSURL == "" {
		c.JWKSFile = cfg.Path(j.Keys)
	}
	if c.Audience == config.AnyAudience {
		c.Audience = ""
	}
	return c
}

// warnIssuer logs a warning if the issuer of tokens is not checked.
func warnIssuer(cfg *config.Config, log *slog.Logger) {
	if j := &cfg.Auth.JWT; j.Keys != "" && j.Issuer == "" && log != nil {
		log.Warn("auth.jwt names no issuer: all tokens signed with a key of the set are accepted; add issuer, the expected claim iss")
	}
}

// close ends what newSurface opened; spans and lines that wait are sent until ctx
// ends.
func (s *surface) close(ctx context.Context) error {
	return errors.Join(s.closeServing(ctx), s.closeAudit(ctx))
}

// closeAudit closes the audit log last: it records what operators do while everything else ends.
func (s *surface) closeAudit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushPatience)
	defer cancel()
	return s.audit.Close(ctx)
}

func (s *surface) closeServing(ctx context.Context) error {
	if s.tokens != nil {
		s.tokens.Close()
	}
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

// flushPatience bounds how long an unresponsive collector or disk can delay the
// shutdown of a gateway.
const flushPatience = 2 * time.Second

func accessRule(a *config.Access) *access.Rule {
	if a == nil {
		return nil
	}
	rule := &access.Rule{Keys: a.Keys, JWT: a.JWT, Claims: a.Claims, Certificates: a.Certificates}
	return rule.Prepare()
}

// maxPending bounds the large answers of a frontend that wait for clients.
func maxPending(cfg *config.Config) int64 { return max(256<<20, cfg.Tiers.Memory/4) }

// ReopenLogs makes the log of requests and the audit log continue in new files after the old ones
// were renamed. It does not wait.
func (g *Gateway) ReopenLogs() {
	now := g.now()
	if path := now.config.RequestLogPath(); path != "" && path != "-" {
		now.surface.requests.Reopen()
	}
	now.surface.audit.Reopen()
}
