package gateway

import (
	"context"
	"net"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/admin"
)

// serveAdmin starts to serve the listeners of operators, if there are any.
func (g *Gateway) serveAdmin() {
	if len(g.listeners[ListenAdmin])+len(g.listeners[ListenMetrics]) == 0 {
		return
	}
	settings := admin.Config{
		Ready:      g.Ready,
		Metrics:    g.metrics,
		Effective:  func() []byte { return g.now().config.Redacted() },
		Purger:     g,
		Figures:    g.figures,
		Version:    version(),
		Hosts:      adminHosts(&g.config.Admin),
		Token:      g.adminToken,
		Line:       func() int { return g.now().config.Admin.Line },
		NoProfiles: func() bool { return g.now().config.Admin.NoProfiles },
		Log:        g.log,
		Audit:      g.record,
	}
	if g.load != nil {
		settings.Reloader = reloader{g}
	}
	g.admin = admin.New(settings)
	if listeners := g.take(ListenAdmin); len(listeners) > 0 {
		// Ends with Shutdown of the admin server, which Gateway.Shutdown calls.
		g.tasks.Go(g.adminServed(g.admin.Serve, listeners))
	}
	// Ends with Shutdown of the admin server, which Gateway.Shutdown calls.
	g.tasks.Go(g.adminServed(g.admin.ServeMetrics, g.take(ListenMetrics)))
}

func (g *Gateway) adminServed(serve func(...net.Listener) error, listeners []net.Listener) func() {
	return func() {
		if err := serve(listeners...); err != nil {
			g.log.Error("the admin listener has ended", "error", err)
		}
	}
}

// adminHosts returns the configured names, without IP addresses.
func adminHosts(a *config.Admin) (hosts []string) {
	for _, l := range []config.Listener{a.Listener(), a.Metrics} {
		if _, local := l.Unix(); local {
			continue
		}
		if host, _, err := net.SplitHostPort(l.Address); err == nil && host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// adminToken looks up a token of the admin listener.
func (g *Gateway) adminToken(token string) (name string, ok bool) {
	tokens := g.now().surface.tokens
	if tokens == nil {
		return "", false
	}
	return tokens.Find(token)
}

// ShutdownAdmin ends only the admin listener, before Shutdown does: after a handover operators
// should see the new process. It may be called more than once, after Start.
func (g *Gateway) ShutdownAdmin(ctx context.Context) error {
	if g.admin == nil {
		return nil
	}
	return g.admin.Shutdown(ctx)
}

// Ready returns nothing while every resource keeps its promise and tokens can be checked, and otherwise
// the reasons why the gateway should get no traffic, one sentence each.
func (g *Gateway) Ready() (reasons []string) {
	if why := g.waiting.Load(); why != nil {
		return []string{"the database cannot be reached: " + *why}
	}
	now := g.now()
	if gate := now.surface.gate; gate != nil {
		if why := gate.Trouble(); why != "" {
			reasons = append(reasons, "auth.jwt: "+why)
		}
	}
	for i, r := range now.config.Resources {
		if ok, why := g.cache.Promise(now.ids[i]); !ok {
			reasons = append(reasons, "resource "+r.Name+": "+why)
		}
	}
	if c := g.origin.reached.Load(); c != nil && len(reasons) > 0 {
		if trouble := c.stream.Stats().Trouble; trouble != "" {
			reasons = append(reasons, "the last poll of the stream failed: "+trouble)
		}
	}
	return reasons
}
