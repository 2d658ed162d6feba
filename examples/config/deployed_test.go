package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
)

// configurations finds the files below deploy and examples that the gateway reads, and returns
// their texts by name. That of the chart is one of its values.
func configurations(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, root := range []string{"../../deploy", "../../examples"} {
		err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".yaml" || strings.Contains(path, "templates") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if strings.HasSuffix(path, "chart/values.yaml") {
				var values struct{ Config yaml.MapSlice }
				if err := yaml.Unmarshal(text, &values); err != nil {
					return err
				}
				if text, err = yaml.Marshal(values.Config); err != nil {
					return err
				}
			}
			if regexp.MustCompile(`(?m)^origin:`).Match(text) {
				all[path] = string(text)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestEveryConfigurationIsValid: every configuration that is shown or installed is parsed without
// errors, and a gateway can be created from it.
func TestEveryConfigurationIsValid(t *testing.T) {
	for _, name := range []string{"DATA", "SHOP_URL", "DATABASE_URL", "GATEWAY_PASSWORD", "OWNER_PASSWORD"} {
		t.Setenv(name, "postgres://db/shop")
	}
	t.Setenv("DATA", t.TempDir())
	t.Setenv("GATEWAY_PASSWORD", "secret")
	all := configurations(t)
	for _, want := range []string{"deploy/package/slipstream.yaml", "deploy/compose/slipstream.yaml", "deploy/chart/values.yaml", "examples/config/production.yaml"} {
		if all["../../"+want] == "" {
			t.Errorf("%s is not among the %d files found", want, len(all))
		}
	}
	for name, text := range all {
		c, err := config.Parse(name, []byte(text))
		if err != nil {
			t.Error(err)
			continue
		}
		c.Origin.Dir = t.TempDir()
		g, err := gateway.New(c, gateway.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := g.Shutdown(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
