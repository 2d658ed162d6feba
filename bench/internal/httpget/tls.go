package httpget

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// The parameters offered to every server, so that all do the same work. OpenSSL 3.0
// has no hybrid key exchange, which Go would choose by default.
const (
	tlsSuite = tls.TLS_AES_128_GCM_SHA256
	tlsCurve = tls.X25519
)

// Host is the server name that all clients use. A gateway at a loopback address accepts it.
const Host = "localhost"

// tlsConfig returns the configuration of one caller.
func (t *Target) tlsConfig() (*tls.Config, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(t.Certificate) {
		return nil, errors.New("httpget: expected a certificate in PEM")
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

// protocol returns the name of the protocol that the handshake must negotiate.
func (t *Target) protocol() string {
	if t.HTTP2 {
		return "h2"
	}
	return "http/1.1"
}

// secured checks that a connection has the measured properties.
func (t *Target) secured(state tls.ConnectionState, again bool) error {
	resumed := t.Resume && again
	switch {
	case state.CipherSuite != tlsSuite:
		return fmt.Errorf("httpget: cipher suite %s, want %s", tls.CipherSuiteName(state.CipherSuite), tls.CipherSuiteName(tlsSuite))
	case state.NegotiatedProtocol != t.protocol():
		return fmt.Errorf("httpget: the server chose the protocol %q, want %q", state.NegotiatedProtocol, t.protocol())
	case state.DidResume != resumed:
		return fmt.Errorf("httpget: the server resumed a session: %v, want %v", state.DidResume, resumed)
	}
	return nil
}
