package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/measure"
	"github.com/slipstream-go/slipstream/internal/safefile"
)

// lookEvery is how often the files of a certificate are checked while clients
// connect.
const lookEvery = 5 * time.Second

// certificate is a certificate, with the authorities of clients' certificates if clients need
// one. It is reloaded when its files change, as they do every few weeks. Files that do not fit
// together, such as a key that was not replaced yet, change nothing.
type certificate struct {
	// Immutable after newCertificate.
	files config.TLS // absolute
	log   *slog.Logger
	now   func() time.Time
	// changed is called when files have changed; err says why the previous ones stay in use.
	// It must not wait. If nil, it is not called.
	changed func(file string, err error)

	started time.Time

	refused measure.Ration // limits the log lines about refused certificates of clients

	mu sync.Mutex
	// Guarded by mu.
	loaded *tls.Certificate
	roots  *x509.CertPool // if nil, clients need no certificate
	looked time.Time
	seen   [3]fileState
	told   string // why the files cannot be used, as already logged, or ""
}

// fileState distinguishes a file from one that replaced it.
type fileState struct {
	changed time.Time
	size    int64
}

// maxPEM is far more than a chain of certificates takes.
const maxPEM = 1 << 20

// newCertificates reads the certificates of all listeners.
func newCertificates(cfg *config.Config, log *slog.Logger, changed func(file string, err error)) (map[config.TLS]*certificate, error) {
	all := make(map[config.TLS]*certificate)
	for name, listeners := range listenersOf(cfg) {
		for _, l := range listeners {
			files := tlsOf(cfg, name, l)
			if files == (config.TLS{}) || all[files] != nil {
				continue
			}
			c, err := newCertificate(files, log)
			if err != nil {
				return nil, fmt.Errorf("%s at %s: %w", name, l.Address, err)
			}
			c.changed = changed
			all[files] = c
		}
	}
	return all, nil
}

// newCertificate reads the files.
func newCertificate(files config.TLS, log *slog.Logger) (*certificate, error) {
	c := &certificate{files: files, log: log, now: time.Now, started: time.Now()}
	var err error
	if c.seen, err = c.states(); err != nil {
		return nil, err
	}
	if c.loaded, c.roots, err = c.load(); err != nil {
		return nil, err
	}
	c.looked = c.now()
	return c, nil
}

// config returns what a listener needs. Protocols before TLS 1.2 are not supported; HTTP
// clients may choose HTTP/2.
func (c *certificate) config(http bool) *tls.Config {
	t := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
	if c.files.MinVersion == "1.3" {
		t.MinVersion = tls.VersionTLS13
	}
	if http {
		t.NextProtos = []string{"h2", "http/1.1"}
	}
	if c.files.Clients != "" {
		t.ClientAuth = tls.RequireAndVerifyClientCert
		t.VerifyConnection = c.verify
		t.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			one := t.Clone()
			one.GetConfigForClient = nil
			one.ClientCAs = c.authorities()
			return one, nil
		}
	}
	return t
}

// verify checks a client's certificate, which package tls has verified, against the present
// authorities, also if a session is resumed.
func (c *certificate) verify(state tls.ConnectionState) error {
	_, err := access.NewCertificate(&state)
	if err == nil {
		return nil
	}
	if leftOut, ok := c.refused.Take(time.Since(c.started) + 1); ok {
		c.log.Warn("a client was refused because of its certificate", "error", err, "left_out", leftOut)
	}
	return err
}

func (c *certificate) states() (states [3]fileState, err error) {
	for i, name := range []string{c.files.Cert, c.files.Key, c.files.Clients} {
		if name == "" {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return states, err
		}
		if info.Size() > maxPEM {
			return states, fmt.Errorf("%s has %d bytes, expected PEM of at most %d", name, info.Size(), maxPEM)
		}
		states[i] = fileState{info.ModTime(), info.Size()}
	}
	return states, nil
}

func (c *certificate) load() (*tls.Certificate, *x509.CertPool, error) {
	chain, err := readPEM(c.files.Cert)
	if err != nil {
		return nil, nil, err
	}
	key, err := safefile.ReadSecret(c.files.Key, maxPEM)
	if err != nil {
		return nil, nil, err
	}
	pair, err := tls.X509KeyPair(chain, key.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s with the key %s: %w", c.files.Cert, c.files.Key, err)
	}
	if key.Warning != "" && c.log != nil {
		c.log.Warn(key.Warning)
	}
	if c.files.Clients == "" {
		return &pair, nil, nil
	}
	// This is not a secret, but a user who can write to it can let anyone in.
	text, err := safefile.ReadSecret(c.files.Clients, maxPEM)
	if err != nil {
		return nil, nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text.Data) {
		return nil, nil, fmt.Errorf("%s: %w", c.files.Clients, errNoAuthority)
	}
	return &pair, roots, nil
}

var errNoAuthority = errors.New("no certificate of an authority; expected at least one, in PEM")

// readPEM reads a file of certificates, which are no secrets.
func readPEM(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return safefile.ReadBounded(f, path, maxPEM)
}

// get is called by package tls for each handshake.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
	return c.loaded, nil
}

// authorities returns the authorities that may sign clients' certificates.
func (c *certificate) authorities() *x509.CertPool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
	return c.roots
}

// expires returns when the certificate in use ends. It checks the files as a
// handshake does, so a renewed certificate counts even if no client has connected
// since.
func (c *certificate) expires() time.Time {
	pair, _ := c.get(nil) // which never fails
	return pair.Leaf.NotAfter
}

// lookLocked loads changed files, if it is time to check.
func (c *certificate) lookLocked() {
	now := c.now()
	if now.Sub(c.looked) < lookEvery {
		return
	}
	c.looked = now
	states, err := c.states()
	if err == nil && states == c.seen {
		c.told = ""
		return
	}
	var pair *tls.Certificate
	var roots *x509.CertPool
	if err == nil {
		pair, roots, err = c.load()
	}
	if err != nil {
		if err.Error() == c.told {
			return // it need not be logged every few seconds
		}
		c.told = err.Error()
		c.log.Error("the files of a certificate have changed and cannot be used; the previous ones stay in use", "file", c.files.Cert, "error", err)
		c.tell(err)
		return
	}
	c.loaded, c.roots, c.seen, c.told = pair, roots, states, ""
	c.log.Info("a certificate was reloaded", "file", c.files.Cert)
	c.tell(nil)
}

func (c *certificate) tell(err error) {
	if c.changed != nil {
		c.changed(c.files.Key, err)
	}
}
