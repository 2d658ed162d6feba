//go:build unix

package gateway

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/safefile"
)

// TestModeOfAPrivateKey: a key that others could have written is refused, one that they can read
// is reported. A certificate is not a secret.
func TestModeOfAPrivateKey(t *testing.T) {
	dir := t.TempDir()
	WriteCertificate(t, dir, 1)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for _, c := range []struct {
		cert, key os.FileMode
		told      string
		refused   bool
	}{
		{0o666, 0o600, "", false},
		{0o644, 0o644, "other users can read it", false},
		{0o644, 0o606, "", true},
	} {
		if err := errors.Join(os.Chmod(cert, c.cert), os.Chmod(key, c.key)); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		_, err := newCertificate(config.TLS{Cert: cert, Key: key}, slog.New(slog.NewTextHandler(&log, nil)))
		if c.refused != errors.As(err, new(*safefile.Error)) || err != nil && !c.refused {
			t.Errorf("mode %v: %v; refused %t", c.key, err, c.refused)
		}
		if c.told == "" && log.Len() > 0 || !strings.Contains(log.String(), c.told) {
			t.Errorf("mode %v: log %s; want %q", c.key, &log, c.told)
		}
	}
}

// TestAuthoritiesOfClients: a file of authorities that others could have written, or that holds
// none, is refused; a renewed one is loaded, and one that cannot be used is not.
func TestAuthoritiesOfClients(t *testing.T) {
	dir := t.TempDir()
	first := WriteCertificate(t, dir, 1)
	clients := filepath.Join(dir, "clients.pem")
	files := config.TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), Clients: clients}
	write := func(text []byte, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.WriteFile(clients, text, 0o600), os.Chmod(clients, mode)); err != nil {
			t.Fatal(err)
		}
	}
	one, err := os.ReadFile(files.Cert)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	write(one, 0o666)
	if _, err := newCertificate(files, log); !errors.As(err, new(*safefile.Error)) {
		t.Errorf("writable by all users: %v, want it refused", err)
	}
	write([]byte("nothing"), 0o644)
	if _, err := newCertificate(files, log); !errors.Is(err, errNoAuthority) {
		t.Errorf("without an authority: %v, want %v", err, errNoAuthority)
	}
	write(one, 0o644)
	c, err := newCertificate(files, log)
	if err != nil || !c.authorities().Equal(first) {
		t.Fatalf("the first authority is not the one in use: %v", err)
	}
	other := t.TempDir()
	second := WriteCertificate(t, other, 2)
	two, err := os.ReadFile(filepath.Join(other, "cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	now := c.looked
	c.now = func() time.Time { return now }
	write(append(two, '\n'), 0o644)
	if now = now.Add(lookEvery); !c.authorities().Equal(second) {
		t.Error("the renewed authority is not in use")
	}
	write([]byte("nothing that can be used"), 0o644)
	if now = now.Add(lookEvery); !c.authorities().Equal(second) {
		t.Error("a file without an authority replaced the previous one")
	}
}
