package browser

import (
	"context"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// patience is how long a test waits for something that must happen.
const patience = 10 * time.Second

// served is a running gateway.
type served struct {
	t           testing.TB
	config      *config.Config
	gateway     *gateway.Gateway
	http, admin string // base URLs
}

// serve starts a gateway and drains it at the end of the test.
func serve(t testing.TB, cfg *config.Config) *served {
	t.Helper()
	g, err := gateway.New(cfg, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &served{t: t, config: cfg, gateway: g, http: "http://" + g.HTTPAddr().String(), admin: "http://" + g.AdminAddr().String()}
}

func (s *served) awaitReady() {
	s.t.Helper()
	ready := blackbox.Ready(s.admin)
	testkit.Eventually(s.t, patience, func() error { return ready(s.t.Context()) })
}
