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
// stats at any time, everything else by one goroutine at a time.
type frontend interface {
	// SetColumns sets the key columns of a resource. Until then its documents are refused as
	// if the database had not been reached.
	SetColumns(id cache.ResourceID, columns []resource.KeyColumn) error
	// prepare prepares a generation, which serves requests once commit is called. Requests that
	// have started finish with the previous generation.
	prepare(next *generation, resources []front.Resource, requests front.RequestConfig) (commit func(), err error)
	// Serve begins to serve listeners, which it owns from now on, and returns.
	Serve(listeners ...net.Listener) error
	// Shutdown waits for requests in flight until ctx ends. It may be called without Serve.
	Shutdown(ctx context.Context) error
	// Connections and LargePending are parts of Figures that are read every second.
	Connections() int64
	LargePending() int64
	Figures() front.Figures
	// collect collects the metrics that only this protocol has.
	collect(f *front.Figures, to sink)
}

// protocol describes a frontend before there is one. Its functions get a configuration with its
// defaults.
type protocol struct {
	name string // of its listeners, and in metrics
	// listeners are those of the configuration. Without listeners the frontend is opened only
	// if always is set.
	listeners func(*config.Config) *config.Listeners
	always    bool
	// tls is the TLS of listeners that configure none. If nil, they have none.
	tls func(*config.Config) config.TLS
	// oneSocket says that a listener is not divided among the loops. If nil, it is.
	oneSocket func(*config.Config) bool
	// http says that the TLS handshake negotiates a version of HTTP.
	http bool
	// limits are those of its clients. Limits that only HTTP has are zero for
	// others.
	limits func(*config.Config) config.Limits
	// expose describes who can read what at a listener.
	expose func(*Exposure, *config.Config, config.Listener)
	open   func(*Gateway, *generation, []front.Resource, front.ConnConfig, front.RequestConfig) (frontend, error)
}

// protocols are those that a gateway supports, in the order of the dashboard.
var protocols = []*protocol{&protocolHTTP, &protocolRedis, &protocolThrift}

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

// requestConfig returns which requests a generation admits and where it reports them.
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

// addr returns the address of the named frontend, or nil if it does not listen.
func (g *Gateway) addr(name string) net.Addr {
	if all := g.addrs[name]; len(all) > 0 {
		return all[0]
	}
	return nil
}

// stopFrontends drains the frontends concurrently: each may take as long as ctx allows.
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

// setColumns passes the key columns of a resource to the frontends.
func (g *Gateway) setColumns(id cache.ResourceID, columns []resource.KeyColumn) error {
	for _, f := range g.frontends {
		if err := f.SetColumns(id, columns); err != nil {
			return err
		}
	}
	return nil
}

// prepareFrontends prepares the next generation in all frontends; it serves requests once commit
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
