// Package driver contains what the clients of this module have in common apart from the engine:
// opening connections, credentials, URLs, checks of options, errors, and user-supplied functions.
//
// The user-supplied functions are those for events, observers and the slow log; their panics are
// recovered. The types that users see are in the root package, so that an adapter (slipstreamprom,
// or slipstreamotel, which is a separate module) serves all clients and imports nothing else. An
// adapter reads the error code of a server by the method StatusCode.
package driver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
)

// An Endpoint is a server and how to connect to it.
type Endpoint struct {
	// Addr is host:port, or the path of a Unix socket.
	Addr string
	// TLS, if set, encrypts connections, and may hold the client's certificates. If its ServerName
	// is empty, the host of Addr is used.
	TLS *tls.Config
	// Dialer, if set, opens connections instead of package net.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Network returns the network of an address: unix for a path, otherwise tcp.
func Network(addr string) string {
	if strings.HasPrefix(addr, "/") {
		return "unix"
	}
	return "tcp"
}

// Dial opens a connection. Each call resolves the host name, so that a server that has moved is
// found.
func (e *Endpoint) Dial(ctx context.Context) (net.Conn, error) {
	conn, err := e.connect(ctx)
	if err != nil || e.TLS == nil {
		return conn, err
	}
	secure := tls.Client(conn, e.tlsConfig())
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return secure, nil
}

// connect opens the connection that TLS runs on. A panic of the user's function must not end the
// goroutine that maintains a connection.
func (e *Endpoint) connect(ctx context.Context) (conn net.Conn, err error) {
	if e.Dialer == nil {
		return new(net.Dialer).DialContext(ctx, Network(e.Addr), e.Addr)
	}
	defer func() {
		if p := recover(); p != nil {
			conn, err = nil, fmt.Errorf("function Dialer panicked: %v", p)
		}
	}()
	conn, err = e.Dialer(ctx, Network(e.Addr), e.Addr)
	if err == nil && conn == nil {
		err = errors.New("function Dialer returned neither a connection nor an error")
	}
	return conn, err
}

func (e *Endpoint) tlsConfig() *tls.Config {
	if e.TLS.ServerName != "" || e.TLS.InsecureSkipVerify {
		return e.TLS
	}
	cfg := e.TLS.Clone()
	if host, _, err := net.SplitHostPort(e.Addr); err == nil {
		cfg.ServerName = host
	}
	return cfg
}

// A Login is the credentials that connections authenticate with.
type Login struct {
	User, Password string
	// Credentials, if set, is called instead of using User and Password.
	Credentials func(ctx context.Context) (user, password string, err error)
}

// Get returns the credentials for the next connection. A panic of the user's function must not end
// the goroutine that maintains a connection.
func (l *Login) Get(ctx context.Context) (user, password string, err error) {
	if l.Credentials == nil {
		return l.User, l.Password, nil
	}
	defer func() {
		if p := recover(); p != nil {
			user, password, err = "", "", fmt.Errorf("function Credentials panicked: %v", p)
		}
	}()
	user, password, err = l.Credentials(ctx)
	if err != nil {
		return "", "", fmt.Errorf("credentials: %w", err)
	}
	return user, password, nil
}

// Describe returns a URL without the password, for use in logs.
func (l *Login) Describe(scheme, addr string) string {
	switch {
	case l.Credentials != nil:
		return scheme + "://(credentials)@" + addr
	case l.User != "" || l.Password != "":
		return scheme + "://" + l.User + ":***@" + addr
	}
	return scheme + "://" + addr
}
