package gateway

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookEvery is how often the files of a certificate are looked at while clients
// connect.
const lookEvery = 5 * time.Second

// certificate is a certificate that is read anew when its files change, as they do
// every few weeks. A change that makes them wrong, such as a key that was not yet
// replaced, changes nothing.
type certificate struct {
	// Immutable after newCertificate.
	cert, key string // files
	log       *slog.Logger
	now       func() time.Time

	mu sync.Mutex
	// Guarded by mu.
	loaded *tls.Certificate
	looked time.Time
	seen   [2]fileState
	told   string // why the files cannot be used, as the log says already; "": they can
}

// fileState tells a file from one that replaced it.
type fileState struct {
	changed time.Time
	size    int64
}

// maxPEM is far more than a chain of certificates takes.
const maxPEM = 1 << 20

// newCertificate reads the files.
func newCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, log: log, now: time.Now}
	var err error
	if c.seen, err = c.states(); err != nil {
		return nil, err
	}
	if c.loaded, err = c.load(); err != nil {
		return nil, err
	}
	c.looked = c.now()
	return c, nil
}

// config returns what a listener needs. Protocols before TLS 1.2 are not spoken.
func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

func (c *certificate) states() (states [2]fileState, err error) {
	for i, name := range []string{c.cert, c.key} {
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

func (c *certificate) load() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("%s with the key %s: %w", c.cert, c.key, err)
	}
	return &pair, nil
}

// get is the hook of package tls for each handshake.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.looked) >= lookEvery {
		c.looked = now
		c.look()
	}
	return c.loaded, nil
}

// expires returns when the certificate in use ends. It looks at the files as a
// handshake does: a renewed one counts although nobody has connected since.
func (c *certificate) expires() time.Time {
	pair, _ := c.get(nil) // which never fails
	return pair.Leaf.NotAfter
}

// look takes changed files over. The caller holds mu.
func (c *certificate) look() {
	states, err := c.states()
	if err == nil && states == c.seen {
		c.told = ""
		return
	}
	var pair *tls.Certificate
	if err == nil {
		pair, err = c.load()
	}
	if err != nil {
		if err.Error() == c.told {
			return // every few seconds is too often
		}
		c.told = err.Error()
		c.log.Error("the certificate of the Redis frontend has changed and cannot be used; the previous one stays in use", "error", err)
		return
	}
	c.loaded, c.seen, c.told = pair, states, ""
	c.log.Info("the certificate of the Redis frontend was taken over", "file", c.cert)
}
