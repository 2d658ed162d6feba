package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/handover"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// Purposes of listeners: keys of [Options.Listeners].
const (
	ListenHTTP    = "http"
	ListenRedis   = "redis"
	ListenThrift  = "thrift"
	ListenAdmin   = "admin"
	ListenMetrics = "metrics"
)

// Addresses returns the addresses at which a gateway with this configuration listens, by
// name: host:port, or "unix:" and an absolute path.
func Addresses(cfg *config.Config) map[string][]string {
	all := make(map[string][]string)
	for name, some := range listenersOf(cfg) {
		for _, l := range some {
			all[name] = append(all[name], addressOf(cfg, l))
		}
	}
	return all
}

func listenersOf(cfg *config.Config) map[string]config.Listeners {
	all := make(map[string]config.Listeners)
	if cfg.Admin.Address != "" {
		all[ListenAdmin] = config.Listeners{cfg.Admin.Listener()}
	}
	if cfg.Admin.Metrics.Address != "" {
		all[ListenMetrics] = config.Listeners{cfg.Admin.Metrics}
	}
	for _, p := range protocols {
		if l := *p.listeners(cfg); len(l) > 0 {
			all[p.name] = l
		}
	}
	return all
}

// addressOf returns the address of a listener with the path of a unix socket made absolute.
func addressOf(cfg *config.Config, l config.Listener) string {
	if path := cfg.SocketPath(l); path != "" {
		return "unix:" + path
	}
	return l.Address
}

// bind makes the listeners that were not given. A given listener serves the address that it is
// bound to or, if only one is configured, that one.
func (g *Gateway) bind() error {
	given := g.listeners
	g.listeners = make(map[string][]net.Listener)
	g.serves = make(map[net.Listener]config.Listener)
	for name, configured := range listenersOf(g.config) {
		for _, l := range configured {
			var found []net.Listener
			for _, one := range given[name] {
				if len(configured) == 1 || handover.Fits(one.Addr(), addressOf(g.config, l)) {
					found = append(found, one)
				}
			}
			if err := g.mayServe(name, l, found); err != nil {
				return fmt.Errorf("%s: %w", name, errors.Join(err, closeAll(given)))
			}
			if len(found) == 0 {
				var err error
				if found, err = g.bindOne(name, l); err != nil {
					return fmt.Errorf("%s: %w", name, errors.Join(err, closeAll(given)))
				}
			}
			for _, one := range found {
				g.serves[one] = l
			}
			g.listeners[name] = append(g.listeners[name], found...)
		}
	}
	for name, some := range given {
		for _, one := range some {
			if _, ok := g.serves[one]; !ok {
				g.log.Warn("a given listener is bound to an address that is not in the configuration; it is closed", "listener", name, "bound", one.Addr().String())
				_ = one.Close() // nothing was accepted
			}
		}
	}
	g.addrs = make(map[string][]net.Addr)
	for name, some := range g.listeners {
		for _, l := range some {
			if a := l.Addr(); !slices.ContainsFunc(g.addrs[name], func(b net.Addr) bool { return a.String() == b.String() }) {
				g.addrs[name] = append(g.addrs[name], a)
			}
		}
	}
	if bound := g.addrs[ListenAdmin]; len(bound) > 0 {
		g.adminAddr = bound[0]
	}
	return nil
}

// mayServe applies the rules for addresses that other machines can reach to given listeners, which
// may be bound to other addresses than those of the configuration.
func (g *Gateway) mayServe(name string, l config.Listener, given []net.Listener) error {
	for _, one := range given {
		bound, ok := one.Addr().(*net.TCPAddr)
		if !ok || handover.Fits(bound, addressOf(g.config, l)) {
			continue
		}
		is := *g.config
		move := func(all config.Listeners) config.Listeners {
			all = slices.Clone(all)
			all[0].Address, all[0].Mode, all[0].Owner = bound.String(), 0, "" // it is the only one
			return all
		}
		if p := protocolOf(name); p != nil {
			l := p.listeners(&is)
			*l = move(*l)
		} else if name == ListenAdmin {
			is.Admin.Address, is.Admin.Mode, is.Admin.Owner = bound.String(), 0, ""
		}
		if err := g.listens.validate(is); err != nil {
			return fmt.Errorf("the listener that was given is bound to %s, which the configuration does not permit: %w", bound, err)
		}
	}
	return nil
}

func (g *Gateway) bindOne(name string, l config.Listener) ([]net.Listener, error) {
	if path := g.config.SocketPath(l); path != "" {
		one, err := listenUnix(path, l)
		return []net.Listener{one}, err
	}
	sockets := runtime.GOMAXPROCS(0)
	if p := protocolOf(name); p == nil || l.TLS != (config.TLS{}) || p.oneSocket != nil && p.oneSocket(g.config) {
		sockets = 1
	}
	return loop.Listen("tcp", l.Address, sockets)
}

// protocolOf returns the protocol of the named listeners, or nil if the admin server serves
// them.
func protocolOf(name string) *protocol {
	for _, p := range protocols {
		if p.name == name {
			return p
		}
	}
	return nil
}

// take returns the named listeners, which the caller owns from now on, with TLS where it is
// configured.
func (g *Gateway) take(name string) []net.Listener {
	all := g.listeners[name]
	delete(g.listeners, name)
	p := protocolOf(name)
	for i, l := range all {
		switch c := g.now().surface.certificates[tlsOf(g.config, name, g.serves[l])]; {
		case c == nil:
		case p == nil: // net/http does the handshake itself and exposes the client's certificate
			all[i] = tls.NewListener(l, c.config(false))
		default:
			all[i] = loop.Secure(l, c.config(p.http))
		}
	}
	return all
}

// tlsOf returns the files of a listener's TLS.
func tlsOf(cfg *config.Config, name string, l config.Listener) config.TLS {
	t := l.TLS
	if _, local := l.Unix(); t == (config.TLS{}) && !local {
		if p := protocolOf(name); p != nil && p.tls != nil {
			t = p.tls(cfg)
		}
	}
	return cfg.Certificates(t)
}

// serve begins to accept.
func (g *Gateway) serve() error {
	g.logExposure()
	for _, f := range g.frontends {
		if err := f.Serve(g.take(f.name)...); err != nil {
			return err
		}
	}
	g.serving = true
	g.serveAdmin()
	g.mounted.Store(g.http)
	return nil
}

func closeAll(listeners map[string][]net.Listener) error {
	var errs []error
	for _, all := range listeners {
		for _, l := range all {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// closeListeners closes the listeners that are not served yet.
func (g *Gateway) closeListeners() error {
	err := closeAll(g.listeners)
	g.listeners = nil
	return err
}

// AwaitReady returns nil as soon as every resource keeps its promise, or, if ctx ends first,
// an error that says why not all do; it wraps [cache.ErrUnavailable] if the database was not
// reached. Call it in Options.BeforeAccept or after Start.
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

// readyPause is below the poll interval of the fastest stream.
const readyPause = 10 * time.Millisecond
