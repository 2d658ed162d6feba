package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority is a certificate authority.
type Authority struct {
	// Immutable.
	Certificate *x509.Certificate
	Pool        *x509.CertPool
	key         *ecdsa.PrivateKey
}

// Issued is a certificate with its key.
type Issued struct {
	tls.Certificate
	CertPEM, KeyPEM []byte // the certificate and its key in PKCS 8
}

// SelfSigned returns a self-signed certificate, see [Authority.Issue].
func SelfSigned(t testing.TB, template *x509.Certificate) *Issued {
	t.Helper()
	return new(Authority).Issue(t, template)
}

// NewAuthority returns a new authority.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of tests"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	a := &Authority{}
	one := a.Issue(t, template)
	a.Certificate, a.key = one.Leaf, one.PrivateKey.(*ecdsa.PrivateKey)
	a.Pool = one.Pool()
	return a
}

// Issue returns a certificate with a new key. The serial number, the times and the key usages are
// chosen if the template does not have them.
func (a *Authority) Issue(t testing.TB, template *x509.Certificate) *Issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(time.Now().UnixNano())
	}
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(12 * time.Hour)
	}
	if !template.IsCA && template.ExtKeyUsage == nil {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	parent, signer := template, key
	if a.key != nil {
		parent, signer = a.Certificate, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	one := &Issued{CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
	if one.Certificate, err = tls.X509KeyPair(one.CertPEM, one.KeyPEM); err != nil {
		t.Fatal(err)
	}
	return one
}

// Write writes the certificate to dir as name.pem and its key as name.key. Each file is replaced
// atomically.
func (i *Issued) Write(t testing.TB, dir, name string) (cert, key string) {
	t.Helper()
	return i.write(t, filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key"))
}

// WritePair is like Write, but the files are cert.pem and key.pem.
func (i *Issued) WritePair(t testing.TB, dir string) (cert, key string) {
	t.Helper()
	return i.write(t, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
}

func (i *Issued) write(t testing.TB, cert, key string) (string, string) {
	t.Helper()
	WriteAtOnce(t, cert, i.CertPEM)
	WriteAtOnce(t, key, i.KeyPEM)
	return cert, key
}

// Pool returns a pool that trusts the certificate itself.
func (i *Issued) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(i.Leaf)
	return pool
}

// Configs returns the configurations of a server with the certificate, and of a client that trusts
// it and expects the first of its names or, if it has no names, the first of its addresses.
func (i *Issued) Configs() (server, client *tls.Config) {
	client = &tls.Config{RootCAs: i.Pool()}
	if len(i.Leaf.DNSNames) > 0 {
		client.ServerName = i.Leaf.DNSNames[0]
	} else {
		client.ServerName = i.Leaf.IPAddresses[0].String()
	}
	return &tls.Config{Certificates: []tls.Certificate{i.Certificate}}, client
}

// Write writes the certificate of the authority to dir as name.pem.
func (a *Authority) Write(t testing.TB, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name+".pem")
	WriteAtOnce(t, path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate.Raw}))
	return path
}

// ClientHello returns the first bytes that a client sends when it connects over TLS.
func ClientHello(t testing.TB) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	// Ends with the pipe, which ClientHello closes; nothing waits for it.
	go func() {
		_ = tls.Client(theirs, &tls.Config{ServerName: "localhost"}).Handshake()
		theirs.Close()
	}()
	defer ours.Close()
	b := make([]byte, 4096)
	n, err := ours.Read(b)
	if err != nil || b[0] != 22 {
		t.Fatalf("a client begins with %x, %v", b[:n], err)
	}
	return b[:n]
}

// WriteAtOnce replaces a file atomically with a rename.
func WriteAtOnce(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
