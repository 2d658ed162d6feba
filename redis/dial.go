package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// dial opens a connection: names are resolved by every call, so that a server
// that moved is found again.
func (o *Options) dial(ctx context.Context) (net.Conn, error) {
	conn, err := o.connect(ctx)
	if err != nil {
		return nil, err
	}
	if o.TLS == nil {
		return conn, nil
	}
	secure := tls.Client(conn, o.tlsConfig())
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return secure, nil
}

func (o *Options) connect(ctx context.Context) (conn net.Conn, err error) {
	if o.Dialer == nil {
		return new(net.Dialer).DialContext(ctx, o.network(), o.addr())
	}
	defer func() {
		if p := recover(); p != nil {
			conn, err = nil, fmt.Errorf("Dialer panicked: %v", p)
		}
	}()
	conn, err = o.Dialer(ctx, o.network(), o.addr())
	if err == nil && conn == nil {
		err = errors.New("Dialer returned neither a connection nor an error")
	}
	return conn, err
}

func (o *Options) tlsConfig() *tls.Config {
	if o.TLS.ServerName != "" || o.TLS.InsecureSkipVerify {
		return o.TLS
	}
	cfg := o.TLS.Clone()
	if host, _, err := net.SplitHostPort(o.addr()); err == nil {
		cfg.ServerName = host
	}
	return cfg
}
