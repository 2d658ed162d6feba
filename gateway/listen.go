package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	httpfront "github.com/slipstream-go/slipstream/gateway/frontend/http"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// What listeners are for: keys of [Options.Listeners].
const (
	ListenHTTP  = "http"
	ListenRedis = "redis"
	ListenAdmin = "admin"
)

// Addresses returns where a gateway of that configuration listens, by name.
func Addresses(cfg *config.Config) map[string]string {
	all := map[string]string{ListenHTTP: cfg.Frontends.HTTP, ListenAdmin: cfg.Admin.Address}
	if cfg.Frontends.Redis != "" {
		all[ListenRedis] = cfg.Frontends.Redis
	}
	return all
}

// bind makes the listeners that were not given.
func (g *Gateway) bind() error {
	loops := runtime.GOMAXPROCS(0)
	if g.listeners == nil {
		g.listeners = make(map[string][]net.Listener)
	}
	for name, address := range Addresses(g.config) {
		if len(g.listeners[name]) > 0 {
			continue
		}
		sockets := loops
		if name == ListenAdmin || name == ListenHTTP && g.config.HTTP.Engine != config.Loop {
			sockets = 1
		}
		listeners, err := loop.Listen("tcp", address, sockets)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		g.listeners[name] = listeners
	}
	g.adminAddr = g.listeners[ListenAdmin][0].Addr()
	return nil
}

// take returns the listeners of a name to who owns them from now on.
func (g *Gateway) take(name string) []net.Listener {
	all := g.listeners[name]
	delete(g.listeners, name)
	return all
}

// serve begins to accept.
func (g *Gateway) serve() error {
	settings := listenConfig(g.config, Options{Logger: g.log})
	settings.Listeners = g.take(ListenHTTP)
	settings.Budget, settings.MaxConnections = g.bounds.memory, g.bounds.httpPlaces
	var err error
	if g.http, err = httpfront.Listen(g.config.Frontends.HTTP, g.now().service, settings); err != nil {
		return err
	}
	if g.redis != nil {
		if err := g.redis.Serve(g.take(ListenRedis)...); err != nil {
			return err
		}
	}
	g.serveAdmin()
	return nil
}

// closeListeners closes what nobody has begun to serve.
func (g *Gateway) closeListeners() error {
	var errs []error
	for _, all := range g.listeners {
		for _, l := range all {
			errs = append(errs, l.Close())
		}
	}
	g.listeners = nil
	return errors.Join(errs...)
}

// AwaitReady returns nil as soon as every resource keeps its promise, and when ctx ends
// first an error that says why not all do; it wraps [cache.ErrUnavailable] if the database
// was not reached. Call it in Options.BeforeAccept or after Start.
func (g *Gateway) AwaitReady(ctx context.Context) error {
	ticker := time.NewTicker(readyPause)
	defer ticker.Stop()
	for {
		reasons := g.Ready()
		if len(reasons) == 0 {
			return nil
		}
		select {
		case <-ticker.C:
		case err := <-g.failed:
			g.failed <- err // for Wait, too
			return err
		case <-ctx.Done():
			err := fmt.Errorf("not ready: %s", reasons[0])
			if g.waiting.Load() != nil {
				err = fmt.Errorf("%w: %w", cache.ErrUnavailable, err)
			}
			return err
		}
	}
}

// readyPause is below the interval of the quickest stream.
const readyPause = 10 * time.Millisecond
