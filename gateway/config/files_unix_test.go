//go:build unix

package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/safefile"
)

// TestModeOfTheConfiguration: a file with a password in it is a secret. A password from the
// environment does not make the file one.
func TestModeOfTheConfiguration(t *testing.T) {
	t.Setenv("SHOP_PASSWORD", "hunter2")
	t.Setenv("SHOP_URL", "postgres://shop:hunter2@db/shop")
	const rest = "\nresources: { depts: { table: departments, key: [id] } }\n"
	const users = "\nfrontends: { redis: \"127.0.0.1:0\" }\nredis: { users: { web: \"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\" } }"
	for _, c := range []struct {
		name, text       string
		mode             os.FileMode
		refused, warning string
	}{
		{"a password, private", `origin: { url: "postgres://shop:hunter2@db/shop" }`, 0o600, "", ""},
		{"a password, others read", `origin: { url: "postgres://shop:hunter2@db/shop" }`, 0o644, "", "other users can read it"},
		{"a password, others write", `origin: { url: "postgres://shop:hunter2@db/shop" }`, 0o666, "that no other user can write to", ""},
		{"a password as a parameter", `origin: { url: "postgres://shop@db/shop?password=hunter2" }`, 0o644, "", "other users can read it"},
		{"a password of the stream", `origin: { url: "postgres://shop@db/shop", stream_url: "postgres://shop:hunter2@db/shop" }`, 0o644, "", "other users can read it"},
		{"users of Redis", `origin: { url: "sqlite:shop.db" }` + users, 0o644, "", "other users can read it"},
		{"a password of the environment", `origin: { url: "postgres://shop:${SHOP_PASSWORD}@db/shop" }`, 0o644, "", ""},
		{"a URL of the environment", `origin: { url: "${SHOP_URL}" }`, 0o664, "", ""},
		{"no password", `origin: { url: "postgres://shop@db/shop?passfile=/p" }`, 0o664, "", ""},
		{"no password, others write", `origin: { url: "sqlite:shop.db" }`, 0o666, "", "every user can change"},
	} {
		path := filepath.Join(t.TempDir(), "slipstream.yaml")
		if err := errors.Join(os.WriteFile(path, []byte(c.text+rest), 0o600), os.Chmod(path, c.mode)); err != nil {
			t.Fatal(err)
		}
		cfg, err := Load(path)
		if c.refused != "" {
			if !errors.As(err, new(*safefile.Error)) || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v; want %q", c.name, err, c.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		warnings := strings.Join(cfg.Warnings, "\n")
		if c.warning == "" && warnings != "" || !strings.Contains(warnings, c.warning) {
			t.Errorf("%s: %q; want %q", c.name, warnings, c.warning)
		}
		if strings.Contains(warnings, "hunter2") {
			t.Errorf("%s: the warning shows the password: %s", c.name, warnings)
		}
	}
}
