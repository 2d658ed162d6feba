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
until SIGINT or SIGTERM. It then drains: no new connections, requests under way
are answered. A second signal ends it at once.

A database that is not there yet is waited for; until then documents are answered
with 503 and /ready of the admin listener says why. The triggers that the promise
needs are made by "slipstream db apply"; without them a resource is served by its
on_stale policy and /ready says which are missing.

Logs go to standard error as the configuration says (log: { level, format }). A
line for every request goes to the file of log.requests, if it is set; after
SIGHUP to a new file of that name, for logrotate.

` + exitCodes,
		Example: `  slipstream serve -c /etc/slipstream.yaml
  slipstream serve -c slipstream.yaml --drain 5s

  curl -i http://127.0.0.1:8080/depts/42     # a document
  curl -i http://127.0.0.1:9100/ready        # may it get traffic?`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := loadConfig(file)
			if err != nil {
				return err
			}
			if drain > 0 {
				cfg.Drain.Timeout = drain
			}
			return p.serve(c.Context(), file, cfg)
		},
	}
	fileFlag(c, &file)
	c.Flags().DurationVar(&drain, "drain", 0, "how long requests under way may take after a signal, instead of drain.timeout of the configuration")
	return c
}

func (p program) serve(ctx context.Context, file string, cfg *config.Config) error {
	log := newLogger(p.stderr, cfg.Log)
	signals, stop := notifySignals()
	defer stop()
	g, err := startGateway(ctx, file, cfg, gateway.Options{Logger: log}, signals)
	if err != nil {
		return err
	}
	g.LimitMemory()
	log.Info("serving", "http", g.HTTPAddr().String(), "admin", g.AdminAddr().String(),
		"resources", len(cfg.Resources), "after", time.Since(p.started).Round(time.Millisecond).String())
	err = untilSignal(g, signals, cfg.Drain.Timeout, func(s os.Signal) {
		log.Info("draining", "signal", s.String(), "within", cfg.Drain.Timeout.String())
	})
	if err != nil {
		return withHint(err, file)
	}
	log.Info("drained")
	return nil
}

// startGateway builds and starts. A signal while it starts ends it.
func startGateway(ctx context.Context, file string, cfg *config.Config, options gateway.Options, signals <-chan os.Signal) (*gateway.Gateway, error) {
	g, err := gateway.New(cfg, options)
	if err != nil {
		return nil, fail(exitUsage, err, "")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- g.Start(ctx) }() // ends with ctx at the latest, awaited below
	select {
	case err = <-started:
	case <-signals:
		cancel()
		err = errors.Join(<-started, fail(exitInterrupted, errors.New("interrupted while starting"), ""))
	}
	if err != nil {
		return nil, withHint(err, file) // the process ends: nothing to drain
	}
	return g, nil
}

// withHint says what may help against errors that users meet. Errors that have
// their exit code keep it.
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
