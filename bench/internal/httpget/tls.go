package httpget

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// What every server is asked for, so that all do the same work. OpenSSL 3.0 has no
// hybrid key exchange, which Go would choose by itself.
const (
	tlsSuite = tls.TLS_AES_128_GCM_SHA256
	tlsCurve = tls.X25519
)

// Host is the name that clients call every server by: one that a gateway at a loopback address
// accepts.
const Host = "localhost"

// handshakeLimit bounds a handshake, and with it a Do.
const handshakeLimit = 30 * time.Second

// tlsConfig returns the configuration of one caller.
func (t *Target) tlsConfig() (*tls.Config, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(t.Certificate) {
		return nil, errors.New("httpget: no certificate in PEM")
	}
	config := &tls.Config{
		RootCAs: roots, ServerName: Host, NextProtos: []string{t.protocol()},
		MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tlsCurve},
	}
	if t.Resume {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	}
	return config, nil
}

// protocol is the name that the handshake must agree on.
func (t *Target) protocol() string {
	if t.HTTP2 {
		return "h2"
	}
	return "http/1.1"
}

// handshake makes the connection one of TLS and looks whether it is what is measured.
func (c *Caller) handshake(ctx context.Context) error {
	below := c.conn
	conn := tls.Client(below, c.tls)
	if err := c.keep(conn); err != nil {
		return err
	}
	if err := below.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return err
	}
	if err := conn.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("httpget: %w", err)
	}
	if err := below.SetDeadline(time.Time{}); err != nil {
		return err
	}
	state := conn.ConnectionState()
	resumed := c.target.Resume && c.shaken
	c.shaken = true
	switch {
	case state.CipherSuite != tlsSuite:
		return fmt.Errorf("httpget: cipher suite %s, want %s", tls.CipherSuiteName(state.CipherSuite), tls.CipherSuiteName(tlsSuite))
	case state.NegotiatedProtocol != c.target.protocol():
		return fmt.Errorf("httpget: the server chose the protocol %q, want %q", state.NegotiatedProtocol, c.target.protocol())
	case state.DidResume != resumed:
		return fmt.Errorf("httpget: the server resumed a session: %v, want %v", state.DidResume, resumed)
	}
	return nil
}
