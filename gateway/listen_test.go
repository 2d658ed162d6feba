package gateway_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestBeforeAccept: the given listeners are used, everything is up when the hook is called,
// and clients that connect before are answered after it.
func TestBeforeAccept(t *testing.T) {
	testkit.NoLeaks(t)
	cfg := configure(t, newDatabase(t, writeAhead+company), deptResource)
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	given, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := given.Addr().String()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	early := make(chan error, 1)
	hook := func(ctx context.Context, g *gateway.Gateway, all map[string][]net.Listener) error {
		if err := g.AwaitReady(ctx); err != nil {
			t.Errorf("not ready: %v", err)
		}
		if len(all[gateway.ListenHTTP]) != 1 || len(all[gateway.ListenAdmin]) != 1 {
			t.Errorf("listeners %v, want one of each name", all)
		}
		go func() { // ends with its answer, awaited below
			response, err := client.Get("http://" + address + "/depts/1")
			if err == nil {
				response.Body.Close()
				if response.StatusCode != 200 {
					err = errors.New(response.Status)
				}
			}
			early <- err
		}()
		select {
		case err := <-early:
			t.Errorf("answered before anything is accepted: %v", err)
			early <- nil
		case <-time.After(100 * time.Millisecond):
		}
		return nil
	}
	g, err := gateway.New(cfg, gateway.Options{Listeners: map[string][]net.Listener{gateway.ListenHTTP: {given}}, BeforeAccept: hook})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := g.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if got := g.HTTPAddr().String(); got != address {
		t.Errorf("listens at %s, want %s", got, address)
	}
	if err := <-early; err != nil {
		t.Errorf("a client that connected before: %v", err)
	}
	if err := g.ShutdownAdmin(ctx); err != nil {
		t.Error(err)
	}
	testkit.Eventually(t, patience, func() error { // it may have just begun to serve
		c, err := net.Dial("tcp", g.AdminAddr().String())
		if err != nil {
			return nil
		}
		c.Close()
		return errors.New("the admin listener continues after ShutdownAdmin")
	})
	if err := shutdown(t, g); err != nil {
		t.Error(err)
	}
}

// TestExposureOfGivenListeners: a given listener does not serve an address that the configuration
// could not name without an explicit permission.
func TestExposureOfGivenListeners(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	for _, test := range []struct {
		name   string
		change func(*config.Config)
		want   string // if "", it is served
	}{
		{gateway.ListenHTTP, func(*config.Config) {}, "frontends.http: other machines could reach this address"},
		{gateway.ListenHTTP, func(c *config.Config) { c.Frontends.HTTP[0].Open = true }, ""},
		{gateway.ListenRedis, func(c *config.Config) { c.Frontends.Redis = config.ListenAt("127.0.0.1:0") }, "frontends.redis: other machines could reach this address"},
		{gateway.ListenRedis, func(c *config.Config) {
			c.Frontends.Redis = config.Listeners{{Address: "127.0.0.1:0", Open: true}}
		}, ""},
		{gateway.ListenAdmin, func(*config.Config) {}, "admin: other machines could reach this address"},
		{gateway.ListenAdmin, func(c *config.Config) { c.Admin.AllowRemote = true }, ""},
	} {
		cfg := configure(t, path, deptResource)
		test.change(cfg)
		given, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		g, err := gateway.New(cfg, gateway.Options{Listeners: map[string][]net.Listener{test.name: {given}}})
		if err != nil {
			t.Fatal(err)
		}
		err = g.Start(t.Context())
		if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), given.Addr().String())) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
		if err := shutdown(t, g); err != nil {
			t.Error(err)
		}
		if err := given.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: the listener was left open: %v", test.name, err)
		}
	}
}

// TestBeforeAcceptFails: its error makes Start fail, and all listeners are closed.
func TestBeforeAcceptFails(t *testing.T) {
	testkit.NoLeaks(t)
	cfg := configure(t, filepath.Join(t.TempDir(), "none.db"), deptResource)
	var address string
	g, err := gateway.New(cfg, gateway.Options{BeforeAccept: func(ctx context.Context, g *gateway.Gateway, all map[string][]net.Listener) error {
		address = all[gateway.ListenHTTP][0].Addr().String()
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		return g.AwaitReady(ctx)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); !errors.Is(err, cache.ErrUnavailable) || !strings.Contains(err.Error(), "the database cannot be reached") {
		t.Errorf("Start returned %v, want an error that the database cannot be reached", err)
	}
	if err := shutdown(t, g); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("a listener is left after a failed start")
	}
}
