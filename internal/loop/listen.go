package loop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// Listen binds address and returns n listeners, among which the kernel distributes new
// connections (SO_REUSEPORT). On systems other than Linux, and for Unix sockets, it returns one.
// If the port is 0, all listeners have the same port.
func Listen(network, address string, n int) ([]net.Listener, error) {
	if network == "unix" || !hasEpoll {
		n = 1
	}
	config := net.ListenConfig{}
	if n > 1 {
		config.Control = reusePort
	}
	if n > 1 {
		// Two servers of one user could share an address by mistake: binding a socket without the
		// option first shows whether the address is in use.
		probe, err := net.Listen(network, address)
		if err != nil {
			return nil, fmt.Errorf("loop: %w", err)
		}
		address = probe.Addr().String()
		_ = probe.Close() // nothing was accepted
	}
	var all []net.Listener
	for len(all) < max(n, 1) {
		l, err := config.Listen(context.Background(), network, address)
		if err != nil {
			for _, one := range all {
				_ = one.Close() // the first error is reported
			}
			return nil, fmt.Errorf("loop: %w", err)
		}
		all = append(all, l)
		address = l.Addr().String()
	}
	return all, nil
}

// AtLoopback reports whether a is a loopback IP address, which only this machine can reach. The
// address of a Unix socket is not.
func AtLoopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}

// Secure returns a listener whose connections use TLS.
func Secure(l net.Listener, config *tls.Config) net.Listener {
	return &secureListener{l, config}
}

// secureListener accepts connections before their handshake.
type secureListener struct {
	net.Listener
	config *tls.Config
}

// Insecure returns the wrapped listener and the configuration of TLS.
func (l *secureListener) Insecure() (net.Listener, *tls.Config) { return l.Listener, l.config }

// SetDeadline sets the deadline of Accept.
func (l *secureListener) SetDeadline(t time.Time) error {
	d, ok := l.Listener.(interface{ SetDeadline(time.Time) error })
	if !ok {
		return errors.ErrUnsupported
	}
	return d.SetDeadline(t)
}
