package tarantoolsim_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// certificates returns the configurations of a server and of a client that trusts it.
func certificates(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	return testkit.SelfSigned(t, &x509.Certificate{DNSNames: []string{"tarantool.test"}}).Configs()
}

// netDialer opens sockets without sending anything.
type netDialer struct{ net.Dialer }

func (d *netDialer) dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		err = c.SetDeadline(time.Now().Add(10 * time.Second))
	}
	return c, err
}
