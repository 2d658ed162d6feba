package loop_test

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// serverTLS and clientTLS are the two sides of a certificate for 127.0.0.1.
var serverTLS, clientTLS = makeTLS()

func makeTLS() (server, client *tls.Config) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(nil, &template, &template, public, private)
	if err != nil {
		panic(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	server = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}}
	return server, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
}

func TestTLSNeedsGoroutines(t *testing.T) {
	config := loop.Config{New: func(*loop.Conn) loop.Session { return nil }, TLS: serverTLS, Backend: loop.Epoll}
	if _, err := loop.New(config); err == nil {
		t.Error("New with TLS and Epoll: no error, want one")
	}
	config.Backend = loop.Auto
	s, err := loop.New(config)
	if err != nil || s.Backend() != loop.Goroutines {
		t.Errorf("New with TLS: %v, want the backend goroutines", err)
	}
}

// A peer that does not finish its handshake is cut as one that does not finish a request.
func TestTLSHandshakeIsBounded(t *testing.T) {
	y := startToy(t, mode{"tls", loop.Goroutines, true}, func(c *loop.Config) { c.PartialTimeout = 500 * time.Millisecond })
	nc, err := net.Dial("tcp", y.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := y.ended(); !isReason(err, loop.ErrPartial) {
		t.Errorf("silent handshake: %v, want %v", err, loop.ErrPartial)
	}
	other, err := net.Dial("tcp", y.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := y.ended(); !isReason(err, loop.ErrReset) {
		t.Errorf("no handshake at all: %v, want %v", err, loop.ErrReset)
	}
	// Somebody who has shaken hands may be silent for longer.
	c := y.dial()
	if err := c.Conn.(*tls.Conn).Handshake(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	c.send("still there\n")
	c.want("still there\n")
}
