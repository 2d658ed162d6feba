package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/handover"
)

// warmUp bounds how long a new process waits for every resource to keep its promise before
// it takes over anyway: a resource without its triggers never keeps it.
const warmUp = 5 * time.Second

// succession is the role of this process among those that replace one another.
type succession struct {
	// Immutable after inherit.
	config *config.Config
	log    *slog.Logger
	left   chan struct{} // closed when a successor serves

	// Owned by the start of the gateway, and after it by the goroutine that ends
	// it.
	sockets *handover.Sockets
	server  *handover.Server // nil before ready, or without a path
}

// inherit takes the sockets of a running gateway or of systemd.
func inherit(ctx context.Context, cfg *config.Config, log *slog.Logger) (*succession, error) {
	sockets, err := handover.Inherit(ctx, handover.Options{Path: cfg.Path(cfg.Handover), Log: log})
	if err != nil {
		hint := ""
		switch {
		case errors.Is(err, handover.ErrUnsupported):
			hint = "remove handover from the configuration on this system"
		case errors.Is(err, handover.ErrBusy):
			hint = "processes that start together wait for one another"
		}
		return nil, fail(exitFailure, err, hint)
	}
	if pid := sockets.Predecessor(); pid != 0 {
		log.Info("taking over from a running gateway", "pid", pid)
	}
	return &succession{config: cfg, log: log, left: make(chan struct{}), sockets: sockets}, nil
}

// options returns the options of a gateway that takes part in the succession.
func (s *succession) options() gateway.Options {
	listeners := make(map[string][]net.Listener)
	for name, addresses := range gateway.Addresses(s.config) {
		if all := s.sockets.Take(name, addresses...); len(all) > 0 {
			listeners[name] = all
		}
	}
	return gateway.Options{Logger: s.log, Listeners: listeners, BeforeAccept: s.ready, Succeeds: s.sockets.Predecessor() != 0}
}

// ready is called when everything runs: from here on this process replaces its
// predecessor.
func (s *succession) ready(ctx context.Context, g *gateway.Gateway, listeners map[string][]net.Listener) error {
	if pid := s.sockets.Predecessor(); pid != 0 {
		if err := s.await(ctx, g); err != nil {
			return fmt.Errorf("the running gateway (process %d) continues to serve: %w", pid, err)
		}
	}
	var all []handover.Named
	for name, some := range listeners {
		for _, l := range some {
			all = append(all, handover.Named{Name: name, Listener: l})
		}
	}
	var err error
	s.server, err = s.sockets.Ready(all, func() { close(s.left) })
	return err
}

// await waits until the gateway keeps its promises. A gateway that does not keep them takes
// over all the same, as it would start, but one without the database does not: the
// predecessor may well have a connection to it.
func (s *succession) await(ctx context.Context, g *gateway.Gateway) error {
	limited, cancel := context.WithTimeout(ctx, warmUp)
	defer cancel()
	err := g.AwaitReady(limited)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil || limited.Err() == nil || errors.Is(err, cache.ErrUnavailable) {
		return err
	}
	s.log.Warn("taking over although not every freshness promise is kept", "waited", warmUp.String(), "error", err)
	return nil
}

// notify notifies the service manager; a failure is not a reason to end.
func (s *succession) notify(state string) {
	if err := handover.Notify(state); err != nil {
		s.log.Warn("the service manager could not be notified", "state", state, "error", err)
	}
}

// stopping ends this process's part, before the gateway is drained.
func (s *succession) stopping(g *gateway.Gateway) {
	s.server.Close()
	select {
	case <-s.left:
		// Operators should see the new process; otherwise the old one would answer half
		// of their requests.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := g.ShutdownAdmin(ctx); err != nil {
			s.log.Warn("requests of operators were cut off", "error", err)
		}
	default:
		s.notify("STOPPING=1")
	}
}

// interruptible runs f until it returns or a signal comes, which ends its context.
func interruptible(ctx context.Context, signals <-chan os.Signal, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }() // ends with ctx at the latest, awaited below
	select {
	case err := <-done:
		return err
	case <-signals:
		cancel()
		return errors.Join(fail(exitInterrupted, errors.New("interrupted while starting"), ""), <-done)
	}
}
