package tarantool

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// dial opens a connection.
func (o *Options) dial(ctx context.Context) (net.Conn, error) {
	conn, err := o.connect(ctx)
	if err != nil || o.TLS == nil {
		return conn, err
	}
	cfg := o.TLS
	if cfg.ServerName == "" && !cfg.InsecureSkipVerify {
		cfg = cfg.Clone()
		cfg.ServerName, _, _ = net.SplitHostPort(o.addr())
	}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return secure, nil
}

// connect opens what TLS may be spoken over. A panic of the user's dialler must not end the
// goroutine that keeps a connection.
func (o *Options) connect(ctx context.Context) (conn net.Conn, err error) {
	if o.Dialer == nil {
		return new(net.Dialer).DialContext(ctx, o.network(), o.addr())
	}
	defer func() {
		if p := recover(); p != nil {
			conn, err = nil, fmt.Errorf("tarantool: Dialer panicked: %v", p)
		}
	}()
	if conn, err = o.Dialer(ctx, o.network(), o.addr()); err == nil && conn == nil {
		err = errors.New("tarantool: Dialer returned neither a connection nor an error")
	}
	return conn, err
}
