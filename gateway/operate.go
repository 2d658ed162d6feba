package gateway

import (
	"context"
	"net"

	"github.com/slipstream-go/slipstream/gateway/admin"
)

// serveAdmin begins to serve the listener of operators.
func (g *Gateway) serveAdmin() {
	l := g.take(ListenAdmin)[0]
	var hosts []string // besides addresses, the name that the operator chose
	if host, _, err := net.SplitHostPort(g.config.Admin.Address); err == nil && host != "" {
		hosts = append(hosts, host)
	}
	settings := admin.Config{
		Ready:     g.Ready,
		Metrics:   g.metrics,
		Effective: func() []byte { return g.now().config.Redacted() },
		Purger:    g,
		Figures:   g.figures,
		Version:   version(),
		Hosts:     hosts,
	}
	if g.load != nil {
		settings.Reloader = reloader{g}
	}
	g.admin = admin.New(settings)
	g.tasks.Add(1)
	// Ends with Shutdown of the admin server, which Gateway.Shutdown calls.
	go func() {
		defer g.tasks.Done()
		if err := g.admin.Serve(l); err != nil {
			g.log.Error("the admin listener has ended", "error", err)
		}
	}()
}

// ShutdownAdmin ends the listener of operators alone, before Shutdown does: after a hand-over
// they should see the new process. It may be called more than once, after Start.
func (g *Gateway) ShutdownAdmin(ctx context.Context) error {
	if g.admin == nil {
		return nil
	}
	return g.admin.Shutdown(ctx)
}

// Ready returns nothing while every resource keeps its promise and tokens can be checked, and otherwise
// why the gateway should get no traffic, a sentence a reason.
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
		if trouble := c.stats().trouble; trouble != "" {
			reasons = append(reasons, "the last poll of the stream failed: "+trouble)
		}
	}
	return reasons
}
