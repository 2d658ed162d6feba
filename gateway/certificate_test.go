package gateway

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// WriteCertificate writes cert.pem and key.pem for localhost, and returns a pool that trusts them.
func WriteCertificate(t testing.TB, dir string, serial int64) *x509.CertPool {
	t.Helper()
	one := testkit.SelfSigned(t, &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "slipstream test"},
		DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Duration(serial) * 2 * time.Hour)})
	one.WritePair(t, dir)
	return one.Pool()
}

// TestCertificateIsRenewed: changed files are loaded, half a change is not, and
// nothing is read between two checks.
func TestCertificateIsRenewed(t *testing.T) {
	dir := t.TempDir()
	var told bytes.Buffer
	WriteCertificate(t, dir, 1)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	c, err := newCertificate(config.TLS{Cert: cert, Key: key}, slog.New(slog.NewTextHandler(&told, nil)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c.now = func() time.Time { return now }
	expect := func(when string, serial int64) {
		t.Helper()
		got, err := c.get(nil)
		if err != nil || got.Leaf.SerialNumber.Int64() != serial {
			t.Errorf("%s: got %v, %v, want certificate %d", when, got.Leaf.SerialNumber, err, serial)
		}
		if end := c.expires(); !end.Equal(got.Leaf.NotAfter) {
			t.Errorf("%s: it expires %v, want %v", when, end, got.Leaf.NotAfter)
		}
	}
	// rewritten is a change that is visible on a file system with coarse times,
	// too.
	rewritten := func(age time.Duration) {
		for _, name := range []string{cert, key} {
			if err := os.Chtimes(name, now, now.Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
	}
	expect("at first", 1)
	old, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	WriteCertificate(t, dir, 2)
	renewed, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	rewritten(time.Hour)
	expect("before the next look", 1)
	if err := os.WriteFile(key, old, 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(lookEvery)
	expect("with the key of the one before", 1)
	if !strings.Contains(told.String(), "the previous ones stay") {
		t.Errorf("the log does not report it: %s", told.String())
	}
	now = now.Add(lookEvery)
	expect("with it still", 1)
	if n := strings.Count(told.String(), "\n"); n != 1 {
		t.Errorf("%d lines, want one: %s", n, told.String())
	}
	if err := os.WriteFile(key, renewed, 0o600); err != nil {
		t.Fatal(err)
	}
	rewritten(time.Minute)
	before := c.expires()
	now = now.Add(lookEvery)
	if end := c.expires(); end.Sub(before) < time.Hour {
		t.Errorf("renewed, it expires %v, before %v: the files were not checked", end, before)
	}
	expect("renewed", 2)
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	now = now.Add(lookEvery)
	expect("removed", 2)
	if _, err := newCertificate(config.TLS{Cert: cert, Key: key}, nil); err == nil {
		t.Error("a certificate that is not there was read")
	}
	if err := os.WriteFile(cert, make([]byte, maxPEM+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newCertificate(config.TLS{Cert: cert, Key: key}, nil); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a huge file: %v", err)
	}
}

// OpenedCertificate is the certificate of a listener in tests.
type OpenedCertificate struct {
	Config *tls.Config
	c      *certificate
	told   *safeBuffer
}

// safeBuffer is written by handshakes and read by a test.
type safeBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// OpenCertificate reads the files of a listener.
func OpenCertificate(t testing.TB, files config.TLS) *OpenedCertificate {
	t.Helper()
	o := &OpenedCertificate{told: new(safeBuffer)}
	var err error
	if o.c, err = newCertificate(files, slog.New(slog.NewTextHandler(o.told, nil))); err != nil {
		t.Fatal(err)
	}
	o.Config = o.c.config(false)
	return o
}

// Look makes the next handshake check the files.
func (o *OpenedCertificate) Look() {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	o.c.looked, o.c.seen = time.Time{}, [3]fileState{}
}

// Log returns what the log says.
func (o *OpenedCertificate) Log() string {
	o.told.mu.Lock()
	defer o.told.mu.Unlock()
	return o.told.String()
}
