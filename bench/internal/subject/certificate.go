package subject

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/httpget"
)

// A Certificate is a server certificate with its key.
type Certificate struct {
	Cert, Key string // files, in PEM
	PEM       []byte // the contents of Cert
}

// NewCertificate creates a self-signed certificate for [httpget.Host], with a P-256 key, and writes
// both files to dir.
func NewCertificate(dir string) (*Certificate, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: httpget.Host}, DNSNames: []string{httpget.Host},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(30 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	c := &Certificate{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	c.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(c.Cert, c.PEM, 0o644); err != nil {
		return nil, err
	}
	return c, os.WriteFile(c.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)
}

// trust returns the configuration with which a client trusts the certificate.
func (c *Certificate) trust() *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.PEM)
	return &tls.Config{RootCAs: roots, ServerName: httpget.Host}
}
