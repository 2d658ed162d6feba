package gateway

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/resource"
	front "github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// frontend is a protocol in front of the cache. Serve and Shutdown are called once, the
// figures at any time, all else by one goroutine at a time.
type frontend interface {
	// SetColumns says what the key of a resource looks like. Until then its documents are
	// refused as those of a database that has not been reached.
	SetColumns(id cache.ResourceID, columns []resource.KeyColumn) error
	// prepare makes ready what a generation serves, and lets it answer when commit is called.
	// Requests that have started end with the previous generation.
	prepare(next *generation, resources []front.Resource, requests front.RequestConfig) (commit func(), err error)
	// Serve begins to serve listeners, which it owns from now on, and returns.
	Serve(listeners ...net.Listener) error
	// Shutdown lets requests under way end until ctx ends, also if Serve was not called.
	Shutdown(ctx context.Context) error
	// Connections and LargePending are parts of Figures that are asked for every second.
	Connections() int64
	LargePending() int64
	Figures() front.Figures
	// collect shows the figures that only this protocol has.
	collect(f *front.Figures, to sink)
}

// protocol is what is known of a frontend before there is one. Functions read a configuration
// with its defaults.
type protocol struct {
	name string // of its listeners, and in figures
	// listeners are those of the configuration. Without any the frontend is opened only if
	// always is set.
	listeners func(*config.Config) *config.Listeners
	always    bool
	// tls is what its listeners have that configure none of their own. If nil, they have none.
	tls func(*config.Config) config.TLS
	// oneSocket says that a listener is not divided among the loops. If nil, it is.
	oneSocket func(*config.Config) bool
	// http says that a handshake agrees on a version of HTTP.
	http bool
	// limits are those of its clients. What only HTTP limits is zero for others.
	limits func(*config.Config) config.Limits
	// expose says who can ask for what at a listener.
	expose func(*Exposure, *config.Config, config.Listener)
	open   func(*Gateway, *generation, []front.Resource, front.ConnConfig, front.RequestConfig) (frontend, error)
}

// protocols are those that a gateway speaks, in the order of the dashboard.
var protocols = []*protocol{&protocolHTTP, &protocolRedis}

// opened is a frontend of a gateway.
type opened struct {
	*protocol
	frontend
}

// openFrontends makes the frontends that the configuration has listeners for.
func (g *Gateway) openFrontends(first *generation) error {
	for _, p := range protocols {
		if !p.always && len(*p.listeners(first.config)) == 0 {
			continue
		}
		f, err := p.open(g, first, first.served(nil), g.connConfig(p, first.config), g.requestConfig(p, first))
		if err != nil {
			return errors.Join(err, g.stopFrontends(context.Background()))
		}
		g.frontends = append(g.frontends, opened{p, f})
	}
	return nil
}

// connConfig configures the connections of a frontend.
func (g *Gateway) connConfig(p *protocol, cfg *config.Config) front.ConnConfig {
	l := p.limits(cfg)
	return front.ConnConfig{
		RequestTimeout: l.RequestTimeout,
		IdleTimeout:    l.IdleTimeout,
		StallTimeout:   l.StallTimeout,
		MaxConnections: g.bounds.places[p.name],
		MaxPerAddress:  l.PerAddress,
		TrustedProxies: cfg.HTTP.TrustedProxies,
		Budget:         g.bounds.memory,
		Large:          loop.NewLargeBudget(maxPending(cfg)),
		Workers:        g.bounds.workers,
		Log:            g.log,
	}
}

// requestConfig says which requests a generation admits and where it reports them.
func (g *Gateway) requestConfig(p *protocol, n *generation) front.RequestConfig {
	l := p.limits(n.config)
	return front.RequestConfig{
		Gate:        n.surface.gate,
		ClientLimit: n.surface.limiter(p.name+".client", l.Client),
		CallerLimit: n.surface.limiter(p.name+".caller", l.Caller),
		Requests:    n.surface.requests,
		LoginFailed: g.options().loginFailed(p.name),
		SlowerThan:  n.config.Log.Slow,
	}
}

// addr returns where the frontend of a name listens, nil if it does not.
func (g *Gateway) addr(name string) net.Addr {
	if all := g.addrs[name]; len(all) > 0 {
		return all[0]
	}
	return nil
}

// stopFrontends drains the frontends, all at once: each may take as long as ctx lets
// it.
func (g *Gateway) stopFrontends(ctx context.Context) error {
	var all sync.WaitGroup
	errs := make([]error, len(g.frontends))
	for i, f := range g.frontends {
		// Ends with ctx at the latest, awaited below.
		all.Go(func() { errs[i] = f.Shutdown(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// setColumns tells the frontends what the keys of a resource look like.
func (g *Gateway) setColumns(id cache.ResourceID, columns []resource.KeyColumn) error {
	for _, f := range g.frontends {
		if err := f.SetColumns(id, columns); err != nil {
			return err
		}
	}
	return nil
}

// prepareFrontends makes ready what the next generation serves, and lets it answer when commit
// is called.
func (g *Gateway) prepareFrontends(next *generation) (commit func(), err error) {
	var keys origin.Schema
	if c := g.origin.reached.Load(); c != nil {
		keys = c.database
	}
	resources := next.served(keys)
	var commits []func()
	for _, f := range g.frontends {
		commit, err := f.prepare(next, resources, g.requestConfig(f.protocol, next))
		if err != nil {
			return nil, err
		}
		commits = append(commits, commit)
	}
	return func() {
		for _, commit := range commits {
			commit()
		}
	}, nil
}

// longestRequest is how long a request may use the generation that it started with.
func longestRequest(cfg *config.Config) (longest time.Duration) {
	for _, p := range protocols {
		l := p.limits(cfg)
		longest = max(longest, l.RequestTimeout, l.StallTimeout)
	}
	return longest + straggle
}
