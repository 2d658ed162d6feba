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

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/safefile"
)

// TestModeOfAPrivateKey: one that others could have written is refused, one that they can read
// is told of. A certificate is no secret.
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
