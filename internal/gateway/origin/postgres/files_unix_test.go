//go:build unix

package postgres

import (
	"crypto/x509"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/safefile"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestModeOfPasswordFiles: files of passwords and private keys that others could have written are
// refused, those that others can read are reported; unused ones are not checked.
func TestModeOfPasswordFiles(t *testing.T) {
	home := t.TempDir()
	for name, value := range map[string]string{"HOME": home, "PGPASSWORD": "", "PGPASSFILE": "", "PGSSLKEY": "", "PGSERVICE": "", "PGSERVICEFILE": ""} {
		t.Setenv(name, value)
	}
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(home, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	def := file(".pgpass", "db:5432:shop:web:hunter2\n")
	other := file("other", "*:*:*:*:hunter2\n")
	service := file("services", "[shop]\nhost=db\nuser=web\npassword=hunter2\n")
	cert, key := testkit.SelfSigned(t, &x509.Certificate{}).WritePair(t, home)
	tls := "postgres://web:x@db/shop?sslmode=require&sslcert=" + url.QueryEscape(cert) + "&sslkey=" + url.QueryEscape(key)
	for _, c := range []struct {
		name, url, path string
		used            bool
	}{
		{"the default", "postgres://web@db/shop", def, true},
		{"the default of several hosts", "postgres://web@db:5432,db2:5432/shop", def, true},
		{"another file", "postgres://web@db/shop?passfile=" + url.QueryEscape(other), other, true},
		{"the default beside another file", "postgres://web@db/shop?passfile=" + url.QueryEscape(other), def, false},
		{"a password in the URL", "postgres://web:x@db/shop", def, false},
		{"a password as a parameter", "postgres://web@db/shop?password=x", def, false},
		{"no password for this user", "postgres://nobody@db/shop", def, false},
		{"a service", "postgres:///shop?service=shop&servicefile=" + url.QueryEscape(service), service, true},
		{"a private key", tls, key, true},
		{"a certificate", tls, cert, false},
	} {
		for _, m := range []os.FileMode{0o600, 0o644, 0o606} {
			if err := os.Chmod(c.path, m); err != nil {
				t.Fatal(err)
			}
			got, err := newConnector(c.url, time.Minute)
			switch {
			case c.used && m == 0o606:
				if !errors.As(err, new(*safefile.Error)) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s, mode %v: %v; want %s refused", c.name, m, err, c.path)
				}
			case err != nil:
				t.Errorf("%s, mode %v: %v", c.name, m, err)
			default:
				warned := len(got.warnings) == 1 && strings.Contains(got.warnings[0], c.path)
				if want := c.used && m == 0o644; warned != want || !want && len(got.warnings) > 0 {
					t.Errorf("%s, mode %v: %q; want a warning: %t", c.name, m, got.warnings, want)
				}
			}
		}
		if err := os.Chmod(c.path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
