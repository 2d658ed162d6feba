package loop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// Listen binds address and returns up to n listeners of it, among which the kernel
// shares out new connections (SO_REUSEPORT of Linux); elsewhere, and for unix sockets,
// one. If the port is 0 all have the same one.
func Listen(network, address string, n int) ([]net.Listener, error) {
	if network == "unix" || !hasEpoll {
		n = 1
	}
	config := net.ListenConfig{}
	if n > 1 {
		config.Control = reusePort
	}
	if n > 1 {
		// Two servers of one user could share an address by mistake: a socket
		// without the option finds out whether somebody has it.
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
				_ = one.Close() // the first error is the one to report
			}
			return nil, fmt.Errorf("loop: %w", err)
		}
		all = append(all, l)
		address = l.Addr().String()
	}
	return all, nil
}

// AtLoopback reports whether a listener with the address is one that only this machine reaches
// by an IP address. That of a unix socket is not.
func AtLoopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}

// Secure makes the connections to a listener speak TLS.
func Secure(l net.Listener, config *tls.Config) net.Listener {
	return &secureListener{l, config}
}

// secureListener accepts connections that have not shaken hands.
type secureListener struct {
	net.Listener
	config *tls.Config
}

// Insecure returns the listener below, and what its connections are to speak.
func (l *secureListener) Insecure() (net.Listener, *tls.Config) { return l.Listener, l.config }

// SetDeadline bounds Accept.
func (l *secureListener) SetDeadline(t time.Time) error {
	d, ok := l.Listener.(interface{ SetDeadline(time.Time) error })
	if !ok {
		return errors.ErrUnsupported
	}
	return d.SetDeadline(t)
}
