package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
)

func (p program) serveCommand() *cobra.Command {
	var file string
	var drain time.Duration
	c := &cobra.Command{
		Use:   "serve -c FILE",
		Short: "Serve the documents of a configuration",
		Long: `Serve answers GET /{resource}/{key} for every resource of the configuration,
until SIGINT or SIGTERM. It then drains: no new connections, requests in flight
are answered. A second signal ends it immediately.

Serve waits for a database that cannot be reached; until then documents are answered
with 503 and /ready of the admin listener says why. The triggers that the promise
needs are created by "slipstream db apply"; without them a resource is served by its
on_stale policy and /ready says which are missing.

Logs go to standard error (log: { level, format } in the configuration). If
log.requests is set, a line for every request is written to that file; if log.audit is
set, a line for every action of an operator and every failed login is written to that
file. SIGHUP reopens both, for logrotate.

SIGHUP also reloads the configuration, as POST /reload of the admin listener
does. A configuration that is invalid, or needs a restart, is refused, and the log says
why; documents of resources that remain are served from the cache without interruption.
"slipstream config check --against" shows what would change.

With handover in the configuration a process that is started next to a running one
takes over its listening sockets once it is ready; the running one then drains and
ends with exit code 0. Sockets that systemd passes are used in the same way.

` + exitCodes,
		Example: `  slipstream serve -c /etc/slipstream.yaml
  slipstream serve -c slipstream.yaml --drain 5s

  curl -i http://127.0.0.1:8080/depts/42     # a document
  curl -i http://127.0.0.1:9100/ready        # may it get traffic?
  curl -X POST http://127.0.0.1:9100/reload  # the file has changed`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.serve(c.Context(), file, func() (*config.Config, error) {
				cfg, err := loadConfig(file)
				if err == nil && drain > 0 {
					cfg.Drain.Timeout = drain
					cfg.Drain.Grace = min(cfg.Drain.Grace, drain/2)
				}
				return cfg, err
			})
		},
	}
	fileFlag(c, &file)
	c.Flags().DurationVar(&drain, "drain", 0, "how long requests in flight may take after a signal, instead of drain.timeout of the configuration")
	return c
}

func (p program) serve(ctx context.Context, file string, load func() (*config.Config, error)) error {
	cfg, err := load()
	if err != nil {
		return err
	}
	log, level := newLevelLogger(p.stderr, cfg.Log)
	signals, stop := notifySignals()
	defer stop()
	var place *succession
	if err := interruptible(ctx, signals, func(ctx context.Context) (err error) {
		place, err = inherit(ctx, cfg, log)
		return err
	}); err != nil {
		return err
	}
	defer place.sockets.Close()
	options := place.options()
	options.Load = load
	options.OnReload = func(cfg *config.Config) { level.Set(logLevel(cfg.Log)) }
	g, err := startGateway(ctx, file, cfg, options, signals)
	if err != nil {
		return err
	}
	h := new(hangUp)
	defer h.reloads(g)()
	g.LimitMemory()
	g.SpareProcessor()
	where := []any{"http", g.HTTPAddr().String(), "admin", g.AdminAddr().String()}
	if metrics := g.Addrs(gateway.ListenMetrics); len(metrics) > 0 {
		where = append(where, "metrics", metrics[0].String())
	}
	if redis := g.RedisAddr(); redis != nil {
		where = append(where, "redis", redis.String())
	}
	if thrift := g.ThriftAddr(); thrift != nil {
		where = append(where, "thrift", thrift.String())
	}
	log.Info("serving", append(where, "resources", len(cfg.Resources), "after", time.Since(p.started).Round(time.Millisecond).String())...)
	place.notify("READY=1")
	err = untilSignal(g, signals, place.left, h, func(why string) time.Duration {
		within := g.Config().Drain.Timeout
		log.Info("draining", "reason", why, "within", within.String())
		place.stopping(g)
		return within
	})
	if err != nil {
		return withHint(err, file)
	}
	log.Info("drained")
	return nil
}

// startGateway builds and starts a gateway. A signal during the start ends it.
func startGateway(ctx context.Context, file string, cfg *config.Config, options gateway.Options, signals <-chan os.Signal) (*gateway.Gateway, error) {
	g, err := gateway.New(cfg, options)
	if err != nil {
		return nil, fail(exitUsage, err, "")
	}
	if err := interruptible(ctx, signals, g.Start); err != nil {
		return nil, withHint(err, file) // the process ends: nothing to drain
	}
	return g, nil
}

// withHint adds hints to common errors. Errors that have an exit code keep it.
func withHint(err error, file string) error {
	if _, ok := errors.AsType[*failure](err); ok || err == nil {
		return err
	}
	hint := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE) || strings.Contains(err.Error(), "Only one usage of each socket address"):
		hint = "another process listens there; choose another port, or 0 for a free one"
	case errors.Is(err, syscall.EACCES):
		hint = "ports below 1024 need a privilege; choose a higher one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "this machine has no such address"
	default:
		return databaseFailure(err, file, exitFailure)
	}
	return fail(exitFailure, err, hint)
}
