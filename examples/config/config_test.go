package config_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/demo"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

func TestEveryConfigurationIsServed(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	data := t.TempDir()
	if err := demo.Create(filepath.Join(data, "demo.db"), 1); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DATA", filepath.ToSlash(data))
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			testkit.NoLeaks(t)
			c, err := config.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			c.Frontends.HTTP, c.Admin.Address = "127.0.0.1:0", "127.0.0.1:0"
			for i := range c.Resources {
				c.Resources[i].OnStale = config.Reload // there are no triggers
			}
			g, err := gateway.New(c, gateway.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer g.Shutdown(t.Context())
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			for _, r := range c.Resources {
				path := "/" + r.Name + "/42"
				if r.Name == "orders" {
					path = "/orders/emea/17"
				}
				response, err := client.Get("http://" + g.HTTPAddr().String() + path)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				if response.StatusCode != http.StatusOK {
					t.Errorf("%s: %s", path, response.Status)
				}
			}
		})
	}
}

// TestProductionShowsEveryField: a field that the parser learns must be
// explained there.
func TestProductionShowsEveryField(t *testing.T) {
	t.Setenv("DATA", "/data")
	c, err := config.Load("production.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.Admin.AllowRemote = true // so that the long form is written
	text, err := os.ReadFile("production.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(c.Marshal())) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !strings.Contains(string(text), name+":") {
			t.Errorf("production.yaml does not show %s", name)
		}
	}
}
